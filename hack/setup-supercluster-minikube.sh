#!/usr/bin/env bash
# Makes a cluster ready to join a pool of super clusters, and writes its manifests to the folder cluster_$SUPER_ID.
# It works for any cluster that a kubeconfig has; minikube is one whose context has the name of its profile.
set -euo pipefail

usage() {
  cat <<'END'
usage: setup-supercluster-minikube.sh SUPER_ID [FLAG…]

SUPER_ID is the id of the super cluster in placements. FLAGs are those of "hansa join", such as --image or --agent.

environment:
  CONTEXT       context of the super cluster (default SUPER_ID, which is what minikube calls it)
  KUBECONFIG    kubeconfig files (default: as kubectl)
  SUPER_SERVER  URL by which the meta cluster reaches its API server (default: the one of the kubeconfig, or the address of
                the machine of minikube)
END
}

case "${1:-}" in
  "" | -*) usage >&2; [ "${1:-}" = -h ] || [ "${1:-}" = --help ] && exit 0; exit 2 ;;
esac
id=$1
shift
context=${CONTEXT:-$id}
command -v hansa >/dev/null || { echo "setup-supercluster: hansa is not on the PATH; activate its environment" >&2; exit 1; }

# The kubeconfig of minikube may have a port of this machine, which pods of the meta cluster cannot reach.
if [ -z "${SUPER_SERVER:-}" ] && command -v minikube >/dev/null && address=$(minikube -p "$context" ip 2>/dev/null); then
  SUPER_SERVER=https://$address:8443
fi

hansa join "$context" --id "$id" --output "cluster_$id" ${SUPER_SERVER:+--server "$SUPER_SERVER"} "$@"

cat <<END

next, in the super cluster:
  kubectl --kubeconfig cluster_$id/kubeconfig apply -f cluster_$id/cluster-id.yaml
and in the meta cluster:
  for file in cluster-cr secret-for-scheduler vc-syncer secret-for-vc-syncer; do
    kubectl --context meta apply -f cluster_$id/\$file.yaml
  done
END
