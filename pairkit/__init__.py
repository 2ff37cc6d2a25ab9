"""The leaf the three packages share: the pair dataset on disk, errors, files, configuration, terminal."""

from pairkit.face import lazy_names

__version__: str  # made when it is asked for: a console script must be quick to where it takes an interrupt
__all__ = ["__version__"]
__getattr__, __dir__ = lazy_names(__name__, {"__version__": "pairkit.version"})
