"""People judge pairs of a dataset in a browser: a sample is drawn, served, reported on and applied."""

from pairkit.reviews.report import ReviewReport
from pairkit.reviews.review import Review, apply_review, begin, review_beside
from pairkit.reviews.sample import Wanted
from pairkit.reviews.server import ReviewServer

__all__ = ["Review", "ReviewReport", "ReviewServer", "Wanted", "apply_review", "begin", "review_beside"]
