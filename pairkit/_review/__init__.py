"""People judge pairs of a dataset in a browser: a sample is drawn, served, reported on and applied."""

from pairkit._review.apply import apply_review
from pairkit._review.report import ReviewReport
from pairkit._review.review import Review, begin, review_beside
from pairkit._review.sample import Wanted
from pairkit._review.server import ReviewServer

__all__ = ["Review", "ReviewReport", "ReviewServer", "Wanted", "apply_review", "begin", "review_beside"]
