"""The skeleton of a page: one file, no request to anywhere, readable by eye, ear and printer."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from mkclust.web.plot import plotting_script
from mkclust.web.words import escape

# A browser that honors it loads nothing from anywhere, whatever the page's scripts might try.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading of its own.

    Attributes
    ----------
    name : str
        Its place in the page, for links: letters and hyphens.
    title : str
        Its heading.
    parts : sequence of str
        Its content, as markup.
    """

    name: str
    title: str
    parts: Sequence[str]


def document(
    title: str, opening: Sequence[str], sections: Sequence[Section], closing: Sequence[str] = ()
) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
        The page's name and first heading.
    opening : sequence of str
        Markup above the table of contents.
    sections : sequence of Section
        In their order.
    closing : sequence of str
        Markup at the foot.

    Returns
    -------
    str
        HTML, with style, scripts and data inside.
    """
    links = "".join(
        f'<li><a href="#{section.name}">{escape(section.title)}</a></li>' for section in sections
    )
    body = "\n".join(map(_section, sections))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="mkclust">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<h1>{escape(title)}</h1>
{_lines(opening)}
<nav aria-label="Contents"><ul>{links}</ul></nav>
</header>
<noscript><p class="caution">Plots and the sorting of tables need JavaScript, which this browser
does not run; the numbers and the sentences are all there.</p></noscript>
<main id="content">
{body}
</main>
<footer>
{_lines(closing)}
</footer>
<p class="unseen" role="status" aria-live="polite" id="status"></p>
<script>{plotting_script()}</script>
<script>
{_asset("page.js")}</script>
</body>
</html>
"""


def _section(section: Section) -> str:
    """Return one section."""
    head = f'<h2 id="{section.name}-title">{escape(section.title)}</h2>'
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">\n{head}\n'
        f"{_lines(section.parts)}\n</section>"
    )


def _lines(parts: Sequence[str]) -> str:
    """Return pieces of markup, one a line."""
    return "\n".join(part for part in parts if part)


def _asset(name: str) -> str:
    """Return a file that lies beside this one."""
    return (files("mkclust.web") / name).read_text(encoding="utf-8")
