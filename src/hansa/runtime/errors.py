"""The root of all errors that Hansa expects. Each subclass exists because a caller reacts to it in its own way."""


class HansaError(Exception):
    """An expected failure. Its text is one sentence for a person: what failed, why, and what to do."""
