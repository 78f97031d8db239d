"""Linear algebra on arrays of any library: NumPy, torch, CuPy and others that follow the standard.

An array says itself where it lives. What is computed from it stays there; only what is as long as
the number of kernels, and single numbers, come to the host. All that depends on the library is on
this page.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import array_api_compat
import array_api_compat.numpy
import numpy as np
import scipy.linalg
from array_api_compat import is_cupy_array, is_torch_array

from mkclust.types import Array, Float

# Directions whose share of a block falls below this are rounding noise, not directions.
RANK_TOLERANCE = 1e-12
# A block is orthonormalized by triangular factors where the smallest of their diagonals, relative
# to a vector's length, is above this: twice is enough then; above the second figure, once.
WELL_CONDITIONED, VERY_WELL_CONDITIONED = 1e-3, 0.1
# The share of a vector's squared length that must be left by a projection that need not be repeated.
LITTLE_TAKEN = 0.1
# Up to this share of positive eigenvalues, finding them alone is faster than a full decomposition;
# from about a quarter on it is slower, several times in the end.
FEW_POSITIVE = 0.125
# From this size on, eigenvalues of a matrix of the host come sooner by way of an accelerator.
FASTER_ON_ACCELERATOR = 150
# Entries of a sum of matrices that are written at a time on a device.
SUM_ENTRIES = 2**26
# Rows of the squares along a diagonal that are written at a time on a device.
DIAGONAL_ROWS = 1024
# A cosine between two subspaces below this is zero but for rounding.
NULL_TOLERANCE = 1e-10


def is_foreign(thing: Any) -> bool:
    """Return whether something is an array of another library than NumPy that we compute with.

    Dask arrays are many, and arrays that cannot be written to (JAX's) are taken to NumPy.
    """
    return (
        not isinstance(thing, np.ndarray | np.generic)
        and array_api_compat.is_array_api_obj(thing)
        and array_api_compat.is_writeable_array(thing)
        and not array_api_compat.is_dask_array(thing)
        and not array_api_compat.is_pydata_sparse_array(thing)
    )


def namespace(*arrays: Any) -> Any:
    """Return the functions of the library that arrays belong to; NumPy's for all that is no array.

    Memory maps, sparse matrices and matrices known by their rows are computed with by NumPy.
    """
    foreign = [array for array in arrays if is_foreign(array)]
    return array_api_compat.array_namespace(*foreign) if foreign else array_api_compat.numpy


def device(array: Any) -> Any:
    """Return the device that an array lives on, as its library names it; None on the host."""
    return array_api_compat.device(array) if is_foreign(array) else None


def is_on_accelerator(array: Any) -> bool:
    """Return whether an array lives on a device that is not the host's processor."""
    return is_cupy_array(array) or (is_torch_array(array) and array.device.type != "cpu")


def place(array: Any) -> str:
    """Return the library and the device of an array, in words."""
    if not is_foreign(array):
        return "NumPy"
    library = namespace(array).__name__.removeprefix("array_api_compat.").split(".")[0]
    where = str(device(array))
    return f"{library} on {where}"


def check_one_place(arrays: Sequence[Any], who: Sequence[str]) -> None:
    """Raise where arrays belong to different libraries, or live on different devices."""
    for array, label in zip(arrays, who, strict=True):
        if place(array) != place(arrays[0]):
            raise ValueError(
                f"{who[0]} is an array of {place(arrays[0])} and {label} one of {place(array)}: "
                "bring all of them to one library and one device"
            )


def free_bytes(like: Any) -> int | None:
    """Return how much memory is free on the device of an array, None where that is the host's."""
    if is_torch_array(like) and like.device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(like.device)
        # What torch holds and does not use can be used again.
        held = torch.cuda.memory_reserved(like.device) - torch.cuda.memory_allocated(like.device)
        return free + held
    if is_cupy_array(like):
        import cupy

        with like.device:
            return like.device.mem_info[0] + cupy.get_default_memory_pool().free_bytes()
    return None


def to_host(array: Any, dtype: Any = np.float64) -> Any:
    """Return an array as NumPy, float64 if nothing else is asked for; None keeps the type."""
    if is_torch_array(array):
        array = array.detach().cpu().numpy()
    elif is_cupy_array(array):
        array = array.get()
    elif is_foreign(array):
        array = np.from_dlpack(array)
    return np.asarray(array, dtype=dtype)


def to_device(array: Any, like: Any, dtype: str | None = None) -> Array:
    """Return an array beside ``like``, by its library and on its device.

    Parameters
    ----------
    array : array of any library
        What to bring there; not copied where it is there already.
    like : array of any library
        What says where.
    dtype : str, default=None
        The number type, such as "float64"; None keeps that of the array.

    Returns
    -------
    array of the library of ``like``
    """
    if not is_foreign(like):
        return to_host(array, dtype)
    xp, where = namespace(like), device(like)
    if not (is_foreign(array) and namespace(array) is xp and device(array) == where):
        array = xp.asarray(np.ascontiguousarray(to_host(array, None)), device=where)
    return array if dtype is None else xp.astype(array, getattr(xp, dtype), copy=False)


def empty(shape: int | tuple[int, ...], like: Any, dtype: str = "float64") -> Array:
    """Return a new array beside ``like`` whose entries are still to be written."""
    xp = namespace(like)
    return xp.empty(shape, dtype=getattr(xp, dtype), device=device(like))


def zeros(shape: int | tuple[int, ...], like: Any, dtype: str = "float64") -> Array:
    """Return zeros beside ``like``."""
    xp = namespace(like)
    return xp.zeros(shape, dtype=getattr(xp, dtype), device=device(like))


def noise(shape: tuple[int, ...], seed: int, like: Any) -> Array:
    """Return normal random numbers beside ``like``, in float64, drawn where they are needed."""
    if is_torch_array(like):
        import torch

        generator = torch.Generator(device=like.device).manual_seed(seed)
        return torch.randn(shape, generator=generator, dtype=torch.float64, device=like.device)
    if is_cupy_array(like):
        import cupy

        with like.device:
            return cupy.random.RandomState(seed).standard_normal(shape)
    return to_device(np.random.default_rng(seed).standard_normal(shape), like)


def ranges(n: int, height: int) -> Iterator[slice]:
    """Cut n rows into slices of a height, the last of which ends with them."""
    for start in range(0, n, height):
        yield slice(start, min(start + height, n))


def pick(array: Array, where: Any, axis: int = 0) -> Array:
    """Return some rows or columns: those of a slice, or those with the numbers in an array."""
    if not is_foreign(array):
        return array[(slice(None),) * axis + (where,)]
    if isinstance(where, slice):
        return array[(slice(None),) * axis + (where, ...)]
    return namespace(array).take(array, to_device(np.asarray(where), array), axis=axis)


def precision_of(array: Any) -> str:
    """Return the name of a floating number type: "float32" or "float64"."""
    return "float32" if rounding_of(array) > 1e-10 else "float64"


def rounding_of(array: Any) -> float:
    """Return the relative rounding of the floating numbers of an array, or of what has entries."""
    return float(namespace(getattr(array, "like", array)).finfo(array.dtype).eps)


def astype(array: Any, dtype: str) -> Array:
    """Return an array in another number type, not copied where it is in that already."""
    xp = namespace(array)
    return xp.astype(array, getattr(xp, dtype), copy=False)


def captured(products: Array, H: Array) -> Float:
    """Return ``Tr(H^T K_p H)`` for every kernel, from the products K_p H, (m, n, b)."""
    return to_host(namespace(H).sum(products * H, axis=(1, 2)))


def copied(array: Array) -> Array:
    """Return a copy of an array, in memory of its own."""
    return namespace(array).asarray(array, copy=True)


def on_host(thing: Any) -> Any:
    """Return an array as NumPy in its own type where it is one of another library, all else as is.

    What is to be stored must not ask for the device that it was computed on.
    """
    if isinstance(thing, list | tuple):
        return type(thing)(map(on_host, thing))
    return to_host(thing, None) if is_foreign(thing) else thing


def as_floats(array: Array, who: str) -> Array:
    """Return an array of another library in float32 or float64, or say why it cannot be."""
    xp = namespace(array)
    if is_torch_array(array):
        array = array.detach()  # what is learned here has no gradient
    if xp.isdtype(array.dtype, "bool") or xp.isdtype(array.dtype, "integral"):
        return xp.astype(array, xp.float64)
    if not xp.isdtype(array.dtype, "real floating"):
        raise ValueError(
            f"{who} has the type {array.dtype}: a kernel or view is a matrix of real numbers; "
            "convert it to float64 or float32"
        )
    # Half precision, in either of its forms, is none to compute in.
    narrow = xp.finfo(array.dtype).bits < 32
    return xp.astype(array, xp.float32) if narrow else array


def top_eigenpairs(M: Array, count: int, like: Any = None) -> tuple[Float, Array]:
    """Return the largest eigenvalues of a symmetric matrix, falling, on the host, and vectors.

    Parameters
    ----------
    M : array of shape (b, b)
        The matrix.
    count : int
        How many.
    like : array, default=None
        What M was computed from. A larger matrix of the host is decomposed on the accelerator that
        this lives on, where that is faster in spite of the way there and back.

    Returns
    -------
    values : ndarray of shape (count,)
    vectors : array of shape (b, count)
        Where M lives.
    """
    # NumPy's full solver rather than SciPy's selective one: the two bring their own BLAS threads,
    # which stand in each other's way when calls alternate.
    xp, first = namespace(M), max(M.shape[0] - count, 0)
    if not is_foreign(M) and M.shape[0] >= FASTER_ON_ACCELERATOR and is_on_accelerator(like):
        values, vectors = namespace(like).linalg.eigh(to_device(M, like))
        values, vectors = to_host(values), to_host(vectors[:, first:])
    else:
        values, vectors = xp.linalg.eigh(M)
        values, vectors = to_host(values), vectors[:, first:]
    return values[first:][::-1], xp.flip(vectors, axis=1)


def scaled_sum(
    coefficients: Float, matrices: Sequence[Array], scales: Sequence[Array | None], out: Array
) -> None:
    """Write ``sum_p c_p D_p K_p D_p`` to ``out``, arrays of one library that is not NumPy.

    Some rows at a time, so that what is written in between stays small.
    """
    n, height = out.shape[0], max(1, SUM_ENTRIES // out.shape[0])
    columns = [None if s is None else astype(s, precision_of(out)) for s in scales]
    for rows in ranges(n, height):
        block = zeros((rows.stop - rows.start, n), out, precision_of(out))
        for c, matrix, column in zip(map(float, coefficients), matrices, columns, strict=True):
            part = matrix[rows, :]
            block += c * part if column is None else (part * column) * (c * column[rows, None])
        out[rows, :] = block


def psd_part(
    M: Array, *, count: int = 0, likely_rank: int | None = None
) -> tuple[Array, Float, Array]:
    """Return the nearest positive semidefinite matrix to a symmetric one, and eigenpairs.

    Parameters
    ----------
    M : array of shape (n, n)
        Symmetric; its memory is made use of and its entries are lost.
    count : int, default=0
        How many of the largest eigenvalues to return, be they negative.
    likely_rank : int, default=None
        About how many eigenvalues are positive, where that is known. If they are few, only they
        are computed, on the host.

    Returns
    -------
    part : array of shape (n, n)
        Exactly symmetric.
    values : ndarray of shape (b,)
        The positive eigenvalues of M and the ``count`` largest, falling, on the host.
    vectors : array of shape (n, b)
        Their eigenvectors.
    """
    xp = namespace(M)
    if is_foreign(M):
        found, vectors = xp.linalg.eigh(M)
        values = to_host(found)
    else:
        values, vectors = _eigenpairs_on_host(M, count, likely_rank)
    first = len(values) - max(count, int((values > 0).sum()))
    values, vectors = values[first:][::-1], xp.flip(vectors[:, first:], axis=1)
    root = vectors * to_device(np.sqrt(np.maximum(values, 0)), vectors)
    part = root @ root.T
    # NumPy knows such a product to be symmetric; other libraries round either side on its own.
    return (part + part.T) / 2 if is_foreign(M) else part, values, vectors


def _eigenpairs_on_host(M: Float, count: int, likely_rank: int | None) -> tuple[Float, Float]:
    """Return eigenpairs, rising: all, or the positive ones where they are few but enough."""
    if likely_rank is not None and count <= likely_rank <= FEW_POSITIVE * len(M):
        values, vectors = scipy.linalg.eigh(M, subset_by_value=(0, np.inf), check_finite=False)
        if len(values) >= count:
            return values, vectors
    # SciPy's solver works in place, where NumPy's takes three matrices more; the transpose is
    # the same matrix in the order of memory that it asks for.
    return scipy.linalg.eigh(M.T, driver="evd", overwrite_a=True, check_finite=False)


def orthonormalize(X: Array, against: Array | None = None) -> Array:
    """Return an orthonormal basis of the columns of X, orthogonal to the basis ``against``.

    Works by decompositions of Gram matrices, which cost matrix products only; columns that depend
    on others are dropped, so the result may be narrower than X. Twice is enough, and once where
    little had to be taken away.
    """
    xp = namespace(X)
    before = xp.sum(X * X, axis=0)[None, :]
    if against is not None:
        X = X - against @ (against.T @ X)
    *gram, squares = to_host(xp.concat([X.T @ X, before]))
    gram = np.reshape(gram, (len(squares), len(squares)))
    left = np.diag(gram)
    # What is left of a vector after the projection must exceed its rounding error.
    kept = left > (0 if against is None else 1e-26 * squares)
    mixing, well_conditioned = _inverse_root(gram, RANK_TOLERANCE, kept)
    X = X @ to_device(mixing, X)
    if well_conditioned and np.all(left >= LITTLE_TAKEN * squares):
        return X
    if against is not None:
        X = X - against @ (against.T @ X)
    mixing, _ = _inverse_root(to_host(X.T @ X), 0.0)
    return X @ to_device(mixing, X)


def _inverse_root(gram: Float, tolerance: float, kept: Any = True) -> tuple[Float, bool]:
    """Return what makes columns orthonormal, given their Gram matrix: an inverse root of it.

    Parameters
    ----------
    gram : ndarray of shape (b, b)
        Inner products of the columns.
    tolerance : float
        Directions with less than this share of the largest are dropped.
    kept : ndarray of bool of shape (b,), default=True
        Which columns count; the others are dropped.

    Returns
    -------
    mixing : ndarray of shape (b, at most b)
        What to multiply the columns with.
    well_conditioned : bool
        Whether they are orthonormal then but for rounding.
    """
    used = np.flatnonzero(np.broadcast_to(kept, len(gram)) & (np.diag(gram) > 0))
    lengths = np.sqrt(np.diag(gram)[used])[:, None]
    scaled = gram[np.ix_(used, used)] / lengths / lengths.T
    try:
        # A tenth of the time of eigenvalues, and as good where it ends well.
        root = np.linalg.cholesky(scaled)
        smallest = np.min(np.diag(root), initial=1.0)
    except np.linalg.LinAlgError:
        smallest = 0.0
    if smallest > WELL_CONDITIONED:
        inverse = np.linalg.inv(root).T
    else:
        values, vectors = np.linalg.eigh(scaled)
        some = values > tolerance * max(values[-1], 0)
        inverse = vectors[:, some] / np.sqrt(values[some])
    mixing = np.zeros((len(gram), inverse.shape[1]))
    mixing[used] = inverse / lengths
    return mixing, bool(smallest > VERY_WELL_CONDITIONED)


def polar_factor(X: Array, ties: Float | None = None) -> Array:
    """Return the orthonormal matrix nearest to X: ``U V^T`` of its thin SVD.

    Where X, of order one, lacks rank, several are equally near: of these, if X is square, the one
    nearest to ``ties`` in the directions that X leaves open. What is square is on the host.
    """
    if is_foreign(X):
        Q, R = namespace(X).linalg.qr(X)
        return Q @ to_device(polar_factor(to_host(R)), Q)
    U, lengths, Vt = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(lengths > NULL_TOLERANCE))
    if ties is None or rank == len(lengths):
        return U @ Vt
    # Within what X leaves open on either side, so that the whole stays orthonormal.
    rest = polar_factor(U[:, rank:].T @ ties @ Vt[rank:].T)
    return U[:, :rank] @ Vt[:rank] + U[:, rank:] @ rest @ Vt[rank:]


def set_diagonal(M: Array, values: Array | float) -> None:
    """Write numbers, beside M, or one number to the diagonal of a square matrix."""
    if not is_foreign(M):
        np.fill_diagonal(M, values)
        return
    xp = namespace(M)
    for rows in ranges(M.shape[0], DIAGONAL_ROWS):
        own = xp.eye(rows.stop - rows.start, dtype=xp.bool, device=device(M))
        new = values if isinstance(values, float) else values[rows]
        M[rows, rows] = xp.where(own, new, M[rows, rows])
