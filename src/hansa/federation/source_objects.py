"""The objects that give a source its rights in this cluster: bindings, a service account, and a token. Pure."""

from collections.abc import Iterable
from typing import Any, Final

from hansa.federation.api import SOURCE_ROLE, SUMMARY_ROLE, Source, hashed
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import diff, keys
from hansa.model.mode import PatchPart

RBAC: Final = "rbac.authorization.k8s.io"
LONGEST_NAME: Final = 253
TOKEN_TYPE: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secrets
MADE: Final = "hansa-agent"  # the value of the annotation of service accounts and tokens that the agent made


def bindings(source: Source) -> list[tuple[Resource, Object]]:
    """The bindings of a source: its rights, in its namespace or in all, and the right to read the ClusterSummary."""
    key = source.key
    if key.namespace:
        # Namespace "a-b" with Source "c" would have the name of namespace "a" with Source "b-c".
        is_ambiguous = "-" in key.namespace or "-" in key.name
        viewer = f"admiralty-source-{key.namespace}-{key.name}-cluster-summary-viewer"
        viewer = hashed(viewer, str(key), longest=LONGEST_NAME, always=is_ambiguous)
        rights = hashed(f"admiralty-source-{key.name}", key.name, longest=LONGEST_NAME)
        return [
            _binding(source, resources.ROLE_BINDINGS, rights, SOURCE_ROLE),
            _binding(source, resources.CLUSTER_ROLE_BINDINGS, viewer, SUMMARY_ROLE),
        ]
    base = f"admiralty-cluster-source-{key.name}"
    return [
        _binding(
            source,
            resources.CLUSTER_ROLE_BINDINGS,
            hashed(name, f"/{key.name}{role}", longest=LONGEST_NAME),
            role,
        )
        for name, role in ((base, SOURCE_ROLE), (f"{base}-cluster-summary-viewer", SUMMARY_ROLE))
    ]


def service_account(name: NamespacedName) -> Object:
    """The service account of sources, if it does not exist."""
    return _made(resources.SERVICE_ACCOUNTS, name, {})


def token_name(account: NamespacedName) -> NamespacedName:
    """The name of the Secret with the token of a service account."""
    return NamespacedName(account.namespace, hashed(f"{account.name}-token", account.name, longest=LONGEST_NAME))


def token(account: NamespacedName) -> Object:
    """The Secret in which the cluster puts a token of a service account."""
    annotations = {keys.TOKEN_ACCOUNT: account.name}
    return _made(resources.SECRETS, token_name(account), annotations).with_fields(type=TOKEN_TYPE)


def is_made(obj: Object) -> bool:
    """Whether the agent made it for sources, so that it is deleted with the last of them."""
    return obj.annotations.get(keys.SOURCE) == MADE


def is_ours(obj: Object) -> bool:
    """Whether the agent made it, for any source."""
    return keys.SOURCE in obj.annotations


def binding_patches(have: Object, wanted: Object) -> Iterable[PatchPart]:
    """Patches of a binding; its role cannot be changed."""
    if patch := diff.fields_patch(have, wanted, ("subjects",)):
        yield PatchPart(patch)


def is_of(obj: Object, source: Source) -> bool:
    """Whether a binding was made for this source."""
    return obj.annotations.get(keys.SOURCE) == _name(source)


def _binding(source: Source, resource: Resource, name: str, role: str) -> tuple[Resource, Object]:
    namespace = source.key.namespace if resource.namespaced else ""
    return resource, Object.of(
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name,
                **({"namespace": namespace} if namespace else {}),
                "annotations": {keys.SOURCE: _name(source)},
            },
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": list(_subjects(source)),
        }
    )


def _subjects(source: Source) -> Iterable[dict[str, Any]]:
    if (account := source.account) is not None:
        yield {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    if source.spec.user_name:
        # Without apiGroup, which the server adds, it would look changed for ever.
        yield {"kind": "User", "name": source.spec.user_name, "apiGroup": RBAC}


def _name(source: Source) -> str:
    return f"{source.object.kind} {source.key.namespace}/{source.key.name}"


def _made(resource: Resource, name: NamespacedName, annotations: dict[str, str]) -> Object:
    return Object.of(
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name.name,
                "namespace": name.namespace,
                "annotations": {keys.SOURCE: MADE, **annotations},
            },
        }
    )
