"""Which Python packages are installed, as a CycloneDX document: `python3 sbom.py FILE` writes all of them.

The images are built with this file alone, so it imports nothing but the standard library. Two builds with the same
packages give the same document: it has no time, no random number, and nothing of the machine that built it.
"""

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any


def bill_of_materials(packages: Iterable[Distribution]) -> str:
    """A CycloneDX 1.6 document with one component for each package, sorted by name."""
    components = {component["purl"]: component for component in map(_component, packages)}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": [components[purl] for purl in sorted(components)],
    }
    return json.dumps(document, indent=1) + "\n"


def _component(package: Distribution) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    purl = f"pkg:pypi/{name}@{package.version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": package.version,
        "purl": purl,
    }
    if "License-Expression" in package.metadata:
        component["licenses"] = [{"expression": package.metadata["License-Expression"]}]
    return component


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(bill_of_materials(distributions()), encoding="utf-8")
