"""
6. New samples
==============

A fitted model gives clusters to samples it has not seen, and can be kept in a file.
"""

# %%
# We fit on the first 1200 digits and keep the others for later.

from mkclust import AgreementKKM
from mkclust.datasets import load
from mkclust.metrics import clustering_accuracy

digits = load("digits")
old = {name: view[:1200] for name, view in digits.views.items()}
new = {name: view[1200:] for name, view in digits.views.items()}
model = AgreementKKM(n_clusters=10, random_state=0).fit(old)

# %%
# ``predict`` takes new rows of the same views. It uses the widths, means, scales and
# weights that were learned from the training samples, and the neighborhoods of these: a
# new sample belongs with those that it is near. For the training samples it returns
# ``labels_`` exactly.

labels = model.predict(new)
print(
    "same labels on the training samples:",
    (model.predict(old) == model.labels_).all(),
)
print(
    f"accuracy on old samples {clustering_accuracy(digits.y[:1200], model.labels_):.2f}"
)
print(f"accuracy on new samples {clustering_accuracy(digits.y[1200:], labels):.2f}")

# %%
# The clusters mean the same for new samples: digits are found where they were, with the
# same mix-ups.

import matplotlib.pyplot as plt

from mkclust.plots import ClassesDisplay

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
ClassesDisplay(labels=model.labels_, y=digits.y[:1200]).plot(axes[0])
ClassesDisplay(labels=labels, y=digits.y[1200:]).plot(axes[1])
axes[0].set_title("training samples", loc="left")
axes[1].set_title("new samples", loc="left")
plt.show()

# %%
# ``transform`` returns the rows of the embedding, with one column for each cluster, for
# use in other programs.

print(model.transform(new).shape)

# %%
# You can save a model. Loading such a file runs no code from it.

import tempfile
from pathlib import Path

from mkclust import load_model, save_model

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.skops"
    save_model(model, path)
    again = load_model(path)
print((again.predict(new) == labels).all())

# %%
# Some methods weigh single samples or entries of kernels. Like scikit-learn's
# ``SpectralClustering``, they have no ``predict``.

from mkclust import METHODS

print([name for name, method in METHODS.items() if not hasattr(method, "predict")])
