"""How tests are chosen and set up, and the fixtures that many of them ask for."""

import os
import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# Before workers send warnings of it, which two threads of the controller would import
# at once.
import mkclust  # noqa: F401
import paper.datasets  # noqa: F401  (adds the paper's data sets to those known by name)
from helpers.cases import REPRESENTATIVES
from helpers.reference import reference_folder

# How many examples a test of an invariance draws: MKCLUST_THOROUGH is set by `make
# test-all`.
settings.register_profile(
    "mkclust",
    max_examples=200 if os.environ.get("MKCLUST_THOROUGH") else 15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("mkclust")


def pytest_configure():
    # In the background a shell has interrupts ignored, and so would all that tests
    # start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """Do not import files that are slow as a whole if slow tests are not asked for."""
    if config.getoption("-m") == "not slow" and collection_path.suffix == ".py":
        return (
            "\npytestmark = pytest.mark.slow\n" in collection_path.read_text() or None
        )
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave predictions of other methods, and a slow guide, to `make test-all`."""
    for item in items:
        is_predicted = "inductive" in getattr(item, "fixturenames", ())
        if is_predicted and item.callspec.params.get("name") not in REPRESENTATIVES:
            item.add_marker(pytest.mark.slow)
        # A guide that draws; every function in it has an example of its own.
        if item.path.name == "looking.md":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def golden():
    """Return the golden problem and what is expected of it, in one mapping."""
    folder = reference_folder("MKCLUST_GOLDENS")
    with (
        np.load(folder / "p1_n150_m5_k4.npz") as problem,
        np.load(folder / "expected" / "p1_n150_m5_k4.npz") as expected,
    ):
        return {**problem, **expected}


@pytest.fixture(scope="session")
def uci_digit():
    from mkclust.datasets import load

    data = load(reference_folder("MKCLUST_DATA") / "uci_digit" / "UCI.mat")
    return data.views, data.y


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path
