"""What lines of the drivers of GPUs, of NVSwitches and of other accelerators mean.

Those under REAL were printed by real machines and come from public reports. The others were written after the format
strings in the source of the kernel and of NVIDIA's and AWS's drivers.
"""

from tests.cases import cases
from tests.plugins.checks.kernel_log.told import told_by

LEVEL_ERROR = 3
LEVEL_INFO = 6

REAL = [
    # ROCm issue 2804: a reset that the GPU did not come back from.
    (
        "[drm:amdgpu_device_fw_loading [amdgpu]] *ERROR* resume of IP block <psp> failed -62",
        "ERROR gpu_not_initialised REBOOT_NODE None",
    ),
    # intel-gpu-i915-backports issue 172: a Flex 140.
    (
        "i915 0000:30:00.0: [drm] *ERROR* GT0 [GUC COMMUNICATION] CT: No response for request 0x5503 (fence 168)",
        "WARNING gpu_error INSPECT_HARDWARE 0000:30:00.0",
    ),
    # AWS Neuron documentation, troubleshooting of the runtime.
    (
        "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0592464924bd45322 hostname=ip-172-31-61-252 nd-id=0 "
        "nc-id=0 serial-num=19fcda00f5ff6eb9 action=TERMINATE_INSTANCE",
        "WARNING gpu_error INSPECT_HARDWARE None",
    ),
]

ERRORS = [
    (
        "NVRM: GPU 0000:41:00.0: No interrupts of any type are available. Cannot use this GPU.",
        "gpu_not_initialised REBOOT_NODE 0000:41:00.0",
    ),
    (
        "NVRM: GPU 0000:41:00.0: GPU does not have the necessary power cables connected.",
        "gpu_not_initialised REBOOT_NODE 0000:41:00.0",
    ),
    (
        "NVRM: GPU 0000:41:00.0: rm_init_adapter failed, device minor number 3",
        "gpu_not_initialised REBOOT_NODE 0000:41:00.0",
    ),
    ("NVRM: Device start failed for 0008:01:00.0 (ret=-5)", "gpu_not_initialised REBOOT_NODE 0008:01:00.0"),
    ("NVRM: Fatal Error while attempting to resize PCIe BARs.", "gpu_not_initialised REBOOT_NODE None"),
    ("NVRM: failed to wait for bar firewall to lower", "gpu_not_initialised REBOOT_NODE None"),
    (
        "NVRM: GPU0 gpuHandleSecFault_GH100: SEC_FAULT lockdown detected. This is fatal. RM will now shut down. "
        "NV_EP_PCFG_GPU_VSEC_DEBUG_SEC: 0x1",
        "reset_required RESET_GPU None",
    ),
    # The status 0xf says that the GPU is lost, and 0x62 that it needs a reset.
    (
        "NVRM: _kgspRpcRecvPoll: GPU1 sanity check failed 0xf waiting for RPC response from GSP. Expected function 76 "
        "(GSP_RM_CONTROL) sequence 812 (0x20800a1c 0x8).",
        "off_the_bus REBOOT_NODE None",
    ),
    (
        "NVRM: GPU1 sanity check failed 0x62 waiting for RPC response from GSP. Expected function 76 (GSP_RM_CONTROL)",
        "reset_required RESET_GPU None",
    ),
    ("amdgpu 0000:83:00.0: amdgpu: device lost from bus!", "off_the_bus REBOOT_NODE 0000:83:00.0"),
    ("amdgpu 0000:83:00.0: amdgpu: GPU Recovery Failed: -62", "gpu_not_initialised REBOOT_NODE 0000:83:00.0"),
    (
        "[drm] ASIC reset failed with error, -62 for drm dev, 0000:83:00.0",
        "gpu_not_initialised REBOOT_NODE 0000:83:00.0",
    ),
    (
        "amdgpu 0000:83:00.0: amdgpu: RAS records:128 exceed threshold:127, GPU will not be initialized. Replace this "
        "GPU or increase the threshold",
        "gpu_not_initialised REBOOT_NODE 0000:83:00.0",
    ),
    (
        "[drm:amdgpu_pci_slot_reset [amdgpu]] *ERROR* PCIe error recovery failed, err:-62",
        "gpu_not_initialised REBOOT_NODE None",
    ),
    (
        "[drm:amdgpu_device_ip_late_init [amdgpu]] *ERROR* late_init of IP block <gfx_v9_4_3> failed -22",
        "gpu_not_initialised REBOOT_NODE None",
    ),
    (
        "xe 0000:4d:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:4d:00.0 as wedged.\n"
        "IOCTLs and executions are blocked.",
        "reset_required RESET_GPU 0000:4d:00.0",
    ),
    ("xe 0000:4d:00.0: probe with driver xe failed with error -62", "gpu_not_initialised REBOOT_NODE 0000:4d:00.0"),
    (
        "xe 0000:4d:00.0: [drm] *ERROR* Tile0: GT0: Force wake domain 0: wake. MMIO unreliable (forcewake register "
        "returns 0xFFFFFFFF)!",
        "off_the_bus REBOOT_NODE 0000:4d:00.0",
    ),
    ("amdgpu 0000:83:00.0: [drm] device wedged, needs recovery", "reset_required RESET_GPU 0000:83:00.0"),
    (
        "i915 0000:4d:00.0: [drm] *ERROR* GT0: Failed to initialize GPU, declaring it wedged!",
        "gpu_not_initialised REBOOT_NODE 0000:4d:00.0",
    ),
    ("i915 0000:4d:00.0: [drm] *ERROR* GT0: Failed to reset chip", "reset_required RESET_GPU 0000:4d:00.0"),
    (
        "i915 0000:4d:00.0: [drm] *ERROR* Lost access to MMIO BAR; all registers now read back as 0xFFFFFFFF!",
        "off_the_bus REBOOT_NODE 0000:4d:00.0",
    ),
]

