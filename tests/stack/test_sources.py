"""Kernels that are read or computed some rows at a time, pass after pass."""

import threading

import numpy as np
import pytest

from helpers.kernels import M, N, Rows, integer_kernels, on_disk, standardized
from mkclust.stack import Source, as_stack


class Products(Source):
    """A source that knows its diagonal, and products that take no rows."""

    def __init__(self, kernels):
        self.kernels, self.asked = kernels, []
        self.n_kernels, self.n_samples, self.dtype = M, N, kernels.dtype

    def rows(self, start, stop):
        self.asked.append((start, stop))
        return list(self.kernels[:, start:stop])

    def diagonal(self):
        return self.kernels.diagonal(axis1=1, axis2=2)

    def product(self, index, X):
        return self.kernels[index] @ X


def test_products_that_take_no_rows_are_used_if_the_source_knows_them():
    source = Products(integer_kernels())
    stack = as_stack(source, validate=False)
    V = np.random.default_rng(0).normal(size=(N, 3))
    np.testing.assert_allclose(
        stack.apply(V), standardized(integer_kernels()) @ V, atol=1e-10
    )
    assert not source.asked


@pytest.mark.parametrize("dtype", [np.int32, np.float16, ">f8", np.bool_])
def test_other_number_types_are_converted_as_they_come(dtype, tmp_path):
    kernels = np.stack([np.eye(N)] * M) if dtype is np.bool_ else integer_kernels()
    stack = as_stack(
        on_disk(kernels.astype(dtype), tmp_path), streamed=True, center=False
    )
    tolerance = 1e-3 if dtype is np.float16 else 1e-11
    expected = standardized(kernels, center=False)
    np.testing.assert_allclose(stack.among().entries, expected, atol=tolerance)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_pass_leaves_no_thread(kind):
    class Broken(Rows):
        def rows(self, start, stop):
            if start and self.is_broken:
                raise kind
            return super().rows(start, stop)

    rows = Broken(integer_kernels())
    rows.is_broken = False
    stack = as_stack(rows)
    rows.is_broken = True
    with pytest.raises(kind):
        stack.apply(np.ones((N, 1)))
    assert not [thread for thread in threading.enumerate() if "mkclust" in thread.name]


def test_a_source_of_rows_of_a_wrong_shape_is_at_fault():
    class Wrong(Rows):
        def rows(self, start, stop):
            return self.kernels[:, start : stop + 1, 1:]

    with pytest.raises(ValueError, match="the source of the rows is at fault"):
        as_stack(Wrong(integer_kernels()))


def test_entries_that_are_not_finite_are_named_by_their_rows():
    kernels = integer_kernels()
    kernels[1, 5, 7] = kernels[1, 7, 5] = np.nan
    with pytest.raises(
        ValueError, match=r"kernel 2.*1 entries are NaN|kernel.*NaN"
    ) as found:
        as_stack(Rows(kernels))
    assert "infinite, in rows 0 to " in str(found.value)
    assert "{" not in str(found.value)
    with pytest.raises(ValueError, match="2 entries .*, the first in row 5, column 7;"):
        as_stack(list(kernels))
