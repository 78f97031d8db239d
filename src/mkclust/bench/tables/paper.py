"""The figures of the SimpleMKKM paper, to compare with."""

import csv
from functools import cache
from importlib.resources import files

# In the order of the paper's tables; the last two are those of its ablation.
PAPER_METHODS = (
    "avg-kkm",
    "mkkm",
    "lmkkm",
    "onkc",
    "mkkm-mir",
    "lkam",
    "lf-mvc",
    "mkkm-mm",
    "simplemkkm",
    "kamm-r",
    "kamm-a",
)
PAPER_DATASETS = (
    "Flo17",
    "Flo102",
    "PFold",
    "CCV",
    "Digit",
    "Cal-5",
    "Cal-10",
    "Cal-15",
    "Cal-20",
    "Cal-25",
    "Cal-30",
)


def paper_score(paper_name: str, method: str, score: str) -> tuple[float, float] | None:
    """Return what the SimpleMKKM paper reports for a method on a data set [1]_.

    The paper chose hyper-parameters by the true classes.

    Parameters
    ----------
    paper_name : str
        Name of the data set in the paper's tables, such as ``"Digit"``.
    method : str
        A key of ``METHODS``.
    score : {"acc", "nmi", "purity"}

    Returns
    -------
    (float, float) or None
        Mean and deviation in percent; None where the paper has none.

    References
    ----------
    .. [1] X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang, "SimpleMKKM: simple multiple
       kernel k-means", 2020: the table of all methods, and the ablation on Flo17.

    Examples
    --------
    >>> from mkclust.bench.tables import paper_score
    >>> paper_score("Digit", "simplemkkm", "acc")
    (90.3, 0.1)
    """
    return _figures().get((paper_name, method, score))


@cache
def _figures() -> dict[tuple[str, str, str], tuple[float, float]]:
    """Return all figures, without those that the paper leaves out."""
    text = files("mkclust.bench.tables").joinpath("paper.csv").read_text(encoding="utf-8")
    return {
        (line["dataset"], line["method"], line["score"]): (float(line["mean"]), float(line["std"]))
        for line in csv.DictReader(text.splitlines())
        if line["mean"]
    }
