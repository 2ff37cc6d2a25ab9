"""Read, check, describe, merge, split and share datasets of text pairs from any source.

>>> import pairkit
>>> pairs = pairkit.read("pairs.tsv")
>>> pairkit.audit(pairs).leaks
[]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairkit.base.cli.startup import lazy_names

if TYPE_CHECKING:
    from pairkit.api import apply_review as apply_review
    from pairkit.api import audit as audit
    from pairkit.api import export as export
    from pairkit.api import extract as extract
    from pairkit.api import merge as merge
    from pairkit.api import read as read
    from pairkit.api import report as report
    from pairkit.api import review as review
    from pairkit.api import show as show
    from pairkit.api import split as split
    from pairkit.api import write as write
    from pairkit.base.cli.progress import Progress as Progress
    from pairkit.base.errors import AuthError as AuthError
    from pairkit.base.errors import BadReply as BadReply
    from pairkit.base.errors import ConfigError as ConfigError
    from pairkit.base.errors import DataError as DataError
    from pairkit.base.errors import LeakError as LeakError
    from pairkit.base.errors import PairkitError as PairkitError
    from pairkit.base.errors import RateLimited as RateLimited
    from pairkit.base.errors import RemoteError as RemoteError
    from pairkit.base.version import __version__ as __version__
    from pairkit.dataset.checking.audit import AuditReport as AuditReport
    from pairkit.dataset.checking.show import ShownPair as ShownPair
    from pairkit.dataset.making.made import MadeDataset as MadeDataset
    from pairkit.dataset.records import PairDataset as PairDataset
    from pairkit.reports import Report as Report
    from pairkit.reviews import Review as Review
    from pairkit.reviews import ReviewReport as ReviewReport
    from pairkit.reviews import ReviewServer as ReviewServer

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "pairkit.api": "apply_review audit export extract merge read report review show split write",
        "pairkit.base.errors": (
            "AuthError BadReply ConfigError DataError LeakError PairkitError RateLimited RemoteError"
        ),
        "pairkit.base.cli.progress": "Progress",
        "pairkit.base.version": "__version__",
        "pairkit.dataset.checking.audit": "AuditReport",
        "pairkit.dataset.making.made": "MadeDataset",
        "pairkit.dataset.records": "PairDataset",
        "pairkit.dataset.checking.show": "ShownPair",
        "pairkit.reports": "Report",
        "pairkit.reviews": "Review ReviewReport ReviewServer",
    },
)
