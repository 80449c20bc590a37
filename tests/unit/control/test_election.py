import dataclasses

import pytest

from hansa.control import election
from hansa.runtime import errors


@pytest.mark.parametrize("wrong", [{"renew": 15}, {"retry": 10}, {"lease": 0.5, "renew": 0.4, "retry": 0.1}])
def test_times_that_cannot_keep_two_apart_are_refused(wrong):
    with pytest.raises(errors.HansaError, match="is not valid"):
        dataclasses.replace(election.TIMING, **wrong)
