"""Elements of SVG pictures."""

import re
import xml.etree.ElementTree as ET

from muster_coordinator.views.sweeps.matrix.style import IN_THE_DARK, PAPER

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 forbids (https://www.w3.org/TR/xml/#charsets), even escaped."""

_PAINTS = ("fill", "stroke")


def picture(width: float, height: float, title: str, description: str) -> ET.Element:
    """An empty picture of this size in pixels, with a title and a description for those who cannot see it."""
    size = {"width": f"{width:g}", "height": f"{height:g}", "viewBox": f"0 0 {width:g} {height:g}"}
    root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img"})
    root.set("aria-labelledby", "title desc")
    element(root, "title", title, id="title")
    element(root, "desc", description, id="desc")
    rules = (f'[{paint}="{light}"]{{{paint}:{dark}}}' for light, dark in IN_THE_DARK.items() for paint in _PAINTS)
    element(root, "style", f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}")
    element(root, "rect", width=width, height=height, fill=PAPER)
    return root


def element(parent: ET.Element, name: str, text: str = "", **attributes: str | float) -> ET.Element:
    """A new element in `parent`; underscores in the names of attributes stand for hyphens."""
    given = {key.replace("_", "-"): _attribute(value) for key, value in attributes.items()}
    added = ET.SubElement(parent, name, given)
    added.text = _NOT_IN_XML.sub("\ufffd", text) or None
    return added


def written(root: ET.Element) -> str:
    """The picture as a document."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _attribute(value: str | float) -> str:
    return _NOT_IN_XML.sub("\ufffd", value) if isinstance(value, str) else f"{value:.6g}"
