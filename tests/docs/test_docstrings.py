"""The docstrings of methods have what methods share, in the same words."""

import importlib.util
import inspect
from pathlib import Path

import pytest

from mkclust import METHODS

PATH = Path(__file__).parents[2] / "docs" / "make_docstrings.py"


def generator():
    """Return the module that writes docstrings."""
    spec = importlib.util.spec_from_file_location("make_docstrings", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("key", METHODS)
def test_a_docstring_has_what_docs_make_docstrings_writes(key):
    made = generator()
    assert inspect.getdoc(METHODS[key]) == made.written_out(METHODS[key])


def test_a_changed_section_is_written_anew():
    made = generator()
    docstring = inspect.getdoc(METHODS["avg-kkm"])
    changed = docstring.replace("Seed of the k-means starts", "Something else")
    changed = changed.replace("join : {", "joined : {")
    assert changed != docstring
    assert made.with_section(changed, "common") == docstring
