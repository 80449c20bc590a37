"""The samples in hack/virtualcluster, with the names that VirtualCluster gives them; run it to write them anew."""

from pathlib import Path

import yaml

from hansa.tenancy.operator import cluster_versions

FOLDER = Path(__file__).parents[2] / "hack" / "virtualcluster" / "config" / "sampleswithspec"
TYPES = {"nodeport": "cv-sample-np", "loadbalancer": "cv-sample-lb"}
VIRTUAL_CLUSTER = """\
apiVersion: tenancy.x-k8s.io/v1alpha1
kind: VirtualCluster
metadata:
  name: vc-sample-{number}
  namespace: default
spec:
  clusterVersionName: {version}
  clusterDomain: cluster.local
"""


def texts() -> dict[str, str]:
    """The texts of all samples by file name."""
    versions = {one.name: one.to_dict() for one in cluster_versions.samples()}
    made = {
        f"clusterversion_v1_{service}.yaml": yaml.safe_dump(versions[version], sort_keys=False, width=120)
        for service, version in TYPES.items()
    }
    for number in (1, 2):
        for service, version in TYPES.items():
            text = VIRTUAL_CLUSTER.format(number=number, version=version)
            made[f"virtualcluster_{number}_{service}.yaml"] = text
    return made


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
