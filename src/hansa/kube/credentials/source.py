"""Finds the credentials of a cluster: a given kubeconfig, the pod's service account, or kubectl's default files."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from hansa.kube.credentials import Credentials, incluster, kubeconfig


@dataclass(frozen=True, slots=True)
class CredentialSource:
    """The source of a cluster's credentials: a kubeconfig and a context, or the defaults of `find`.

    `flag` is the flag or field by which the user names the kubeconfig, for messages.
    """

    kubeconfig: Path | None = None
    context: str = ""
    flag: str = field(default="--kubeconfig", compare=False)

    async def find(self) -> Credentials:
        """The credentials; without a kubeconfig those of this pod, otherwise $KUBECONFIG or ~/.kube/config."""
        if self.kubeconfig is not None:
            found = kubeconfig.from_files(self.kubeconfig, context=self.context, remedy=f"correct {self.flag}")
        elif incluster.FOLDER.exists() and "KUBECONFIG" not in os.environ:
            found = incluster.from_pod()
        else:
            found = kubeconfig.from_environment(context=self.context, flag=self.flag)
        await found.access()  # invalid credentials are reported once here, not by every component
        return found
