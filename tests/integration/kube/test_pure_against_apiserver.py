"""The pure parts of kube, asked the same questions as a real API server."""

import itertools
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.language import field_selectors, quantity, selectors
from hansa.kube.objects import Object
from hansa.kube.resource import Resource

T = TypeVar("T")
REFUSED = frozenset({"refused"})
SLICES = Resource("resource.k8s.io", "v1", "resourceslices", kind="ResourceSlice", namespaced=False)
DEVICES, CAPACITIES = 128, 32  # the most that one ResourceSlice may have

SUFFIXES = ["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
EXPONENTS = [*(f"e{e}" for e in (-20, -10, -9, -7, -3, -1, 0, 1, 2, 3, 7, 18, 20, 40, 999, -999)), "E3", "e+6", "E-2"]
NUMBERS = [
    *("0", "00", "1", "5", "7", "8", "9", "10", "16", "100", "128", "500", "512", "999", "1000", "1023", "1024"),
    *("1025", "1500", "2048", "10240", "65536", "100000", "1000000", "1048576", "123456789", "1000000000"),
    *("999999999999", "99999999999999", "100000000000000", "999999999999999999", "1000000000000000000"),
    *("9223372036854775807", "9223372036854775808", "0.1", "0.5", "0.25", "1.5", "1.250", "1.000", "1.001"),
    *("10.0", "3.14159", "0.001", "0.0001", "0.000000001", "0.0000000001", "1.0000000001", "1023.5", "1024.5"),
    *("999999999.999999999", "007", "0.0", "1.", ".5", ".", "000.500", "1.10", "12345678901234567.89"),
    *("123456789012345678.9", "0.00000000000000000001"),
]
NO_QUANTITIES = ["", " ", "abc", "1K", "1ki", "1Ii", "1 Gi", "--1", "+-1", "1e", "1e+", "1e1.5", "1Gii", "0x1", "1_0"]

LABEL_SELECTORS = [
    *("", "a", "!a", "a=b", "a==b", "a!=b", "a=", "a!=", "a in (b)", "a in (b,c)", "a notin (b,c)", "a in ()", "a<6"),
    *("a in (,b)", "a notin (b,)", "a notin ()", "a>5", "a>99", "a=b,e=x", "a,!e", "a!=b,e!=x", " a = b , e ", "e,a"),
    *("in in (in)", "notin", "example.com/a", "!example.com/a", "example.com/a=1", "a=b,a=c", "a,a", "a\n=\tb"),
    *("a,", ",a", "a b", "a in b", "a in (b", "!a=b", "a=b=c", "a===b", "a>x", "a>", "a>-1", "-a", "/a", "a/b/c"),
    *("A.com/a", "a=b-", "a=" + "b" * 63, "a=" + "b" * 64, "b" * 63, "b" * 64, "x" * 253 + "/a", "a=é", "a in(b)"),
    *("a>9223372036854775807", "a>9223372036854775808", "(a)", "a=(b)", "!", "!!a", "a!b", "a<=5", "a in (b c)"),
    str(selectors.NOTHING),
]
GOOD_SELECTORS: list[dict[str, Any]] = [
    {"matchLabels": {"z": "1", "app": "shop"}},
    {"matchExpressions": [{"key": "z", "operator": "In", "values": ["2", "1"]}, {"key": "app", "operator": "Exists"}]},
    {
        "matchLabels": {"app": "shop"},
        "matchExpressions": [
            {"key": "z", "operator": "NotIn", "values": ["9", "8"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    },
]
BAD_SELECTORS: list[dict[str, Any]] = [
    {"matchLabels": {"-": "x"}},
    {"matchLabels": {"a": "x y"}},
    {"matchLabels": {"a": 1}},
    {"matchExpressions": [{"key": "a", "operator": "In"}]},
    {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
    {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
    {"matchExpressions": [{"key": "a", "operator": "Equals", "values": ["1"]}]},
    {"matchExpressions": [{"operator": "Exists"}]},
]
FIELDS = [
    *("metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.hostNetwork"),
    *("spec.schedulerName", "spec.serviceAccountName", "status.phase", "status.podIP", "status.nominatedNodeName"),
]
FIELD_VALUES = ["", "plain", "n1", "Running", "Never", "true", "false", "nobody"]
FIELD_VALUES += [r"a\,b", r"n\=1", r"n\\1", r"\n1", "n=1", "n1\\"]
ODD_FIELD_SELECTORS = [
    "",
    ",",
    "metadata.name",
    "=x",
    "metadata.name===x",
    "metadata.name=plain,,status.phase=Pending,",
]


async def test_every_quantity_is_spelled_as_the_server_spells_it(client: Client) -> None:
    read, _ = split(every_number_with_every_suffix() + random_quantities(8000))
    texts = [text for text in read if not is_past_the_last_suffix(text)]
    theirs = await spelled_by(client, texts)
    ours = [str(quantity.parse(text)) for text in texts]
    assert [row for row in zip(texts, ours, theirs, strict=True) if row[1] != row[2]] == []
    assert len(texts) > 10000


async def test_what_we_refuse_as_a_quantity_the_server_refuses_too(client: Client) -> None:
    _, refused = split(every_number_with_every_suffix() + random_quantities(4000))
    texts = [*dict.fromkeys(refused), *NO_QUANTITIES]
    assert [text for text in texts if await answer(spelled_by(client, [text])) != REFUSED] == []
    assert split(NO_QUANTITIES) == ([], NO_QUANTITIES)
    assert len(texts) > 30


async def test_numbers_of_a_manifest_are_read_as_the_server_reads_them(client: Client) -> None:
    numbers = [0, 1, -1, 2048, 0.5, 1.25, 0.1, 1e21, 1e-7, 123456789.125]
    assert await spelled_by(client, numbers) == [str(quantity.parse(number)) for number in numbers]


async def test_past_the_last_suffix_the_server_loses_the_value_and_we_keep_it(client: Client) -> None:
    assert await spelled_by(client, ["1000E", "1" + "0" * 24]) == ["1", "1"]
    assert [str(quantity.parse(text)) for text in ("1000E", "1" + "0" * 24)] == ["1000E", "1000000E"]


async def test_resource_lists_are_rounded_up_to_milli_as_the_server_does(client: Client, namespace: str) -> None:
    read, _ = split(every_number_with_every_suffix() + random_quantities(2000))
    texts = [text for text in read if quantity.parse(text) >= quantity.ZERO and not is_past_the_last_suffix(text)]
    hard = {f"requests.example.com/r{i}": text for i, text in enumerate(texts)}
    quota = Object.of({"metadata": {"name": "quantities"}, "spec": {"hard": hard}})
    theirs = (await client.create(resources.QUOTAS, quota, namespace=namespace, dry_run=True)).spec["hard"]
    ours = {name: str(quantity.parse(text).rounded_up()) for name, text in hard.items()}
    assert [(hard[name], ours[name], theirs[name]) for name in hard if ours[name] != theirs[name]] == []


async def test_label_selectors_select_and_refuse_as_the_server_does(client: Client, namespace: str) -> None:
    labelled = await labelled_config_maps(client, namespace)

    async def by_server(text: str) -> set[str]:
        return await listed(client, resources.CONFIG_MAPS, namespace, labels=text) & labelled.keys()

    def by_us(text: str) -> set[str]:
        selector = selectors.parse(text)
        return {name for name, labels in labelled.items() if selector.matches(labels)}

    texts = LABEL_SELECTORS + random_label_selectors(400)
    ours = {text: or_refused(by_us, text) for text in texts}
    theirs = {text: await answer(by_server(text)) for text in texts}
    assert {text: (ours[text], theirs[text]) for text in texts if ours[text] != theirs[text]} == {}
    good = [text for text in texts if ours[text] != REFUSED]
    assert [text for text in good if await by_server(str(selectors.parse(text))) != theirs[text]] == []
    assert 150 < len(good) < len(texts) - 50


@pytest.mark.parametrize("selector", GOOD_SELECTORS)
async def test_an_object_selector_is_printed_as_the_server_prints_it(
    client: Client, namespace: str, selector: dict[str, Any]
) -> None:
    labels = {"app": "shop", "z": "1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"replicas": 0, "selector": selector, "template": template}
    deployment = Object.of({"metadata": {"name": "d"}, "spec": spec})
    await client.create(resources.DEPLOYMENTS, deployment, namespace=namespace)
    scale = await client.get(resources.DEPLOYMENTS, "d", namespace=namespace, subresource="scale")
    assert str(selectors.of_object(selector)) == scale.status["selector"]
    assert selectors.of_object(selector).matches(labels)


@pytest.mark.parametrize("selector", BAD_SELECTORS)
async def test_an_object_selector_that_we_refuse_the_server_refuses_too(
    client: Client, namespace: str, selector: dict[str, Any]
) -> None:
    policy = Object.of({"metadata": {"name": "p"}, "spec": {"podSelector": selector}})
    with pytest.raises(selectors.SelectorError):
        selectors.of_object(selector)
    with pytest.raises(errors.Invalid):
        await client.create(resources.NETWORK_POLICIES, policy, namespace=namespace, dry_run=True)


async def test_field_selectors_select_and_refuse_as_the_server_does(client: Client, namespace: str) -> None:
    pods = [pod.to_dict() for pod in await various_pods(client, namespace)]

    def by_us(text: str) -> set[str]:
        selector = field_selectors.parse(text)
        return {pod["metadata"]["name"] for pod in pods if selector.matches_object(pod)}

    terms = ["".join(term) for term in itertools.product(FIELDS, ("=", "==", "!="), FIELD_VALUES)]
    chance = random.Random(6)
    texts = ODD_FIELD_SELECTORS + terms + [",".join(chance.choices(terms, k=chance.choice([2, 3]))) for _ in range(100)]
    ours = {text: or_refused(by_us, text) for text in texts}
    theirs = {text: await answer(listed(client, resources.PODS, namespace, fields=text)) for text in texts}
    assert {text: (ours[text], theirs[text]) for text in texts if ours[text] != theirs[text]} == {}
    assert REFUSED in ours.values()
    assert {"bound", "host"} in ours.values()


async def test_a_term_of_nothing_is_refused_although_the_server_passes_over_it(client: Client, namespace: str) -> None:
    await various_pods(client, namespace)
    assert await listed(client, resources.PODS, namespace, fields="!=") == {"plain", "bound", "host", "done"}
    with pytest.raises(selectors.SelectorError):
        field_selectors.parse("!=")


async def spelled_by(client: Client, texts: Sequence[str | float]) -> list[str]:
    """The server's spelling of quantities, from the one place where it takes any and rounds none: devices."""
    found: list[str] = []
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    for some in batches(texts, DEVICES * CAPACITIES):
        devices = [
            {"name": f"d{i}", "capacity": {f"c{j}": {"value": text} for j, text in enumerate(row)}}
            for i, row in enumerate(batches(some, CAPACITIES))
        ]
        spec = {"driver": "test.example.com", "pool": pool, "allNodes": True, "devices": devices}
        made = await client.create(SLICES, Object.of({"metadata": {"name": "s"}, "spec": spec}), dry_run=True)
        for device in made.spec["devices"]:
            found += [device["capacity"][f"c{j}"]["value"] for j in range(len(device["capacity"]))]
    return found


def batches(texts: Sequence[T], size: int) -> list[Sequence[T]]:
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def is_past_the_last_suffix(text: str) -> bool:
    """Whether the server has no suffix for it: a thousand exa or a multiple, in decimal form."""
    one = quantity.parse(text)
    return one.format is quantity.Format.DECIMAL and not one.text and bool(one) and one.nano % 10**30 == 0


def every_number_with_every_suffix() -> list[str]:
    return ["".join(parts) for parts in itertools.product(("", "-", "+"), [*NUMBERS, ""], SUFFIXES + EXPONENTS)]


def random_quantities(count: int) -> list[str]:
    chance = random.Random(4)

    def digits(most: int) -> str:
        return "".join(chance.choices("0123456789", k=chance.randint(0, most)))

    def one() -> str:
        whole = chance.choice(["", "", "-", "+"]) + chance.choice(["", "", "00"]) + digits(20)
        more = chance.choice(["", "", "", "000", "000000"]) + chance.choice(["", "", "." + digits(12)])
        suffix: str = chance.choice([*SUFFIXES, f"e{chance.randint(-25, 40)}"])
        return whole + more + suffix

    return [one() for _ in range(count)]


def split(texts: list[str]) -> tuple[list[str], list[str]]:
    """The texts that we read as quantities, and those that we refuse."""
    read, refused = [], []
    for text in texts:
        try:
            quantity.parse(text)
            read.append(text)
        except quantity.QuantityError:
            refused.append(text)
    return read, refused


def random_label_selectors(count: int) -> list[str]:
    chance = random.Random(5)
    words = ["a", "e", "in", "notin", "b", "c", "x", "5", "=", "==", "!=", "!", "(", ")", ",", " ", ">", "<"]
    shapes = ["{k}={v}", "{k}!={v}", "{k} in ({v},{w})", "{k} notin ({v},{w})", "{k}", "!{k}", "{k}>{v}", "{k}<{v}"]

    def one() -> str:
        if chance.random() < 0.5:
            return "".join(chance.choices(words, k=chance.randint(1, 7)))
        pick = {"k": chance.choice(["a", "e", "in"]), "v": chance.choice(["b", "5", ""]), "w": chance.choice(["c", ""])}
        return ",".join(chance.choice(shapes).format(**pick) for _ in range(chance.randint(1, 3)))

    return [one() for _ in range(count)]


async def labelled_config_maps(client: Client, namespace: str) -> dict[str, dict[str, str]]:
    found = {}
    first = [None, "", "b", "c", "5", "10", "9" * 20]
    for a, e, other in itertools.product(first, [None, "x", "y"], ["in", "example.com/a"]):
        labels = {key: value for key, value in (("a", a), ("e", e), (other, "1")) if value is not None}
        config_map = Object.of({"metadata": {"generateName": "m-", "labels": labels}})
        found[(await client.create(resources.CONFIG_MAPS, config_map, namespace=namespace)).name] = labels
    return found


async def various_pods(client: Client, namespace: str) -> Sequence[Object]:
    account = Object.of({"metadata": {"name": "tester"}})
    await client.create(resources.SERVICE_ACCOUNTS, account, namespace=namespace)
    basic = {"containers": [{"name": "c", "image": "none"}], "serviceAccountName": "tester", "schedulerName": "nobody"}
    for name, spec, phase in (
        ("plain", {}, "Pending"),
        ("bound", {"nodeName": "n1"}, "Running"),
        ("host", {"nodeName": "n2", "hostNetwork": True}, "Running"),
        ("done", {"restartPolicy": "Never"}, "Succeeded"),
    ):
        pod = Object.of({"metadata": {"name": name}, "spec": basic | spec})
        await client.create(resources.PODS, pod, namespace=namespace)
        change = {"status": {"phase": phase}}
        await client.patch(resources.PODS, name, change, namespace=namespace, subresource="status")
    return (await client.list(resources.PODS, namespace=namespace)).items


async def listed(client: Client, resource: Resource, namespace: str, *, labels: str = "", fields: str = "") -> set[str]:
    page = await client.list(resource, namespace=namespace, labels=labels, fields=fields)
    return {item.name for item in page.items}


async def answer(asked: Awaitable[T]) -> T | frozenset[str]:
    try:
        return await asked
    except errors.Invalid:
        return REFUSED


def or_refused(decide: Callable[[str], set[str]], text: str) -> set[str] | frozenset[str]:
    try:
        return decide(text)
    except selectors.SelectorError:
        return REFUSED
