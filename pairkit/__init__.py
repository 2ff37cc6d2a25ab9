"""Read, check, describe, merge, split and share datasets of text pairs from any source.

>>> import pairkit
>>> pairs = pairkit.read("pairs.tsv")
>>> pairkit.audit(pairs).leaks
[]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.app.startup import lazy_names

if TYPE_CHECKING:
    from pairkit.api import apply as apply
    from pairkit.api import audit as audit
    from pairkit.api import export as export
    from pairkit.api import merge as merge
    from pairkit.api import mine as mine
    from pairkit.api import read as read
    from pairkit.api import report as report
    from pairkit.api import review as review
    from pairkit.api import show as show
    from pairkit.api import split as split
    from pairkit.api import write as write
    from pairkit.app.errors import AuthError as AuthError
    from pairkit.app.errors import BadReply as BadReply
    from pairkit.app.errors import ConfigError as ConfigError
    from pairkit.app.errors import DataError as DataError
    from pairkit.app.errors import LeakError as LeakError
    from pairkit.app.errors import PairkitError as PairkitError
    from pairkit.app.errors import RateLimited as RateLimited
    from pairkit.app.errors import RemoteError as RemoteError
    from pairkit.app.progress import Progress as Progress
    from pairkit.app.version import __version__ as __version__
    from pairkit.dataset.audit import AuditReport as AuditReport
    from pairkit.dataset.made import MadeDataset as MadeDataset
    from pairkit.dataset.records import PairDataset as PairDataset
    from pairkit.dataset.show import ShownPair as ShownPair
    from pairkit.reports import Report as Report
    from pairkit.reviews import Review as Review
    from pairkit.reviews import ReviewReport as ReviewReport
    from pairkit.reviews import ReviewServer as ReviewServer

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "pairkit.api": "apply audit export merge mine read report review show split write",
        "pairkit.app.errors": (
            "AuthError BadReply ConfigError DataError LeakError PairkitError RateLimited RemoteError"
        ),
        "pairkit.app.progress": "Progress",
        "pairkit.app.version": "__version__",
        "pairkit.dataset.audit": "AuditReport",
        "pairkit.dataset.made": "MadeDataset",
        "pairkit.dataset.records": "PairDataset",
        "pairkit.dataset.show": "ShownPair",
        "pairkit.reports": "Report",
        "pairkit.reviews": "Review ReviewReport ReviewServer",
    },
)
