"""Types of the fixtures in tests/conftest.py, for tests that are typed."""

from collections.abc import Awaitable, Callable

from hansa.local import Cluster

FreshCluster = Callable[..., Awaitable[Cluster]]
