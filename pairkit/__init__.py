"""The leaf the three packages share: the pair dataset on disk, errors, files, configuration, terminal."""

__version__: str  # made when it is asked for: a console script must be quick to where it takes an interrupt


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("aoe-toolkit")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+unknown"
