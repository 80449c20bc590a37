"""How nice tenants' programs are, by the number of tenants."""

import pytest

from hansa.tenancy.process.weights import niceness


@pytest.mark.parametrize("tenants", [5, 7, 20, 50])
def test_many_tenants_together_weigh_as_much_as_four(tenants: int) -> None:
    assert tenants * 1.25 ** -niceness(tenants) == pytest.approx(4, rel=0.12)


@pytest.mark.parametrize(("tenants", "steps"), [(0, 0), (1, 0), (4, 0), (1000, 19)])
def test_few_have_their_full_weight_and_no_niceness_is_beyond_what_there_is(tenants: int, steps: int) -> None:
    assert niceness(tenants) == steps
