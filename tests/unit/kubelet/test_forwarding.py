"""What callers are told when a lower cluster refuses a call."""

import pytest

from hansa.kube import errors
from hansa.kubelet import forwarding


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (errors.Unreachable("x", code=500, said='container not found ("app")'), 500, 'container not found ("app")'),
        (errors.Unreachable("cannot …: refused"), 502, "cluster low cannot be reached; try again"),
        (errors.Forbidden("x", code=403, said="no"), 502, "cluster low does not allow it: no"),
        (errors.Invalid("x", code=400, said="waiting to start"), 400, "waiting to start"),
        (errors.NotFound("x", code=404, said="gone"), 404, "gone"),
    ],
)
def test_an_answer_of_the_lower_cluster_is_passed_on(error, status, sentence):
    refusal = forwarding.refusal(error, "low", error.said)
    assert (refusal.status, str(refusal)) == (status, sentence)
