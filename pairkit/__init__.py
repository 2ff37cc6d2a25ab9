"""Read, check, describe, merge, split and share datasets of text pairs from any source.

>>> import pairkit
>>> pairs = pairkit.read("pairs.tsv")
>>> pairkit.audit(pairs).leaks
[]
"""

from __future__ import annotations

from pairkit.base.cli.startup import lazy_names

_PUBLIC_NAMES = {
    "pairkit.api.checking": "audit export read report review show",
    "pairkit.api.making": "apply_review extract merge split write",
    "pairkit.base.errors": (
        "AuthError BadReply ConfigError DataError LeakError PairkitError RateLimited RemoteError"
    ),
    "pairkit.base.cli.progress": "Progress",
    "pairkit.base.extras": "__version__",
    "pairkit.dataset.checking.audit": "AuditReport",
    "pairkit.dataset.making.made": "MadeDataset",
    "pairkit.dataset.records": "PairDataset",
    "pairkit.dataset.checking.show": "ShownPair",
    "pairkit.reports.dataset_report": "Report",
    "pairkit.reviews.review": "Review",
    "pairkit.reviews.review_report": "ReviewReport",
    "pairkit.reviews.review_server": "ReviewServer",
}
__getattr__, __dir__, __all__ = lazy_names(__name__, _PUBLIC_NAMES)
