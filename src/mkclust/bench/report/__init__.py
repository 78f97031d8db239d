"""The report of a benchmark: Markdown, LaTeX and CSV tables, and figures."""

from mkclust.bench.report.report import write_benchmark_report

__all__ = ["write_benchmark_report"]
