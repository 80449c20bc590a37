"""The programs of a control plane by name, and the command line of its etcd.

Used by local clusters and by tenants whose control planes are processes. How a cluster sets up the API server and the
programs beside it is left to them.
"""

from pathlib import Path

ETCD = "etcd"
APISERVER = "kube-apiserver"
CONTROLLERS = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"


def etcd_argv(binary: Path, folder: Path, *, is_fast: bool) -> list[str]:
    """The command line of a single etcd member that serves a Unix socket in its folder and has no port.

    Every user with access to the folder can use the socket.
    """
    # A single member never uses its peer and advertised addresses, but etcd requires valid URLs.
    unused = "http://localhost:1"
    return [
        str(binary),
        "--name=local",
        f"--data-dir={folder / 'data'}",
        f"--listen-client-urls=unix://{folder / 'client.sock'}",
        f"--listen-peer-urls=unix://{folder / 'peer.sock'}",
        f"--advertise-client-urls={unused}",
        f"--initial-advertise-peer-urls={unused}",
        f"--initial-cluster=local={unused}",
        f"--quota-backend-bytes={8 << 30}",
        "--log-level=warn",
        *(["--unsafe-no-fsync"] if is_fast else []),
    ]
