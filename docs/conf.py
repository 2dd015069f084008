"""Settings of Sphinx, which builds the documentation as a site: `make site`.

The source directory is the root of the repository, because the pages link to README.md, SECURITY.md and each other by
the paths that GitHub shows. Every warning is an error, so a link or an anchor that leads nowhere fails the build.
"""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))

project = "muster"
extensions = ["myst_parser", "generator.site"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
# Sphinx would otherwise walk through tests, caches and virtual environments as well.
exclude_patterns = [folder.name for folder in ROOT.iterdir() if folder.is_dir() and folder != DOCS]
nitpicky = True
myst_heading_anchors = 4

html_theme = "furo"
html_title = "muster"
html_extra_path = ["site/index.html"]
html_copy_source = False
html_use_index = False
# Typographic dashes would turn options such as --dry-run in running text into something that cannot be pasted.
smartquotes = False
