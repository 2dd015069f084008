"""What the drivers of network adapters say: that an adapter did not start or is lost, and what is harmless.

The lines were written after the format strings in the sources of Linux 6.12 and of the drivers of their vendors.
"""

from tests.cases import cases
from tests.plugins.checks.kernel_log.told import must_not_be_hidden, told_by

from muster import Action, Severity
from muster_plugins.checks.kernel_log.events import EventEnd

NOT_STARTED = [
    # The kernel says so, for a device on a PCI bus and for one of a hypervisor, in the wordings before and since 6.9.
    ("idpf 0000:83:00.0: probe with driver idpf failed with error -12", "0000:83:00.0"),
    ("nfp: probe of 0000:04:00.0 failed with error -22", "0000:04:00.0"),
    ("e1000e: probe of 0000:00:1f.6 failed with error -2", "0000:00:1f.6"),
    ("ib_qib: probe of 0000:05:00.0 failed with error -22", "0000:05:00.0"),
    ("rvu_nicpf 0002:02:00.0: probe with driver rvu_nicpf failed with error -5", "0002:02:00.0"),
    ("cxi_ss1 0000:21:00.0: probe with driver cxi_ss1 failed with error -110", "0000:21:00.0"),
    ("virtio_net virtio0: probe with driver virtio_net failed with error -12", None),
    ("virtio_net: probe of virtio0 failed with error -2", None),
    ("hv_netvsc 000d3a7e-1c5f-000d-3a7e-1c5f000d3a7e: probe with driver hv_netvsc failed with error -110", None),
    ("mlx5_core.eth mlx5_core.eth.0: probe with driver mlx5_core.eth failed with error -12", None),
    # The driver gives up, with an error for which the kernel has no line.
    ("mlx5_core 0000:41:00.0: mlx5_pci_init:913:(pid 1): Cannot enable PCI device, aborting", "0000:41:00.0"),
    ("mlx4_core 0000:82:00.0: NOP command failed to generate interrupt (IRQ 35), aborting", "0000:82:00.0"),
    ("bnxt_en 0000:41:00.0: PCI config space inaccessible after FLR, aborting", "0000:41:00.0"),
    ("tg3 0000:01:00.0: Problem fetching invariants of chip, aborting", "0000:01:00.0"),
    ("enic 0000:08:00.0: Get vNIC configuration failed, aborting", "0000:08:00.0"),
    ("bnx2x: [bnx2x_nic_load:2751(eth8)]HW init failed, aborting", None),
    ("ixgbe 0000:01:00.0: failed to initialize because an unsupported SFP+ module type was detected.", "0000:01:00.0"),
    (
        "ice 0000:4b:00.0: The driver for the device stopped because the NVM image is newer than expected.",
        "0000:4b:00.0",
    ),
]

FAILED = [
    (
        "mlx5_core 0000:41:00.0: print_health_info:418:(pid 0): Health issue observed, firmware internal error, "
        "severity(3) ERROR:",
        "0000:41:00.0",
    ),
    ("mlx5_core 0000:41:00.0: print_health_info:435:(pid 0): synd 0x7: irisc not responding", "0000:41:00.0"),
    (
        "mlx5_core 0000:41:00.0: wait_fw_init:201:(pid 1): Firmware over 120000 MS in pre-initializing state, aborting",
        "0000:41:00.0",
    ),
    (
        "mlx5_core 0000:41:00.0: mlx5_fw_fatal_reporter_err_work:657:(pid 122): Driver is in error state. Unloading",
        "0000:41:00.0",
    ),
    ("bnxt_en 0000:41:00.0 ens1f0np0: Firmware not responding, status: 0x4", "0000:41:00.0"),
    ("bnxt_en 0000:41:00.0 ens1f0np0: Firmware reset aborted, PCI config space invalid", "0000:41:00.0"),
    (
        "ice 0000:4b:00.0 ens801f0: tx_timeout recovery unsuccessful, device is in unrecoverable state.",
        "0000:4b:00.0",
    ),
    ("ice 0000:4b:00.0: ice_pci_err_resume failed, device is unrecoverable", "0000:4b:00.0"),
    (
        "i40e 0000:3b:00.0: Entering recovery mode due to repeated FW resets. This may take several minutes.",
        "0000:3b:00.0",
    ),
    ("be2net 0000:04:00.0: Adapter recovery failed", "0000:04:00.0"),
    ("qede 0000:19:00.0 ens1f0: Recovery handling has failed. Power cycle is needed.", "0000:19:00.0"),
    ("gve 0000:00:04.0: Reset failed! !!! DISABLING ALL QUEUES !!!", "0000:00:04.0"),
    ("hns3 0000:bd:00.0: Reset fail!", "0000:bd:00.0"),
    ("sfc 0000:38:00.0 enp56s0f0np0: has been disabled", "0000:38:00.0"),
    ("hfi1 0000:05:00.0: hfi1_0: Aborted freeze recovery. Please REBOOT system", "0000:05:00.0"),
]

