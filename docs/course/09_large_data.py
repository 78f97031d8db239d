"""
9. Large data, clusters and GPUs
================================

AgreementKKM takes any number of samples. For the other methods a kernel of n samples
has n x n entries, and beyond some ten thousand samples there are other ways, with the
same estimators.
"""

# %%
# **Anchors.** Beyond 10,000 samples, AgreementKKM finds the neighbors of 10,000 of
# them, the anchors, and assigns all samples by the anchors that they are near. Kernels
# stay exact, and no n x n matrix is ever made. So that this lesson is quick, we take
# 10,000 samples in three views, 500 anchors, and learn from 2,000 samples.

import numpy as np
from sklearn.base import clone

import mkclust
from mkclust.metrics import clustering_accuracy

rng = np.random.default_rng(0)
y = rng.integers(10, size=10_000)
centers = 2 * rng.normal(size=(3, 10, 15))
views = {
    name: c[y] + rng.normal(size=(len(y), 15))
    for name, c in zip("abc", centers, strict=True)
}
method = mkclust.AgreementKKM(
    n_clusters=10, anchors=500, learn_from=2_000, random_state=0
)
model = clone(method).fit(views)
print(
    f"{len(model.anchors_)} anchors, "
    f"accuracy {clustering_accuracy(y, model.labels_):.3f}"
)

# %%
# **Files.** Memory maps, HDF5 and parquet files are read a few rows at a time, and
# never loaded as a whole. Anchors are drawn by what the rows contain, so the same ones
# are drawn.

import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    for name, view in views.items():
        np.save(Path(folder) / f"{name}.npy", view)
    stored = {
        name: np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in views
    }
    print("same labels:", (clone(method).fit(stored).labels_ == model.labels_).all())
    del stored

# %%
# **dask.** Pass dask arrays. Without a client they are computed by threads of this
# process; with ``dask.distributed.Client(...)`` on its workers, and nothing else
# changes.

import dask.array as da

chunks = {name: da.from_array(view, chunks=(2_500, -1)) for name, view in views.items()}
by_chunks = clone(method).fit(chunks)
print("same labels:", (by_chunks.labels_ == model.labels_).all())

# %%
# **The other methods.** How much memory would your data need?
# :func:`~mkclust.estimate_memory` estimates the peak memory of a fit, for each of the
# ways to work with kernels.

import matplotlib.pyplot as plt

estimate = mkclust.estimate_memory(100_000, 3, n_clusters=10, n_components=200)
print(estimate)
print("with 16 GiB:", estimate.strategy(available=16 * 2**30))
strategies = ["features", "streamed", "on-the-fly", "dense"]
figure, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
ax.barh(strategies, [estimate.n_bytes[name] / 2**30 for name in strategies])
ax.set(
    xscale="log", xlabel="GiB in addition to the data, three kernels of 100,000 samples"
)
plt.show()

# %%
# **Features in place of kernels.** ``Nystroem`` compares every sample with a few
# landmarks. Kernels become approximate. Such a fit can be certified, and reads files
# and dask arrays, too.

from mkclust.kernels import Nystroem

certified = mkclust.SimpleMKKM(
    n_clusters=10, approximation=Nystroem(100), random_state=0
)
certified.fit(views)
print(f"accuracy {clustering_accuracy(y, certified.labels_):.3f}")

# %%
# The certificate now belongs to the approximated problem. Two figures say how far you
# can trust the answer: the share of each kernel that the features miss, and how similar
# the clusters are with other landmarks.

print("missed:", certified.approximation_error_.round(2))
print(mkclust.stability(certified, views, vary="landmarks", n_resamples=3))

# %%
# **A GPU.** Pass tensors that are on the device, and the fit runs there. This part runs
# only if torch finds a device.

try:
    import torch

    has_gpu = torch.cuda.is_available()
except ImportError:
    has_gpu = False
if has_gpu:
    there = mkclust.to_device(views, "cuda", dtype="float32")
    print("on the device:", clustering_accuracy(y, clone(method).fit(there).labels_))
else:
    print("no GPU here: the part above was not run")

# %%
# :doc:`/guides/scale` and :doc:`/guides/gpu` describe all ways, their limits, and
# measurements.
