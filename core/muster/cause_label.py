"""The short label of a cause, for lists that cut after a few characters: `XID 119 GPU3`, `ECC UE GPU0`, `coll slow`.

`sinfo -R` shows 20 characters of a reason, and `muster: ` takes eight of them. So a label has at most 12, also with a
GPU of two digits. What is not clear by itself gets the name of its check, if there is room. If a code is too long, its
short form takes its place, and if that is too long as well, the words are cut: `PciRep GPU12`. The whole code follows
the label in every text, so the label need not explain, only distinguish: a test compares all codes of each check.
"""

MOST_CHARACTERS = 12

_LEAST_OF_CHECK = 4
"""Fewer characters of a check's name say nothing."""

_CHECKS = {
    "collective": "coll",
    "fabric": "fab",
    "inference": "infer",
    "kernel_log": "klog",
    "memory": "mem",
    "nccl_tests": "nccl",
    "storage": "stor",
    "training": "train",
    "training_ddp": "ddp",
}

_FAULTS = {
    # Memory errors: UE is an uncorrected error and CE a corrected one, as in the kernel's EDAC.
    "ecc_correctable_rate": "ECC CE",
    "ecc_uncorrected": "ECC UE",
    "ecc_uncorrected_before": "old UE",
    "machine_check_corrected": "MCE CE",
    "machine_check_uncorrected": "MCE UE",
    "page_retirement_pending": "retire",
    "pages_retired": "pages",
    "row_remap_failed": "badrow",
    "row_remap_pending": "remap",
    # A GPU as a whole
    "clock_low": "clock",
    "device_changed": "GPU changed",
    "device_failed": "broken",
    "device_lost": "lost",
    "devices_hidden": "GPUs hidden",
    "devices_missing": "GPUs missing",
    "devices_unexpected": "extra GPUs",
    "gpu_not_initialised": "noinit",
    "memory_leaked": "leaked",
    "memory_too_hot": "HBMhot",
    "off_the_bus": "no bus",
    "reset_required": "reset",
    "throttled": "slowed",
    # Links between GPUs, and to the host
    "fabric_not_joined": "no fab",
    "fabric_unhealthy": "fabric",
    "no_peer_access": "no P2P",
    "nvlink_crc_errors": "NVLCRC",
    "nvlink_inactive": "NVLink",
    "nvlink_recoveries": "NVLrec",
    "nvlink_replays": "NVLrep",
    "pair_slow": "pair",
    "pcie_corrected": "PCIeCE",
    "pcie_link_failed": "nolink",
    "pcie_transaction_failed": "PCIetx",
    "pcie_uncorrected": "PCIeUE",
    "peer_slow": "peers",
    "transfer_slow": "copies",
    # Results of a measurement
    "cache_wrong": "cache",
    "loss_not_falling": "loss",
    "loss_not_finite": "NaN",
    "results_change": "flips",
    "results_differ": "bits",
    "weights_differ": "weight",
    "wrong_elements": "wrong data",
    # The network; GDR is GPUDirect RDMA.
    "carrier_changes": "carrier flap",
    "counter_stopped": "counter stop",
    "excessive_buffer_overrun_errors": "overruns",
    "gpu_direct_unknown": "GDR unknown",
    "link_error_recovery": "link retrain",
    "local_ack_timeout_err": "ack timeout",
    "local_link_integrity_errors": "link errors",
    "nic_command_timeout": "NIC timeout",
    "nic_link_down": "NIC link",
    "nic_port_down": "NIC port",
    "nic_queue_timeout": "NIC queue",
    "nic_unplugged": "NIC no cable",
    "no_gpu_direct": "no GDR",
    "out_of_sequence": "out of seq",
    "packet_seq_err": "seq errors",
    "port_rcv_errors": "rcv errors",
    "port_xmit_discards": "xmit discard",
    "ports_missing": "no ports",
    "req_transport_retries_exceeded": "retry limit",
    "rnr_nak_retry_err": "RNR retries",
    "roce_slow_restart": "RoCE restart",
    # The host and its programs
    "clock_unsynchronised": "clock unsync",
    "container_out_of_memory": "cgroup OOM",
    "cpu_locked_up": "CPU lockup",
    "decoder_missing": "no decoder",
    "directory_unusable": "no directory",
    "driver_not_loaded": "no driver",
    "file_system_lost": "FS lost",
    "library_missing": "no NVML",
    "module_missing": "no module",
    "mount_refused": "mount denied",
    "mount_unusable": "bad mount",
    "nccl_segfault": "NCCL crash",
    "no_permission": "no rights",
    "out_of_memory": "OOM",
    "persistence_off": "persist off",
    "stuck_process": "stuck procs",
    "version_mismatch": "version skew",
}
"""Short forms of codes without their check. Those of findings about a GPU have six characters, to leave room for it."""

_COMPARED = {"baseline.drift": "drifts"}
"""Codes of comparisons that a check has as well, with another meaning."""


def short_label(code: str, check: str, number: str, device: int | None) -> str:
    """The error and the GPU; `number` is the driver's name of the error, such as `XID 79`, or empty."""
    gpu = "" if device is None else f" GPU{device}"
    room = MOST_CHARACTERS - len(gpu)
    if number:
        return (number if len(number) <= room else number.replace(" ", "")) + gpu
    fault = _fitted(_without_check(code, check), room)
    name = _check_name(check, room - len(fault) - 1)
    return f"{name} {fault}{gpu}" if name else f"{fault}{gpu}"


def _without_check(code: str, check: str) -> str:
    """`slow` of `gemm.slow`; `outlier` of `baseline.outlier`, which another check can have as well."""
    if code in _COMPARED:
        return _COMPARED[code]
    what = code.removeprefix(f"{check}.")
    return what if what != code else code.partition(".")[2] or code


def _fitted(what: str, room: int) -> str:
    """The code as words, or its short form, or as much as there is room for."""
    plain = what.replace("_", " ")
    if len(plain) <= room:
        return plain
    words = _FAULTS.get(what, plain).split()
    text = " ".join(words)
    return text if len(text) <= room else _cut(words, room)


def _cut(words: list[str], room: int) -> str:
    """The beginnings of all words, the longest cut first, because each may distinguish two codes: `PciRep`."""
    lengths = [len(word) for word in words]
    while sum(lengths) > room and max(lengths) > 1:
        lengths[lengths.index(max(lengths))] -= 1
    begins = [word[:length] for word, length in zip(words, lengths, strict=True)]
    return (begins[0] if len(begins) == 1 else "".join(begin[:1].upper() + begin[1:] for begin in begins))[:room]


def _check_name(check: str, room: int) -> str:
    """The name of the check, its short form, or its beginning; empty if there is no room."""
    name = check.rpartition(".")[2]  # `nhc` of `script.nhc`
    for form in (name, _CHECKS.get(name, name)):
        if len(form) <= room:
            return form
    return _CHECKS.get(name, name)[:room].rstrip("_-") if room >= _LEAST_OF_CHECK else ""
