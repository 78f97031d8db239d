"""
2. Your own tables
==================

Data frames with ids, in different orders, with categories and missing cells, become
clusters that have names.
"""

# %%
# We make up two tables of the same ninety patients. The rows have ids and are in
# different orders. One column holds categories, and one cell is empty.

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
ids, group = [f"P{i:02}" for i in range(90)], np.arange(90) % 3
blood = pd.DataFrame(
    {
        "glucose": 5 + 2 * (group == 0) + rng.normal(size=90) / 2,
        "iron": 12 - 4 * (group == 1) + rng.normal(size=90),
    },
    index=ids,
)
visit = pd.DataFrame(
    {
        "age": 40 + 15 * (group == 0) + 5 * rng.normal(size=90),
        "weight": 60 + 15 * (group == 2) + 4 * rng.normal(size=90),
        "smoker": np.where(
            rng.random(90) < np.array([0.8, 0.2, 0.2])[group], "yes", "no"
        ),
    },
    index=ids,
)
visit.loc["P07", "age"] = np.nan
visit = visit.sample(frac=1, random_state=0)
tables = {"blood": blood, "visit": visit}
visit.head()

# %%
# A missing cell is an error, which names the column, until you say what to do about it.

from mkclust import AgreementKKM

try:
    AgreementKKM(n_clusters=3).fit(tables)
except ValueError as error:
    print(error)

# %%
# ``impute="median"`` fills cells with the median of their column. ``summary()`` says
# how the input was understood. Rows are matched by id, and the column of categories
# becomes a separate view.

model = AgreementKKM(n_clusters=3, impute="median", random_state=0).fit(tables)
print(model.summary())

# %%
# Labels are in the order of ``sample_ids_``.

clusters = pd.Series(model.labels_, index=model.sample_ids_, name="cluster")
clusters.head()

# %%
# **What are the clusters?** :func:`~mkclust.describe` names the columns that set each
# cluster apart, as differences of means in standard deviations. It has no p-values,
# because the clusters were made to differ in these columns.

import matplotlib.pyplot as plt

from mkclust import describe

description = describe(model, tables)
print(description.summary())
description.plot()
plt.show()

# %%
# **Do they differ in anything else?** :func:`~mkclust.annotate` tests variables that
# were *not* used for clustering. Here one of them follows the groups, and the other is
# random.

from mkclust import annotate

other = pd.DataFrame(
    {"ill": group == 0, "birthday": rng.integers(366, size=90)}, index=ids
)
print(annotate(model, other))

# %%
# :doc:`/guides/tables` has the rest: files, text, dates, sparse matrices, AnnData, and
# what to do about each refusal. On the command line the same is ``mkclust cluster
# blood.csv visit.csv -k 3 --impute median``.
