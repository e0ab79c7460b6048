"""What Sphinx has to know to make a site of a folder that build.py fills.

With the tag zh it is the Chinese one.
"""

import re
import sys
from pathlib import Path

from sphinx import addnodes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent)]

import chinese_search  # noqa: E402
import pages  # noqa: E402

project = "pydevtensor"
author = "the pydevtensor developers"
copyright = author
_text = (ROOT / "pydevtensor" / "__init__.py").read_text()
_found = re.search(r'__version__ = "(.*)"', _text)
if not _found:
    sys.exit("pydevtensor/__init__.py names no version")
release = version = _found[1]

extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "text"

SITE = pages.Site("zh" if tags.has("zh") else "en", "")  # noqa: F821
if SITE.language == "zh":
    language = "zh_CN"

html_theme = "furo"
templates_path = ["templates"]
# furo's own, and a link to the page in the other language.
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_title = f"pydevtensor {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
toc_object_entries_show_parents = "hide"
maximum_signature_line_length = 80

# Of the types in signatures, those that have an entry. Others are Python's, or would
# lead to something else of that name: bool is also one of torch's types.
TYPES = {
    **{name: f"torch.{name}" for name in ("Tensor", "device", "dtype", "Size")},
    **{name: f"torch.{name}" for name in ("Generator", "Event", "Stream")},
    "Module": "torch.nn.Module",
    "Parameter": "torch.nn.Parameter",
    "Optimizer": "torch.optim.Optimizer",
    "Distribution": "torch.distributions.Distribution",
}


def link_types(app, doctree):
    """Lead the types in signatures to their entries, or nowhere."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py" and node.get("reftype") in ("class", "obj"):
            of_signature = any(
                isinstance(above, addnodes.desc_signature) for above in ancestors(node)
            )
            if of_signature and node["reftarget"] in TYPES:
                node["reftarget"] = TYPES[node["reftarget"]]
            elif of_signature:
                node.replace_self(node.children)


def ancestors(node):
    while node.parent is not None:
        node = node.parent
        yield node


def name_languages(app, pagename, templatename, context, doctree):
    """Say which language a page is in, and where it is in the other one."""
    # furo writes Sphinx's name, which is no language of HTML.
    context["language"] = "zh-CN" if SITE.language == "zh" else "en"
    up, other = ("../", "") if SITE.language == "zh" else ("", "zh/")
    there = pagename if pagename in SITE.of_the_other_language() else "index"
    context["other_language"] = context["pathto"](f"{up}{other}{there}.html", 1)


def setup(app):
    app.connect("doctree-read", link_types)
    app.connect("html-page-context", name_languages)
    app.add_search_language(chinese_search.Search)
