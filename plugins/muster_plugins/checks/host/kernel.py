"""What the kernel says about the host: file handles in use, the CPUs' governor, the driver's modules."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from muster import Action, Context, Finding, Measurement, Reference, Severity
from muster_plugins.checks.host.look import SHARE_DIGITS, CannotDetermine, NotApplicable, has_gpus, read
from muster_plugins.shared.listed_finding import listed_finding
from muster_plugins.shared.metric_judgement import judge_single

DRIVER_MODULES = ("nvidia",)
"""Expected on hosts with GPUs if the settings name no modules. CUDA also needs nvidia_uvm, but loads it at first
use."""

FINDS = {
    "host.file_handles": "the host runs out of file handles",
    "host.governor": "CPUs do not use the expected frequency governor, which delays the GPUs",
    "host.module_missing": "kernel modules are not loaded",
}


def file_handles(proc: Path, context: Context) -> Measurement:
    """The share of file handles in use."""
    text = read(proc / "sys/fs/file-nr")
    try:
        allocated, _, most = (int(field) for field in text.split())
        share = round(allocated / most, SHARE_DIGITS)
    except (ValueError, ArithmeticError):
        raise CannotDetermine(f"{proc / 'sys/fs/file-nr'} is not three numbers: {text[:60]!r}") from None
    return Measurement(metrics={"file_handles_used_share": share})


def governors(sysfs: Path, expected: str | None, context: Context) -> Measurement:
    """How many CPUs have each governor, on hosts with GPUs."""
    if not has_gpus(context, sysfs):
        raise NotApplicable("no GPU here")
    files = sorted(sysfs.glob("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"))
    if not files:
        raise NotApplicable("no CPU frequency driver: a virtual machine, or the firmware decides")
    counts = Counter(read(file).strip() for file in files)
    return Measurement(facts={"governors": dict(counts), "expected_governor": expected})


def modules(sysfs: Path, expected: Sequence[str] | None, context: Context) -> Measurement:
    """The expected kernel modules that are not loaded."""
    if expected is None and not has_gpus(context, sysfs):
        raise NotApplicable("no GPU here")
    if expected is None and context.devices:
        raise NotApplicable("the driver answers, and the settings name no module")
    if not (sysfs / "module").is_dir():
        raise CannotDetermine(f"{sysfs / 'module'} is not there")
    names = [name.replace("-", "_") for name in (DRIVER_MODULES if expected is None else expected)]
    return Measurement(facts={"modules_missing": [name for name in names if not (sysfs / "module" / name).is_dir()]})


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Judges file handles by reference, and finds every unexpected governor and missing module."""
    facts = measurement.facts
    counts = cast("dict[str, int]", facts.get("governors", {}))
    expected = facts.get("expected_governor")
    others = (f"{name} on {count} CPUs" for name, count in counts.items() if expected not in (None, name))
    missing = cast("list[str]", facts.get("modules_missing", []))
    return [
        *judge_single(measurement, references, "file_handles_used_share", code="host.file_handles"),
        *listed_finding(FINDS, "host.governor", Severity.WARNING, others),
        *listed_finding(FINDS, "host.module_missing", Severity.ERROR, missing, Action.REBOOT_NODE),
    ]
