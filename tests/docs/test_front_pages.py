"""The README and the first page of the site: numbers that were measured, and text that
an index of packages can show."""

import re
from pathlib import Path

import make_readme
import pytest

ROOT = Path(__file__).parents[2]
LONGEST_LINE = 100
# Of prose: who reads on has decided to.
MOST_WORDS = 420


@pytest.fixture
def readme():
    """Return the README."""
    return (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", make_readme.pages())
def test_a_page_with_measured_numbers_is_what_its_template_makes(page):
    made = make_readme.pages()[page]
    written = (ROOT / page).read_text(encoding="utf-8")
    assert written == made, "run python docs/make_readme.py"


def test_millions_of_samples_are_a_word():
    counts = (60, 1_797, 1_000_000, 1_500_000, 10_000_000)
    named = ["60", "1,797", "a million", "1,500,000", "10 million"]
    assert [make_readme.in_words(count) for count in counts] == named


def test_links_and_pictures_of_the_readme_are_absolute(readme):
    inline = re.findall(r"\]\(([^)]+)\)", readme)
    defined = re.findall(r"^\[.+\]: (\S+)$", readme, re.MULTILINE)
    assert len(inline) + len(defined) > 0
    assert all(target.startswith("https://") for target in inline + defined)


def test_every_name_of_a_link_in_the_readme_has_an_address(readme):
    defined = re.findall(r"^\[(.+?)\]: ", readme, re.MULTILINE)
    prose = re.sub(r"(?s)^```.*?^```$", "", readme, flags=re.MULTILINE)
    # Brackets in a name, such as that of an extra, are no link.
    used = re.findall(r"(?<![.\w])\[([^\]]+)\](?![\[(]|: http)", prose)
    assert set(used) == set(defined)


def test_the_readme_is_short(readme):
    assert max(map(len, readme.splitlines())) <= LONGEST_LINE
    prose = re.sub(r"^```.*?^```$", "", readme, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"\]\([^)]*\)|^\[.*\]: .*$|^\| -.*$", "", prose, flags=re.MULTILINE)
    assert len(re.findall(r"\w[\w.,'-]*", prose)) <= MOST_WORDS
