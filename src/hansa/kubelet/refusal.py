"""A request that is refused: a status and a sentence, as kubelets answer them."""

from hansa.kube.errors import Answer
from hansa.runtime import errors

LONGEST = 2000  # characters of a sentence
_ANSWERS = {401: Answer.DENIED, 403: Answer.DENIED, 404: Answer.NOT_FOUND, 429: Answer.THROTTLED}


class Refusal(errors.HansaError):
    """The answer to a request that is refused."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence[:LONGEST])
        self.status = status

    @property
    def answer(self) -> Answer:
        """The label `answer` of metrics."""
        return _ANSWERS.get(self.status) or (Answer.UNREACHABLE if self.status >= 500 else Answer.INVALID)
