"""The version of what is installed; a module of its own, as looking it up takes its time."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("aoe-toolkit")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
