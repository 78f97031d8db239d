"""A program of a user, which a strict type checker is to understand (`make types`).

It is checked, not run: every line says what a public name takes and returns.
"""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import mkclust
from mkclust import AgreementKKM, AverageKKM, KernelBank, SimpleMKKM
from mkclust.datasets import Dataset, load
from mkclust.explain import (
    Agreement,
    Description,
    Diagnosis,
    NumberOfClusters,
    SampleScores,
)
from mkclust.explain.memory import MemoryEstimate
from mkclust.fit import MultipleKernelClusterer, Solution
from mkclust.kernels import Nystroem
from mkclust.methods import solve_simple_mkkm
from mkclust.metrics import clustering_accuracy
from mkclust.stack import Stack, as_stack


def cluster(path: Path) -> NDArray[np.integer[Any]]:
    """Fit and look at what was learned."""
    data = assert_type(load(path), Dataset)
    model = SimpleMKKM(n_clusters=3, random_state=0).fit(data.views)
    assert_type(model, SimpleMKKM)
    assert_type(model.labels_, NDArray[np.integer[Any]])
    assert_type(model.weights_, NDArray[np.float64])
    assert_type(model.alignments_, NDArray[np.float64])
    assert_type(model.kernel_names_, tuple[str, ...])
    assert_type(model.converged_, bool)
    assert_type(model.n_iter_, int)
    assert_type(model.objective_, float)
    assert_type(model.duality_gap_, float)
    assert_type(model.certificate_, str)
    assert_type(model.agreement_, Agreement)
    assert_type(model.predict(data.views), NDArray[np.integer[Any]])
    assert_type(model.transform(data.views), NDArray[np.float64])
    assert_type(model.mixed_kernel(data.views), NDArray[np.float64])
    assert_type(mkclust.LMKKM(3).fit(data.views).sample_weights_, NDArray[np.float64])
    return AverageKKM(3, approximation=Nystroem(20)).fit_predict(data.views)


def explain(views: dict[str, NDArray[np.float64]], folder: Path) -> str:
    """Call what explains a fit, and what keeps it."""
    bank = assert_type(KernelBank(widths=(1.0,)).fit(views), KernelBank)
    model = AgreementKKM(3, kernels=bank).fit(views)
    assert_type(mkclust.agreement(views), Agreement)
    assert_type(mkclust.describe(model, views), Description)
    assert_type(mkclust.diagnose(model, views), Diagnosis)
    assert_type(mkclust.suggest_n_clusters(views), NumberOfClusters)
    assert_type(mkclust.sample_scores(model), SampleScores)
    assert_type(mkclust.estimate_memory(1000, n_kernels=3), MemoryEstimate)
    assert_type(mkclust.write_report(model, views, folder / "fit.html"), Path)
    path = assert_type(mkclust.save_model(model, folder / "model.skops"), Path)
    assert_type(mkclust.load_model(path), MultipleKernelClusterer)
    assert_type(mkclust.METHODS["simplemkkm"], type[MultipleKernelClusterer])
    return mkclust.RECOMMENDED


def solve(kernels: NDArray[np.float64], y: NDArray[np.int64]) -> float:
    """Solve a problem without an estimator."""
    stack: Stack = as_stack(kernels)
    solution = assert_type(solve_simple_mkkm(stack, 3), Solution)
    assert_type(solution.weights, NDArray[np.float64])
    return clustering_accuracy(y, y)
