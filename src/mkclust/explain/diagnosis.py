"""A diagnosis, and its reading in words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mkclust.explain.noise import BEYOND_CHANCE, CLEAR_GAP, SAME, connected
from mkclust.types import Float
from mkclust.web.words import count_noun, format_number, join_words


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What each kernel of a fitted model is, and does; ``print`` it for a reading in words.

    Attributes
    ----------
    method : str
        Name of the model's class.
    n_clusters : int
        The model's number of clusters, k.
    names : tuple of str
        Names of the kernels, in the model's order; what follows is in that order, too.
    weights : ndarray of shape (n_kernels,)
        The model's mixing weights. Not importance: read the alignments beside them.
    alignments : ndarray of shape (n_kernels,)
        The share of each kernel's own top-k eigenvalue sum that the consensus captures.
    top_share : ndarray of shape (n_kernels,)
        The share of the kernel's trace in its k largest eigenvalues. This and the next are those
        of the kernels as the model sees them, but centered in any case.
    cluster_gap : ndarray of shape (n_kernels,)
        Relative gap between eigenvalues k - 1 and k of the kernel, where k clusters show; NaN for
        k = 1.
    agreement : ndarray of shape (n_kernels,)
        Adjusted Rand index between the kernel's own clusters (relaxed kernel k-means of that
        kernel alone) and the model's.
    leave_one_out : ndarray of shape (n_kernels,)
        Adjusted Rand index between the model's clusters and those of the same model fitted
        without that kernel; NaN where that was not asked for, or the other kernels cannot be
        clustered.
    redundancy : ndarray of shape (n_kernels, n_kernels)
        Alignment of every two centered kernels, ``<K_p, K_q> / (|K_p| |K_q|)``.
    chance : ndarray of shape (n_kernels,)
        How likely it is, by chance alone, that a kernel has as much in common with one of the
        others, or with their average, as it has: near zero for a kernel that shares something.
    noise : tuple of str
        Kernels that look like noise, by the rule that `diagnose` states.
    alone : tuple of str
        Kernels that share nothing with the others, but have clear clusters of their own.
    duplicates : tuple of (str, str)
        Pairs of kernels that are nearly the same: of a redundancy above 0.99.
    """

    method: str
    n_clusters: int
    names: tuple[str, ...]
    weights: Float
    alignments: Float
    top_share: Float
    cluster_gap: Float
    agreement: Float
    leave_one_out: Float
    redundancy: Float
    chance: Float
    noise: tuple[str, ...]
    alone: tuple[str, ...]
    duplicates: tuple[tuple[str, str], ...]

    def summary(self) -> str:
        """Return the reading in words: a table of all kernels, and what stands out.

        Returns
        -------
        str
        """
        count = count_noun(self.n_clusters, "cluster")
        title = f"{self.method}, {count}, {len(self.names)} kernels"
        return "\n".join([title, "", *self._table(), "", *self._sentences()])

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _table(self) -> list[str]:
        """Return the table of all kernels, a line each."""
        columns = {
            "weight": self.weights,
            "alignment": self.alignments,
            "agreement": self.agreement,
            "without it": self.leave_one_out,
            "cluster gap": self.cluster_gap,
            "top share": self.top_share,
        }
        shown = {title: column for title, column in columns.items() if not np.isnan(column).all()}
        width = max(map(len, ("kernel", *self.names)))
        lines = ["kernel".ljust(width) + "".join(f"  {title}" for title in shown) + "   chance"]
        for p, name in enumerate(self.names):
            cells = [f"  {_number(column[p]):>{len(title)}}" for title, column in shown.items()]
            cells.append(f"  {likelihood_text(self.chance[p]):>7}")
            lines.append(name.ljust(width) + "".join(cells))
        return lines

    def _sentences(self) -> list[str]:
        """Return what stands out, a sentence each."""
        sentences = [self._say_noise(self.names.index(name)) for name in self.noise]
        if len(self.noise) == len(self.names):
            sentences.append("All kernels look like noise: there may be no clusters to be found.")
        elif self.noise:
            largest = self.names[int(np.argmax(self.weights))]
            if largest in self.noise and np.ptp(self.weights) > 0:
                sentences.append(
                    "Weights are not importance: the largest of all, "
                    f"{_number(self.weights.max())}, is that of {largest!r}."
                )
            others = [name for name in self.names if name not in self.noise]
            sentences.append(
                f"Fit again without what looks like noise, with {_listed(others)}; but look first: "
                "overlapping clusters that no other kernel shares would look the same."
            )
        else:
            sentences.append("No kernel looks like noise.")
        sentences += [
            f"Kernel {name!r} stands alone: it has clear clusters of its own, but shares nothing "
            f"with the other kernels beyond chance{self._likely(self.names.index(name))}. It is no "
            "noise; whether its clusters are wanted, it cannot say."
            for name in self.alone
        ]
        sentences += [
            f"Kernels {_listed([self.names[p] for p in group])} are nearly the same (redundancy "
            f"above {SAME}): they say one thing {len(group)} times."
            for p, group in enumerate(map(np.flatnonzero, connected(self.redundancy > SAME)))
            if len(group) > 1 and group[0] == p
        ]
        if not np.isnan(self.leave_one_out).all() and self.n_clusters > 1:
            p = int(np.nanargmin(self.leave_one_out))
            if self.leave_one_out[p] >= 0.995:
                sentences.append("No single kernel changes the clusters.")
            else:
                sentences.append(
                    f"The clusters depend most on kernel {self.names[p]!r}: without it they stay "
                    f"the same to {_number(self.leave_one_out[p])} (adjusted Rand index)."
                )
        return sentences

    def _say_noise(self, p: int) -> str:
        """Say why a kernel looks like noise."""
        gap, reasons = self.cluster_gap[p], []
        shares = f"it shares nothing with the other kernels beyond chance{self._likely(p)}"
        if gap > CLEAR_GAP:
            reasons.append(f"its samples form no clusters that are apart (cluster gap {gap:.2f})")
        elif not np.isnan(gap):
            reasons.append(
                f"its spectrum has no gap where {self.n_clusters} clusters would show ({gap:.2f})"
            )
        if self.n_clusters > 1:
            value = self.agreement[p]
            only = " only" if value < 0.2 else ""
            reasons.append(f"its own clusters agree with the consensus to {_number(value)}{only}")
        listed = ", ".join([shares, *reasons[:-1]])
        last = f", and {reasons[-1]}" if reasons else ""
        return f"Kernel {self.names[p]!r} looks like noise: {listed}{last}."

    def _likely(self, p: int) -> str:
        """Return how likely chance would do as well, in brackets."""
        return f" (p = {likelihood_text(self.chance[p])})"


def _listed(names: Sequence[str]) -> str:
    """Return all names, in quotes."""
    return join_words([repr(name) for name in names], most=len(names))


def _number(value: float) -> str:
    """Return a value in two decimals, a dash for NaN."""
    return format_number(value, unknown="-")


def likelihood_text(value: float) -> str:
    """Return how likely something is, in two digits; below what counts, only that it is less."""
    return f"{value:.2g}" if value >= BEYOND_CHANCE else f"<{BEYOND_CHANCE:g}"
