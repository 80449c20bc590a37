"""Lines: the same lines are read however a stream is cut into chunks."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.http.limits import MIB, TooLarge
from hansa.kube.http.lines import Lines
from simulation import World, run


class Chunks:
    """A stream of the given chunks."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = iter(chunks)

    async def pieces(self) -> list[bytes]:
        return list(itertools.islice(self._chunks, 3))

    async def read(self) -> bytes:
        return b"".join(await self.pieces())

    def close(self) -> None:
        """Nothing is held."""


async def collected(chunks: list[bytes]) -> tuple[list[bytes], bytes]:
    lines, found = Lines(Chunks(chunks)), []
    while batch := await lines.batch():
        found += batch
    return found, lines.rest()


@given(st.lists(st.text(alphabet="ab\n", min_size=1).map(str.encode)))
def test_the_cuts_between_chunks_do_not_matter(chunks: list[bytes]) -> None:
    *whole, rest = b"".join(chunks).split(b"\n")
    assert run(lambda _: collected(chunks)) == ([line + b"\n" for line in whole], rest)


def test_a_line_of_some_megabytes_is_read_whole() -> None:
    chunk = b"x" * 65536
    assert run(lambda _: collected([*[chunk] * 100, b"\n"])) == ([chunk * 100 + b"\n"], b"")


@pytest.mark.parametrize("size", [2, 65536])
def test_a_line_longer_than_its_limit_is_an_error(size: int) -> None:
    async def main(_: World) -> None:
        await Lines(Chunks([b"x" * size] * 500_000), doing="watch pods", limit=MIB // 2).batch()

    with pytest.raises(TooLarge, match=r"cannot watch pods: a line is longer than 0\.5 MiB"):
        run(main)
