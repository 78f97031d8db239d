"""Which view tells which clusters from each other, and by how much."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from mkclust.exceptions import silence
from mkclust.explain.diagnose import exact_kernels, observed_kernels
from mkclust.explain.fitted import check_fitted
from mkclust.fit import MultipleKernelClusterer
from mkclust.fit.same_input import known_again
from mkclust.linalg import to_host
from mkclust.parameters import Count, check_parameter
from mkclust.plots import ViewSeparationDisplay
from mkclust.plots.style import names_of
from mkclust.text import join_words, printable, text_table
from mkclust.types import Float

# Permutations of the clusters of a pair; the largest of their areas is chance.
N_PERMUTATIONS = 99


@dataclass(frozen=True, eq=False)
class ViewSeparation:
    """How well each view alone tells every two clusters from each other; ``print`` it.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per view and pair of clusters: ``view``, ``one`` and ``other`` (numbers
        of the clusters), ``auc`` (the cross-validated area under the curve: 1 if the
        view separates them, 0.5 if it knows nothing), ``chance`` (the largest of 99
        permutations of the two clusters) and ``n_samples`` (that the view has). NaN if
        a cluster has fewer than two samples in the view.
    names : tuple of str
        The names of the clusters.
    n_used : int
        The number of samples that were compared.
    """

    table: pd.DataFrame
    names: tuple[str, ...]
    n_used: int

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views, or of the kernels if a view has several."""
        return tuple(self.table["view"].unique())

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of clusters."""
        pairs = self.table[["one", "other"]].drop_duplicates()
        return list(pairs.itertuples(index=False, name=None))

    def told_apart_by(self, one: int, other: int) -> tuple[list[str], list[str]]:
        """Return the views that tell two clusters from each other, and partly do."""
        rows = self.table.query("one == @one and other == @other")
        above = rows[rows["auc"] > rows["chance"]]
        # That of two normal distributions 1.2 standard deviations apart.
        clear = above["auc"] >= 0.8
        return above.loc[clear, "view"].tolist(), above.loc[~clear, "view"].tolist()

    def sentences(self) -> list[str]:
        """Return in words which clusters differ in which views."""
        by_phrase: dict[str, list[str]] = {}
        for one, other in self.pairs:
            pair = f"{self.names[one]} and {self.names[other]}"
            by_phrase.setdefault(self._phrase(one, other), []).append(pair)
        # What most of many pairs have in common needs no list of them.
        usual = max(by_phrase, key=lambda phrase: len(by_phrase[phrase]), default="")
        n_usual = len(by_phrase.get(usual, ()))
        last = []
        if n_usual == len(self.pairs) > 1:
            last = [f"Every two clusters {usual}."]
        elif n_usual > max(3, len(self.pairs) / 2):
            last = [f"Every other two clusters {usual}."]
        if last:
            del by_phrase[usual]
        listed = [f"{'; '.join(each)} {what}." for what, each in by_phrase.items()]
        return listed + last

    def _phrase(self, one: int, other: int) -> str:
        """Return in which views two clusters differ."""
        clear, partly = self.told_apart_by(one, other)
        found = f"differ in {join_words(clear)}"
        if len(clear) == len(self.views) > 1:
            return "differ in every view"
        if not clear:
            found = "differ clearly in no single view"
        if partly:
            return f"{found}, slightly in {join_words(partly)}"
        return f"{found} only" if clear and len(self.views) > 1 else found

    def summary(self) -> str:
        """Return the areas under the curve as a text table, and what they mean."""
        rows = [["clusters", *self.views]]
        for (one, other), each in self.table.groupby(["one", "other"]):
            cells = [f"{auc:.2f}".replace("nan", "-") for auc in each["auc"]]
            rows.append([f"{self.names[one]}, {self.names[other]}", *cells])
        # More pairs are not listed.
        lines = [text_table(rows)] if len(rows) <= 45 else []
        chance = self.table["chance"].max()
        explained = (
            "How well a view alone tells two clusters from each other: 1 is "
            f"completely, 0.5 not at all, up to {chance:.2f} by chance."
        )
        return "\n".join([explained, *lines, *map(printable, self.sentences())])

    __repr__ = summary

    def to_dict(self) -> dict[str, Any]:
        """Return the areas as JSON takes them, unknown ones as None."""
        table = self.table.astype(object).where(self.table.notna(), None)
        return {"pairs": table.to_dict("records"), "n_used": self.n_used}

    def plot(self, ax: Any = None) -> ViewSeparationDisplay:
        """Draw the areas of all views and pairs, in new axes or given ones."""
        pairs = self.pairs
        display = ViewSeparationDisplay(
            views=self.views,
            pairs=[f"{self.names[one]}, {self.names[other]}" for one, other in pairs],
            areas=self.table["auc"].to_numpy().reshape(-1, len(pairs)),
            chance=float(self.table["chance"].max()),
        )
        return display.plot(ax)


def view_separation(
    model: MultipleKernelClusterer,
    X: Any,
    *,
    max_samples: int = 1000,
    random_state: int = 0,
) -> ViewSeparation:
    r"""Say how well each view alone tells every two clusters from each other.

    A sample is as near to a cluster as its mean similarity to the samples of it, in the
    kernel of one view. The difference of the similarities to two clusters ranks their
    samples, and the measure is the area under the curve: how often a sample of the one
    cluster ranks before one of the other,

    .. math:: \Pr\bigl(s(x) > s(x')\bigr), \qquad
              s(x) = \frac{1}{|A|} \sum_{a \in A} K(x, a)
                   - \frac{1}{|B|} \sum_{b \in B} K(x, b),

    for x of the first and x' of the second cluster. It is cross-validated: the samples
    of each fifth are compared with those of the others, so that it is 0.5 on average in
    a view that does not know the clusters. The largest of 99 permutations of the two
    clusters says what chance can give.

    Clusters were found with these views, which favors views that were used: a view of
    pure noise that took part may be a little above 0.5.

    Parameters
    ----------
    model : MultipleKernelClusterer
        A fitted estimator, any of ``METHODS``.
    X : array of shape (m, n, n) or (n, d), or list or dict of kernels or views
        What the model was fitted on.
    max_samples : int, default=1000
        Of more samples, this number is drawn, clusters in proportion.
    random_state : int, default=0
        Seed of the parts and of the permutations.

    Returns
    -------
    ViewSeparation
        Print it, plot it, or take its ``table``.

    Examples
    --------
    >>> import numpy as np
    >>> from mkclust import AgreementKKM, view_separation
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 2], 30)
    >>> rna, protein = 4 * np.eye(3)[y], 4 * np.eye(3)[np.minimum(y, 1)]
    >>> views = {"rna": rna, "protein": protein}
    >>> views = {name: v + rng.normal(size=(90, 3)) for name, v in views.items()}
    >>> found = view_separation(AgreementKKM(3, random_state=0).fit(views), views)
    >>> print("\n".join(found.sentences()))
    0 and 1 differ in rna only.
    0 and 2; 1 and 2 differ in every view.
    """
    check_fitted(model)
    check_parameter("max_samples", max_samples, Count())
    names = names_of(model) or tuple(map(str, range(int(model.n_clusters_))))
    with silence():  # the fit itself has warned
        model, samples = known_again(model, X)
        exact, stack, part = exact_kernels(model, samples, max_samples)
        observed = observed_kernels(exact)
        labels = to_host(model.labels_, None)[part]
        rng = np.random.default_rng(random_state)
        rows = []
        for p, name in enumerate(stack.names):
            K = to_host(stack.subset([p]).among().entries[0])
            seen = labels >= 0
            if observed is not None:
                seen &= observed[:, p]
            rows += [(name, *row) for row in _compare_pairs(K, labels, seen, rng)]
    columns = ["view", "one", "other", "auc", "chance", "n_samples"]
    return ViewSeparation(pd.DataFrame(rows, columns=columns), names, len(part))


def _compare_pairs(
    K: Float, labels: np.ndarray, seen: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[int, int, float, float, int]]:
    """Yield every two clusters, their area under the curve, and that of chance."""
    present = np.unique(labels[labels >= 0]).tolist()
    for one, other in combinations(present, 2):
        places = [np.flatnonzero(seen & (labels == each)) for each in (one, other)]
        both = np.concatenate(places)
        n_first = len(places[0])
        area = chance = np.nan
        if 2 <= n_first <= len(both) - 2:
            area, *drawn = _areas(
                K[np.ix_(both, both)],
                n_first,
                rng,
            )
            chance = max(drawn)
        yield one, other, area, chance, len(both)


def _areas(K: Float, n_first: int, rng: np.random.Generator) -> Float:
    """Return the cross-validated area of two clusters, and those of permuted ones.

    The first `n_first` samples are one cluster, the others the second.
    """
    n = len(K)
    is_first = np.arange(n) < n_first
    # Parts of the samples, each compared with the clusters of the others.
    n_folds = min(5, n_first, n - n_first)
    folds = np.concatenate(
        [rng.permutation(size) % n_folds for size in (n_first, n - n_first)]
    )
    # What multiplies similarities to the samples outside of every fold, (n, n_folds).
    outside = folds[:, None] != np.arange(n_folds)
    first = outside & is_first[:, None]
    second = outside & ~is_first[:, None]
    contrast = first / first.sum(axis=0) - second / second.sum(axis=0)
    # Which sample is at each place, and the similarities of places.
    orders = [np.arange(n), *(rng.permutation(n) for _ in range(N_PERMUTATIONS))]
    scores = np.empty((n, len(orders)))
    for draw, order in enumerate(orders):
        similarities = K @ contrast[np.argsort(order)]
        scores[:, draw] = similarities[order, folds]

    areas = np.zeros(len(orders))
    for fold in range(n_folds):
        own = folds == fold
        first = is_first[own]
        ranks = rankdata(scores[own], axis=0)[first].sum(axis=0)
        a, b = first.sum(), (~first).sum()
        areas += (ranks - a * (a + 1) / 2) / (a * b)
    return areas / n_folds
