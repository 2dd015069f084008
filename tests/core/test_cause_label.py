"""What lists show of a cause when they cut it, for everything that the checks of muster can find."""

from collections import defaultdict
from importlib.metadata import entry_points
from typing import Any

import pytest
from tests.cases import cases

from muster import Action, Cause, Transition, cause_text, plugins
from muster.config import Config, Settings
from muster.model import ServiceState

UUID = "GPU-5c1d2e3f-1111-2222-3333-444455556666"
MARK = "muster: "
"""What Slurm's reason begins with."""

CONVICTIONS = ("failed", "slow")
OF_ANY_RUN = ("baseline.drift", "baseline.fingerprint", "baseline.outlier", "run.hung", "run.killed", "run.timeout")
ACTIONS = {
    Action.CHECK_APPLICATION: "check the application",
    Action.RESET_GPU: "reset the GPU",
    Action.REBOOT_NODE: "reboot the node",
    Action.INSPECT_HARDWARE: "inspect the hardware",
    Action.REPLACE: "replace the hardware",
}
XIDS = (13, 48, 79, 94, 119, 154)


def codes_by_check() -> dict[str, set[str]]:
    """The codes that the built-in checks declare, and those that sweeps, comparisons and agents add to each check."""
    checks = plugins.collect_checks(plugins.load(Config(Settings()), entry_points(group=plugins.GROUP)))
    convicted = {name: {f"{name}.{word}" for word in CONVICTIONS} for name in checks}
    return {name: {*check.finds, *convicted[name], *OF_ANY_RUN} for name, check in checks.items()}


CODES = codes_by_check()


def causes(device: int | None) -> dict[str, list[Cause]]:
    """Every possible cause by check; an XID stands for many errors, by number."""
    found: dict[str, list[Cause]] = defaultdict(list)
    for check, codes in CODES.items():
        about: dict[str, Any] = {"check": check, "device": device, "summary": "found " * 30}
        about |= {"uuid": "" if device is None else UUID}
        for code in codes:
            numbers: list[dict[str, Any]] = [{"xid": xid} for xid in XIDS] if code.endswith(".xid") else [{}]
            if code.endswith(".sxid"):  # of an NVSwitch, never of a GPU
                numbers = [{"sxid": 12028}, {"sxid": 20034}] if device is None else []
            found[check] += [Cause(code=code, **about, **number) for number in numbers]
    return found


def reason(cause: Cause, action: Action, after: ServiceState) -> str:
    """The begin of Slurm's reason."""
    told = {"id": "t17-4", "node": "n1", "before": "IN_SERVICE", "at": 1.0, "reason": "policy row x"}
    return MARK + cause_text(
        Transition.model_validate({**told, "after": after, "action": action, "causes": (cause,)}),
    )


@cases("device", [None, *range(16)])
def test_20_characters_name_the_error_and_the_gpu(device):
    """No two errors of a check read the same, and the index of the GPU is whole."""
    for check, found in causes(device).items():
        texts = defaultdict(set)
        for cause in found:
            cut = reason(cause, Action.REPLACE, ServiceState.CORDONED)[:20]
            gpu = "" if device is None else f" GPU{device}"
            assert cut.partition(":")[2].partition(":")[0].endswith(gpu), cut
            assert cause.short in cut, (cut, cause)
            texts[cut].add(cause.label)
        assert {cut: said for cut, said in texts.items() if len(said) > 1} == {}, check


@cases("after", [ServiceState.CORDONED, ServiceState.PROBATION])
@cases("device", [None, 3, 15])
def test_60_characters_hold_the_whole_name_and_120_what_to_do(device, after):
    """The number or the code of the error by 60; the action, and the UUID after an XID, by 120."""
    for cause in [cause for found in causes(device).values() for cause in found]:
        for action, words in ACTIONS.items():
            text = reason(cause, action, after)
            assert cause.label.replace(" ", "") in text[:60].replace(" ", ""), text
            assert words in text[:120], text
            assert UUID in text if device is not None else UUID not in text
            assert cause.xid is None or device is None or UUID in text[:120], text


@pytest.mark.parametrize(
    ("values", "short"),
    [
        ({"code": "kernel_log.xid", "check": "kernel_log", "xid": 79, "device": 3}, "XID 79 GPU3"),
        ({"code": "kernel_log.xid", "check": "kernel_log", "xid": 119, "device": 3}, "XID 119 GPU3"),
        ({"code": "kernel_log.xid", "check": "kernel_log", "xid": 119, "device": 15}, "XID119 GPU15"),
        ({"code": "kernel_log.sxid", "check": "kernel_log", "sxid": 12028}, "SXID 12028"),
        ({"code": "collective.slow", "check": "collective"}, "coll slow"),
        ({"code": "gemm.failed", "check": "gemm"}, "gemm failed"),
        ({"code": "gemm.slow", "check": "gemm", "device": 3}, "slow GPU3"),
        ({"code": "nvml.ecc_uncorrected", "check": "nvml", "device": 0}, "ECC UE GPU0"),
        ({"code": "nvml.row_remap_failed", "check": "nvml", "device": 12}, "badrow GPU12"),
        ({"code": "baseline.outlier", "check": "gemm"}, "gemm outlier"),
        ({"code": "host.disk_full", "check": "host"}, "disk full"),
        ({"code": "script.smart_disks.failed", "check": "script.smart_disks"}, "smart failed"),
        ({"code": "mine.pump_pressure_low", "check": "mine", "device": 3}, "PuPrLow GPU3"),
        ({"code": "plain", "check": ""}, "plain"),
    ],
)
def test_a_label_is_short_and_plain(values, short):
    """The check belongs to it where there is room, because `slow` alone says little."""
    assert Cause.model_validate(values).short == short
