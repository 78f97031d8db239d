"""
4. Which method when
====================

Fourteen methods share one interface. This lesson shows what separates them in practice: what they
do with a view that is noise.
"""

# %%
# The digits again, the first 500 of them, and two views more that know nothing about them: random
# numbers, and a random category with four values. The category is dangerous, since by itself it has
# four perfect clusters.

import numpy as np

from mkclust.datasets import load

rng = np.random.default_rng(0)
digits = load("digits")
good = {name: view[:500] for name, view in digits.views.items()}
bad = {
    "static": rng.normal(size=(500, 20)),
    "category": np.eye(4)[rng.integers(4, size=500)],
}
y = digits.y[:500]

# %%
# Four methods, on the good views alone and on all six. ``METHODS`` has the classes by name.

import warnings

from mkclust import METHODS
from mkclust.metrics import adjusted_rand_index

names = ("agreement-kkm", "anchored-mkkm", "avg-kkm", "simplemkkm")
fitted, scores = {}, {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # we look at one of them below
    for name in names:
        for label, views in (("good", good), ("all", good | bad)):
            model = METHODS[name](n_clusters=10, random_state=0).fit(views)
            fitted[name, label] = model
            scores[name, label] = adjusted_rand_index(y, model.labels_)
print(f"{'adjusted Rand index':20} good views  all six")
for name in names:
    print(f"{name:20} {scores[name, 'good']:10.2f} {scores[name, 'all']:8.2f}")

# %%
# AgreementKKM and AnchoredMKKM set aside what shares nothing with any other view, so nothing
# changes. The average hears everybody. **SimpleMKKM gives the random numbers the largest weight of
# all**: it minimizes over the weights what the partition maximizes, and noise is the hardest to
# align with. Its weights are no importance. It solves its own problem to a certified optimum all
# the same.

import matplotlib.pyplot as plt

from mkclust import KernelWeightsDisplay

figure, axes = plt.subplots(1, 2, figsize=(12, 3.6), layout="constrained")
for ax, name in zip(axes, ("agreement-kkm", "simplemkkm"), strict=True):
    KernelWeightsDisplay.from_estimator(fitted[name, "all"], ax=ax)
    ax.set_title(name, loc="left")
plt.show()

# %%
# You need not know this by heart: a ``WeightsWarning`` says so where it happens.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    METHODS["simplemkkm"](n_clusters=10, random_state=0).fit(good | bad)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")

# %%
# As a rule of thumb:
#
# - **You cannot vouch for every view**: AgreementKKM. This is the usual case.
# - **You want a certificate, too**: AnchoredMKKM hears the views that agree, and solves a convex
#   problem.
# - **All views are good, and you follow the paper**: SimpleMKKM.
# - **A baseline**: AverageKKM. Whatever does not beat it has not earned its weights.
# - **Others** are there to compare with, and some find more on particular data:
#   :doc:`/guides/choosing`.
