"""Service accounts with exactly the rights of some manifests: their requests, refusals and unused rights."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from league import Member

RIGHTS = Path(__file__).parents[2] / "deploy" / "helm" / "hansa" / "rights"
# Checked by the API server on writes of a Role, a RoleBinding or an approval; no request has these verbs.
PASSING_ON = {"approve", "bind", "escalate"}


@dataclass
class Account:
    """A service account with exactly the rights of some files of the chart's folder `rights` in one cluster."""

    member: Member
    namespace: str
    name: str
    files: tuple[str, ...]
    kubeconfig: Path
    since: int = 0
    granted: set[tuple[str, str]] = field(default_factory=set)

    async def settle(self) -> None:
        """Create the account with its rights, and a kubeconfig with its token only."""
        for file in self.files:
            await self.member.kubectl("apply", "-f", str(RIGHTS / f"{file}.yaml"))
            self.granted |= set(rights(yaml.safe_load_all((RIGHTS / f"{file}.yaml").read_text())))
        token = await self.member.kubectl("-n", self.namespace, "create", "token", self.name)
        self.kubeconfig.write_text(self.member.with_token(token))
        self.since = len(self.member.audit())

    async def leave(self) -> None:
        """Delete the account and its rights."""
        for file in self.files:
            await self.member.kubectl("delete", "-f", str(RIGHTS / f"{file}.yaml"), "--ignore-not-found")

    def requests(self) -> list[dict[str, Any]]:
        """Its requests so far, from the audit log."""
        user = f"system:serviceaccount:{self.namespace}:{self.name}"
        return [one for one in self.member.audit()[self.since :] if one["user"]["username"] == user]

    def refused(self) -> set[str]:
        """What it had no right to. Nobody has one to make anything in a namespace that goes: that is no refusal."""
        return {f"{one['verb']} {one['requestURI'].partition('?')[0]}" for one in self.requests() if is_refused(one)}

    def unused(self) -> set[tuple[str, str]]:
        """Rights that it did not need. Only a race needs to get an object, and only an old server a list of them."""
        used = {right for one in self.requests() if "objectRef" in one for right in _needed(one)}
        return {(verb, what) for verb, what in self.granted - used if verb not in PASSING_ON | {"get", "list"}}

    async def ended(self) -> bool:
        """Whether the audit log has all watches: they are written a moment after they end."""
        open_watches = [what for verb, what in self.unused() if verb == "watch"]
        assert not open_watches, open_watches
        return True


def is_refused(request: dict[str, Any]) -> bool:
    """Whether somebody had no right to a request of the audit log."""
    decision = request["annotations"].get("authorization.k8s.io/decision")
    return decision == "forbid" or _is_forbidden(request["responseStatus"])


def _is_forbidden(status: dict[str, Any]) -> bool:
    return status["code"] == 403 and "because it is being terminated" not in status.get("message", "")


def rights(objects: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """What Roles and ClusterRoles grant: verbs and resources."""
    for obj in objects:
        for rule in obj.get("rules") or ():
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    yield from ((verb, f"{resource}.{group}") for verb in rule["verbs"])


def _needed(request: dict[str, Any]) -> Iterator[tuple[str, str]]:
    ref = request["objectRef"]
    resource = "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))
    what = f"{resource}.{ref.get('apiGroup', '')}"
    yield request["verb"], what
    if request["verb"] == "patch" and request["responseStatus"]["code"] == 201:  # an apply that made it
        yield "create", what
