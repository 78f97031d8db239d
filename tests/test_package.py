"""Promises of the package as a whole."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import mkclust
from mkclust import METHODS, KernelBank
from mkclust.datasets import load


def test_importing_the_library_loads_neither_its_extras_nor_what_explains_a_fit():
    names = ("matplotlib", "typer", "h5py", "torch", "dask", "skops", "mkclust.explain")
    program = (
        "import mkclust, sys\n"
        f"print([name for name in {names} if name in sys.modules])\n"
        "print(set(mkclust.__all__) - set(dir(mkclust)))\n"
        "from mkclust import *\n"
        "print(set(mkclust.__all__) - set(globals()))\n"
        "print(mkclust.explain.diagnose is diagnose)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert done.stdout.split("\n")[:4] == ["[]", "set()", "set()", "True"], done.stderr
    with pytest.raises(
        AttributeError, match="module 'mkclust' has no attribute 'SimpleMKM'"
    ):
        _ = mkclust.SimpleMKM


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [*METHODS.values(), KernelBank], ids=lambda c: c.__name__
)
def test_docstrings_name_every_parameter_and_every_learned_attribute(estimator):
    text = inspect.getdoc(estimator)
    described = set(
        re.findall(r"[a-z_]\w*", " ".join(re.findall(r"^[\w, ]+ : ", text, re.M)))
    )
    views = {name: view[:60] for name, view in load("digits").views.items()}
    model = estimator().fit(views)
    learned = {
        name for name in vars(model) if name.endswith("_") and not name.startswith("_")
    }
    # Known from scikit-learn's glossary, and explained there.
    learned -= {"feature_names_in_"}
    assert set(model.get_params(deep=False)) | learned <= described


def test_the_kernels_of_the_caller_are_left_alone():
    X = np.random.default_rng(0).normal(size=(2, 50, 4))
    kernels = X @ X.transpose(0, 2, 1)
    before = kernels.tobytes()
    kernels.flags.writeable = False
    mkclust.SimpleMKKM(3, random_state=0).fit(kernels)
    assert kernels.tobytes() == before
