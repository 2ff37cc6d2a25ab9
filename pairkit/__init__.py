"""The leaf the three packages share: the pair dataset on disk, errors, files, configuration, terminal."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("aoe-toolkit")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"
