"""Times as the API writes them: Time in conditions and Events, MicroTime in Leases."""

import datetime


def time(at: datetime.datetime) -> str:
    """A Time, in seconds; `at` is in UTC."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(at: datetime.datetime) -> str:
    """A MicroTime; `at` is in UTC."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
