"""Pages of the repository as pages of the site, and links that work in both.

CONTRIBUTING.md and CHANGELOG.md stand at the root of the repository. A page of the site
with one of these names, such as ``docs/contributing.md``, is read from there. Links in
Markdown are relative to the file they stand in, as anywhere; where they lead to one of
the two, they are turned to its page; where they lead to the script of a lesson, to the
lesson; and where they lead to other Markdown outside of ``docs``, to a copy of it.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parents[1]
PAGES = {
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
}
# [text](target) and ![text](target), the target a path and perhaps an anchor.
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#|<)([^)#\s]+)(#[^)\s]*)?\)")

LESSON = re.compile(r"^docs/course/(\w+)\.py$")


def turn_links(text: str, file: str, page: str) -> str:
    """Return text with the links of a file as they are on a page of the site.

    Parameters
    ----------
    text : str
        Markdown.
    file, page : str
        Where the text stands in the repository, and as a page, both relative to the
        repository.

    Returns
    -------
    str
    """
    pages = {name: f"docs/{page}.md" for page, name in PAGES.items()}

    def turn(link: re.Match[str]) -> str:
        mark, words, path, anchor = link.groups(default="")
        target = os.path.normpath(PurePosixPath(file).parent / path)
        target = LESSON.sub(r"docs/lessons/\1.rst", pages.get(target, target))
        turned = os.path.relpath(target, PurePosixPath(page).parent)
        if target.endswith(".md") and not target.startswith("docs/"):
            return f"{{download}}`{words.replace('`', '')} <{turned}>`"
        return f"{mark}[{words}]({turned}{anchor})"

    return LINK.sub(turn, text)


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Read a page of the root of the repository from there, and turn its links."""
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".md":
        return
    page = file = path.relative_to(DOCS.parent).as_posix()
    if docname in PAGES:
        file = PAGES[docname]
        app.env.note_dependency(str(DOCS.parent / file))
        source[0] = (DOCS.parent / file).read_text(encoding="utf-8")
    source[0] = turn_links(source[0], file, page)


def setup(app: Sphinx) -> dict[str, Any]:
    """Read pages by `read`."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
