"""Every method has a page, and the page names what the class has."""

import re
from inspect import signature
from pathlib import Path

import pytest

from mkclust import METHODS
from mkclust.fit import InductiveClusterer
from mkclust.methods.certified import CertifiedClusterer

FOLDER = Path(__file__).parents[2] / "docs" / "methods"
ROW = re.compile(
    r"^\| \[`([a-z-]+)`\]\(([a-z-]+)\.md\) \| `(\w+)` \|(.*)\|$", re.MULTILINE
)


def test_the_table_of_methods_lists_every_method_with_what_it_can_do():
    rows = {
        row[1]: (row[2], row[3], [cell.strip(" *") for cell in row[4].split("|")])
        for row in ROW.finditer((FOLDER / "index.md").read_text(encoding="utf-8"))
    }
    assert rows.keys() == METHODS.keys()
    for key, (page, name, (_, certified, new, aside, _)) in rows.items():
        method = METHODS[key]
        assert (page, name) == (key, method.__name__)
        assert (certified == "yes") == issubclass(method, CertifiedClusterer), key
        assert new == ("yes" if issubclass(method, InductiveClusterer) else "no"), key
        assert aside == ("yes" if "set_aside_" in method.__doc__ else "no"), key


def test_every_method_is_in_the_list_of_pages_and_in_the_table_of_large_weights():
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    pages = re.search(r"```{toctree}\n:hidden:\n\n(.*?)\n```", text, re.DOTALL)[1]
    assert sorted(pages.split()) == sorted(METHODS)
    table = text.partition("| method | a large weight means |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1].split(", ") for line in table.splitlines()[2:]]
    names = [name.strip() for cell in cells for name in cell]
    assert sorted(names) == sorted(method.__name__ for method in METHODS.values())


@pytest.mark.parametrize("key", METHODS)
def test_the_page_of_a_method_names_its_parameters_its_references_and_an_example(key):
    text = (FOLDER / f"{key}.md").read_text(encoding="utf-8")
    method = METHODS[key]
    shared = signature(METHODS["avg-kkm"]).parameters
    for name in signature(method).parameters:
        if name not in shared or name in method.GRID:
            assert f"`{name}`" in text, name
    for reference in method.REFERENCES:
        first_author, year = reference.split(",")[0], reference.rstrip(".")[-4:]
        assert first_author in text, reference
        assert year in text, reference
    assert f"{{class}}`mkclust.{method.__name__}`" in text
    assert ">>> " in text
