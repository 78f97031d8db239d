"""Benchmarks: a plan is data, a result is one flat row, and a killed run goes on."""

from mkclust.bench.plan import DatasetEntry, MethodEntry, Plan, PlanError, read_plan
from mkclust.bench.run import Summary, run_plan

__all__ = [
    "DatasetEntry",
    "MethodEntry",
    "Plan",
    "PlanError",
    "Summary",
    "read_plan",
    "run_plan",
]
