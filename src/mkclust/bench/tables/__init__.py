"""From the rows of a benchmark to tables: choices of settings, statistics, formats."""

from mkclust.bench.rows import (
    DEFAULT,
    SCORES,
    Choice,
    Row,
    canonical,
    choose,
    read_rows,
    read_solves,
)
from mkclust.bench.tables.comparison import (
    ScoreComparison,
    comparison_table,
    paper_comparison,
    reproduction_table,
)
from mkclust.bench.tables.formats import Cell, Table, to_csv, to_latex, to_markdown
from mkclust.bench.tables.outcomes import SELECTIONS, Entry, Outcome
from mkclust.bench.tables.paper import PAPER_DATASETS, PAPER_METHODS, paper_score
from mkclust.bench.tables.ranking import rank_table
from mkclust.bench.tables.ranks import Ranking, critical_difference, rank_methods
from mkclust.bench.tables.results import Results, Run
from mkclust.bench.tables.scores import ablation_table, score_tables
from mkclust.bench.tables.solves import settings_table, solve_seconds, time_table, weight_table
from mkclust.bench.tables.statistics import holm, like_the_best, mean_and_deviation, paired_p_value

__all__ = [
    "DEFAULT",
    "PAPER_DATASETS",
    "PAPER_METHODS",
    "SCORES",
    "SELECTIONS",
    "Cell",
    "Choice",
    "Entry",
    "Outcome",
    "Ranking",
    "Results",
    "Row",
    "Run",
    "ScoreComparison",
    "Table",
    "ablation_table",
    "canonical",
    "choose",
    "comparison_table",
    "critical_difference",
    "holm",
    "like_the_best",
    "mean_and_deviation",
    "paired_p_value",
    "paper_comparison",
    "paper_score",
    "rank_methods",
    "rank_table",
    "read_rows",
    "read_solves",
    "reproduction_table",
    "score_tables",
    "settings_table",
    "solve_seconds",
    "time_table",
    "to_csv",
    "to_latex",
    "to_markdown",
    "weight_table",
]
