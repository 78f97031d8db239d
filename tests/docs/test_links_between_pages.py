"""Links between files of the documentation, also by their addresses on the web; `make
links` checks those to other places."""

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
RAW = URLS["Repository"].replace("github.com", "raw.githubusercontent.com")
# Addresses of files of the repository, and of pages of the site.
OF_FILES = re.compile(rf"(?:{URLS['Repository']}/blob|{RAW})/main/([^\s)#]+)")
OF_PAGES = re.compile(rf"{URLS['Documentation']}([\w/.-]+)\.html(?:#([\w-]+))?")
FILES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "benchmarks").rglob("README.md")),
    *sorted(
        p
        for p in (ROOT / "docs").rglob("*.md")
        if not {"_build", "results"} & set(p.parts)
    ),
]
CODE = re.compile(
    r"^(`{3,}|~{3,}).*?^\1|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\(<?(?![a-z]+:)([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")


def without_code(text: str) -> str:
    """Return Markdown without its examples, in which brackets are no links."""
    return CODE.sub("", text)


@cache
def anchors(path: Path) -> frozenset[str]:
    """Return the anchors of a file of Markdown: of its headings, as GitHub makes
    them."""
    found: list[str] = []
    for fence in re.findall(
        r"^(?:`{3,}).*?^`{3,}", text := path.read_text("utf-8"), re.M | re.S
    ):
        text = text.replace(fence, "")
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        words = re.sub(r"\]\([^)]*\)", "]", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.append(slug + (f"-{found.count(slug)}" if slug in found else ""))
    return frozenset(found) | frozenset(
        re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    )


def source_of(path: Path) -> Path:
    """Return what a page of the site is made of: lessons of scripts, results of
    templates."""
    lessons = ROOT / "docs" / "lessons"
    if path.parent == ROOT / "docs" / "results":
        return ROOT / "docs" / "results_templates" / f"{path.name}.in"
    if path.parent != lessons:
        return path
    course = ROOT / "docs" / "course"
    return course / (
        "GALLERY_HEADER.rst" if path.stem == "index" else f"{path.stem}.py"
    )


@pytest.mark.parametrize(
    "file", FILES, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_links_to_files_and_headings_lead_somewhere(file):
    broken = []
    for target in LINK.findall(without_code(file.read_text(encoding="utf-8"))):
        path, _, anchor = target.partition("#")
        aim = source_of((file.parent / path).resolve()) if path else file
        if not aim.exists() or (
            anchor and aim.suffix == ".md" and anchor not in anchors(aim)
        ):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize(
    "file", FILES, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_addresses_of_the_project_lead_to_its_files_and_pages(file):
    text = file.read_text(encoding="utf-8")
    broken = [path for path in OF_FILES.findall(text) if not (ROOT / path).exists()]
    for page, anchor in OF_PAGES.findall(text):
        sources = [ROOT / "docs" / f"{page}.{kind}" for kind in ("md", "rst")]
        aims = [aim for aim in map(source_of, sources) if aim.exists()]
        if not aims or (anchor and anchor not in anchors(aims[0])):
            broken.append(page)
    assert not broken
