"""The logging flags of long-running commands."""

import argparse
import logging

from hansa.runtime import logs

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
DEBUG_VERBOSITY = 4  # klog's verbosity for debugging


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = parser.add_argument_group("logs")
    group.add_argument("--log-level", choices=LEVELS, default="info", help="lowest level to log (default info)")
    group.add_argument(
        "--klog.v",
        dest="verbosity",
        type=int,
        default=0,
        metavar="N",
        help=f"klog verbosity; {DEBUG_VERBOSITY} and more is --log-level debug (default 0)",
    )
    group.add_argument(
        "--log-format",
        choices=[form.value for form in logs.Form],
        default=logs.Form.TEXT.value,
        help="format of log lines (default %(default)s)",
    )


def apply(arguments: argparse.Namespace) -> None:
    """Set up logging by the flags."""
    level = logging.DEBUG if arguments.verbosity >= DEBUG_VERBOSITY else LEVELS[arguments.log_level]
    logs.setup(logs.Form(arguments.log_format), level)
    # asyncio logs a debug line for each connection.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))
