"""The graph of neighborhoods written out, sample by sample, for few samples without
ties."""

import numpy as np
import scipy.linalg


def lists_of(K, size):
    """Return who is in whose list, (n, n) of bool: row a, column i if a is in the list
    of i."""
    n, members = len(K), np.zeros((len(K), len(K)), bool)
    for i in range(n):
        others = np.delete(np.arange(n), i)
        last = np.sort(K[others, i])[-size]
        members[:, i] = K[:, i] >= last - 1e-9
    return members


def links_of(members):
    """Return the links of samples that are in the same lists, each with the same total
    weight."""
    factor = members / np.sqrt(members.sum(axis=1, keepdims=True))
    links = factor @ factor.T
    np.fill_diagonal(links, 0.0)
    return links


def graph_of(weighted):
    """Return the sum of links, each scaled to a total weight, given pairs (weight,
    links)."""
    return sum(weight * links / links.sum() for weight, links in weighted)


def leading(W, k):
    """Return the leading eigenvalues and eigenvectors of links, normalized by
    degrees."""
    scale = 1 / np.sqrt(W.sum(axis=1))
    values, vectors = scipy.linalg.eigh(scale[:, None] * W * scale)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def modularity(W, labels):
    """Return the modularity of clusters by its definition."""
    degrees, total = W.sum(axis=1), W.sum()
    same = labels[:, None] == labels
    return float(np.sum((W - np.outer(degrees, degrees) / total) * same) / total)
