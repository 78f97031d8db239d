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
# to a vector's length, is above this: twice is enough then.
WELL_CONDITIONED = 1e-3
# Up to this share of positive eigenvalues, finding them alone is faster than a full decomposition;
# from about a quarter on it is slower, several times in the end.
FEW_POSITIVE = 0.125
# Entries of a sum of matrices that are written at a time on a device.
SUM_ENTRIES = 2**26
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
    if isinstance(where, slice):
        return array[(slice(None),) * axis + (where,)]
    if not is_foreign(array):
        return array[(slice(None),) * axis + (where,)]
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


def top_eigenpairs(M: Array, count: int) -> tuple[Float, Array]:
    """Return the largest eigenvalues of a symmetric matrix, falling, on the host, and vectors."""
    # NumPy's full solver rather than SciPy's selective one: the two bring their own BLAS threads,
    # which stand in each other's way when calls alternate.
    xp = namespace(M)
    values, vectors = xp.linalg.eigh(M)
    start = values.shape[0] - count
    return to_host(values[max(start, 0) :])[::-1], xp.flip(vectors[:, max(start, 0) :], axis=1)


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
    M: Float, *, count: int = 0, likely_rank: int | None = None
) -> tuple[Float, Float, Float]:
    """Return the nearest positive semidefinite matrix to a symmetric one, and eigenpairs.

    Parameters
    ----------
    M : ndarray of shape (n, n)
        Symmetric; its memory is made use of and its entries are lost.
    count : int, default=0
        How many of the largest eigenvalues to return, be they negative.
    likely_rank : int, default=None
        About how many eigenvalues are positive, where that is known. If they are few, only they
        are computed.

    Returns
    -------
    part : ndarray of shape (n, n)
        Exactly symmetric.
    values : ndarray of shape (b,)
        The positive eigenvalues of M and the ``count`` largest, falling.
    vectors : ndarray of shape (n, b)
        Their eigenvectors.
    """
    n = len(M)
    few = likely_rank is not None and count <= likely_rank <= FEW_POSITIVE * n
    if few:
        values, vectors = scipy.linalg.eigh(M, subset_by_value=(0, np.inf), check_finite=False)
        few = len(values) >= count
    if not few:
        # SciPy's solver works in place, where NumPy's takes three matrices more; the transpose is
        # the same matrix in the order of memory that it asks for.
        values, vectors = scipy.linalg.eigh(M.T, driver="evd", overwrite_a=True, check_finite=False)
    b = max(count, int((values > 0).sum()))
    values, vectors = values[::-1][:b], vectors[:, ::-1][:, :b]
    root = vectors * np.sqrt(np.maximum(values, 0))
    return root @ root.T, values, vectors


def orthonormalize(X: Array, against: Array | None = None) -> Array:
    """Return an orthonormal basis of the columns of X, orthogonal to the basis ``against``.

    Works by decompositions of Gram matrices, which cost matrix products only; columns that depend
    on others are dropped, so the result may be narrower than X. Twice is enough.
    """
    if against is None:
        return _whiten(_whiten(X, RANK_TOLERANCE), 0.0)
    lengths = _lengths(X)
    for tolerance in (RANK_TOLERANCE, 0.0):
        X = X - against @ (against.T @ X)
        if tolerance:
            # What is left of a vector after the projection must exceed its rounding error.
            kept = np.flatnonzero(_lengths(X) > 1e-13 * lengths)
            if len(kept) < len(lengths):
                X = namespace(X).take(X, to_device(kept, X), axis=1)
        X = _whiten(X, tolerance)
    return X


def _lengths(X: Array) -> Float:
    """Return the lengths of the columns, on the host."""
    return np.sqrt(to_host(namespace(X).sum(X * X, axis=0)))


def _whiten(X: Array, tolerance: float) -> Array:
    """Return X times an inverse root of its Gram matrix, null directions dropped."""
    xp = namespace(X)
    gram = X.T @ X
    lengths = xp.sqrt(xp.linalg.diagonal(gram))
    lengths = xp.where(lengths == 0, 1.0, lengths)[:, None]
    gram = gram / lengths / lengths.T
    if (factor := _triangular_factor(gram)) is not None:
        return X @ (xp.linalg.inv(factor).T / lengths)
    values, vectors = xp.linalg.eigh(gram)
    shares = to_host(values)
    first = int(np.sum(~(shares > tolerance * max(shares[-1], 0)))) if tolerance else 0
    return X @ (vectors[:, first:] / xp.sqrt(values[first:]) / lengths)


def _triangular_factor(gram: Array) -> Array | None:
    """Return the Cholesky factor of a Gram matrix of unit vectors, None where it is near singular.

    It takes a tenth of the time of eigenvalues.
    """
    try:
        factor = namespace(gram).linalg.cholesky(gram)
    except (np.linalg.LinAlgError, RuntimeError):  # torch's error is a RuntimeError
        return None
    sizes = to_host(namespace(gram).linalg.diagonal(factor))
    return factor if np.all(sizes > WELL_CONDITIONED) else None


def polar_factor(X: Float, ties: Float | None = None) -> Float:
    """Return the orthonormal matrix nearest to X: ``U V^T`` of its thin SVD.

    Where X, of order one, lacks rank, several are equally near: of these, if X is square, the one
    nearest to ``ties`` in the directions that X leaves open.
    """
    U, lengths, Vt = np.linalg.svd(X, full_matrices=False)
    rank = int(np.sum(lengths > NULL_TOLERANCE))
    if ties is None or rank == len(lengths):
        return U @ Vt
    # Within what X leaves open on either side, so that the whole stays orthonormal.
    rest = polar_factor(U[:, rank:].T @ ties @ Vt[rank:].T)
    return U[:, :rank] @ Vt[:rank] + U[:, rank:] @ rest @ Vt[rank:]
