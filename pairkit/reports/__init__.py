"""What stands in a pair dataset, as figures and one page: counts, lengths, overlap, drops, samples."""

from pairkit.reports.report import Report, make_report

__all__ = ["Report", "make_report"]
