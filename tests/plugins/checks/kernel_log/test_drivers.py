"""What lines of drivers mean for which there is no rule.

The lines were printed by real machines, and come from public reports.
"""

import tomllib
from importlib import resources

from tests.cases import cases

from muster_plugins.checks.kernel_log.drivers import LEVEL_WARNING, by_words, driver_table
from muster_plugins.checks.kernel_log.record_parser import Record

LEVEL_INFO = 6

FAULTS = [
    (
        "smartpqi 0000:64:00.0: controller offline: reason code 0x4 (no controller heartbeat detected)",
        "disk_error INSPECT_HARDWARE 0000:64:00.0",
    ),
    ("lpfc 0000:07:00.0: 0:(0):2858 FLOGI failure Status:x3/x2 TMO:x10", "disk_error INSPECT_HARDWARE 0000:07:00.0"),
    ("nvme nvme2: Device not ready; aborting reset", "disk_error INSPECT_HARDWARE nvme2"),
    ("ata3.00: failed command: FLUSH CACHE EXT", "disk_error INSPECT_HARDWARE ata3.00"),
    ("mpt3sas_cm0: issue target reset: handle = (0x0034)", "disk_error INSPECT_HARDWARE mpt3sas_cm0"),
    ("mptscsih: ioc1: attempting task abort! (sc=ffff88061db32a00)", "disk_error INSPECT_HARDWARE mptscsih"),
    (
        "megaraid_sas 0000:5a:00.0: [30]waiting for 65 commands to complete for scsi0",
        "disk_error INSPECT_HARDWARE 0000:5a:00.0",
    ),
    ("SCSI host 0 abort (pid 0) timed out - resetting", "disk_error INSPECT_HARDWARE None"),
    (" connection2:0: detected conn error (1020)", "disk_error INSPECT_HARDWARE connection2:0"),
    ("block nvme0n1: no usable path - requeuing I/O", "disk_error INSPECT_HARDWARE nvme0n1"),
    (
        "ens5: The number of lost tx completions is above the threshold (361 > 128). Reset the device",
        "nic_error INSPECT_HARDWARE ens5",
    ),
    ("i40e 0000:17:00.1: VSI seid 391 Rx ring 72 disable timeout", "nic_error INSPECT_HARDWARE 0000:17:00.1"),
    ("hns3 0000:01:00.0: fail to initialize hw, ret = -110", "nic_error INSPECT_HARDWARE 0000:01:00.0"),
    ("infiniband mlx5_0: Couldn't open port 1 for agents", "nic_error INSPECT_HARDWARE mlx5_0"),
    (
        "ice 0000:18:00.0: Error during VSI rebuild: 0. Unload and reload the driver.",
        "nic_error INSPECT_HARDWARE 0000:18:00.0",
    ),
    # A setting stands in the line, but something else timed out.
    (
        "idpf 0000:83:00.0: Transaction timed-out (op:504 cookie:be00 vc_op:504 salt:be timeout:2000ms)",
        "nic_error INSPECT_HARDWARE 0000:83:00.0",
    ),
    (
        "mlx5_core 0000:56:00.0: mlx5_cmd_comp_handler:1709:(pid 0): Command completion arrived after timeout (entry "
        "idx = 0).",
        "nic_error INSPECT_HARDWARE 0000:56:00.0",
    ),
    (
        "ufshcd-mtk 112b0000.ufshci: ufshcd_try_to_abort_task: cmd pending in the device. tag = 7",
        "disk_error INSPECT_HARDWARE 112b0000.ufshci",
    ),
    ("amdgpu 0000:62:00.0: amdgpu: Mode2 reset failed!", "gpu_error INSPECT_HARDWARE 0000:62:00.0"),
    (
        "[drm:uvd_v4_2_start [amdgpu]] *ERROR* UVD not responding, trying to reset the VCPU!!!",
        "gpu_error INSPECT_HARDWARE None",
    ),
    (
        "habanalabs hl2: Failed to communicate with Device CPU (CPU-CP timeout)",
        "gpu_error INSPECT_HARDWARE hl2",
    ),
    ("nvme nvme0: frozen state error detected, reset controller", "disk_error INSPECT_HARDWARE nvme0"),
    ("mmc0: Card stuck being busy! mmc_poll_for_busy", "disk_error INSPECT_HARDWARE mmc0"),
    ("libceph: mon0 (2)192.168.2.164:3300 connect error", "server_error NONE libceph"),
    (
        "LustreError: 16a-d: Server MGS version (2.10.5.0) refused connection from this client with an incompatible "
        "version (2.15.6).  Client must be recompiled",
        "server_error NONE LustreError",
    ),
    ("ceph: mds0 closed our session", "server_error NONE ceph"),
    ("libceph: mds0 172.21.5.114:6812 connection reset", "server_error NONE libceph"),
    (
        "NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer0's postRxDetLinkMask failed!",
        "gpu_error INSPECT_HARDWARE NVRM",
    ),
    # The name of a function ends in `Timeout:`, which is no setting.
    (
        "NVRM: GPU6 _kgspLogRpcTimeout: ******************* GSP Timeout *******************",
        "gpu_error INSPECT_HARDWARE NVRM",
    ),
    ("mlx5_core 0000:01:00.0: handle_hca_cap failed", "nic_error INSPECT_HARDWARE 0000:01:00.0"),
    ("ice 0000:ca:00.0: ice_init_hw failed: -16", "nic_error INSPECT_HARDWARE 0000:ca:00.0"),
    (
        "qla2xxx [0000:02:00.0]-301f:6: Dropped frame(s) detected (0x2e000 of 0xfe000 bytes).",
        "disk_error INSPECT_HARDWARE [0000:02:00.0]-301f:6",
    ),
    (
        "qla2xxx [0000:81:00.0]-8017:15: ADAPTER RESET SUCCEEDED nexus=15:0:0.",
        "disk_error INSPECT_HARDWARE [0000:81:00.0]-8017:15",
    ),
    (
        " rport-1:0-58: blocked FC remote port time out: removing rport",
        "disk_error INSPECT_HARDWARE rport-1:0-58",
    ),
    (
        "bcachefs (/dev/loop0): error validating superblock: Invalid superblock section clean: wrong size",
        "file_system_damaged INSPECT_HARDWARE /dev/loop0",
    ),
    (
        "ipmi_si IPI0001:00: ipmi_kcs_sm: kcs hosed: Not in read state for error2",
        "board_error INSPECT_HARDWARE IPI0001:00",
    ),
    (
        "dasd-eckd 0.0.f500: An error occurred in the DASD device driver, reason=09",
        "disk_error INSPECT_HARDWARE 0.0.f500",
    ),
    (
        "sfc 0000:38:00.0 (unnamed net_device) (uninitialized): MCPU watchdog reset at PC = 0x00051edc",
        "nic_error INSPECT_HARDWARE 0000:38:00.0",
    ),
    # No table knows this driver; its device is at a PCI address and does not answer.
    (
        "ioatdma 0000:00:04.1: Channel halted, chanerr = 2",
        "device_error INSPECT_HARDWARE 0000:00:04.1",
    ),
]

