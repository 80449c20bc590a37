"""Tables for people: columns of equal width, three spaces apart."""

from collections.abc import Sequence


def lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; the first row is the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["   ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
