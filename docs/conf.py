"""How Sphinx builds these pages: `make docs`."""

import re
from importlib.metadata import version as version_of

project = "maxmargin"
author = "the maxmargin developers"
copyright = "2026, the maxmargin developers"
version = release = version_of("maxmargin")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"maxmargin {release}"

myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc shows the types that the docstrings tell
autodoc_preserve_defaults = True
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"demo\.py",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
}


def skip_member(app, what, name, obj, skip, options):
    """Leave out what comes from scikit-learn: its own reference describes it."""
    function = getattr(obj, "fget", obj)
    module = getattr(function, "__module__", None) or ""
    return True if module.startswith("sklearn") else skip


NAME_OF_FIELD = re.compile(r"\s*[\w, ]+ : ")
CODE = re.compile(r"(``.*?``)")


def plain_mathematics(app, what, name, obj, options, lines):
    """Docstrings are written for ``help()``: |w| is a norm and objective_ a name, not markup."""
    for i, line in enumerate(lines):
        if NAME_OF_FIELD.match(line) or line.lstrip().startswith((">>>", ".. [")):
            continue
        pieces = CODE.split(line)
        pieces[::2] = [re.sub(r"\||(?<=\w)_(?!\w)", r"\\\g<0>", text) for text in pieces[::2]]
        lines[i] = "".join(pieces)


def setup(app):
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", plain_mathematics, priority=100)
