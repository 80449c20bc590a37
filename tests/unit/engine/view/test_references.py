"""The users of objects, against a computation from scratch."""

from hypothesis import given
from hypothesis import strategies as st

from hansa.engine.view.references import References
from hansa.engine.view.topics import ObjectRef
from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import lifecycle, placement
from hansa.model.mode import Mode, Rule
from hansa.model.pair import Key

PODS, MAPS, SECRETS = resources.PODS, resources.CONFIG_MAPS, resources.SECRETS


def named(resource, field):
    return lambda obj: [Key("", resource, "ns", name) for name in obj.spec.get(field, ())]


MODE = Mode(
    name="test",
    rules={
        PODS: Rule(PODS, placement=placement.by_node_name, references=named(MAPS, "uses"), lifecycle=lifecycle.POD),
        # A ConfigMap may itself refer to Secrets, and a Service's place follows the users of ConfigMaps.
        MAPS: Rule(MAPS, placement=placement.with_users, references=named(SECRETS, "uses")),
        SECRETS: Rule(SECRETS, placement=placement.with_users),
        resources.SERVICES: Rule(
            resources.SERVICES, placement=placement.with_users_of(named(MAPS, "uses")), placed_with=named(MAPS, "uses")
        ),
    },
)
CLUSTERS = {"node-a": "a", "node-b": "b"}


class World:
    """Upper objects, and the index that gets each change as from a view."""

    def __init__(self):
        self.objects, self.woken, self.version = {}, [], 0
        self.references = References("up", MODE, self.moved)
        self.facts = placement.PlacementContext(frozenset("ab"), CLUSTERS, self.references.users)

    def put(self, resource, name, spec=None, status=None):
        self.version += 1
        key = ObjectRef(resource, NamespacedName("ns", name))
        self.objects.pop(key, None)
        if spec is not None:
            metadata = {
                "namespace": "ns",
                "name": name,
                "uid": f"{resource}-{name}",
                "resourceVersion": f"{self.version}",
            }
            value = {"metadata": metadata, "spec": spec} | ({"status": status} if status else {})
            self.objects[key] = Object.of(value)
        self.references.update(key, self.objects.get(key), self.facts)

    def moved(self, name):
        self.woken.append(name)
        self.references.update(name, self.objects.get(name), self.facts)

    def expected(self):
        """Where everything is needed, computed from nothing."""
        users = {}
        for _ in range(3):  # as deep as references go here
            facts = placement.PlacementContext(
                frozenset("ab"), CLUSTERS, lambda r, p, users=users: frozenset(users.get((r, p), ()))
            )
            found = {}
            for (resource, place), obj in self.objects.items():
                rule = MODE.rules[resource]
                for cluster in rule.needs(obj, Key("up", resource, *place), facts):
                    for one in rule.references(obj):
                        found.setdefault((one.resource, NamespacedName(one.namespace, one.name)), set()).add(cluster)
            users = found
        return {name: frozenset(clusters) for name, clusters in users.items()}


names = st.sampled_from(["x", "y", "z"])
uses = st.lists(names, max_size=2)
pods = st.fixed_dictionaries({"nodeName": st.sampled_from(["node-a", "node-b", "other"]), "uses": uses})
steps = st.one_of(
    st.tuples(st.just(PODS), names, st.none() | pods, st.sampled_from(["Pending", "Running", "Succeeded"])),
    st.tuples(st.just(MAPS), names, st.none() | st.fixed_dictionaries({"uses": uses}), st.just("")),
)


@given(st.lists(steps, max_size=25))
def test_users_are_the_same_as_if_computed_from_nothing(changes):
    world = World()
    for resource, name, spec, phase in changes:
        world.put(resource, name, spec, {"phase": phase} if phase else None)
        expected = world.expected()
        for target in (MAPS, SECRETS):
            for one in "xyz":
                place = NamespacedName("ns", one)
                assert world.references.users(target, place) == expected.get((target, place), frozenset())


def test_only_those_whose_users_change_are_woken():
    world = World()
    world.put(PODS, "p", {"nodeName": "node-a", "uses": ["x"]})
    assert world.woken == [ObjectRef(MAPS, NamespacedName("ns", "x"))]
    world.put(PODS, "q", {"nodeName": "node-a", "uses": ["x"]})
    world.put(PODS, "q", {"nodeName": "node-a", "uses": ["x"]}, {"phase": "Running"})
    assert len(world.woken) == 1, "a second pod in the same cluster changes nothing"
    world.put(PODS, "q", {"nodeName": "node-b", "uses": ["x"]})
    assert len(world.woken) == 2
    world.put(PODS, "p", {"nodeName": "node-a", "uses": ["x"]}, {"phase": "Failed"})
    assert world.references.users(MAPS, NamespacedName("ns", "x")) == {"b"}


def test_who_follows_the_users_of_another_is_woken_with_it():
    world = World()
    world.put(resources.SERVICES, "s", {"uses": ["x"]})
    world.put(PODS, "p", {"nodeName": "node-a", "uses": ["x"]})
    assert ObjectRef(resources.SERVICES, NamespacedName("ns", "s")) in world.woken


def test_nothing_is_remembered_of_what_is_gone():
    world = World()
    world.put(MAPS, "x", {"uses": ["y"]})
    world.put(resources.SERVICES, "s", {"uses": ["x"]})
    world.put(PODS, "p", {"nodeName": "node-a", "uses": ["x"]})
    for resource, name in ((PODS, "p"), (MAPS, "x"), (resources.SERVICES, "s")):
        world.put(resource, name)
    assert not any((world.references._parts, world.references._users, world.references._placed_with))
