"""Prints the Debian packages that real nodes need and this machine has not, one a line."""

from hansa.local.machines import requirements

for package in requirements.packages(requirements.missing()):
    print(package)  # noqa: T201
