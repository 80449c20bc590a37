"""The delegate of a proxy pod: the pod as its user created it, as a guest of the target.

It gets the constraints that the webhook kept. Fields that the source cluster's admission filled in are dropped: the
target fills in its own, such as the token of its service account and the priority of its class.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from hansa.kube.objects import Object
from hansa.model import keys, references
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.references import Reference
from hansa.model.translation.common import names
from hansa.model.translation.common.pod import affinity, fields, updates
from hansa.model.translation.common.pod.spec import Spec, on_spec, with_containers
from hansa.model.translation.federation import labels, metadata, source_pod

TOKEN_MOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - a path


def restore_constraints(_spec: Spec, pod: Object, _link: Link) -> Spec:
    """The constraints of the pod as its user created it; none that its user has moved to the proxy pod."""
    spec = source_pod.spec_of(pod)
    moved = source_pod.CONSTRAINTS if keys.USE_CONSTRAINTS in pod.annotations else ()
    return {name: value for name, value in spec.items() if name not in (*moved, "schedulingGates")}


def drop_token(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Drop the token of the source cluster: admission in the target mounts one of its service account."""
    mounted = _token_volumes(spec)
    if not mounted:
        return spec

    def container(one: Spec) -> Spec:
        mounts = [m for m in one.get("volumeMounts") or () if m["name"] not in mounted]
        return {name: value for name, value in one.items() if name != "volumeMounts"} | (
            {"volumeMounts": mounts} if mounts else {}
        )

    volumes = [one for one in spec["volumes"] if one["name"] not in mounted]
    return with_containers({k: v for k, v in spec.items() if k != "volumes"}, container) | (
        {"volumes": volumes} if volumes else {}
    )


def select_delegates(spec: Spec, pod: Object, _link: Link) -> Spec:
    """Pod affinity and topology spread select the delegates of the pods that they selected in the source."""
    relabeling = labels.of(pod.annotations)

    def term(one: Spec) -> Spec:
        selector = one.get("labelSelector")
        changed: Spec = {"labelSelector": relabeling.selector(selector)} if selector else {}
        for name in ("matchLabelKeys", "mismatchLabelKeys"):
            if one.get(name):
                changed[name] = [relabeling.key(key, pod.labels.get(key, "")) for key in one[name]]
        return one | changed

    spread = spec.get("topologySpreadConstraints")
    return affinity.with_terms(spec | ({"topologySpreadConstraints": [*map(term, spread)]} if spread else {}), term)


def rename_label_fields(spec: Spec, pod: Object, _link: Link) -> Spec:
    """Let the downward API read labels under the keys that they have on the delegate."""
    if "metadata.labels['" not in pod.raw("spec").decode():
        return spec
    relabeling = labels.of(pod.annotations)

    def path(text: str) -> str:
        before, quote, rest = text.partition("metadata.labels['")
        key, end, after = rest.partition("']")
        return f"{before}{quote}{relabeling.key(key, pod.labels.get(key, ''))}{end}{after}" if quote and end else text

    return _with_field_paths(spec, path)


DOWN: Final = (
    on_spec(
        restore_constraints,
        fields.drop_node_fields,
        fields.drop_readiness_gates,
        affinity.drop_applied_label_keys,
        select_delegates,
        drop_token,
        rename_label_fields,
    ),
    metadata.delegate,
    updates.annotate_images,
)


def down_patches(lower: Object, wanted: Object) -> Iterable[PatchPart]:
    """Patches of the delegate. Annotations are synced down once and then up: what the target changes stays."""
    kept = {key: value for key, value in lower.annotations.items() if not metadata.is_own_annotation(key)}
    ours = {key: value for key, value in wanted.annotations.items() if metadata.is_own_annotation(key)}
    sides = (one.annotations.get(keys.CARRIED, ";").partition(";") for one in (wanted, lower))
    (carried_labels, *_), (*_, carried_annotations) = sides
    ours[keys.CARRIED] = f"{carried_labels};{carried_annotations}"
    yield from updates.down_patches(lower, wanted.with_metadata(annotations=kept | ours))


def references_of(proxy: Object) -> Iterator[Reference]:
    """What a delegate refers to in the target: neither what each cluster has itself, nor claims made for the pod."""
    bare = proxy.with_fields(spec=drop_token(proxy.spec, proxy, _NO_LINK))
    volumes = bare.spec.get("volumes") or ()
    made = {references.ephemeral_claim(proxy.name, one["name"]) for one in volumes if "ephemeral" in one}
    made |= {names.ROOT_CA}
    yield from (one for one in references.objects_of_pod(bare) if one.name not in made)


_NO_LINK: Final = Link("", "", "")


def _token_volumes(spec: Spec) -> set[str]:
    """The volumes that hold a token: those that admission mounted, by their place."""
    containers = [one for kind in ("initContainers", "containers") for one in spec.get(kind) or ()]
    mounted = {
        mount["name"]
        for one in containers
        for mount in one.get("volumeMounts") or ()
        if mount.get("mountPath") == TOKEN_MOUNT
    }
    return {one["name"] for one in spec.get("volumes") or () if one["name"] in mounted and "projected" in one}


def _with_field_paths(spec: Spec, change: Callable[[str], str]) -> Spec:
    """The spec with the path of each fieldRef changed."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            inner = {name: changed(one) for name, one in value.items()}
            path = inner.get("fieldPath")
            return inner | {"fieldPath": change(path)} if isinstance(path, str) else inner
        return [changed(one) for one in value] if isinstance(value, list) else value

    return spec | {name: changed(spec[name]) for name in ("initContainers", "containers", "volumes") if spec.get(name)}
