"""Fits of any number of samples: learned from some of them, and assigned to all.

Some of the samples that are learned from are anchors. Kernels are made of the anchors,
and the lists of these say who is near whom. The graph is that of the samples that are
learned from. The others are assigned in blocks, as new samples are.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone

from mkclust.data.blocks import Block, Blocks, check_finite
from mkclust.data.check import in_memory
from mkclust.data.draw import draw_samples
from mkclust.data.samples import Samples, as_blocks
from mkclust.exceptions import silence
from mkclust.fit.coverage import some_at_a_time
from mkclust.fit.embedding import (
    UNCOVERED,
    called,
    warn_of_uncovered,
    without_entries,
)
from mkclust.fit.inductive import InductiveClusterer
from mkclust.fit.missingness import measure_missingness
from mkclust.fit.neighborhoods import orthonormalized, stacked
from mkclust.fit.steps import learn
from mkclust.graph import Graph, cut, scaled_factor
from mkclust.kernels import KernelBank, default_bank
from mkclust.kernels.kinds import with_components
from mkclust.linalg import is_foreign, ranges
from mkclust.stack.discretize import assign
from mkclust.types import Array, Float

# Samples whose lists are found at a time.
BLOCK_SAMPLES = 8192


def needs_anchors(samples: Samples, n_anchors: int) -> bool:
    """Return whether samples are too many to be anchors all.

    The columns of kernels, distances and graphs are samples: these are anchors as they
    are.
    """
    if samples.kind == "kernels" or samples.n_samples <= n_anchors:
        return False
    return samples.n_samples not in samples.n_features


def learn_from_anchors(
    model: InductiveClusterer, samples: Samples, n_anchors: int, learn_from: int
) -> dict[str, Any]:
    """Return what is learned of samples that are too many to be anchors all."""
    blocks = as_blocks(samples)
    # Samples among which the views that agree are found, before anchors are drawn by
    # these alone.
    first_samples = 2048
    with silence():  # the fit of the anchors warns
        first = model_of(model, drawn_part(samples, first_samples))
    unused = first._source.unused(first)
    used = as_blocks(samples.only([n for n in samples.names if n not in unused]))
    drawn = draw_samples(used, max(n_anchors, learn_from), samples.ids)
    anchors = np.sort(drawn[:n_anchors])

    fitted = model_of(model, samples.held(blocks.take(anchors), anchors))
    rows, uncovered = cut_again(fitted, samples, blocks, np.sort(drawn))
    if len(drawn) < samples.n_samples:
        rows, uncovered = embed_in_blocks(fitted, samples)
    return learn_all(fitted, samples, rows, uncovered, anchors)


def with_kinds_of_all(
    model: InductiveClusterer, samples: Samples
) -> InductiveClusterer:
    """Return a model to fit to some samples, with kinds that only all samples show."""
    kernels = model.kernels
    if samples.kind == "kernels" or isinstance(kernels, KernelBank):
        return model
    rules = default_bank(samples.kind == "views", kernels).rules
    known = with_components(rules, samples.by_name)
    if known is rules:
        return model
    return clone(model).set_params(kernels=known)


def drawn_part(samples: Samples, count: int) -> Samples:
    """Return some samples in memory, drawn by what they are."""
    blocks = as_blocks(samples)
    numbers = np.sort(draw_samples(blocks, count, samples.ids))
    return samples.held(blocks.take(numbers), numbers)


def model_of(model: InductiveClusterer, samples: Samples) -> InductiveClusterer:
    """Return a model of samples, all of which are anchors."""
    fitted = clone(model)
    vars(fitted).update(learn(fitted, samples))
    return fitted


def cut_again(
    fitted: InductiveClusterer,
    samples: Samples,
    blocks: Blocks,
    numbers: np.ndarray,
) -> tuple[Float, np.ndarray]:
    """Find the clusters in the graph of more samples than the anchors.

    The model stays with it. Returned are the rows of the samples, and which are
    uncovered.
    """
    found = []
    for part in ranges(len(numbers), BLOCK_SAMPLES):
        some = numbers[part]
        block = blocks.take(some)
        check_finite(block, some)
        found.append(memberships_of(fitted, samples.held(block, some)))
    memberships, are_covered = zip(*found, strict=True)

    options = fitted._options("n_init", "random_state")
    best = cut(stacked(memberships), fitted.n_clusters, **options)
    extension = fitted._source.extension
    neighborhoods = replace(
        extension.neighborhoods,
        scales=best.scales,
        list_points=best.list_points,
        basis=orthonormalized(best.rows)[1],
    )
    extension = replace(extension, neighborhoods=neighborhoods)
    fitted._source = replace(fitted._source, extension=extension)
    fitted._centers = best.centers
    fitted.objective_ = best.relaxation.value
    fitted.history_ = np.array([best.relaxation.value])
    return best.rows, np.flatnonzero(~np.concatenate(are_covered))


def memberships_of(
    fitted: InductiveClusterer,
    part: Samples,
) -> tuple[list[list[Array]], np.ndarray]:
    """Return in which lists of anchors samples are, and which samples are covered."""
    source = fitted._source
    n = part.n_samples
    similarities = source.similarities(fitted, part, None)
    found = source.extension.memberships(similarities, n)
    empty = source.empty(part) | source.without_neighbors(fitted, similarities, n)
    is_covered = np.ones(n, bool)
    is_covered[without_entries(empty, fitted._used_kernels)] = False
    if not is_covered.all():
        kept = scipy.sparse.diags_array(is_covered.astype(float), format="csr")
        found = [[kept @ each for each in of_kernel] for of_kernel in found]
    return found, is_covered


def kept_samples(model: InductiveClusterer) -> Samples:
    """Return the views that a model has kept, if all samples of the fit are anchors."""
    if not hasattr(model, "bank_") or hasattr(model, "anchors_"):
        raise ValueError(
            "X=None: the model has not kept all samples, because the fit was on "
            "kernels, or not all samples are anchors: pass X as in fit"
        )
    return replace(model._source.given, parts=tuple(model.bank_.views_.values()))


def graph_of(model: InductiveClusterer, samples: Samples) -> Graph:
    """Return the graph of samples by the lists of the anchors of a fit."""
    source = model._source
    extension = source.extension
    parts: Iterable[Samples] = [samples]
    if has_blocks(samples):
        parts = some_at_a_time(samples, BLOCK_SAMPLES)
    found = []
    for part in parts:
        similarities = source.similarities(model, part, None)
        found.append(extension.memberships(similarities, part.n_samples))
    return Graph(scaled_factor(stacked(found), extension.neighborhoods.scales))


def learn_all(
    fitted: InductiveClusterer,
    samples: Samples,
    rows: Float,
    uncovered: np.ndarray,
    anchors: np.ndarray,
) -> dict[str, Any]:
    """Return what a model of anchors learns of all samples, given their rows."""
    labels = assign(rows, fitted._centers)
    labels[uncovered] = UNCOVERED

    left_out = {*fitted.get_params(deep=False), "uncovered_samples_"}
    learned = {
        name: value for name, value in vars(fitted).items() if name not in left_out
    }
    covered = fitted._covered
    learned |= {
        "labels_": labels,
        "embedding_": fitted._as_embedding(rows),
        "anchors_": anchors,
        "_covered": anchors if covered is None else anchors[covered],
    }
    if samples.ids is not None:
        learned["sample_ids_"] = samples.ids
    if samples.missing is not None:
        learned["observed_"] = ~samples.missing
        known = np.delete(np.arange(len(labels)), uncovered)
        learned["missingness_"] = measure_missingness(
            labels[known], ~samples.missing[known], learned["view_names_in_"]
        )
    if len(uncovered):
        warn_of_uncovered(uncovered, samples)
        learned["uncovered_samples_"] = called(uncovered, samples.ids)
    return learned


def has_blocks(samples: Samples) -> bool:
    """Return whether samples are read in blocks: they are many, or not in memory."""
    if samples.kind == "kernels":
        return False
    is_held = all(is_foreign(part) or in_memory(part) for part in samples.parts)
    return not is_held or samples.n_samples > BLOCK_SAMPLES


def embed_in_blocks(
    fitted: InductiveClusterer,
    samples: Samples,
) -> tuple[Float, np.ndarray]:
    """Return the rows of samples, and which are uncovered."""
    found = as_blocks(samples).map(partial(embed_block, fitted, samples.frame))
    return np.ascontiguousarray(found[:, :-1]), np.flatnonzero(found[:, -1] == 0)


def embed_block(
    fitted: InductiveClusterer,
    frame: Samples,
    block: Block,
    start: int,
) -> np.ndarray:
    """Return the rows of samples, and in one more column which are covered."""
    check_finite(block, start)
    part = frame.held(block, slice(start, start + block.n_rows))
    memberships, is_covered = memberships_of(fitted, part)
    rows = fitted._source.extension.neighborhoods.embed(memberships)
    return np.hstack([rows, is_covered[:, None]])
