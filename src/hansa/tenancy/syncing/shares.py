"""Which tenants this replica of vc-syncer serves: all of them, or its share of those that several replicas share.

How replicas agree is left to `control.sharding`, whose Membership has this interface.
"""

import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

Concerns = Callable[[str], bool]


class Shares(Protocol):
    """Asked with the key of a tenant."""

    def owns(self, key: str) -> bool:
        """Whether this replica serves the tenant."""

    def hold(self, key: str) -> AbstractContextManager[None]:
        """Keep other replicas from serving the tenant until the work inside has ended."""

    def write(self, key: str) -> AbstractAsyncContextManager[None]:
        """Write for the tenant inside. Raises `Unreachable` if another replica may write now."""

    def listen(self, notify: Callable[[Concerns], None]) -> Callable[[], None]:
        """Call `notify` when tenants are gained or lost, with which ones. The returned function removes it."""


class Everything:
    """The only replica, or the leader, serves all tenants."""

    def owns(self, key: str) -> bool:
        return True

    def hold(self, key: str) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def write(self, key: str) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    def listen(self, notify: Callable[[Concerns], None]) -> Callable[[], None]:
        return lambda: None
