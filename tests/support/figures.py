"""Figures of benchmarks beside their goals. They depend on the machine and its load, so none of them fails a run."""

import sys


def figure(what: str, value: float, *, most: float | None = None, least: float | None = None) -> None:
    """Print a figure, its goal, and whether it was missed."""
    goal = f"at most {most:g}" if most is not None else f"at least {least:g}"
    is_missed = (most is not None and value > most) or (least is not None and value < least)
    sys.stdout.write(f"  {what:<62}{value:>10.2f}   {goal}{'   MISSED' if is_missed else ''}\n")
    sys.stdout.flush()
