"""People judge a sample of a dataset's pairs in a browser; the results are reported and applied."""

from pairkit.reviews.review import Review as Review
from pairkit.reviews.review_report import ReviewReport as ReviewReport
from pairkit.reviews.review_server import ReviewServer as ReviewServer
