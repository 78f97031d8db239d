"""A variable by cluster: quartiles, shares, and what is left out."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba

from mkclust import annotate
from mkclust.plots import SurvivalDisplay, VariableDisplay
from mkclust.plots.style import UNKNOWN_COLOR

LABELS = np.array([0] * 40 + [1] * 30 + [-1] * 10)


def test_boxes_are_the_quartiles_of_the_known_samples():
    values = np.random.default_rng(0).normal(size=80)
    values[3] = np.nan
    display = VariableDisplay(values=values, labels=LABELS, name="age").plot()
    for cluster in (0, 1):
        expected = np.nanquantile(values[cluster == LABELS], [0.25, 0.5, 0.75])
        assert display.table.loc[cluster].to_numpy() == pytest.approx(expected)
    assert f"{display.table.loc[1, 0.5]:.3g} in 1" in display.caption


def test_bars_are_shares_that_sum_to_one():
    levels = np.random.default_rng(0).choice(["I", "II", "III"], 80)
    stage = pd.Series(levels).where(np.arange(80) != 5)
    display = VariableDisplay(
        values=stage, labels=LABELS, name="stage", names=["basal", "luminal"]
    ).plot()
    assert display.table.sum(axis=1).to_numpy() == pytest.approx([1, 1])
    known = stage[(LABELS == 0) & stage.notna()]
    assert display.table.loc[0, "II"] == pytest.approx((known == "II").mean())
    words = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert words == ["basal", "luminal"]
    yes_or_no = VariableDisplay(values=LABELS % 2, labels=LABELS, name="smoker")
    assert not yes_or_no.is_number


def test_levels_that_are_not_known_are_gray_and_last():
    levels = np.random.default_rng(0).choice(["[Not Available]", "low", "high"], 80)
    display = VariableDisplay(values=levels, labels=LABELS, name="grade").plot()
    assert list(display.table) == ["high", "low", "[Not Available]"]
    last = display.ax_.patches[-1].get_facecolor()
    assert last == pytest.approx(to_rgba(UNKNOWN_COLOR))
    first = display.ax_.patches[0].get_facecolor()
    assert first != pytest.approx(to_rgba(UNKNOWN_COLOR))


def test_an_annotation_draws_its_variables_with_their_p_values():
    rng = np.random.default_rng(0)
    columns = {"age": rng.normal(size=80) + 2 * LABELS, "sex": rng.choice(["f"], 80)}
    columns |= {"time": rng.exponential(size=80), "event": rng.integers(2, size=80)}
    found = annotate(LABELS, pd.DataFrame(columns))
    display = found.plot("age")
    assert "adjusted p <= 0.00" in display.ax_.get_title(loc="left")
    assert isinstance(found.plot("time, event"), SurvivalDisplay)
    with pytest.raises(ValueError, match="did you mean 'age'"):
        found.plot("agee")
