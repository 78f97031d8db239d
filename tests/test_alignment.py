"""Whatever has an index is matched with the samples by it or refused, and never by
position."""

import numpy as np
import pandas as pd
import pytest

from mkclust import AverageKKM, align_labels, annotate, describe
from mkclust.data.samples import read_views
from mkclust.index import has_ids
from mkclust.metrics import scores

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N = 12
Y = np.arange(N) % 3
RNG = np.random.default_rng(0)
VIEWS = {"a": 5.0 * Y[:, None] + RNG.normal(size=(N, 2)), "b": RNG.normal(size=(N, 2))}
X = RNG.normal(size=N)
# Unlike Y, nothing computed from a clustered column.
Z = np.random.default_rng(1).permutation(Y)
NUMBERS = np.array([3, 0, 11, 7, 1, 10, 5, 2, 9, 4, 8, 6])
INDICES = {
    "array": None,
    "default": pd.RangeIndex(N),
    "numbers": pd.Index(NUMBERS),
    "other numbers": pd.RangeIndex(50, 50 + N),
    "text": pd.Index([f"s{i}" for i in range(N)]),
    "dates": pd.date_range("2020-01-30", periods=N),
    "pairs": pd.MultiIndex.from_product([range(3), range(4)], names=["plate", "well"]),
}


def framed(values, kind):
    return values if kind == "array" else pd.DataFrame(values, index=INDICES[kind])


@pytest.fixture(scope="module")
def models():
    views = {
        kind: {name: framed(v, kind) for name, v in VIEWS.items()} for kind in INDICES
    }
    return {
        kind: AverageKKM(3, random_state=0, n_init=1).fit(X)
        for kind, X in views.items()
    }


def by_text(index):
    levels = [
        index.get_level_values(level).astype(str) for level in range(index.nlevels)
    ]
    return (
        levels[0]
        if len(levels) == 1
        else pd.MultiIndex.from_arrays(levels, names=index.names)
    )


def transformed(kind, rng):
    """Return a table whose index was changed at random, and the samples of its rows."""
    frame = pd.DataFrame({"x": X, "y": Y, "z": Z}, index=INDICES[kind])
    samples = np.arange(N)
    for operation in rng.choice(9, size=rng.integers(1, 4)):
        if operation < 5:
            n = len(frame)
            reverse, some = np.arange(n)[::-1], np.arange(n)[1::2]
            orders = [
                reverse,
                rng.permutation(n),
                np.argsort(frame["x"]),
                np.arange(n)[2:],
                some,
            ]
            order = np.asarray(orders[operation])
            frame, samples = frame.iloc[order], samples[order]
        elif operation == 5:
            frame, samples = (
                pd.concat([frame, frame.iloc[:1]]),
                np.append(samples, samples[0]),
            )
        elif operation == 6:
            frame = frame.reset_index(drop=True)
            samples = np.argsort(NUMBERS) if kind == "numbers" else np.arange(N)
            samples = samples[np.arange(len(frame)) % N]
        elif operation == 7:
            frame = frame.set_axis(by_text(frame.index))
        elif frame.index.nlevels > 1:
            frame = frame.swaplevel()
    return frame, samples


def everyone(values, samples):
    full = np.full(N, np.nan)
    full[samples] = values
    return full


def annotated(model, kind, frame, samples):
    frame = frame[["x", "z"]]
    columns = {name: everyone(frame[name], samples) for name in frame}
    labels = pd.Series(model.labels_, index=INDICES[kind]) if samples[0] % 2 else model
    pair = [
        annotate(labels, frame, n_permutations=1),
        annotate(model.labels_, columns, n_permutations=1),
    ]
    return [
        np.ravel([(test.statistic, test.n_missing) for test in each.tests])
        for each in pair
    ]


def described(model, kind, frame, samples):
    pair = (
        describe(model, frame[["x"]]),
        describe(model, {"x": everyone(frame["x"], samples)}),
    )
    return [
        np.ravel([(row.standardized, row.n_missing) for row in each.effects])
        for each in pair
    ]


