"""
4. Which method when
====================

All methods share one interface. This lesson shows how they differ in practice: in
what they do with a noise view.
"""

# %%
# We take the first 500 digits, and add two views that have nothing to do with them:
# random numbers, and a random category with four values. The category is dangerous,
# because alone it has four perfect clusters.

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
# We run four methods on the good views alone and on all six. ``METHODS`` has the
# classes by name.

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
# AgreementKKM and AnchoredMKKM set aside the views that share nothing with any other,
# so nothing changes. The average uses all views. **SimpleMKKM gives the random numbers
# the largest weight of all**: its weights minimize the alignment which the partition
# maximizes, and noise is the hardest to align with. Its weights do not measure
# importance. It still solves its own problem to a certified optimum.

import matplotlib.pyplot as plt

from mkclust.plots import KernelWeightsDisplay

figure, axes = plt.subplots(1, 2, figsize=(12, 3.6), layout="constrained")
for ax, name in zip(axes, ("agreement-kkm", "simplemkkm"), strict=True):
    KernelWeightsDisplay.from_estimator(fitted[name, "all"], ax=ax)
    ax.set_title(name, loc="left")
plt.show()

# %%
# You need not remember this: a ``WeightsWarning`` says so when it happens.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    METHODS["simplemkkm"](n_clusters=10, random_state=0).fit(good | bad)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")

# %%
# As a rule of thumb:
#
# - **You are not sure that every view is good**: AgreementKKM. This is the usual case.
# - **You have very many samples, or clusters of very unequal size**: AgreementKKM, too.
# - **You want a certificate**: AnchoredMKKM uses the views that agree, and solves a
#   convex problem.
# - **All views are good, and you follow the paper**: SimpleMKKM.
# - **A baseline**: AverageKKM. If a method does not beat it, its weights are of no use.
# - **Others** are there to compare with, and some find more on particular data:
#   :doc:`/guides/choosing`.
