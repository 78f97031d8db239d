"""
3. Kernels that fit the view
============================

A kernel says how similar two samples are. Which kernel suits a view depends on what its
numbers are, and often matters more than the method.
"""

# %%
# Three views of the same 300 made-up documents: counts of words (mostly zero), a dense
# embedding, and a table of four measurements. One of the four has a far larger scale
# and says nothing.

import numpy as np

from mkclust import AgreementKKM
from mkclust.metrics import adjusted_rand_index

rng = np.random.default_rng(0)
topic = rng.integers(3, size=300)
rates = np.where(np.arange(600) // 200 == np.arange(3)[:, None], 0.08, 0.03)
loud = rng.normal(size=300) * 1000
views = {
    "words": rng.poisson(rates[topic]).astype(float),
    "embedding": rng.normal(size=(3, 10))[topic] + rng.normal(size=(300, 10)),
    "measured": np.c_[2 * np.eye(3)[topic] + rng.normal(size=(300, 3)), loud],
}

# %%
# ``kernels="auto"``, the default, recognizes the kind of each view from its numbers.
# ``explain()`` says which kernel each view got, and why.

auto = AgreementKKM(n_clusters=3, random_state=0).fit(views)
print(auto.bank_.explain())

# %%
# ``kernels="gaussian"`` takes the rows of all views as they are. The column with the
# large scale then dominates its view, and a :class:`~mkclust.exceptions.KernelWarning`
# names it.

import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    plain = AgreementKKM(n_clusters=3, kernels="gaussian", random_state=0).fit(views)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}\n")

# %%
# If you know better, choose kernels for views by name. You can put a transformer of
# scikit-learn before the kernel; it is fitted with the model, and also transforms new
# samples.

from sklearn.preprocessing import StandardScaler

from mkclust import view

chosen = AgreementKKM(
    n_clusters=3,
    kernels={
        "words": "cosine",
        "measured": view(preprocess=StandardScaler(), kernel="gaussian"),
    },
    random_state=0,
).fit(views)

# %%
# We made the topics ourselves, so we can compare with them. In practice you do not know
# this number.

for name, model in (("auto", auto), ("gaussian", plain), ("chosen by name", chosen)):
    index = adjusted_rand_index(topic, model.labels_)
    print(f"{name:15} adjusted Rand index {index:.2f}, set aside: {model.set_aside_}")

# %%
# With the rows as they are, the column with the large scale hides what its view shares
# with the others. The view was set aside, and the information in its other columns is
# lost. Here the two remaining views are enough.
#
# You can also draw kernels. Sorted by clusters, the mixed kernel shows blocks of
# similar samples.

import matplotlib.pyplot as plt

from mkclust.plots import SortedKernelDisplay

SortedKernelDisplay.from_estimator(auto, views)
plt.show()

# %%
# :doc:`/guides/input` lists the kernels that you can choose by name;
# :doc:`/guides/choosing` shows how much the choice mattered on thirteen data sets.
