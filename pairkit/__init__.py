"""Datasets of text pairs: read, check, describe, join, divide and share them, whoever made them.

>>> import pairkit
>>> pairs = pairkit.read("pairs.tsv")
>>> pairkit.audit(pairs).leaks
[]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.face import lazy_names

if TYPE_CHECKING:
    from pairkit._audit import AuditReport as AuditReport
    from pairkit._face import apply as apply
    from pairkit._face import audit as audit
    from pairkit._face import export as export
    from pairkit._face import merge as merge
    from pairkit._face import mine as mine
    from pairkit._face import push as push
    from pairkit._face import read as read
    from pairkit._face import report as report
    from pairkit._face import review as review
    from pairkit._face import show as show
    from pairkit._face import split as split
    from pairkit._face import write as write
    from pairkit._made import MadeDataset as MadeDataset
    from pairkit._report import Report as Report
    from pairkit._review import Review as Review
    from pairkit._review import ReviewReport as ReviewReport
    from pairkit._review import ReviewServer as ReviewServer
    from pairkit._show import ShownPair as ShownPair
    from pairkit.errors import AuthError as AuthError
    from pairkit.errors import BadReply as BadReply
    from pairkit.errors import ConfigError as ConfigError
    from pairkit.errors import DataError as DataError
    from pairkit.errors import LeakError as LeakError
    from pairkit.errors import PairkitError as PairkitError
    from pairkit.errors import RateLimited as RateLimited
    from pairkit.errors import RemoteError as RemoteError
    from pairkit.hub import Pushed as Pushed
    from pairkit.progress import Progress as Progress
    from pairkit.records import PairDataset as PairDataset
    from pairkit.version import __version__ as __version__

_PLACES = {
    **dict.fromkeys(
        (
            *("apply", "audit", "export", "merge", "mine", "push", "read", "report"),
            *("review", "show", "split", "write"),
        ),
        "pairkit._face",
    ),
    "AuditReport": "pairkit._audit",
    "MadeDataset": "pairkit._made",
    "Pushed": "pairkit.hub",
    "Report": "pairkit._report",
    "Review": "pairkit._review",
    "ReviewReport": "pairkit._review",
    "ReviewServer": "pairkit._review",
    "ShownPair": "pairkit._show",
    "PairDataset": "pairkit.records",
    "Progress": "pairkit.progress",
    **dict.fromkeys(
        ("AuthError", "BadReply", "ConfigError", "DataError", "LeakError", "PairkitError", "RateLimited"),
        "pairkit.errors",
    ),
    "RemoteError": "pairkit.errors",
    "__version__": "pairkit.version",
}
__all__ = list(_PLACES)
__getattr__, __dir__ = lazy_names(__name__, _PLACES)