def masked(model, kind, frame, samples):
    views = {name: framed(view, kind) for name, view in VIEWS.items()}
    found = read_views(
        views, observed={"b": frame["y"] > 0, "a": frame["y"] >= 0}
    ).missing
    return found[:, 1], everyone(frame["y"], samples) == 0


def scored(model, kind, frame, samples):
    labels = pd.Series(model.labels_, index=INDICES[kind])
    expected = scores(everyone(frame["y"], samples), model.labels_)
    return [*scores(frame["y"], labels).values()], [*expected.values()]


def renumbered(model, kind, frame, samples):
    found = align_labels(frame["y"], pd.Series(model.labels_, index=INDICES[kind]))
    expected = align_labels(frame["y"].to_numpy(), model.labels_[samples])
    return found.tolist(), expected.tolist()


def predicted(model, kind, frame, samples):
    new = {
        name: pd.DataFrame(view, index=INDICES[kind]) for name, view in VIEWS.items()
    }
    index = frame.index if kind != "array" else pd.RangeIndex(len(frame))
    new["b"] = pd.DataFrame(VIEWS["b"][samples], index=index)
    hand = VIEWS["b"][samples] if kind == "array" else VIEWS["b"]
    return model.predict(new).tolist(), model.predict(VIEWS | {"b": hand}).tolist()


USES = {
    "annotate": annotated,
    "describe": described,
    "observed": masked,
    "scores": scored,
    "align_labels": renumbered,
    "predict": predicted,
}


def test_tables_in_any_order_are_aligned_or_refused(models):
    n_aligned = 0
    # Each use of a table is compared with arrays that are aligned by hand.
    for seed in range(60):
        rng = np.random.default_rng(seed)
        kind, use = rng.choice(list(INDICES)), rng.choice(list(USES))
        frame, samples = transformed(kind, rng)
        try:
            found, expected = USES[use](models[kind], kind, frame, samples)
        except ValueError:
            continue
        assert found == pytest.approx(expected, nan_ok=True), (
            kind,
            use,
            frame.index,
            samples,
        )
        n_aligned += 1
    assert 12 < n_aligned < 48


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (pd.RangeIndex(3), False),
        (pd.Index([0, 1, 2], dtype="Int64"), False),
        (pd.Index([0.0, 1.0, 2.0]), False),
        (pd.RangeIndex(2, 5), True),
        (pd.Index([0, 2, 1]), True),
        (pd.Index(["0", "1", "2"]), True),
        (pd.MultiIndex.from_tuples([(0, 0), (1, 1)]), True),
    ],
)
def test_only_the_numbers_from_zero_in_order_are_no_ids(index, expected):
    assert has_ids(index) == expected


@pytest.mark.parametrize("missing", [None, np.nan, pd.NaT, ("s", None)])
def test_a_table_in_which_an_id_is_missing_is_refused(models, missing):
    ids = [("s", i) for i in range(1, N)] if isinstance(missing, tuple) else range(1, N)
    table = pd.DataFrame({"x": X}, index=pd.Index([*ids, missing]))
    with pytest.raises(ValueError, match="'clinic' lacks 1 ids"):
        annotate(models["default"], {"clinic": table})
    with pytest.raises(ValueError, match="'clinic' lacks 1 ids"):
        read_views({"clinic": table, "other": table})


def test_whole_numbers_beside_arrays_or_other_numbers_are_refused(models):
    table = pd.DataFrame({"x": X})
    with pytest.raises(ValueError, match=r"'clinic'.*reset_index\(drop=True\)"):
        annotate(models["array"], {"clinic": table.iloc[::-1]})
    with pytest.raises(ValueError, match=r"'clinic'.*reset_index\(drop=True\)"):
        annotate(pd.Series(Y).iloc[:-2], {"clinic": table.iloc[2:]})
    with pytest.raises(ValueError, match=r"'a'.*reset_index\(drop=True\)"):
        read_views({"a": table, "b": table.set_axis(range(50, 50 + N))})
