"""The pages of results are made of the committed rows."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_every_page_of_results_has_a_template_a_command_and_rows_in_every_table(
    tmp_path,
):
    spec = importlib.util.spec_from_file_location(
        "make_results", DOCS / "make_results.py"
    )
    make_results = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_results)
    pages = {
        path.name: path.read_text() for path in make_results.write_results(tmp_path)
    }
    templates = {
        path.name.removesuffix(".in") for path in (DOCS / "results_templates").iterdir()
    }
    assert templates == set(pages)
    for name, text in pages.items():
        assert name == "index.md" or "benchmarks/" in text.split("```")[1], name
        assert "nan" not in text.lower().replace("dominance", ""), name
        assert "$" not in text, name
