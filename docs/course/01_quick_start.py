"""
1. Quick start
==============

Four descriptions of the same images become ten clusters. You will see what to pass,
what comes back, and what to read first.
"""

# %%
# The data set ``"digits"`` comes with the library: 1797 images of handwritten digits,
# described four times. Each description is a *view*, a table with one row per sample.
# The true digits are in ``y``; we use them only to check the result.

from mkclust.datasets import load

digits = load("digits")
for name, view in digits.views.items():
    print(f"{name:12} {view.shape[0]} samples, {view.shape[1]} columns")

# %%
# A method is an estimator, like those of scikit-learn. :class:`~mkclust.AgreementKKM`
# is the method to begin with. It computes a kernel (a matrix of similarities) for every
# view, compares the views, mixes those that agree, and cuts the clusters from the graph
# of who is near whom.

from mkclust import AgreementKKM

model = AgreementKKM(n_clusters=10, random_state=0).fit(digits.views)
print(model.labels_[:20])

# %%
# Read the verdict first. It says which views share something that chance does not
# explain.

print(model.agreement_.verdict())

# %%
# Then read weights and alignments together. A weight says how much a view counts in the
# mix. An alignment says how much of the view's own structure the clusters capture.

import matplotlib.pyplot as plt

from mkclust.plots import EmbeddingDisplay, KernelWeightsDisplay

KernelWeightsDisplay.from_estimator(model)
plt.show()

# %%
# A map of the samples. Neighbors stay together on it; distances between far clusters
# mean little.

# sphinx_gallery_thumbnail_number = 2
EmbeddingDisplay.from_estimator(model)
plt.show()

# %%
# Here the true classes are known, so we can count how many images are in the right
# cluster. The four views together do better than two of the views alone, and not as
# well as the other two. Without labels, you cannot know which views are better.

from mkclust.metrics import clustering_accuracy

accuracies = {"all four views": clustering_accuracy(digits.y, model.labels_)}
for name, view in digits.views.items():
    alone = AgreementKKM(n_clusters=10, random_state=0).fit({name: view})
    accuracies[name] = clustering_accuracy(digits.y, alone.labels_)
for name, accuracy in accuracies.items():
    print(f"{name:14}  {accuracy:.2f}")

# %%
# In practice there are no labels, and the last table is not known. You then have the
# verdict, the alignments and the stability of the clusters. :doc:`05_reading_a_result`
# explains them.
