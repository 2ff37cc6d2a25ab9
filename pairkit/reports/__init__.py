"""Reports on pair datasets: an HTML page and its counts."""

from pairkit.reports.dataset_report import Report, make_report

__all__ = ["Report", "make_report"]
