"""
11. A method of your own
========================

A method is a class that stores its parameters and solves. The base class does the rest:
input, checks, kernels, k-means, labels, new samples.
"""

# %%
# This one weighs every kernel by a power of its leading eigenvalue sum: kernels with
# much structure in few directions get more. ``strength=0`` is the average kernel.

import numpy as np

from mkclust.fit import InductiveClusterer, Mixture
from mkclust.parameters import Number


class Powered(InductiveClusterer):
    """Weigh the kernels by a power of their leading eigenvalue sums."""

    strength: float = 1.0  # an annotated field is a parameter

    SUMMARY = "which weighs the kernels by a power of their leading eigenvalue sums"
    WEIGHT_MEANING = (
        "A large weight means much leading structure; it is not importance."
    )
    ALLOWED = {"strength": Number(0)}  # noqa: RUF012
    GRID = {"strength": [0.0, 1.0, 2.0]}  # noqa: RUF012

    def _solve(self, stack):
        mixture = Mixture(stack, self.n_clusters)
        sums = [mixture.relax(one).value for one in np.eye(stack.n_kernels)]
        weights = np.array(sums) ** self.strength
        weights = weights / weights.sum()
        found = mixture.relax(weights)
        return mixture.solution(found, weights, weights, [found.value], True, 1)


# %%
# ``_solve`` gets a stack of kernels, centered and scaled, and returns a
# :class:`~mkclust.fit.Solution`. ``Mixture`` finds the leading eigenvectors of one
# mix after another. That is all; the method now accepts the same input as the library's
# own methods.

from mkclust.datasets import load
from mkclust.metrics import clustering_accuracy

digits = load("digits")
views = {name: view[:600] for name, view in digits.views.items()}
model = Powered(n_clusters=10, strength=2.0, random_state=0).fit(views)
print(model.agreement_.verdict())
print(f"accuracy {clustering_accuracy(digits.y[:600], model.labels_):.2f}")

# %%
# Displays work with it, and show the sentence on what its weights mean. So do
# ``diagnose``, ``write_report`` and benchmarks.

import matplotlib.pyplot as plt

from mkclust.plots import KernelWeightsDisplay

KernelWeightsDisplay.from_estimator(model)
plt.show()

# %%
# It can predict the clusters of new samples, because the partition is a function of
# similarities.

new = {name: view[:5] for name, view in views.items()}
print(model.predict(new), model.labels_[:5])

# %%
# Parameters are checked by ``ALLOWED``, and scikit-learn can search them.

try:
    Powered(n_clusters=10, strength=-1).fit(views)
except ValueError as error:
    print(error)

# %%
# The larger the exponent, the more the weights differ.

strengths = [0, 1, 2, 4, 8]
weights = []
for strength in strengths:
    fitted = Powered(n_clusters=10, strength=strength, random_state=0).fit(views)
    weights.append(fitted.weights_)
    print(f"strength {strength}: weights {fitted.weights_.round(2)}")

# sphinx_gallery_thumbnail_number = 2
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(strengths, weights, "o-", label=list(views))
ax.set(xlabel="strength", ylabel="weight")
ax.legend()
plt.show()

# %%
# If the class is in the file ``powered.py`` of the current folder, use it on the
# command line as ``mkclust cluster views.mat -k 10 --method powered:Powered --set
# strength=2``, and in the plan of a benchmark as ``{ method = "powered:Powered", grid =
# "authors" }``.
# :doc:`/guides/own_method` lists the other attributes of a class; the contributing
# guide says how to add it to the library.
