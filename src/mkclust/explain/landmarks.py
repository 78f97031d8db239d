"""How far the clusters depend on which landmarks, or random waves, were drawn."""

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from mkclust.explain.fitted import integer_seed, unfitted_copy
from mkclust.explain.stability import STABLE, UNSTABLE
from mkclust.methods import MultipleKernelClusterer
from mkclust.methods.training import in_order_of_fit
from mkclust.samples.dask import agreement
from mkclust.samples.samples import read_views
from mkclust.stack.feature_maps import seeds_of
from mkclust.types import Float

# Shares of a trace below zero by less than this are rounding.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class LandmarkStability:
    """How far clusters found with several draws of the features agree; ``print`` it for a reading.

    Attributes
    ----------
    method : str
        Name of the model's class.
    approximation : str
        The feature map.
    names : tuple of str
        Names of the views.
    agreements : ndarray of shape (n_draws, n_draws)
        Adjusted Rand index between the clusters of every two draws.
    approximation_errors : ndarray of shape (n_draws, n_views)
        The share of each kernel's trace that the features of a draw miss; NaN where the feature
        map does not tell.
    """

    method: str
    approximation: str
    names: tuple[str, ...]
    agreements: Float
    approximation_errors: Float

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return len(self.agreements)

    @property
    def mean(self) -> float:
        """Mean agreement of two draws."""
        return float(self._pairs().mean())

    @property
    def lowest(self) -> float:
        """Agreement of the two draws that agree least."""
        return float(self._pairs().min())

    def summary(self) -> str:
        """Return the reading in words.

        Returns
        -------
        str
        """
        sentences = [
            f"{self.method}, {self.approximation}, {self.n_draws} draws",
            "",
            f"Clusters of two draws agree to {self.mean:.2f} on average and to {self.lowest:.2f} "
            "at least (adjusted Rand index: 1 is the same clusters, 0 what chance gives).",
        ]
        # Random waves miss nothing on average however few they are, and are as often above zero
        # as below: of them this says nothing.
        if np.all(self.approximation_errors > -ROUNDING):
            errors = self.approximation_errors.mean(axis=0)
            worst = int(np.argmax(errors))
            most = ", the most of all" if len(errors) > 1 else ""
            sentences.append(
                f"The features miss {abs(errors[worst]):.0%} of the trace of the kernel of "
                f"{self.names[worst]!r}{most}."
            )
        more = "draw more features (raise n_components)"
        settled = "if that changes nothing, it is the clusters that are not clear"
        if self.mean >= STABLE:
            sentences.append(
                "High: the clusters hardly depend on what was drawn. That does not make them "
                "right: heed a WeightsWarning, and ask mkclust.diagnose for noise."
            )
        elif self.mean >= UNSTABLE:
            sentences.append(
                f"Middling: some samples change sides with the draw; {more}; {settled}."
            )
        else:
            sentences.append(f"Low: the clusters depend on what was drawn; {more}; {settled}.")
        return "\n".join(sentences)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _pairs(self) -> Float:
        """Return the agreement of every two draws once."""
        return self.agreements[np.triu_indices(self.n_draws, 1)]


class _Streams(np.random.RandomState):
    """A stream of random numbers of which every copy is another one.

    Feature maps are cloned for each view, and with a common seed all views would draw alike: the
    same landmarks, or the same waves.
    """

    def __deepcopy__(self, memo: Any) -> "_Streams":
        """Return a stream of another seed, drawn from this one."""
        return _Streams(self.randint(2**31 - 1))


