"""The page of all built-in checks."""

import json

from generator.markdown import NOTE, fields, page, table

from muster import plugins, references
from muster.check import AnyCheck
from muster.conditions import in_words
from muster.config import Config, Settings
from muster.references import Reference


def checks() -> str:
    """What every built-in check finds, needs, costs and is judged by, and its parameters."""
    brought = plugins.collect_checks(plugins.load(Config(Settings())))
    rows = references.shipped()
    lines = [
        NOTE,
        "# Checks",
        "The checks that the built-in plugins bring; `muster check list` shows those of a node. Checks with a rhythm "
        "run in the background, the others on demand. What a run costs is for a usual node with eight GPUs and default "
        "parameters. A metric without a reference is measured and kept, and the run says that nothing judged it.",
        table(map(_overview, map(brought.__getitem__, sorted(brought))), _OVERVIEW),
    ]
    for name, check in sorted(brought.items()):
        lines += [f"## {name}", f"{check.summary}.", _facts(check)]
        if check.finds:
            found = ((f"`{code}`", meaning) for code, meaning in check.finds.items())
            lines += ["What it finds:", table(found, ("Code", "Meaning"))]
        if judged := [_reference(row) for row in rows if row.check == name]:
            lines += ["What it is judged by:", table(iter(judged), ("Metric", "Where", "Bounds", "Source"))]
        if check.params.model_fields:
            lines += ["Parameters:", table(fields(check.params, ""), ("Parameter", "Type", "Default", "Meaning"))]
    return page(lines)


_OVERVIEW = ("Check", "What it does", "Needs", "Runs", "Costs", "Also checked by")


def _overview(check: AnyCheck) -> tuple[str, ...]:
    cost = "" if check.cost_s is None else f"{check.cost_s:g} s"
    needs = check.needs.lower().replace("_", " ")
    return f"[{check.name}](#{check.name})", check.summary, needs, _rhythm(check), cost, check.precedent


def _rhythm(check: AnyCheck) -> str:
    return "on demand" if check.cadence_s is None else f"every {check.cadence_s:g} s"


def _reference(row: Reference) -> tuple[str, ...]:
    where = ", ".join(f"{fact} {in_words(condition)}" for fact, condition in row.when.items()) or "everywhere"
    bounds = {
        "fails below": row.fail_below,
        "warns below": row.warn_below,
        "warns above": row.warn_above,
        "fails above": row.fail_above,
    }
    told = ", ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    return f"`{row.metric}`", where, f"{told} {row.unit}".strip(), row.source


def _facts(check: AnyCheck) -> str:
    rows = [
        ("Scope", check.scope),
        ("Needs", check.needs),
        ("Runs", _rhythm(check)),
        ("Timeout", f"{check.timeout_s:g} s"),
        ("Objective in sweeps", f"`{check.objective}`" if check.objective else "none"),
        ("`--quick` sets", f"`{json.dumps(dict(check.quick))}`" if check.quick else "nothing"),
    ]
    if check.clear is not None:
        rows.append(
            ("After a repair", f"`muster check clear {check.name}` on the node: what happened before is forgotten")
        )
    return table(iter(rows), ("", ""))
