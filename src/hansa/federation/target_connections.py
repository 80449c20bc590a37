"""Connects targets: a cluster, a route and credentials for each, by its Secret; replaced when the Target changes.

A target that cannot be connected has a problem as the reason, and keeps its former connection. The target controller
calls it, and decides when a target ends.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from hansa.control.store import Store
from hansa.engine.cluster import Cluster
from hansa.engine.registry import ClusterRegistry, Route
from hansa.federation import target_credentials
from hansa.federation.api import BadObject, Target
from hansa.federation.target_member import TargetMember
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.objects import Object
from hansa.nodes.lower_state import Problem

NAMESPACE_NOT_FOUND: Final = "NamespaceNotFound"
Connect = Callable[[SecretCredentials], Client]
MakeCluster = Callable[[str, Client, frozenset[str] | None], Cluster]


@dataclass(slots=True)
class JoinedTarget:
    """A target that is served, with its present connection."""

    member: TargetMember
    uid: str
    credentials: SecretCredentials | None = None
    has_namespace: bool = False  # that of the Target was seen in the target
    identity: tuple[object, ...] = ()  # of the connection; a change of it means another connection
    checked: tuple[object, ...] = ()  # the Secret that was found valid: each change of a summary leads here
    ends: list[Callable[[], None]] = field(default_factory=list)


class TargetConnections:
    """Connections from the `source` cluster; `secrets` are its Secrets."""

    def __init__(
        self, registry: ClusterRegistry, source: Cluster, secrets: Store, *, connect: Connect, join: MakeCluster
    ) -> None:
        self._registry, self._source, self._secrets = registry, source, secrets
        self._connect, self._make_cluster = connect, join

    async def update(self, target: Target, joined: JoinedTarget) -> None:
        """Connect it, or use its newest credentials; without valid ones it has a problem, and keeps its connection."""
        member = joined.member
        identity = (target.is_self, target.spec.kubeconfig_secret)
        if joined.identity != identity:
            await self.disconnect(joined)
        try:
            secret = self._secret_of(target, joined)
        except BadObject as error:
            member.set_problem(Problem(error.reason, str(error)))
            return
        if member.cluster is None:
            joined.identity = identity
            await self._join(target, joined, secret)
        elif joined.credentials is not None and secret is not None:
            joined.credentials.observe(secret)
        member.set_problem(await _namespace_problem(target, joined))
        self._link(member)

    async def disconnect(self, joined: JoinedTarget) -> None:
        """Leave the cluster, with its route."""
        joined.identity, joined.credentials, joined.has_namespace = (), None, False
        if joined.member.cluster is not None:
            await self._registry.leave(joined.member.node)
            await joined.member.disconnect()

    def _secret_of(self, target: Target, joined: JoinedTarget) -> Object | None:
        """The Secret with valid credentials; None for this cluster itself."""
        if (name := target.secret) is None:
            return None
        secret = self._secrets.get(name)
        identity = (target.spec.kubeconfig_secret, secret and (secret.uid, secret.version))
        if secret is None or joined.checked != identity:
            secret = target_credentials.checked(target, name, secret)
            joined.checked = identity
        return secret

    async def _join(self, target: Target, joined: JoinedTarget, secret: Object | None) -> None:
        namespaces = frozenset({target.key.namespace}) if target.key.namespace else None
        client, close = self._source.client, _nothing
        if secret is not None:
            joined.credentials = target_credentials.of(target, secret)
            client = self._connect(joined.credentials)
            close = client.close
        cluster = self._make_cluster(joined.member.node, client, namespaces)
        self._registry.join(cluster)
        await joined.member.connect(cluster, close)

    def _link(self, member: TargetMember) -> None:
        link = member.link()
        route = Route(self._source.name, member.node, link, frozenset({member.node}), is_self=member.target.is_self)
        if route not in self._registry.routes(route.upper):
            self._registry.link(route)


async def _namespace_problem(target: Target, joined: JoinedTarget) -> Problem | None:
    """Whether the target lacks the namespace of the Target. That it is deleted later is reported on pods."""
    cluster, name = joined.member.cluster, target.key.namespace
    if cluster is None or cluster.health.error or target.is_self or not name or joined.has_namespace:
        return None
    try:
        await cluster.client.get(resources.NAMESPACES, name)
    except errors.NotFound:
        return Problem(NAMESPACE_NOT_FOUND, f'namespace "{name}" does not exist in the target: create it there')
    except errors.ApiError as error:
        # Without the right to read it, it is not asked for again.
        joined.has_namespace = isinstance(error, errors.Denied)
    else:
        joined.has_namespace = True
    return None


async def _nothing() -> None:
    """The client of this cluster itself is not closed with a target."""