def landmark_stability(
    model: Any, X: Any, *, n_draws: int = 5, random_state: Any = 0
) -> LandmarkStability:
    """Say how far the clusters depend on which landmarks, or random waves, were drawn.

    The model is fitted anew with several draws of its feature maps, each view having one of its
    own, and the clusters of every two draws are compared. Everything else stays the same, the seed
    of k-means included; where the model's ``random_state`` is no integer, that seed is zero.

    Where draws agree, clusters need not be those of the kernels themselves, but what is left of
    the kernels in any draw is enough to find them. Where they do not, either the features are too
    few, or the clusters are not clear: more features tell these apart.

    Parameters
    ----------
    model : MultipleKernelClusterer
        An estimator with an ``approximation`` that draws something. Only its parameters are used:
        it need not be fitted, and is left as it is.
    X : list or dict of views, or table of shape (n, d)
        Whatever the model can be fitted on: arrays, files read by rows, dask arrays. Of these only
        counts of samples come to this process.
    n_draws : int, default=5
        Number of draws, two or more: as many fits.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws. It takes the place of the feature map's own.

    Returns
    -------
    LandmarkStability

    Examples
    --------
    >>> from mkclust import AverageKKM
    >>> from mkclust.datasets import load
    >>> from mkclust.explain import landmark_stability
    >>> from mkclust.kernels import Nystroem
    >>> views = {name: view[:300] for name, view in load("digits").views.items()}
    >>> few, many = (
    ...     landmark_stability(AverageKKM(10, approximation=Nystroem(count)), views, n_draws=3)
    ...     for count in (10, 150)
    ... )
    >>> bool(few.mean < many.mean)
    True
    >>> print(few)  # doctest: +ELLIPSIS
    AverageKKM, Nystroem(n_components=10), 3 draws
    ...
    Low: the clusters depend on what was drawn; draw more features (raise n_components); ...
    """
    if not isinstance(model, MultipleKernelClusterer):
        raise TypeError(f"model is a {type(model).__name__}: pass an estimator of mkclust")
    is_whole = isinstance(n_draws, numbers.Integral) and not isinstance(n_draws, bool)
    if not is_whole or n_draws < 2:
        raise ValueError(f"n_draws={n_draws!r}: pass a whole number of at least 2, to be compared")
    seed_names, rng = _seeds_of(model), check_random_state(random_state)
    is_fitted, options = model.__sklearn_is_fitted__(), model.table_options
    samples = in_order_of_fit(model, X) if is_fitted else read_views(X, options=options)
    labels, errors = [], []
    for _ in range(n_draws):
        stream = _Streams(rng.randint(2**31 - 1))
        map_ = clone(model.approximation).set_params(**dict.fromkeys(seed_names, stream))
        refitted = unfitted_copy(model).set_params(
            approximation=map_, random_state=integer_seed(model)
        )
        refitted.fit(samples)
        labels.append(refitted)
        errors.append(refitted.approximation_error_)
    agreements = np.eye(n_draws)
    for i in range(n_draws):
        for j in range(i):
            agreements[i, j] = agreements[j, i] = _agreement(labels[i], labels[j])
    return LandmarkStability(
        method=type(model).__name__,
        approximation=" ".join(repr(model.approximation).split()),
        names=refitted.kernel_names_,
        agreements=agreements,
        approximation_errors=np.array(errors),
    )


def _agreement(one: MultipleKernelClusterer, other: MultipleKernelClusterer) -> float:
    """Return the agreement of the labels of two fits, of samples that both cover."""
    first, second = one.labels_, other.labels_
    if one._covered is not None or other._covered is not None:
        both = (np.asarray(first) >= 0) & (np.asarray(second) >= 0)
        first, second = first[both], second[both]
    return agreement(first, second, one.n_clusters)


def _seeds_of(model: MultipleKernelClusterer) -> list[str]:
    """Return the parameters of the model's feature map that are seeds, or refuse one without."""
    approximation = model.approximation
    if approximation is None:
        raise ValueError(
            f"{type(model).__name__} has approximation=None: it uses the kernels themselves, and "
            "there are no landmarks that could be drawn anew; pass a model with an approximation, "
            "such as mkclust.kernels.Nystroem(200)"
        )
    names = seeds_of(approximation)
    if not names:
        raise ValueError(
            f"approximation={approximation!r} draws nothing, it has no random_state: its features "
            "are the same every time, and so are the clusters; there is nothing to compare"
        )
    return names