WARNINGS = [
    # A step of a start, and functions and parts of an adapter.
    "ice 0000:4b:00.0: ice_init_hw failed: -16",
    "ice 0000:4b:00.0: Rebuild failed, unload and reload driver",
    "iavf 0000:ec:01.1: Reset never finished (0)",
    "irdma.roce: probe of ice.roce.0 failed with error -110",
    "mlx5_ib.rdma mlx5_core.rdma.3: probe with driver mlx5_ib.rdma failed with error -110",
    "mlx4_core 0000:82:00.0: Internal error detected on the communication channel",
    # The adapter tells of an error, does not answer, or is reset.
    "mlx5_core 0000:41:00.0: print_health_info:418:(pid 0): Health issue observed, ICM fetch PCI error, "
    "severity(3) ERROR:",
    # The firmware resets itself, and the driver goes on with it.
    "bnxt_en 0000:41:00.0 ens1f0np0: Fatal firmware reset event, data1: 0x2, data2: 0x8000",
    "bnxt_en 0000:41:00.0 ens1f0np0: Non-fatal firmware reset event, data1: 0x1, data2: 0x8001",
    "bnxt_en 0000:41:00.0 ens1f0np0: Abandoning msg {0x15 0x1a3} len: 80 due to firmware status: 0xffffffff",
    "[qed_mcp_cmd_and_union:542(ens1f0)]The MFW failed to respond to command 0x22000000 [param 0x00000000].",
    "[qed_hw_err_notify:848(ens1f0)]`PGLUE_B': Fatal attention",
    "bnx2x: [bnx2x_attn_int_deasserted3:4344(eth8)]MC assert!",
    "hns3 0000:bd:00.0: Wait for reset timeout: 0",
    "hns3 0000:bd:00.0: SSU_ECC_MULTI_BIT_INT_0 ssu_mem0_ecc_mbit_err found [error status=0x1]",
    "sfc 0000:38:00.0 enp56s0f0np0: MC rebooted",
    "ionic 0000:0a:00.0: Surprise FW stop, stopping queues",
    "enic 0000:08:00.0 eth0: WQ[0] error_status 3",
    "infiniband irdma0: critical PE Error, GLPE_CRITERR=0x00000003",
    "i40e 0000:3b:00.0: ARQ Critical Error detected",
    "ena 0000:00:05.0 ens5: Lost TX completions are above the threshold (129 > 128). Completion "
    "transmission timeout: 5.",
    "ena 0000:00:05.0 ens5: ENA admin queue is not in running state!",
    "infiniband efa_0: Reset indication didn't turn on",
    "nfp 0000:04:00.0 enp4s0np0: Reconfig timeout (status: 0x00000000 update: 0x00000001 ctrl: 0x00000001)",
    "ixgbe 0000:01:00.0 eth0: Adapter removed",
    # Too hot, or with a cable that is refused.
    "bnxt_en 0000:41:00.0 ens1f0np0: Chip temperature has gone above the critical thermal threshold!",
    "mlx4_core 0000:82:00.0: Temperature Threshold was reached! Threshold: 105 celsius degrees; Current "
    "Temperature: 106",
    "i40e 0000:3b:00.0: Rx/Tx is disabled on this device because an unsupported SFP module type was detected.",
    "hfi1 0000:05:00.0: hfi1_0: handle_qsfp_error_conditions: QSFP cable temperature too high",
    "hfi1 0000:05:00.0: hfi1_0: set_qsfp_tx: Port disabled due to system power restrictions",
]

