"""The credentials of a target: a kubeconfig in a Secret, named by its Target."""

from hansa.federation.api import BadObject, Target
from hansa.kube.credentials import secret as secrets
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.errors import BadCredentials
from hansa.kube.objects import NamespacedName, Object


def checked(target: Target, name: NamespacedName, secret: Object | None) -> Object:
    """The Secret, if it has valid credentials; raises BadObject."""
    if secret is None:
        raise BadObject("SecretNotFound", f"waiting for Secret {name} with the kubeconfig: not found")
    try:
        secrets.login(secret, **_where(target))
    except BadCredentials as error:
        raise BadObject("BadKubeconfig", f"{error}; correct the Secret") from None
    return secret


def of(target: Target, secret: Object) -> SecretCredentials:
    """Credentials that follow the Secret."""
    return SecretCredentials(secret, **_where(target))


def _where(target: Target) -> dict[str, str]:
    reference = target.spec.kubeconfig_secret
    return {} if reference is None else {"key": reference.key, "context": reference.context}
