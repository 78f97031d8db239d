"""Formulas as MathML, which browsers draw by themselves, without a network."""

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def convert(formula: str, node: nodes.Element, *, as_block: bool) -> str:
    """Return a formula as MathML, or as it is, with a warning, if that fails."""
    try:
        math = latex2mathml.tex2mathml(formula.strip(), as_block=as_block)
    # A parser of others: whatever it raises is about the formula.
    except Exception as error:
        logger.warning(
            "formula %r cannot be converted: %s", formula, error, location=node
        )
        return f"<code>{nodes.unescape(formula)}</code>"
    return math


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    translator.body.append(convert(node.astext(), node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own, with its number where it has one."""
    translator.body.append(translator.starttag(node, "div", CLASS="formula"))
    if node["number"]:
        translator.body.append(f'<span class="eqno">({node["number"]})</span>')
    translator.body.append(convert(node.astext(), node, as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer as "mathml"."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
