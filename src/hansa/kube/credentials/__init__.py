"""Credentials for an API server: from kubeconfig files, from a pod's service account, or from a Secret."""

from hansa.kube.credentials.access import Access
from hansa.kube.credentials.refreshing import Credentials

__all__ = ["Access", "Credentials"]
