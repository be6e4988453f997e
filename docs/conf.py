"""Sphinx configuration. Build with `sphinx-build -W -n docs docs/_build/html`."""

from importlib import metadata

project = "django-jobqueue"
author = "The django-jobqueue contributors"
project_copyright = "2026, the django-jobqueue contributors"
release = metadata.version("django-jobqueue")
version = release

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"django-jobqueue {release}"
# The pages carry everything they need: no fonts, scripts or icons from elsewhere.
html_theme_options = {"top_of_page_buttons": []}
html_copy_source = False
html_show_sourcelink = False
