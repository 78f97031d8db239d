"""The pages of results are made of the committed rows."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the pages as they are made now, by name."""
    spec = importlib.util.spec_from_file_location("make_results", DOCS / "make_results.py")
    make_results = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_results)
    made = make_results.write_results(tmp_path_factory.mktemp("results"))
    return {path.name: path.read_text(encoding="utf-8") for path in made}


def test_every_page_of_results_says_the_command_that_made_its_rows(pages):
    for name, text in pages.items():
        if name != "index.md":
            assert "benchmarks/" in text.split("```")[1], name


def test_every_page_of_results_has_a_template_and_every_table_has_rows(pages):
    templates = {path.name.removesuffix(".in") for path in (DOCS / "results_templates").iterdir()}
    assert templates == set(pages)
    for name, text in pages.items():
        assert "nan" not in text.lower().replace("dominance", ""), name
        assert "$" not in text, name
