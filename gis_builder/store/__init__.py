"""The store of a crawl: one SQLite file that survives being killed and is read by every later stage."""

from gis_builder.store.reading import StoredThread
from gis_builder.store.rows import (
    RATE_LIMIT,
    Absence,
    Page,
    PendingFetch,
    RateLimit,
    RepoOutcome,
    RepoRow,
    Tally,
    Task,
    TopUp,
    Usage,
    full_names,
)
from gis_builder.store.store import Store

__all__ = [
    "RATE_LIMIT",
    "Absence",
    "Page",
    "PendingFetch",
    "RateLimit",
    "RepoOutcome",
    "RepoRow",
    "Store",
    "StoredThread",
    "Tally",
    "Task",
    "TopUp",
    "Usage",
    "full_names",
]