NO_FAULTS = [
    # Registers, counters and settings.
    "amdgpu 0000:0f:00.0: amdgpu:          MAPPING_ERROR: 0x0",
    "amdgpu 0000:d4:00.0: {1}[Hardware Error]: Accelerator Check Architecture events logged",
    "ena 0000:00:05.0 ens5: reset_fail: 0",
    "amdgpu: sched_policy has invalid value",
    "amdgpu: Freeing queue vital buffer 0x7f2e70800000, queue evicted",
    "iavf 0000:ec:01.1: PF returned error -5 (IAVF_ERR_PARAM) to our request 3",
    "i40e 0000:3b:00.1: Failed configuring TC map 0 for VSI 391",
    "i40e 0000:02:00.0: DCB init failed -5, disabled",
    "sfc 0000:0b:00.0 enp11s0f0np0: MC command 0x2a inlen 16 failed rc=-22 (raw=0) arg=0",
    "be2net 0000:04:00.0: PCIe error reporting enabled",
    "megaraid_sas 0000:01:00.0: FW provided TM TaskAbort/Reset timeout        : 0 secs/0 secs",
    "nvme nvme0: Shutdown timeout set to 8 seconds",
    "smartpqi 0000:23:00.0: TMF IU Timeout enabled",
    "mlx4_core 0000:0d:00.0: command 0x5a failed: fw status = 0x2",
    "hpsa can't handle SMP requests",
    "mlx5_core 36fd:00:02.0: Successfully unregistered panic handler for port 1",
    "libceph: mon0 (2)192.168.1.81:3300 session lost, hunting for new mon",
    "drbd pvc-40a7bc3f: Aborting cluster-wide state change 352557914 (0ms) rv = -10",
    "drbd pvc-40a7bc3f: Auto-promote failed: State change was refused by peer node (-10)",
    "BTRFS info (device bcache8): allowing degraded mounts",
    "gfs2: GFS2 installed",
    "xe 0000:00:02.0: [drm] *ERROR* Failed to write source OUI",
    "amdgpu 0000:c1:00.0: [drm] *ERROR* [CRTC:80:crtc-0] flip_done timed out",
    "ice 0000:c1:00.1: Failed to configure RSS hash for VSI 8, error -5",
    "sfc 0000:5e:00.0: Insufficient resources for 12 XDP event queues (24 other channels, max 32)",
    "amdgpu: sq_intr: error, detail 0x00000000, type 1, sh 1, priv 1, wave_id 3, simd_id 0, wgp_id 0",
    "amdgpu 0000:83:00.0: amdgpu: To disable GECC, please reboot the system and load the amdgpu driver",
    # A signal ended what a program had asked for.
    "rbd: rbd0: failed to acquire exclusive lock: -512",
    "nvme nvme1: rdma connection establishment failed (-512)",
    "NFS: NFSv4 callback contains invalid cred",
    # Details of an error that was corrected, which pcieport tells of.
    "nvme 0000:04:00.0: AER:    [12] Timeout               ",
    "nvme 0000:04:00.0:    [12] Replay Timer Timeout",
    "nvme 0000:04:00.0: AER:   Error of this Agent is reported first",
    # Firmware that the driver does not need; a card is used with fewer wires; flash memory leaves out its bad blocks.
    "r8169 0000:01:00.0: firmware: agent aborted loading rtl_nic/rtl8168e-3.fw (not found?)",
    "mmc0: switch to bus width 8 failed",
    "block 396 is bad",
    # No job needs what these drive.
    "iwlwifi 0000:06:00.0: Error sending REPLY_SCAN_CMD: time out after 2000ms.",
    "i915 0000:00:02.0: [drm] *ERROR* GuC load failed: status = 0x00000020",
    # Nobody is known to speak.
    "docker0: port 1(veth4f2a) failed to answer",
    "",
]


