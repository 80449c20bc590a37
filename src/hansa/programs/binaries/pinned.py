"""The catalogue: every program that hansa can get, pinned to one version.

Checksums of releases are not pinned here: they are read from the publisher when a release is downloaded.
"""

from collections.abc import Mapping

from hansa.programs.binaries.binary import Binary, Build, Release

KUBERNETES = "v1.35.8"
KUBERNETES_COMMIT = "1c2e10a409eb1b03f2f28f401ce935312e20d9fb"  # the commit of tag v1.35.8


def catalogue() -> Mapping[str, Binary]:
    """Every program by its name."""
    entries = (
        _kubernetes("kube-apiserver"),
        _kubernetes("kube-controller-manager"),
        _kubernetes("kube-scheduler"),
        _kubernetes("kubelet"),
        _kubernetes("kube-proxy"),
        _kubernetes("kubectl", version_arguments=("version", "--client")),
        Binary(
            "etcd",
            "v3.6.10",
            Build("etcd", "go.etcd.io/etcd/server/v3"),
            Release(
                "https://github.com/etcd-io/etcd/releases/download/{version}/etcd-{version}-{os}-{arch}.tar.gz",
                "https://github.com/etcd-io/etcd/releases/download/{version}/SHA256SUMS",
                "etcd-{version}-{os}-{arch}/etcd",
            ),
        ),
        Binary(
            "kwok",
            "v0.8.0",
            Build("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
            Release(  # kwok publishes no checksums; GitHub computes one for each asset
                "https://github.com/kubernetes-sigs/kwok/releases/download/{version}/kwok-{os}-{arch}",
                "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/{version}",
            ),
        ),
        Binary(
            "helm",
            "v3.21.4",
            Build("helm", "helm.sh/helm/v3/cmd/helm", {"helm.sh/helm/v3/internal/version.version": "v3.21.4"}),
            Release(
                "https://get.helm.sh/helm-{version}-{os}-{arch}.tar.gz",
                "https://get.helm.sh/helm-{version}-{os}-{arch}.tar.gz.sha256sum",
                "{os}-{arch}/helm",
            ),
            version_arguments=("version", "--short"),
        ),
        Binary(  # checks the manifests in deploy/
            "kube-score",
            "v1.20.0",
            Build("kube-score", "github.com/zegl/kube-score/cmd/kube-score", {"main.version": "v1.20.0"}),
            Release(
                "https://github.com/zegl/kube-score/releases/download/{version}/kube-score_1.20.0_{os}_{arch}.tar.gz",
                "https://github.com/zegl/kube-score/releases/download/{version}/checksums.txt",
                "kube-score",
            ),
            version_arguments=("version",),
        ),
        # No official binary of these fits. The last number of coredns counts the changes of our own main.go.
        Binary(
            "agnhost",
            "v2.59",
            Build("kubernetes", "k8s.io/kubernetes/test/images/agnhost", {"main.Version": "v2.59"}),
        ),
        Binary("coredns", "v1.14.7-hansa.1", Build("coredns"), version_arguments=("-version",)),
        Binary("pause", "v1.0.0", Build("pause")),
        Binary(
            "metrics-server",
            "v0.9.0",
            Build(
                "metrics-server",
                "sigs.k8s.io/metrics-server/cmd/metrics-server",
                {"k8s.io/client-go/pkg/version.gitVersion": "v0.9.0"},
            ),
        ),
    )
    return {entry.name: entry for entry in entries}


def _kubernetes(name: str, *, version_arguments: tuple[str, ...] = ("--version",)) -> Binary:
    url = "https://dl.k8s.io/{version}/bin/{os}/{arch}/{name}"
    return Binary(
        name,
        KUBERNETES,
        Build("kubernetes", f"k8s.io/kubernetes/cmd/{name}", _kubernetes_variables()),
        Release(url, f"{url}.sha256"),
        version_arguments,
    )


def _kubernetes_variables() -> Mapping[str, str]:
    """Version variables; without them servers report v0.0.0-master, and clients and kubelets refuse such a server."""
    major, minor_number = KUBERNETES.removeprefix("v").split(".")[:2]
    values = {
        "gitVersion": KUBERNETES,
        "gitMajor": major,
        "gitMinor": minor_number,
        "gitCommit": KUBERNETES_COMMIT,
        "gitTreeState": "clean",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{name}": value for package in packages for name, value in values.items()}
