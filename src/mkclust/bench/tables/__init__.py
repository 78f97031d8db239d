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
    Compared,
    comparison_table,
    paper_comparison,
    reproduction_table,
)
from mkclust.bench.tables.formats import Cell, Table, to_csv, to_latex, to_markdown
from mkclust.bench.tables.outcomes import SELECTIONS, dataset_labels, resamples
from mkclust.bench.tables.paper import PAPER_DATASETS, PAPER_METHODS, paper_score
from mkclust.bench.tables.ranking import rank_table
from mkclust.bench.tables.ranks import Ranking, critical_difference, rank_methods
from mkclust.bench.tables.scores import ablation_table, caveat_notes, score_tables
from mkclust.bench.tables.settings import settings_table
from mkclust.bench.tables.statistics import holm, like_the_best, mean_and_deviation, paired_p_value
from mkclust.bench.tables.times import solve_seconds, time_table
from mkclust.bench.tables.weights import weight_table

__all__ = [
    "DEFAULT",
    "PAPER_DATASETS",
    "PAPER_METHODS",
    "SCORES",
    "SELECTIONS",
    "Cell",
    "Choice",
    "Compared",
    "Ranking",
    "Row",
    "Table",
    "ablation_table",
    "canonical",
    "caveat_notes",
    "choose",
    "comparison_table",
    "critical_difference",
    "dataset_labels",
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
    "resamples",
    "score_tables",
    "settings_table",
    "solve_seconds",
    "time_table",
    "to_csv",
    "to_latex",
    "to_markdown",
    "weight_table",
]
