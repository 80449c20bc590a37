"""What `hansa whatif` prints, and which changes its flags are."""

import pytest

from hansa.cli import main, whatif
from hansa.runtime.errors import HansaError
from hansa.scheduling.forecasting.changes import Drain, Lose
from hansa.scheduling.forecasting.forecast import Fate, Forecast, Outcome, SliceChange


def parsed(*flags):
    return main.parser(("whatif",)).parse_args(["whatif", *flags])


def test_changes_may_be_repeated_and_combined():
    found = whatif.wanted(parsed("--lose", "r1", "--lose", "r2", "--drain", "r3/n1"))
    assert found == [Lose("r1"), Lose("r2"), Drain("r3", "n1")]
    with pytest.raises(HansaError, match="give at least one of --lose, --add-node, --drain and --quota"):
        whatif.wanted(parsed())


def test_pods_of_a_namespace_with_one_fate_are_one_row():
    pods = [Outcome(f"shop/web-{number}", Fate.MOVES, "r1", "r2", "r1 is lost") for number in range(3)]
    pods.append(Outcome("shop/new", Fate.PENDS, "", reason="r2: full"))
    slices = SliceChange("shop", {"r1": 3}, {"r2": 3})
    assert whatif.text(Forecast(tuple(pods), (slices,), 4, {"r3": "no answer"})).splitlines() == [
        "3 would move, 1 would be pending; 4 run on as before",
        "unknown: r3: no answer",
        "",
        "NAMESPACE   SLICES NOW   THEN   REASON",
        "shop        r1=3         r2=3",
        "",
        "POD                     FATE    NOW       THEN   REASON",
        "shop/web-0 and 2 more   moves   r1        r2     r1 is lost",
        "shop/new                pends   pending   -      r2: full",
    ]


def test_nothing_is_said_in_one_line():
    assert whatif.text(Forecast((), unaffected=2)) == "no pod changes; 2 run on as before"
