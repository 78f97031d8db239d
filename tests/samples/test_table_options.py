"""What may be asked of tables, and what it means for cells and for whole samples."""

import pytest

from mkclust.parameters import check_parameter
from mkclust.samples.options import IMPUTATIONS, Imputation, TableOptions


@pytest.mark.parametrize(
    ("impute", "cells", "fill"),
    [
        (None, None, "rescale"),
        ("median", "median", "rescale"),
        ("zero", None, "zero"),
        ("rescale", None, "rescale"),
        ("learn", None, "learn"),
        (("median", "learn"), "median", "learn"),
        (["zero", "median"], "median", "zero"),
        (("learn",), None, "learn"),
    ],
)
def test_an_imputation_says_what_fills_cells_and_what_stands_for_lacking_views(impute, cells, fill):
    options = TableOptions(impute=impute)
    assert (options.cells, options.fill) == (cells, fill)
    check_parameter("impute", impute, Imputation())


@pytest.mark.parametrize(
    "impute",
    ["mean", (), ("zero", "learn"), ("median", "median"), ("median", None), 3, True, {"median"}],
)
def test_other_imputations_are_refused_with_what_there_is(impute):
    with pytest.raises(ValueError, match="impute=.*'median' to fill missing cells.*a pair of both"):
        TableOptions(impute=impute)


def test_every_single_imputation_is_accepted():
    for impute in IMPUTATIONS:
        TableOptions(impute=impute)


def test_an_outer_join_can_be_asked_for():
    assert TableOptions(join="outer").join == "outer"
    with pytest.raises(ValueError, match="'exact', 'inner', 'outer'"):
        TableOptions(join="left")
