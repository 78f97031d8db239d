"""What may be asked of tables, and what it means for cells and for whole samples."""

import pytest

from mkclust.data.options import TableOptions


def test_samples_that_views_lack_are_rescaled_or_left_at_zero_before_anything_is_learned():
    rules = {None: "rescale", "rescale": "rescale", "zero": "zero", "learn": "zero"}
    for missing_views, rule in rules.items():
        assert TableOptions(missing_views=missing_views).fill_rule == rule


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("impute", "mean"),
        ("impute", "learn"),
        ("impute", ("median", "learn")),
        ("missing_views", "median"),
        ("missing_views", ("zero",)),
        ("join", "left"),
    ],
)
def test_other_options_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        TableOptions(**{name: value})
