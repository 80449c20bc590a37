"""Gets Kubernetes and etcd binaries of pinned versions: from a folder, the cache, an official release or a Go build.

`ensure` takes names and returns paths. Running the binaries is left to callers.
"""

from hansa.programs.binaries.binary import Binary, Build, Platform, Release, this_platform
from hansa.programs.binaries.cache import default_cache
from hansa.programs.binaries.downloading import Timeouts
from hansa.programs.binaries.failures import Unavailable
from hansa.programs.binaries.folder import default_folder
from hansa.programs.binaries.pinned import catalogue
from hansa.programs.binaries.progress import Listener, Phase, Progress, Renderer
from hansa.programs.binaries.providing import BinaryLocation, Source, Sources, describe, ensure, provide

__all__ = [
    "Binary",
    "BinaryLocation",
    "Build",
    "Listener",
    "Phase",
    "Platform",
    "Progress",
    "Release",
    "Renderer",
    "Source",
    "Sources",
    "Timeouts",
    "Unavailable",
    "catalogue",
    "default_cache",
    "default_folder",
    "describe",
    "ensure",
    "provide",
    "this_platform",
]
