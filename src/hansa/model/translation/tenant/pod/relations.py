"""How a pod wants to lie to other pods: those of its tenant only, wherever they are."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import naming
from hansa.model.pair import Link
from hansa.model.translation.pod import relations
from hansa.model.translation.pod.spec import Spec
from hansa.model.translation.tenant import namespaces, settings

_SELECTOR: Final = "namespaceSelector"


def stay_among_own(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Name the namespaces as they are below. A term that names none, and a spread, mean the pod's own anyway."""
    key = settings.of(link).key

    def term(one: Spec) -> Spec:
        changed: Spec = {}
        if one.get("namespaces"):
            changed["namespaces"] = [naming.super_namespace(key, name) for name in one["namespaces"]]
        if one.get(_SELECTOR) is not None:
            changed[_SELECTOR] = namespaces.selector(one[_SELECTOR], link)
        return one | changed

    return relations.with_terms(spec, term)