WARNINGS = [
    "NVRM: kgspBootstrap_TU102: Failed to boot GSP.",
    "NVRM: GPU1 sanity check failed 0x65 waiting for RPC response from GSP. Expected function 76 (GSP_RM_CONTROL)",
    "NVRM: GPU memory zone movable auto onlining failed!",
    "nvidia-nvswitch0: Failed to initialize device : -5",
    "nvidia-nvswitch0:Failed during device post init : -1",
    "nvidia-nvswitch0: Interrupts disabled to avoid a storm",
    "amdgpu 0000:83:00.0: amdgpu: socket: 0, aid: 2, hbm: 1, fw_status: 0x4, hbm memory test failed",
    "amdgpu 0000:83:00.0: amdgpu: {2}socket: 0, die: 1, 1 new uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:00:08.0: amdgpu: Doesn't get READY_TO_ACCESS_GPU from pf, give up",
    # What only decodes video has failed.
    "[drm:amdgpu_device_ip_resume_phase2 [amdgpu]] *ERROR* resume of IP block <vcn_v4_0_3> failed -110",
    # A GPU in the processor, or a virtual one.
    "xe 0000:00:02.1: probe with driver xe failed with error -62",
    "xe 0000:00:02.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:00:02.0 as wedged.",
    "i915 0000:4d:00.0: [drm] GPU HANG: ecode 12:4:28fffffd, in python [2311]",
    "i915 0000:4d:00.0: [drm] GT0: Resetting chip for GuC failed to reset engine mask=0x1",
    "i915 0000:4d:00.0: [drm] *ERROR* GT0: GUC: TLB invalidation response timed out for seqno 699",
    "accel accel0: EQ heartbeat event was not received!",
    "accel accel0: CPLD shutdown event, reset reason: 0x5",
    "qaic 0000:c1:00.0: mhi_async_power_up failed -110",
    "neuron:ndma_memcpy_wait_for_completion: DMA completion timeout on nd00 for udma-3 q2 desc count 4",
    "neuron:nr_reset_thread_fn: nd3: reset request 2 was initiated, but failed to complete",
    "neuron-driver 0000:a0:1b.0: probe with driver neuron-driver failed with error -5",
]

