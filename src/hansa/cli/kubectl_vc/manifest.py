"""Reads the manifest of a VirtualCluster from a file, a URL or standard input, for `kubectl vc create`."""

import asyncio
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

from hansa.kube.objects import Object
from hansa.runtime.errors import HansaError
from hansa.tenancy import api

SCHEMES = ("http", "https")
FETCH_SECONDS = 30.0
LARGEST = 3 << 20  # bytes; API servers refuse larger requests


async def read(source: str) -> Object:
    """The VirtualCluster in FILE, URL or `-`."""
    return parse(await _text(source), source)


def parse(text: bytes, source: str) -> Object:
    """The VirtualCluster of a manifest; `source` names it in error messages."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise HansaError(f"{source} is not YAML{where}: {getattr(error, 'problem', None) or 'unreadable'}") from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise HansaError(f"{source} must contain one VirtualCluster, but contains {len(documents)} documents")
    found = Object.of(documents[0])
    if (found.api_version, found.kind) != (api.VIRTUAL_CLUSTERS.api_version, api.VIRTUAL_CLUSTERS.kind):
        raise HansaError(
            f"{source} must contain a VirtualCluster of {api.VIRTUAL_CLUSTERS.api_version}, but has"
            f' kind "{found.kind}" and apiVersion "{found.api_version}"'
        )
    if not found.name:
        raise HansaError(f"the VirtualCluster in {source} has no metadata.name")
    return found


async def _text(source: str) -> bytes:
    if source == "-":
        return await asyncio.to_thread(sys.stdin.buffer.read, LARGEST)
    if urllib.parse.urlsplit(source).scheme in SCHEMES:
        return await asyncio.to_thread(_fetch, source)
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise HansaError(f"cannot read {source}: {error.strerror}") from None


def _fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=FETCH_SECONDS) as answer:  # noqa: S310 - only the two schemes come here
            body: bytes = answer.read(LARGEST)
            return body
    except urllib.error.HTTPError as error:
        error.close()
        raise HansaError(f"cannot fetch {url}: the server answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, TimeoutError) as error:
        raise HansaError(f"cannot fetch {url}: {getattr(error, 'reason', error)}") from None
