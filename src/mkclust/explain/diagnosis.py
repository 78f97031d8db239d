"""A diagnosis, and its reading in words."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from mkclust.methods.agreement import BEYOND_CHANCE, COPY_ALIGNMENT, Agreement
from mkclust.methods.missingness import Missingness
from mkclust.text import count, join_words
from mkclust.types import Float


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
        kernel alone) and the model's, on the samples that the kernel has.
    leave_one_out : ndarray of shape (n_kernels,)
        Adjusted Rand index between the model's clusters and those of the same model fitted
        without that kernel, on the samples that the others have; NaN where that was not asked for,
        or the other kernels cannot be clustered.
    view_agreement : Agreement
        What the kernels share beyond chance, and with whom: the model's ``agreement_``.
    missingness : Missingness or None
        Whether the clusters follow which views samples are missing from, with the samples of each
        pattern in each cluster: the model's ``missingness_``; None where none are missing.
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
    view_agreement: Agreement
    missingness: Missingness | None = None

    @property
    def redundancy(self) -> Float:
        """Debiased alignment of every two centered kernels, (m, m): one for copies."""
        return self.view_agreement.alignments.copy()

    @property
    def chance(self) -> Float:
        """How likely chance makes each kernel as much like its likeliest partner as it is, (m,).

        Corrected for the number of pairs, and near zero for a kernel that shares something.
        """
        return np.asarray(self.view_agreement.chances.min(axis=1))

    @property
    def noise(self) -> tuple[str, ...]:
        """Kernels that share nothing, by the rule of `diagnose`; none where nothing can tell."""
        if not self.view_agreement.is_testable:
            return ()
        shares = zip(self.names, self.view_agreement.shares, strict=True)
        return tuple(name for name, some in shares if not some)

    @property
    def duplicates(self) -> tuple[tuple[str, str], ...]:
        """Pairs of kernels that are nearly the same: of a redundancy above 0.99."""
        pairs = np.argwhere(np.triu(self.redundancy > COPY_ALIGNMENT, 1))
        return tuple((self.names[p], self.names[q]) for p, q in pairs)

    def summary(self) -> str:
        """Return the reading in words: which views agree, all kernels, and what stands out.

        Returns
        -------
        str
        """
        clusters = count(self.n_clusters, "cluster")
        title = f"{self.method}, {clusters}, {len(self.names)} kernels"
        verdict = self.view_agreement.verdict()
        lines = [title, "", verdict, "", *self._table(), "", *self.sentences()]
        if self.missingness is not None:
            lines += ["", self.missingness.summary()]
        return "\n".join(lines)

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

    def sentences(self) -> list[str]:
        """Return what stands out, a sentence each.

        Returns
        -------
        list of str
        """
        return [*self._about_noise(), *self._about_copies(), *self._about_dependence()]

    def _about_noise(self) -> list[str]:
        """Say which kernels share nothing, and what that may mean."""
        if not self.view_agreement.is_testable:
            return ["Nothing can tell here which kernels are noise."]
        if not self.noise:
            return ["No kernel looks like noise: each shares something with another one."]
        if len(self.noise) == len(self.names):
            return [
                "All kernels look like noise: no two share anything beyond chance. Either there "
                "are no clusters to be found, or each kernel has structure that no other has. Are "
                "the samples in the same order in all of them?"
            ]
        sentences = [self._say_noise(self.names.index(name)) for name in self.noise]
        largest = self.names[int(np.argmax(self.weights))]
        if largest in self.noise and np.ptp(self.weights) > 0:
            sentences.append(
                "Weights are not importance: the largest of all, "
                f"{_number(self.weights.max())}, is that of {largest!r}."
            )
        others = [name for name in self.names if name not in self.noise]
        if not any(self.weights[self.names.index(name)] for name in self.noise):
            one = len(self.noise) == 1
            sentences.append(
                f"{'It is' if one else 'They are'} noise, or structure that no other kernel has: "
                f"{self.method} has set {'it' if one else 'them'} aside."
            )
            return sentences
        sentences.append(
            "A kernel that shares nothing is noise, or structure that no other kernel has: look "
            f"before you fit again with {_listed(others)}. AgreementKKM sets aside what shares "
            "nothing."
        )
        return sentences

    def _about_copies(self) -> list[str]:
        """Say which kernels are nearly the same."""
        number = connected_components(self.redundancy > COPY_ALIGNMENT, directed=False)[1]
        groups = [np.flatnonzero(number == each) for each in np.unique(number)]
        return [
            f"Kernels {_listed([self.names[p] for p in group])} are nearly the same "
            f"(redundancy above {COPY_ALIGNMENT}): they repeat the same information {len(group)} "
            "times."
            for group in groups
            if len(group) > 1
        ]

    def _about_dependence(self) -> list[str]:
        """Say on which kernel the clusters depend most."""
        if np.isnan(self.leave_one_out).all() or self.n_clusters == 1:
            return []
        p = int(np.nanargmin(self.leave_one_out))
        if self.leave_one_out[p] >= 0.995:
            return ["No single kernel changes the clusters."]
        return [
            f"The clusters depend most on kernel {self.names[p]!r}: without it they stay the same "
            f"to {_number(self.leave_one_out[p])} (adjusted Rand index)."
        ]

    def _say_noise(self, p: int) -> str:
        """Say why a kernel looks like noise."""
        likely = likelihood_text(self.chance[p])
        sentence = (
            f"Kernel {self.names[p]!r} looks like noise: it shares nothing with the other kernels "
            f"beyond chance (p = {likely})"
        )
        if self.n_clusters > 1:
            value = self.agreement[p]
            only = " only" if value < 0.2 else ""
            sentence += f", and its own clusters agree with the consensus to {_number(value)}{only}"
        return f"{sentence}."


def _listed(names: Sequence[str]) -> str:
    """Return all names, in quotes."""
    return join_words([repr(name) for name in names], most=len(names))


def _number(value: float) -> str:
    """Return a value in two decimals, a dash for NaN."""
    return f"{round(value, 2) + 0.0:.2f}" if np.isfinite(value) else "-"


def likelihood_text(value: float) -> str:
    """Return how likely something is, in two digits; below what counts, only that it is less."""
    return f"{value:.2g}" if value >= BEYOND_CHANCE else f"<{BEYOND_CHANCE:g}"