HARMLESS = [
    "NVRM: timeoutOverride: Overriding default timeout to 0x00002710",
    "NVRM: GPU 0000:41:00.0: Failed to enable MSI-X.",
    "nvidia-nvswitch0: Failed to read fabric state, 0",
    "nvidia-nvswitch0: open (major=510)",
    "nv-caps-imex channel0 created. Make sure you are aware of the IMEX security model.",
    "amdgpu 0000:83:00.0: amdgpu: {1}socket: 0, die: 1, 17 correctable hardware errors detected in total in umc block",
    "amdgpu 0000:83:00.0: amdgpu: {1}[Hardware Error]: ACA[01/01].STATUS=0xdc2040000000011b",
    "amdgpu 0000:83:00.0: amdgpu: Process 2211 (pasid 0x8003) got unhandled exception",
    "amdgpu 0000:83:00.0: bo 00000000b2a4 va 0x0800000200-0x080000021f conflict with 0x0800000200-0x0800000400",
    "amdgpu 0000:83:00.0: amdgpu: GPU will be initialized due to bad_page_threshold = -1.",
    "kfd kfd: amdgpu: skipped device 1002:15d8, PCI rejects atomics 730<0",
    "xe 0000:4d:00.0: [drm] GT0: excessive init time: 512ms! [status = 0x8002F034, timeouts = 0]",
    "i915 0000:4d:00.0: [drm] GuC firmware i915/pvc_guc_70.bin version 70.20.0",
    "i915 0000:4d:00.0: [drm] *ERROR* GT0: HuC: failed to load firmware i915/dg2_huc_gsc.bin (-ENOENT)",
    "i915 0000:4d:00.0: [drm] *ERROR* [CRTC:80:pipe A] flip_done timed out",
    "i915 0000:00:02.0: [drm] *ERROR* GT0: Failed to initialize GPU, declaring it wedged!",
    "i915 0000:00:02.0: [drm] GPU HANG: ecode 12:1:85dffffb, in Xorg [1311]",
    "accel accel0: Hard-Reset requested through sysfs",
    "accel accel0: Device does not support inference soft-reset",
    "neuron:npid_detach: neuron:npid_detach: pid=90193, slot=0",
    "neuron:nr_reset_thread_fn: nd3: reset request 2 completed",
    "neuron:ncdev_open: nd3: pid 1711 failed to open",
    "vfio-pci 0000:41:00.0: vfio_bar_restore: reset recovery - restoring BARs",
]


def told(line, level=LEVEL_ERROR):
    event = told_by(line, level=level)
    return event and f"{event.severity} {event.code} {event.action} {event.address}"


@cases(("line", "expected"), REAL + [(line, f"ERROR {expected}") for line, expected in ERRORS])
def test_a_fault_of_an_accelerator_is_recognised(line, expected):
    """With its severity, the action and, where the line names it, the address."""
    assert told(line) == expected


@cases("line", WARNINGS)
def test_what_others_can_do_without_is_a_warning(line):
    """As well as a step of a start, and whatever an accelerator that is no GPU reports."""
    assert (told(line) or "").startswith("WARNING gpu_error INSPECT_HARDWARE")


@cases("line", HARMLESS)
def test_starts_requests_and_corrected_errors_are_no_faults(line):
    """Whatever the driver's words for them are."""
    assert told(line) is None


def test_what_the_firmware_found_counts_although_it_is_told_as_information():
    """So do resets that failed: the drivers tell them at the level `info`."""
    assert told("amdgpu 0000:83:00.0: amdgpu: fw_status: 0x10, xgmi link training failed", LEVEL_INFO)
    assert told("neuron:nr_reset_thread_fn: nd3: reset request 2 failed", LEVEL_INFO)
    assert told("amdgpu 0000:83:00.0: amdgpu: SMU is resumed successfully!", LEVEL_INFO) is None