HARMLESS = [
    # Starts, and drivers that wait for each other.
    "mlx4_core 0000:82:00.0: PF is not ready - Deferring probe",
    "rvu_nicpf 0002:02:00.0: AF not responding to mailbox, deferring probe",
    "mlx5_core 0000:41:00.0: mlx5_pcie_event:306:(pid 586): PCIe slot advertised sufficient power (75W).",
    "mlx5_core 0000:41:00.0: E-Switch: Disable: mode(LEGACY), nvfs(0), necvfs(0), active vports(0)",
    "bnxt_en 0000:41:00.0 ens1f0np0: Driver recovery watchdog, role: primary, firmware status: 0x8000 "
    "(healthy), resets: 0",
    "bnxt_en 0000:41:00.0 ens1f0np0: FEC autoneg on encoding: Clause 91 RS(544,514)",
    "ice 0000:4b:00.0: The DDP package was successfully loaded: ICE OS Default Package version 1.3.30.0",
    "atlantic: Bad FW version detected: 3010028, but continue",
    "vmxnet3 0000:0b:00.0: Failed to enable 9 MSI-X, trying 2",
    "enic 0000:08:00.0: DEVCMD2 resource not found (old firmware?) Using DEVCMD1",
    # Features and registers: a sensor, a tracer, a clock.
    "tg3 0000:01:00.0: Cannot register hwmon device, aborting",
    "bnxt_en 0000:41:00.0 ens1f0np0: Cannot register hwmon device",
    "mlx5_core 0000:41:00.0: mlx5_fw_tracer_handle_traces:812:(pid 9): FWTracer: Events were lost",
    "mlx4_core 0000:82:00.0: irq_update_affinity_hint failed, err -22",
    "igb 0000:03:00.0: clearing Tx timestamp hang",
    "igc 0000:03:00.0 enp3s0: PTM Error: Root port timeout",
    # A person asked for it.
    "bnxt_en 0000:41:00.0 ens1f0np0: Solicited firmware reset event, data1: 0x5, data2: 0x0",
    "mlx4_core 0000:82:00.0: Failed to set port 1, aborting",
    "mlx4_core 0000:82:00.0: invalid port number (3), aborting...",
    "i40e 0000:3b:00.0 eno1: offline testing starting",
    "ice 0000:4b:00.0: Please take active VFs and Netqueues offline and restart the adapter before "
    "running NIC diagnostics",
    "hfi1 0000:05:00.0: hfi1_0: Host requested link to go offline",
    "ice 0000:4b:00.0 ens801f0: Autoneg did not complete so changing settings may not result in an actual change.",
    # What others say in the words of a driver.
    "mydevice 0000:41:00.0: probe with driver mydevice failed with error -22, aborting",
    "mlx5_core 0000:41:00.0: assert_exit_ptr 0x20a3c4c4",
    "[qede_link_update:2720(ens1f0)]Link is up",
]


def told(line) -> str:
    event = told_by(line)
    return f"{event.severity} {event.code} {event.action} {event.address}"


@cases(("line", "address"), NOT_STARTED)
def test_an_adapter_did_not_start(line, address):
    """The kernel says so, or the driver; either way the node has no such adapter."""
    assert told(line) == f"ERROR nic_not_started REBOOT_NODE {address}"


@cases(("line", "address"), FAILED)
def test_the_firmware_of_an_adapter_failed(line, address):
    """Or the adapter could not be reset, which is the same for a job."""
    assert told(line) == f"ERROR nic_health REBOOT_NODE {address}"


@cases("line", WARNINGS)
def test_an_adapter_had_a_fault_and_may_go_on(line):
    """Nothing says that it is lost."""
    assert told_by(line).severity is Severity.WARNING


@cases("line", HARMLESS)
def test_other_lines_of_the_drivers_mean_nothing(line):
    """Starts, features that are missing, and what a person asked for."""
    assert told_by(line) is None


@cases(
    "line",
    [
        "mlx5_core 0000:41:00.0: mlx5_health_try_recover:347:(pid 99): health recovery succeeded",
        "mlx4_core 0000:41:00.0: mlx4_restart_one was ended, ret=0",
        "be2net 0000:41:00.0: Adapter recovery successful",
    ],
)
def test_an_adapter_that_its_driver_reset_works_again(line):
    """What remains is a WARNING: work was lost, and will be again."""
    assert told_by(line) == EventEnd(("nic_health",), Action.REBOOT_NODE, "0000:41:00.0", Severity.WARNING)


def test_the_words_of_the_group_hide_none_of_these_lines():
    """They only save time."""
    must_not_be_hidden([line for line, _ in (*NOT_STARTED, *FAILED)] + WARNINGS)
