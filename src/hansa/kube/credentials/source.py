"""Where a program finds the credentials of a cluster: in a kubeconfig, or wherever kubectl or a pod would look."""

import os
from dataclasses import dataclass
from pathlib import Path

from hansa.kube.credentials import Credentials, incluster, kubeconfig


@dataclass(frozen=True, slots=True)
class Source:
    """Where a cluster's credentials are: in a kubeconfig, or without one wherever kubectl would look."""

    kubeconfig: Path | None = None
    context: str = ""

    async def find(self) -> Credentials:
        """The credentials; without a kubeconfig from where kubectl looks, or from the pod that we run in."""
        if self.kubeconfig is not None:
            found = kubeconfig.from_files(self.kubeconfig, context=self.context)
        elif incluster.FOLDER.exists() and "KUBECONFIG" not in os.environ:
            found = incluster.from_pod()
        else:
            found = kubeconfig.from_environment(context=self.context)
        await found.access()  # what cannot be read is told now, not by every part that needs it
        return found
