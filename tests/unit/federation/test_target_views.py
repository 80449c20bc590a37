"""The views of targets: a mapping by virtual node that notifies of changes only."""

from hansa.federation.target_views import TargetView, TargetViews
from hansa.model.translation.federation.target_link import TargetLink
from hansa.scheduling.cluster_view import ClusterView

NODE = "admiralty-namespace-default-c2"
LINK = TargetLink("c2", NODE, namespace="default")


def test_listeners_get_the_node_of_every_change_and_of_no_repetition():
    views, seen = TargetViews(), []
    end = views.listen(seen.append)
    views.update(TargetView(LINK, ClusterView(NODE), problem="not summarized yet"))
    views.update(TargetView(LINK, ClusterView(NODE), problem="not summarized yet"))
    views.update(TargetView(LINK, ClusterView(NODE), version="7"))
    views.remove(NODE)
    views.remove(NODE)
    end()
    views.update(TargetView(LINK, ClusterView(NODE)))
    assert seen == [NODE, NODE, NODE]
    assert views[NODE].is_usable
    assert list(views) == [NODE]


def test_a_namespaced_target_takes_its_namespace_only():
    assert LINK.takes("default")
    assert not LINK.takes("other")
    assert TargetLink("c2", "admiralty-cluster-c2").takes("other")
    assert (str(LINK), str(TargetLink("c2", "n"))) == ("Target default/c2", "ClusterTarget c2")
