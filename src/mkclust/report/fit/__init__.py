"""The page of a fit: what is found out (findings), said (sections) and drawn (charts)."""

from mkclust.report.fit.page import fit_report, write_fit_report

__all__ = ["fit_report", "write_fit_report"]
