"""A request that is refused: a status and a sentence, as kubelets answer them."""

from hansa.runtime import errors

LONGEST = 2000  # characters of a sentence


class Refusal(errors.HansaError):
    """The answer to a request that is refused."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence[:LONGEST])
        self.status = status
