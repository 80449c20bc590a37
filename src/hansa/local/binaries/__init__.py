"""The real programs of a local cluster, found or made: `ensure` names them and gets their paths."""

from hansa.local.binaries.binary import Binary, Build, Platform, Release, this_platform
from hansa.local.binaries.cache import default_cache
from hansa.local.binaries.downloading import Patience
from hansa.local.binaries.failures import Unavailable
from hansa.local.binaries.folder import default_folder
from hansa.local.binaries.pinned import catalogue
from hansa.local.binaries.progress import Listener, Phase, Progress, Renderer
from hansa.local.binaries.providing import Holding, Source, Sources, describe, ensure, provide

__all__ = [
    "Binary",
    "Build",
    "Holding",
    "Listener",
    "Patience",
    "Phase",
    "Platform",
    "Progress",
    "Release",
    "Renderer",
    "Source",
    "Sources",
    "Unavailable",
    "catalogue",
    "default_cache",
    "default_folder",
    "describe",
    "ensure",
    "provide",
    "this_platform",
]
