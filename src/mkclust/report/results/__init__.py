"""The page of a benchmark: its words and tables (markup) and its plots (dots, solves)."""

from mkclust.report.results.page import PAGE, benchmark_page

__all__ = ["PAGE", "benchmark_page"]
