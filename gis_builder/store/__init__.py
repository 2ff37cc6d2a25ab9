"""The store of a crawl: one SQLite file, consistent even after a kill, that every later stage reads."""

from gis_builder.store.store import Store
from gis_builder.store.store_tables import StoredThread
from gis_builder.store.stored_rows import (
    RATE_LIMIT,
    Absence,
    CrawlTask,
    Page,
    RateLimit,
    RepoOutcome,
    RepoRow,
    Tally,
    TopUp,
    Usage,
    full_names,
)

__all__ = [
    "RATE_LIMIT", "Absence", "CrawlTask", "Page", "RateLimit", "RepoOutcome", "RepoRow", "Store",
    "StoredThread", "Tally", "TopUp", "Usage", "full_names",
]  # fmt: skip
