"""The base class of all expected errors. Each subclass exists because callers handle it differently."""


class HansaError(Exception):
    """An expected failure. Its message is one sentence for users: what failed, why, and the remedy."""