def told_by(line, **more):
    event = by_words(Record(1, 1.0, line, **more))
    return event and f"{event.severity} {event.code} {event.action} {event.address or event.name}"


@cases(("line", "expected"), FAULTS)
def test_a_fault_is_told_by_its_words(line, expected):
    """Which part of the node, and its address or else the kernel's name for it. It is a WARNING, never an ERROR."""
    assert told_by(line) == f"WARNING {expected}"


@cases("line", NO_FAULTS)
def test_refused_requests_settings_and_other_devices_are_no_faults(line):
    """Although words of failure are in the line."""
    assert told_by(line) is None


@cases(
    ("line", "mildest"),
    [
        (" session7: session recovery timed out after 120 secs", LEVEL_INFO),
        ("hns3 0000:01:00.0: fail to initialize hw, ret = -110", LEVEL_WARNING),
        ("i40e 0000:17:00.1: VSI seid 391 Rx ring 72 disable timeout", LEVEL_INFO),
    ],
)
def test_the_kernels_own_level_has_a_say(line, mildest):
    """Warnings count, and what is worse; of disks and of what is lost, information too: not all drivers warn."""
    assert told_by(line, level=mildest + 1) is None
    assert told_by(line, level=mildest) == told_by(line, level=0) == told_by(line) is not None


def test_the_device_that_the_kernel_names_is_the_subject():
    """Where the line itself has no address."""
    assert (
        told_by("nvme nvme2: Device not ready", device="0000:5e:00.0")
        == "WARNING disk_error INSPECT_HARDWARE 0000:5e:00.0"
    )


def test_no_expression_is_without_its_stem():
    """Else the short cut would hide the lines that the expression means."""
    text = resources.files("muster_plugins.checks.kernel_log").joinpath("drivers.toml").read_text(encoding="utf-8")
    words = tomllib.loads(text)["words"]
    hidden = [each for each in words["lost"] + words["failed"] if not any(stem in each for stem in words["stems"])]
    assert hidden == []


def test_no_driver_has_two_parts():
    """The table would keep one of them only."""
    table = driver_table()
    drivers = [driver.lower() for part in table.part for driver in part.drivers] + [*table.ignored.drivers]
    assert len(drivers) == len(set(drivers))
