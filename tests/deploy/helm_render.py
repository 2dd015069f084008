"""Renders a chart with Helm's own Go library, in a process of its own: the library brings threads along.

Reads JSON from standard input, with the directory `chart` and `values` by name; prints for each name the documents or
the error. Without values, prints what `helm lint` says.
"""

import json
import sys
from typing import Any

import helm_python  # type: ignore[import-not-found, unused-ignore]


def rendered(chart: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The text of each template with these values, in their `namespace`."""
    namespace = values.pop("namespace", "muster")
    try:
        chart.validate_schema(chart.merge_values(values))
        return {"templates": chart.render(values, name="muster", namespace=namespace)}
    except helm_python.HelmError as error:
        return {"error": str(error)}


def main() -> None:
    asked = json.load(sys.stdin)
    if "values" not in asked:
        json.dump(helm_python.lint(asked["chart"], namespace="muster", strict=True), sys.stdout)
        return
    with helm_python.Chart.load(asked["chart"]) as chart:
        json.dump({name: rendered(chart, values) for name, values in asked["values"].items()}, sys.stdout)


if __name__ == "__main__":
    main()
