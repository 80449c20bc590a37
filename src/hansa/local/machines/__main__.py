"""Prints the Debian packages that real nodes need and that are not installed, for tools/system-packages."""

from hansa.local.machines import requirements

for package in requirements.packages(requirements.missing()):
    print(package)  # noqa: T201
