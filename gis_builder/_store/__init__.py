"""The store of a crawl: one SQLite file that survives being killed and is read by every later stage."""

from gis_builder._store.reading import StoredThread
from gis_builder._store.rows import Absence, Page, RepoOutcome, RepoRow, Task, TopUp, Usage, Wish, full_names
from gis_builder._store.store import Store

__all__ = [
    "Absence",
    "Page",
    "RepoOutcome",
    "RepoRow",
    "Store",
    "StoredThread",
    "Task",
    "TopUp",
    "Usage",
    "Wish",
    "full_names",
]
