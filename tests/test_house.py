"""Promises of the package as a whole."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mkclust
from mkclust import METHODS, KernelBank
from mkclust.datasets import load


def test_importing_the_library_loads_neither_its_extras_nor_what_explains_a_fit():
    names = (
        "matplotlib",
        "typer",
        "h5py",
        "torch",
        "dask",
        "skops",
        "mkclust.explain",
    )
    program = (
        "import mkclust, sys\n"
        f"print([name for name in {names} if name in sys.modules])\n"
        "print(set(mkclust.__all__) - set(dir(mkclust)))\n"
        "from mkclust import *\n"
        "print(set(mkclust.__all__) - set(globals()))\n"
        "print(mkclust.explain.diagnose is diagnose)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split("\n")[:4] == ["[]", "set()", "set()", "True"], done.stderr


def test_a_name_that_the_library_does_not_have_is_refused_as_by_any_module():
    with pytest.raises(AttributeError, match="module 'mkclust' has no attribute 'SimpleMKM'"):
        _ = mkclust.SimpleMKM
    with pytest.raises(ImportError, match="cannot import name 'SimpleMKM'"):
        from mkclust import SimpleMKM  # noqa: F401


@pytest.mark.parametrize("name", mkclust.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(mkclust, name) is not None
    if inspect.isclass(getattr(mkclust, name)):
        assert inspect.getdoc(getattr(mkclust, name))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [*METHODS.values(), KernelBank], ids=lambda c: c.__name__)
def test_docstrings_name_every_parameter_and_every_learned_attribute(estimator):
    text = inspect.getdoc(estimator)
    described = set(re.findall(r"[a-z_]\w*", " ".join(re.findall(r"^[\w, ]+ : ", text, re.M))))
    views = {name: view[:60] for name, view in load("digits").views.items()}
    model = estimator().fit(views)
    learned = {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}
    # Known from scikit-learn's glossary, and explained there.
    learned -= {"feature_names_in_"}
    assert set(model.get_params(deep=False)) | learned <= described


def test_the_kernels_of_the_caller_are_left_alone():
    kernels = KernelBank(widths=(1.0,), polynomials=(), linear=None).fit_transform(
        np.random.default_rng(0).normal(size=(50, 4))
    )
    before = kernels.tobytes()
    kernels.flags.writeable = False
    mkclust.SimpleMKKM(3, random_state=0).fit(kernels)
    assert kernels.tobytes() == before


def test_the_readme_links_to_what_is_there_and_leaves_nothing_open():
    root = Path(__file__).parents[1]
    text = (root / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (root / target).exists(), target
    for command in re.findall(r"`(benchmarks/[\w./]+)`", text):
        assert (root / command).exists(), command
    assert not re.search(
        r"\b[A-Z]{8,}\b(?!\.)", text
    )  # words in capitals stand for what is to come
