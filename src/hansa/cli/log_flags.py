"""The logging flags of long-running commands, klog's among them."""

import argparse
import dataclasses
import logging

from hansa.cli import unused_flags, upstream_flags
from hansa.runtime import logs

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
DEBUG_VERBOSITY = 4  # klog's verbosity for debugging


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = parser.add_argument_group("logs")
    group.add_argument("--log-level", choices=LEVELS, default="info", help="lowest level to log (default info)")
    group.add_argument(
        "--klog.v",
        "--v",
        "-v",
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
    for flag in upstream_flags.KLOG:
        for name in dict.fromkeys((flag.name, flag.name.replace("-", "_"))):
            for prefix in ("--", "--klog."):
                unused_flags.add_one(group, dataclasses.replace(flag, name=f"{prefix}{name}"))


def apply(arguments: argparse.Namespace) -> None:
    """Set up logging by the flags, and log flags without effect."""
    level = logging.DEBUG if arguments.verbosity >= DEBUG_VERBOSITY else LEVELS[arguments.log_level]
    logs.setup(logs.Form(arguments.log_format), level)
    # asyncio logs a debug line for each connection.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))
    unused_flags.report(arguments)
