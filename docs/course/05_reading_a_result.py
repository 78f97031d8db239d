"""
5. Reading a result
===================

A fit returns more than labels. Read it in this order: verdict, weights with alignments,
certificate, stability, single samples.
"""

# %%
# We fit SimpleMKKM to four views of 600 digits and a fifth view whose rows were
# shuffled, so that they no longer belong to the same samples.

import warnings

import numpy as np

from mkclust import SimpleMKKM
from mkclust.datasets import load

digits = load("digits")
views = {name: view[:600] for name, view in digits.views.items()}
views["shuffled"] = np.random.default_rng(0).permutation(views["pixels"])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model = SimpleMKKM(n_clusters=10, random_state=0).fit(views)

# %%
# **1. The verdict.** Which views share something beyond chance? The shuffled view has
# clear clusters of its own and still shares nothing, because its rows do not match the
# rows of the others.

import matplotlib.pyplot as plt

print(model.agreement_.summary())
model.agreement_.plot()
plt.show()

# %%
# **2. Weights, with alignments.** What a weight means depends on the method, and each
# method states it. For SimpleMKKM a large weight means little agreement. The alignment
# tells how much of the view the clusters capture.

print(model.WEIGHT_MEANING)
for values in zip(model.kernel_names_, model.weights_, model.alignments_, strict=True):
    print("{:12} weight {:.2f}  alignment {:.2f}".format(*values))

# %%
# **3. The certificate.** SimpleMKKM's problem is convex. ``duality_gap_`` bounds the
# relative distance between the result and the global minimum, and ``certificate_`` says
# how it was checked that nothing was missed. **This is about the optimization, not
# about the clusters.** With the shuffled view the problem is solved just as well, but
# the answer is worse.

from mkclust import AgreementKKM
from mkclust.metrics import adjusted_rand_index

print(f"duality gap {model.duality_gap_:.0e}, certificate: {model.certificate_}")
careful = AgreementKKM(n_clusters=10, random_state=0).fit(views)
for name, each in (("SimpleMKKM", model), ("AgreementKKM", careful)):
    print(
        f"{name:13} adjusted Rand index "
        f"{adjusted_rand_index(digits.y[:600], each.labels_):.2f}"
    )

# %%
# **4. Each view alone.** :func:`~mkclust.diagnose` adds what each kernel would say
# alone, and how the result changes without it.

from mkclust import diagnose

print(diagnose(careful, views))

# %%
# **5. Stability.** Would other samples have given other clusters? The model is fitted
# again on parts of the samples. Stable clusters need not be real: a long cloud is cut
# in the same place each time. Unstable clusters cannot be relied on.

from mkclust import stability

found = stability(careful, views, n_resamples=8)
print(found)

# %%
# **6. Single samples.** A silhouette near zero, or a small margin, marks a sample
# between two clusters. ``mkclust.write_report(careful, views, "fit.html")`` writes all
# of this into one page that works offline.

from mkclust import sample_scores

scores = sample_scores(careful)
figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.scatter(scores.margin, found.samples, s=8)
ax.set(xlabel="margin to the next cluster", ylabel="share of refits in which it stays")
plt.show()
