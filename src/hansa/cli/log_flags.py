"""The flags of commands that run for long, by which people say how much they want to read."""

import argparse
import logging

from hansa.runtime import logs

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
CHATTY = 4  # klog's verbosity from which on people look for a mistake


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = parser.add_argument_group("logs")
    group.add_argument("--log-level", choices=LEVELS, default="info", help="what is logged at least (default info)")
    group.add_argument("--klog.v", dest="verbosity", type=int, default=0, metavar="N", help="4 and more: debug")
    group.add_argument("--log-format", choices=[form.value for form in logs.Form], default=logs.Form.TEXT.value)


def apply(arguments: argparse.Namespace) -> None:
    """Log as the flags say."""
    level = logging.DEBUG if arguments.verbosity >= CHATTY else LEVELS[arguments.log_level]
    logs.setup(logs.Form(arguments.log_format), level)
    # Of asyncio's own debug lines there is one for each connection.
    logging.getLogger("asyncio").setLevel(max(level, logging.INFO))
