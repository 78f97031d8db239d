"""Reports: a fit as one page, a benchmark's rows as tables and pictures."""

from mkclust.report.benchmark import write_benchmark_report
from mkclust.report.fit import fit_report, write_fit_report

__all__ = ["fit_report", "write_benchmark_report", "write_fit_report"]
