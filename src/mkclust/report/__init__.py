"""Reports in files: a benchmark's rows as tables and pictures."""

from mkclust.report.benchmark import write_benchmark_report

__all__ = ["write_benchmark_report"]
