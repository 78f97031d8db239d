"""The report of a fit: one HTML file that works offline."""

from mkclust.explain.report.page import report_html, write_report

__all__ = ["report_html", "write_report"]
