"""Lines: however a stream is cut into chunks, the same lines come out."""

from hypothesis import given
from hypothesis import strategies as st

from hansa.kube.http.lines import Lines
from simulation import run


class Chunks:
    """A stream that brings given chunks."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = list(chunks)

    async def pieces(self) -> list[bytes]:
        pieces, self._chunks = self._chunks[:3], self._chunks[3:]
        return pieces

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


def test_a_line_of_many_megabytes_comes_out_whole() -> None:
    chunk = b"x" * 65536
    assert run(lambda _: collected([*[chunk] * 512, b"\n"])) == ([chunk * 512 + b"\n"], b"")
