"""
8. Samples that some views lack
===============================

Half of the patients lack one of the assays. They can be kept, and nothing has to be
invented for them.
"""

# %%
# We make up three assays of 240 patients. Each assay covers only some of the patients.

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
ids, group = np.array([f"P{i:03}" for i in range(240)]), np.arange(240) % 3


def assay(n_columns, share, seed):
    """Return measurements of some of the patients, in random order."""
    centers = 2 * rng.normal(size=(3, n_columns))
    table = pd.DataFrame(
        centers[group] + 2 * rng.normal(size=(240, n_columns)), index=ids
    )
    return table.sample(frac=share, random_state=seed)


assays = {
    "blood": assay(4, 0.6, 1),
    "genes": assay(30, 0.4, 2),
    "scan": assay(8, 0.5, 3),
}

# %%
# ``join="inner"`` keeps the patients that have everything; ``join="outer"`` keeps all.
# Few patients have everything here, too few to tell whether the views agree, and a
# warning says so.

import warnings

from mkclust import AgreementKKM

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    few = AgreementKKM(n_clusters=3, join="inner", random_state=0).fit(assays)
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")
all_ = AgreementKKM(n_clusters=3, join="outer", random_state=0).fit(assays)
print(f"inner join: {len(few.labels_)} patients, outer join: {len(all_.labels_)}")

# %%
# ``observed_`` says which patient is in which view.

import matplotlib.pyplot as plt

order = np.lexsort(all_.observed_.T)
figure, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.imshow(all_.observed_[order].T, aspect="auto", cmap="Blues", interpolation="nearest")
ax.set_yticks(range(3), all_.view_names_in_)
ax.set(xlabel="patients", title="blue: measured")
plt.show()

# %%
# A view has no similarities for a patient it lacks. AgreementKKM compares two patients
# by the views that both have, and fills in nothing. Other methods need a value:
# ``missing_views`` takes the average similarity (``"zero"``), the same with patients
# scaled up so that all count equally (``"rescale"``), or what the clustering itself
# predicts (``"learn"``, the default of SimpleMKKM).

from mkclust import SimpleMKKM
from mkclust.metrics import adjusted_rand_index

truth = pd.Series(group, index=ids)
fits = {"AgreementKKM": all_}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for way in ("zero", "rescale", "learn"):
        other = SimpleMKKM(
            n_clusters=3, join="outer", missing_views=way, random_state=0
        )
        fits[f"SimpleMKKM, {way}"] = other.fit(assays)
for name, model in fits.items():
    index = adjusted_rand_index(truth[model.sample_ids_], model.labels_)
    print(f"{name:20} adjusted Rand index {index:.2f}")

# %%
# These clusters overlap, which suits SimpleMKKM. But the values that ``"learn"`` fills
# in are not data. They are predictions of the clustering from itself, and make clusters
# look clearer than they are.
#
# **Do the clusters follow what is missing?** Patients who lack the same views are
# similar for this reason alone. Therefore the labels are compared with the patterns of
# missing views, by permutations.

print(all_.missingness_.summary())

# %%
# Here nothing is wrong, because the assays were left out at random. If the sickest
# patients had no scan, no filling could know this. :doc:`/guides/missing_views` has the
# measurements, with nearest-neighbor fills and published methods for comparison.
