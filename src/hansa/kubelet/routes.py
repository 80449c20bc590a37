"""The requests of the kubelet API that are served, and what each is at the lower API server. Pure.

Only parameters that are listed here are passed on. The pod is found by the caller; names in a path are never joined
into another path without being checked here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qsl, quote, unquote, urlencode

from hansa.kubelet.refusal import Refusal

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_CONTAINER = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_UID = re.compile(r"[A-Za-z0-9-]{1,64}")
MOST_PARAMETERS = 2000  # of a query; each argument of an exec is one

Query = Sequence[tuple[str, str]]


class Action(StrEnum):
    """What is asked of a container or a pod; also the label `action` of metrics."""

    LOGS = "logs"
    EXEC = "exec"
    ATTACH = "attach"
    PORT_FORWARD = "port-forward"

    @property
    def is_upgrade(self) -> bool:
        """Whether the connection becomes a byte tunnel."""
        return self is not Action.LOGS


@dataclass(frozen=True, slots=True)
class Call:
    """A request about a pod, as its path and query name it."""

    action: Action
    namespace: str
    pod: str
    container: str = ""
    uid: str = ""
    query: Query = ()

    @property
    def follows(self) -> bool:
        """Whether it is for a log that does not end with what is written already."""
        return any(name == "follow" and value != "false" for name, value in self.query)

    def target(self, namespace: str, pod: str) -> str:
        """The path and query of the same request at an API server, for a pod of that name there."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}/{_RULES[self.action].path}"
        query = [*self.query, *([("container", self.container)] if self.container else [])]
        return f"{path}?{urlencode(query)}" if query else path

    def kubelet_target(self, namespace: str, pod: str) -> str:
        """The path and query of the same request at a kubelet."""
        rule, names = _RULES[self.action], (namespace, pod, self.container)
        path = "/".join(("", _FIRST[self.action], *(quote(name, safe="") for name in names if name)))
        given = {name: parameter for parameter, name in rule.parameters.items()}
        query = [
            (given[name], _BOOLEANS.get(value, value) if name in _SWITCHES else value) for name, value in self.query
        ]
        return f"{path}?{urlencode(query)}" if query else path


@dataclass(frozen=True, slots=True)
class _Rule:
    action: Action
    path: str  # of the API server, below the pod
    methods: frozenset[str]
    names_container: bool
    parameters: dict[str, str]  # of the kubelet API → of the API server


_GET, _UPGRADE = frozenset({"GET"}), frozenset({"GET", "POST"})
_LOG_OPTIONS = (
    *("follow", "limitBytes", "previous", "sinceSeconds", "sinceTime"),
    *("stream", "tailLines", "timestamps"),
)
_STREAMS = {"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty"}
_SWITCHES = frozenset(_STREAMS.values())
_BOOLEANS = {"true": "1", "false": "0"}  # as API servers say it, and as kubelets do
_BY_PATH = {
    "containerLogs": _Rule(Action.LOGS, "log", _GET, True, {name: name for name in _LOG_OPTIONS}),
    "exec": _Rule(Action.EXEC, "exec", _UPGRADE, True, {"command": "command", **_STREAMS}),
    "attach": _Rule(Action.ATTACH, "attach", _UPGRADE, True, _STREAMS),
    "portForward": _Rule(Action.PORT_FORWARD, "portforward", _UPGRADE, False, {"port": "ports"}),
}
_FIRST = {rule.action: first for first, rule in _BY_PATH.items()}
_RULES = {rule.action: rule for rule in _BY_PATH.values()}


def action(target: str) -> Action | None:
    """What a request line asks of a pod, whether or not it is valid; None if nothing that is served."""
    rule = _BY_PATH.get(target.partition("?")[0].removeprefix("/").partition("/")[0])
    return None if rule is None else rule.action


def parse(method: str, target: str) -> Call:
    """The call that a request line makes. Raises a Refusal for anything else."""
    path, _, query = target.partition("?")
    first, *names = path.removeprefix("/").split("/")
    rule = _BY_PATH.get(first)
    if rule is None:
        raise Refusal(404, "404 page not found")
    if method not in rule.methods:
        raise Refusal(405, f"405: method {method[:16]} is not allowed")
    return _call(rule, [unquote(name) for name in names], _query(query, rule))


def _call(rule: _Rule, names: Sequence[str], query: Query) -> Call:
    """The uid is optional, and comes before the container."""
    least = 3 if rule.names_container else 2
    if len(names) not in (least, least + 1):
        raise Refusal(404, "404 page not found")
    namespace, pod, *rest = names
    container = rest.pop() if rule.names_container else ""
    call = Call(rule.action, namespace, pod, container, rest[0] if rest else "", query)
    checks = [(_NAME, namespace), (_NAME, pod), *((p, t) for p, t in ((_CONTAINER, container), (_UID, call.uid)) if t)]
    if any(not pattern.fullmatch(text) for pattern, text in checks):
        raise Refusal(404, "pod does not exist")
    return call


def _query(text: str, rule: _Rule) -> Query:
    try:
        given = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise Refusal(400, f"a request has at most {MOST_PARAMETERS} parameters") from None
    return list(_translated(given, rule))


def _translated(given: Query, rule: _Rule) -> Iterator[tuple[str, str]]:
    for name, value in given:
        if name not in rule.parameters or (not value and name != "command"):
            continue
        if rule.parameters[name] in _SWITCHES:
            value = "true" if value in ("1", "true") else "false"  # noqa: PLW2901 - kubelets say 1, API servers true
        yield rule.parameters[name], value
