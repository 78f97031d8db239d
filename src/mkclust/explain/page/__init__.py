"""The page of a fit: one HTML file that works offline."""

from mkclust.explain.page.page import fit_page, fit_report

__all__ = ["fit_page", "fit_report"]
