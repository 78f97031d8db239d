"""How Sphinx builds the documentation: ``make docs``. Nothing is downloaded."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT / "src"),
    str(ROOT / "docs"),
    str(ROOT / "docs" / "extensions"),
]

from make_results import write_results  # noqa: E402

from mkclust.version import __version__  # noqa: E402

write_results()

project = "mkclust"
author = "The mkclust developers"
copyright = author
version = release = __version__
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Our own, in docs/extensions.
    "api_members",
    "mathml",
    "repository_pages",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# Lessons become pages by the gallery, which also writes down how long each took.
exclude_patterns = [
    "_build",
    "course",
    "sg_execution_times.rst",
    "*/sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = True
highlight_language = "none"  # commands of a shell, where a block does not say
# `Name` in a docstring links where there is a page for it; that there is none is no
# mistake.
nitpick_ignore_regex = [("py:obj", ".*")]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
# Anchors of headings are those of GitHub, so that a link works here and there.
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say what types are, in words
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
default_role = "autolink"
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "course",
    "gallery_dirs": "lessons",
    "filename_pattern": r"/\d\d_\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/lessons",
    "doc_module": ("mkclust",),
    "download_all_examples": False,
    # What a lesson takes says nothing about the reader's machine.
    "min_reported_time": 10_000,
    "remove_config_comments": True,
    "show_signature": False,
    "abort_on_example_error": True,
    "matplotlib_animations": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"mkclust {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "mkclust"},
    "github_url": URLS["Repository"],
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# Pages that stand alone have no use for a column that names their neighbors.
ALONE = (
    "index",
    "install",
    "coming_from_*",
    "glossary",
    "changelog",
    "contributing",
)
html_sidebars = {page: [] for page in ALONE}
html_math_renderer = "mathml"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Links that are checked by `make links` only, with the network.
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_workers = 4
# Publishers refuse programs, and a DOI leads to them.
linkcheck_ignore = [r"https?://(dx\.)?doi\.org/.*"]
