"""People judge a sample of a dataset's pairs in a browser; the results are reported and applied."""

from pairkit.reviews.review import Review, apply_review, begin, review_beside
from pairkit.reviews.review_report import ReviewReport
from pairkit.reviews.review_sample import ReviewOptions
from pairkit.reviews.review_server import ReviewServer

__all__ = [
    "Review",
    "ReviewOptions",
    "ReviewReport",
    "ReviewServer",
    "apply_review",
    "begin",
    "review_beside",
]
