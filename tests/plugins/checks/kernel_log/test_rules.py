"""What lines of the kernel's log mean.

The lines were printed by real machines: they come from public bug reports, from commit messages of the kernel and from
the tests of gpud and NVSentinel. Those under SYNTHETIC were written after the format strings in the source of the
kernel and of the drivers.
"""

import pytest
from tests.cases import cases
from tests.plugins.checks.kernel_log.told import must_not_be_hidden, told_by

from muster import Action
from muster_plugins.checks.kernel_log.events import EventEnd, LinkStart, normal_address
from muster_plugins.checks.kernel_log.rules import rule_table

REAL = [
    (
        "tasks_rcu_exit_srcu_stall: rcu_tasks grace period number 37 (since boot) gp_state: RTGS_POST_SCAN_TASKLIST is "
        "11222989 jiffies old.",
        "cpu_stalled WARNING NONE None",
    ),
    ("NVRM: Xid (PCI:0000:66:00): 79, pid=1234, GPU has fallen off the bus.", "xid ERROR REBOOT_NODE 0000:66:00.0"),
    # What programs left on an H200 with driver 580.159.04: one wrote to address 0, one stopped at an assertion, and one
    # wrote to a misaligned address.
    (
        "NVRM: Xid (PCI:0000:00:06): 31, pid=560, name=fault, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE "
        "GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x0_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
        "xid INFO CHECK_APPLICATION 0000:00:06.0",
    ),
    (
        "NVRM: Xid (PCI:0000:00:06): 43, pid=568, name=fault, channel 0x0000000a",
        "xid INFO CHECK_APPLICATION 0000:00:06.0",
    ),
    (
        "NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Misaligned Address",
        "xid INFO CHECK_APPLICATION 0000:00:06.0",
    ),
    (
        "NVRM: Xid (PCI:0000:00:06): 13, Graphics Exception: ESR 0x519730=0x500000f 0x519734=0x0 0x519728=0x1f81fb60 "
        "0x51972c=0x1174",
        "xid INFO CHECK_APPLICATION 0000:00:06.0",
    ),
    ("NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120", "xid INFO CHECK_APPLICATION 0000:01:00.0"),
    (
        "NVRM: Xid (PCI:0000:b5:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception on (GPC 1, TPC 3)",
        "xid INFO CHECK_APPLICATION 0000:b5:00.0",
    ),
    (
        "NVRM: Xid (PCI:0000:0f:00 GPU-I:05): 31, pid=2511, name=python, Ch 00000008",
        "xid INFO CHECK_APPLICATION 0000:0f:00.0",
    ),
    ("NVRM: Xid (PCI:0000:3b:00): 43, pid=1234, name=python, Ch 00000002", "xid INFO CHECK_APPLICATION 0000:3b:00.0"),
    ("NVRM: Xid (PCI:0000:3b:00): 45, pid=1234, Ch 00000002", "xid INFO CHECK_APPLICATION 0000:3b:00.0"),
    (
        "NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149",
        "xid INFO NONE 0000:dc:00.0",
    ),
    (
        "NVRM: Xid (PCI:0000:cb:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, errorString CTX SWITCH "
        "TIMEOUT, Info 0x58005",
        "xid WARNING RESET_GPU 0000:cb:00.0",
    ),
    (
        "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001)",
        "xid WARNING NONE 0018:01:00.0",
    ),
    (
        "NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x00000000)",
        "xid ERROR RESET_GPU 0019:01:00.0",
    ),
    (
        "NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping, reset gpu to activate.",
        "xid WARNING RESET_GPU 0000:10:1c.0",
    ),
    (
        "NVRM: Xid (PCI:0003:00:00): 74, pid='<unknown>', NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000)",
        "xid ERROR INSPECT_HARDWARE 0003:00:00.0",
    ),
    ("NVRM: Xid (PCI:000f:01:00): 119, Timeout after 6s of waiting for RPC", "xid ERROR RESET_GPU 000f:01:00.0"),
    (
        "NVRM: Xid (PCI:0018:01:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x00000001)",
        "xid WARNING NONE 0018:01:00.0",
    ),
    (
        "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000)",
        "xid ERROR RESET_GPU 0018:01:00.0",
    ),
    (
        "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        "xid ERROR RESET_GPU 0008:01:00.0",
    ),
    ("NVRM: Xid (PCI:0000:01:00): 154 (", "xid INFO NONE 0000:01:00.0"),
    ("NVRM: Xid (PCI:0000:66:00): 999, pid=1234, name=test", "xid WARNING NONE 0000:66:00.0"),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
        "sxid ERROR RESET_GPU 0000:a9:00.0",
    ),
    (
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
        "sxid WARNING REBOOT_NODE 0000:05:00.0",
    ),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 28006, Non-fatal, Link 29 MC TS crumbstore MCTO",
        "sxid WARNING NONE 0000:c3:00.0",
    ),
    (
        "nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44 Minion Link DLREQ interrupt",
        "sxid INFO NONE 0000:04:00.0",
    ),
    (
        "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        "off_the_bus ERROR REBOOT_NODE 0000:b3:00.0",
    ),
    ("NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.", "off_the_bus ERROR REBOOT_NODE 0000:91:00.0"),
    ("NVRM: GPU at PCI:0000:91:00 has fallen off the bus.", "off_the_bus ERROR REBOOT_NODE 0000:91:00.0"),
    (
        "NVRM: GPU 0000:04:00.0: RmInitAdapter failed! (0x62:0x40:2192)",
        "gpu_not_initialised ERROR REBOOT_NODE 0000:04:00.0",
    ),
    (
        "NVRM kfspSendBootCommands_GH100: FSP boot cmds failed. RM cannot boot.",
        "gpu_not_initialised ERROR REBOOT_NODE None",
    ),
    (
        "NVRM: kgspInitRm_IMPL: Max GSP-RM boot attempts exceeded: 4/4",
        "gpu_not_initialised ERROR REBOOT_NODE None",
    ),
    (
        "NVRM: GPU0 RmInitAdapter: Cannot initialize GSP firmware RM",
        "gpu_not_initialised ERROR REBOOT_NODE None",
    ),
    (
        "NVRM s_executeFwsec_TU102: failed to execute FWSEC for FRTS: FRTS error code 0xbe",
        "gpu_error WARNING INSPECT_HARDWARE None",
    ),
    (
        "NVRM: s_prepareForFwsec_TU102: failed to prepare interface data for FWSEC cmd 0x15: 0x25",
        "gpu_error WARNING INSPECT_HARDWARE None",
    ),
    (
        "NVRM s_executeBooterUcode_TU102: Booter failed with non-zero error code: 0xa",
        "gpu_error WARNING INSPECT_HARDWARE None",
    ),
    (
        "NVRM kfspProcessCommandResponse_GH100: FSP response reported error. Task ID: 0x2 Command type: 0x14 "
        "Error code: 0x6",
        "gpu_error WARNING INSPECT_HARDWARE None",
    ),
    ("NVRM: pci_enable_device failed, aborting", "gpu_not_initialised ERROR REBOOT_NODE None"),
    (
        "NVRM: GPU0 _issueRpcAndWait: rpcSendMessage failed with status 0x0000000f for fn 10 sequence 800!",
        "off_the_bus ERROR REBOOT_NODE None",
    ),
    (
        "NVRM: GPU0 kgmmuInvalidateTlb_GM107: TLB invalidation failed waiting for prior invalidate (status=0x0000000f)",
        "off_the_bus ERROR REBOOT_NODE None",
    ),
    (
        "amdgpu 0000:83:00.0: amdgpu: Fatal error during GPU init",
        "gpu_not_initialised ERROR REBOOT_NODE 0000:83:00.0",
    ),
    ("amdgpu 0000:95:00.0: amdgpu: GPU reset(19) failed", "gpu_not_initialised ERROR REBOOT_NODE 0000:95:00.0"),
    (
        "amdgpu 0000:83:00.0: sw_init of IP block <vega20_ih> failed -22",
        "gpu_not_initialised ERROR REBOOT_NODE 0000:83:00.0",
    ),
    ("amdgpu: probe of 0000:c3:00.0 failed with error -12", "gpu_not_initialised ERROR REBOOT_NODE 0000:c3:00.0"),
    (
        "[drm:amdgpu_device_ip_init [amdgpu]] *ERROR* hw_init of IP block <psp> failed -22",
        "gpu_not_initialised ERROR REBOOT_NODE None",
    ),
    ("mm/pgtable-generic.c:50: bad pmd c00600c2800001be.", "kernel_oops WARNING REBOOT_NODE None"),
    (
        "pci 0000:84:00.0: unknown header type 7f, ignoring device",
        "pcie_device_removed WARNING INSPECT_HARDWARE 0000:84:00.0",
    ),
    (
        "pcieport 0000:97:02.0: DPC: Data Link Layer Link Active not set in 1000 msec",
        "pcie_link_failed ERROR INSPECT_HARDWARE 0000:97:02.0",
    ),
    (
        "iommu ivhd0: AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=0000:0b:00.0 address=0x100215ba0]",
        "iommu_timeout WARNING REBOOT_NODE None",
    ),
    (
        "mlx5_core 0000:61:00.0: mlx5_function_enable:1215:(pid 3235): enable hca failed",
        "nic_not_started ERROR REBOOT_NODE 0000:61:00.0",
    ),
    ("tx_timeout recovery level 2, hung_queue 31", "nic_queue_timeout WARNING INSPECT_HARDWARE None"),
    ("r8152 4-1:1.0 eth1: Tx timeout", "nic_queue_timeout WARNING INSPECT_HARDWARE None"),
    ("watchdog: BUG: soft lockup - CPU#94 stuck for 226906s! [swapper/94:0]", "cpu_locked_up WARNING REBOOT_NODE None"),
    ("INFO: task kworker/13:2:4055883 blocked for more than 120 seconds.", "task_hung WARNING NONE None"),
    (
        "pcieport 0000:07:04.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)",
        "pcie_corrected INFO INSPECT_HARDWARE 0000:07:04.0",
    ),
    (
        "pcieport 0000:00:1c.0: AER: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
        "pcie_corrected INFO INSPECT_HARDWARE 0000:00:1c.0",
    ),
    (
        "pcieport 0000:00:03.1: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Transmitter ID)",
        "pcie_corrected INFO INSPECT_HARDWARE 0000:00:03.1",
    ),
    (
        "pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)",
        "pcie_uncorrected ERROR INSPECT_HARDWARE 0000:00:03.0",
    ),
    (
        "pcieport 0000:80:1b.4: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer, (Receiver "
        "ID)",
        "pcie_transaction_failed WARNING INSPECT_HARDWARE 0000:80:1b.4",
    ),
    ("pcieport 0000:00:03.0: AER: device recovery failed", "pcie_link_failed ERROR INSPECT_HARDWARE 0000:00:03.0"),
    (
        "pcieport 0000:00:1c.0: DPC: containment event, status:0x1f01: unmasked uncorrectable error detected",
        "pcie_link_failed ERROR INSPECT_HARDWARE 0000:00:1c.0",
    ),
    (
        "mlx5_core 0000:0d:00.0: poll_health:801:(pid 0): device's health compromised - reached miss count",
        "nic_health ERROR REBOOT_NODE 0000:0d:00.0",
    ),
    (
        "mlx5_core 0000:06:00.0: wait_func_handle_exec_timeout:1128:(pid 185911): cmd[-22]: CREATE_UCTX(0xa04) "
        "No done completion",
        "nic_command_timeout WARNING INSPECT_HARDWARE 0000:06:00.0",
    ),
    (
        "mlx5_core 0000:03:00.0: wait_func:964:(pid 112): ENABLE_HCA(0x104) timeout. Will cause a leak of a command "
        "resource",
        "nic_command_timeout WARNING INSPECT_HARDWARE 0000:03:00.0",
    ),
    (
        "mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W).",
        "nic_power WARNING INSPECT_HARDWARE 0000:5c:00.0",
    ),
    (
        "mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature",
        "nic_module WARNING INSPECT_HARDWARE 0000:5c:00.0",
    ),
    ("mlx5_core 0000:53:00.0 enp83s0f0np0: Link down", "nic_link_down WARNING INSPECT_HARDWARE 0000:53:00.0"),
    ("ice 0000:10:00.1 ens1f1: NIC Link is Down", "nic_link_down WARNING INSPECT_HARDWARE 0000:10:00.1"),
    ("igb 0000:02:00.0 eno1: igb: eno1 NIC Link is Down", "nic_link_down WARNING INSPECT_HARDWARE 0000:02:00.0"),
    (
        "mlx5_core 0000:3b:00.1 eth1: Error cqe on cqn 0x817, ci 0x8, qn 0x1dbb, opcode 0xd, syndrome 0x1, vendor "
        "syndrome 0x68",
        "nic_refused WARNING INSPECT_HARDWARE 0000:3b:00.1",
    ),
    (
        "bnxt_en 0000:41:00.0 rocep65s0f0: Failed to create HW CQ",
        "nic_refused WARNING INSPECT_HARDWARE 0000:41:00.0",
    ),
    ("mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link DOWN", "nic_port_down WARNING INSPECT_HARDWARE 0000:53:00.0"),
    (
        "mlx5_core 0000:65:00.0 ens15np0: TX timeout detected",
        "nic_queue_timeout WARNING INSPECT_HARDWARE 0000:65:00.0",
    ),
    (
        "pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in "
        "libnccl.so.2[7f7c7ac00000+d3d3000]",
        "nccl_segfault INFO CHECK_APPLICATION None",
    ),
    ("mce: [Hardware Error]: Machine check events logged", "machine_check_logged INFO INSPECT_HARDWARE None"),
    ("[Hardware Error]: Deferred error, no action required.", "machine_check_uncorrected ERROR INSPECT_HARDWARE None"),
    (
        "{1}[Hardware Error]: event severity: recoverable",
        "firmware_error WARNING INSPECT_HARDWARE None",
    ),
    (
        "EDAC MC3: 1 UE memory read error on CPU_SrcID#1_MC#1_Chan#2_DIMM#0 (channel:2 slot:0 page:0xb757589 "
        "offset:0x140 grain:32 -  OVERFLOW err_code:0101:0092 socket:1 imc:1 rank:0 bg:3 ba:0 row:1a1e8 col:180)",
        "machine_check_uncorrected ERROR INSPECT_HARDWARE None",
    ),
    (
        "EDAC MC0: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0 page:0x0 offset:0x0 grain:8 syndrome:0x0)",
        "machine_check_corrected INFO INSPECT_HARDWARE None",
    ),
    (
        "blk_update_request: I/O error, dev nvme0n1, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
        "disk_error WARNING INSPECT_HARDWARE None",
    ),
    ("EDAC MC1: 5486 CE error on CPU # 1Channel # 2_DIMM # 1", "machine_check_storm WARNING INSPECT_HARDWARE None"),
    ("nvme nvme1: I/O 832 (I/O Cmd) QID 1 timeout, aborting", "disk_error WARNING INSPECT_HARDWARE None"),
    ("nvme nvme3: queue 0: timeout request 0x0 type 4", "disk_error WARNING INSPECT_HARDWARE None"),
    (
        "res 40/00:04:a0:6d:70/00:00:74:00:00/40 Emask 0x50 (ATA bus error)",
        "disk_error WARNING INSPECT_HARDWARE None",
    ),
    (
        "sd 14:0:4:0: [sdd] tag#1669 FAILED Result: hostbyte=DID_SOFT_ERROR driverbyte=DRIVER_OK cmd_age=2s",
        "disk_error WARNING INSPECT_HARDWARE None",
    ),
    ("mlx4_core 0000:82:00.0: Internal error detected:", "nic_health ERROR REBOOT_NODE 0000:82:00.0"),
    ("hns3 0000:fd:00.1: Cmd queue init failed", "nic_command_timeout WARNING INSPECT_HARDWARE 0000:fd:00.1"),
    ("attempt to access beyond end of device", "file_system_damaged WARNING INSPECT_HARDWARE None"),
    (
        "systemd-journald[387]: Failed to rotate /var/log/journal/63f4/user-1000.journal: Read-only file system",
        "file_system_write_lost WARNING INSPECT_HARDWARE None",
    ),
    ("tg3 0000:3f:00.0 enp63s0: Link is down", "nic_link_down WARNING INSPECT_HARDWARE 0000:3f:00.0"),
    ("igb 0000:03:00.0 enp3s0: PCIe link lost", "pcie_device_removed WARNING INSPECT_HARDWARE 0000:03:00.0"),
    (
        "ixgbe 0000:07:00.0 eno3: initiating reset due to tx timeout",
        "nic_queue_timeout WARNING INSPECT_HARDWARE None",
    ),
    (
        "idpf 0000:83:00.0: The driver was unable to contact the device's firmware. Check that the FW is running. "
        "Driver state= 0x2",
        "nic_health ERROR REBOOT_NODE 0000:83:00.0",
    ),
    (
        "i40e 0000:03:00.0: previous errors forcing module to load in debug mode",
        "nic_not_started ERROR REBOOT_NODE 0000:03:00.0",
    ),
    (
        "ixgbe 0000:01:00.1 eth1: initiating reset to clear Tx work after link loss",
        "nic_queue_timeout WARNING INSPECT_HARDWARE None",
    ),
    ("nf_conntrack: table full, dropping packet", "network_table_full WARNING NONE None"),
    ("neighbour: arp_cache: neighbor table overflow!", "network_table_full WARNING NONE None"),
    (
        "ixgbe 0000:65:00.0: The EEPROM Checksum Is Not Valid",
        "nic_refused WARNING INSPECT_HARDWARE 0000:65:00.0",
    ),
    ("ata1: exception Emask 0x40 SAct 0x0 SErr 0x800 action 0x7", "disk_error WARNING INSPECT_HARDWARE None"),
    ("nvme nvme1: frozen state error detected, reset controller", "disk_error WARNING INSPECT_HARDWARE None"),
    ("CIFS VFS: Error connecting to socket. Aborting operation.", "server_not_responding WARNING NONE None"),
    (
        "CIFS: VFS: \\\\127.0.0.1 has not responded in 3 seconds. Reconnecting...",
        "server_not_responding WARNING NONE None",
    ),
    (
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned "
        "from status @ kernel_channel.c:2874",
        "reset_required ERROR RESET_GPU None",
    ),
    (
        "hpsa 0000:05:00.0: scsi 0:1:0:0: resetting logical  Direct-Access     HP       LOGICAL VOLUME   RAID-0",
        "disk_error WARNING INSPECT_HARDWARE 0000:05:00.0",
    ),
    ("arm-smmu-v3 arm-smmu-v3.2.auto: event 0x04 received:", "iommu_fault WARNING INSPECT_HARDWARE None"),
    (
        "i915 0000:00:02.0: Unable to change power state from D0 to D0, device inaccessible",
        "pcie_device_removed WARNING INSPECT_HARDWARE 0000:00:02.0",
    ),
    (
        "megaraid_sas 0000:18:00.0: 2786 (731424485s/0x0004/CRIT) - Enclosure PD 20(c None/p1) phy bad for slot 1",
        "disk_error WARNING INSPECT_HARDWARE 0000:18:00.0",
    ),
    (
        "chrome: page allocation failure: order:5, mode:0x24040c0(GFP_KERNEL|__GFP_COMP)",
        "memory_short WARNING CHECK_APPLICATION None",
    ),
    (
        "vmap allocation for size 2498560 failed: use vmalloc=<size> to increase size",
        "kernel_memory_full WARNING REBOOT_NODE None",
    ),
    ("NVRM: fallen off the bus and is not responding to commands.", "off_the_bus ERROR REBOOT_NODE None"),
    ("XFS (nvme0n1p5): SB validate failed with error -22. ", "file_system_corrupt ERROR INSPECT_HARDWARE None"),
    (
        "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)",
        "xid ERROR REBOOT_NODE 0000:01:00.0",
    ),
    ("NVRM: Xid (PCI:0000:01:00): 62, pid=2763, 0c83(1870) 00000000 00000000", "xid ERROR RESET_GPU 0000:01:00.0"),
    ("NVRM: BAR1 is 0M @ 0x0 (PCI:0002:21:00.0)", "gpu_not_mapped ERROR INSPECT_HARDWARE 0002:21:00.0"),
    ("NVRM: BAR1 is 0M @ 0x00000000 (PCI:0001:00.0)", "gpu_not_mapped ERROR INSPECT_HARDWARE None"),
    ("nvidia: probe of 0000:01:00.0 failed with error -1", "gpu_refused WARNING INSPECT_HARDWARE 0000:01:00.0"),
    (
        "nvidia 0000:41:00.0: probe with driver nvidia failed with error -1",
        "gpu_refused WARNING INSPECT_HARDWARE 0000:41:00.0",
    ),
    ("NVRM: The NVIDIA probe routine failed for 1 device(s).", "gpu_refused WARNING INSPECT_HARDWARE None"),
    (
        "NVRM: The NVIDIA GPU 0000:af:00.0 (PCI ID: 10de:1db5)\n"
        "NVRM: installed in this system is not supported by open",
        "gpu_refused WARNING INSPECT_HARDWARE 0000:af:00.0",
    ),
    ("NVRM: installed in this system is not supported by the", "gpu_refused WARNING INSPECT_HARDWARE None"),
    (
        "[nvidia-vgpu-vfio] a581675d-19eb-4f50-aa64-6aeb378c58c3: start failed. status: 0x0 Timeout Occured",
        "gpu_error WARNING INSPECT_HARDWARE None",
    ),
    ("NVRM: RmInitAdapter failed! (0x26:0xffff:1127)", "gpu_not_initialised ERROR REBOOT_NODE None"),
    ("NVRM: Can't find an IRQ for your NVIDIA card!", "gpu_not_initialised ERROR REBOOT_NODE None"),
    ("NVRM: None of the NVIDIA devices were initialized.", "gpu_not_initialised ERROR REBOOT_NODE None"),
    ("mana 7870:00:00.0: gdma probe failed: err = -71", "nic_not_started ERROR REBOOT_NODE 7870:00:00.0"),
    (
        "JBD2: Error while async write back metadata bh 232792281.",
        "file_system_write_lost WARNING INSPECT_HARDWARE None",
    ),
    ("PANIC at dnode.c:1635:dnode_setdirty()", "kernel_oops WARNING REBOOT_NODE None"),
    (
        "ixgbe 0000:02:00.1: failed to load because an unsupported SFP+ module type was detected.",
        "nic_not_started ERROR REBOOT_NODE 0000:02:00.1",
    ),
    (
        "[Hardware Error]: CPU:21 (19:21:0) MC5_STATUS[-|UE|MiscV|AddrV|PCC|TCC|SyndV|-|-|-]: 0xbea0000000000108",
        "machine_check_uncorrected ERROR INSPECT_HARDWARE None",
    ),
    (
        "x86/amd: Previous system reset reason [0x08000800]: an uncorrected error caused a data fabric sync flood",
        "machine_check_uncorrected ERROR INSPECT_HARDWARE None",
    ),
    (
        "Severe Hypervisor Maintenance interrupt [Recovered]",
        "hardware_interrupt WARNING INSPECT_HARDWARE None",
    ),
    (
        "NVRM: krcWatchdog_IMPL: RC watchdog: GPU is probably locked!  Notify Timeout Seconds: 7",
        "gpu_locked WARNING CHECK_APPLICATION None",
    ),
    (
        "NVRM: gpuWaitForGfwBootComplete_TU102: failed to wait for GFW_BOOT: (progress 0x3)",
        "gpu_locked WARNING CHECK_APPLICATION None",
    ),
    (
        "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover.",
        "driver_lost ERROR REBOOT_NODE None",
    ),
    ("watchdog: Watchdog detected hard LOCKUP on cpu 3", "cpu_locked_up WARNING REBOOT_NODE None"),
    ("watchdog: CPU3: Watchdog detected hard LOCKUP on cpu 3", "cpu_locked_up WARNING REBOOT_NODE None"),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 1", "cpu_locked_up WARNING REBOOT_NODE None"),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", "cpu_stalled WARNING NONE None"),
    ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "cpu_stalled WARNING NONE None"),
    ("rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-...D }", "cpu_stalled WARNING NONE None"),
    ("INFO: rcu_sched_state detected stall on CPU 0 (t=6000 jiffies)", "cpu_stalled WARNING NONE None"),
    ("INFO: task udevd:5612 blocked in I/O wait for more than 143 seconds.", "task_hung WARNING NONE None"),
    ("INFO: task syz-executor.1:12632 can't die for more than 143 seconds.", "task_hung WARNING NONE None"),
    ("BUG: unable to handle page fault for address: ffffb2b582cc2000", "kernel_oops WARNING REBOOT_NODE None"),
    ("BUG: kernel NULL pointer dereference, address: 0000000000000158", "kernel_oops WARNING REBOOT_NODE None"),
    ("kernel BUG at lib/list_debug.c:23!", "kernel_oops WARNING REBOOT_NODE None"),
    ("Oops: divide error: 0000 [#1] PREEMPT SMP NOPTI", "kernel_oops WARNING REBOOT_NODE None"),
    ("Internal error: Oops: 96000004 [#1] PREEMPT SMP", "kernel_oops WARNING REBOOT_NODE None"),
    ("Kernel panic - not syncing: Fatal exception in interrupt", "kernel_oops WARNING REBOOT_NODE None"),
    (
        "mlx5_core 0000:41:00.0: init_one:1371:(pid 803): mlx5_load_one failed with error code -22",
        "nic_not_started ERROR REBOOT_NODE 0000:41:00.0",
    ),
    ("mlx5_core: probe of 0000:41:00.0 failed with error -22", "nic_not_started ERROR REBOOT_NODE 0000:41:00.0"),
    (
        "NETDEV WATCHDOG: eth0 (igb): transmit queue 0 timed out",
        "nic_queue_timeout WARNING INSPECT_HARDWARE None",
    ),
    (
        "Out of memory: Kill process 28471 (python3) score 892 or sacrifice child",
        "out_of_memory WARNING CHECK_APPLICATION None",
    ),
    ("AMD-Vi: Completion-Wait loop timed out", "iommu_timeout WARNING REBOOT_NODE None"),
    (
        "DMAR: [DMA Write NO_PASID] Request device [07:00.0] fault addr 0x69935000 [fault reason 0x05] PTE Write "
        "access is not set",
        "iommu_fault WARNING INSPECT_HARDWARE None",
    ),
    (
        "bnxt_en 0000:31:00.0: swiotlb buffer is full (sz: 256 bytes), total 0 (slots), used 0 (slots)",
        "dma_full WARNING NONE None",
    ),
    (
        "pcieport 0000:00:02.3: pciehp: Slot(0): Card not present",
        "pcie_device_removed WARNING INSPECT_HARDWARE 0000:00:02.3",
    ),
    ("nfs: server mhfl2 not responding, still trying", "server_not_responding WARNING NONE None"),
    (
        "Memory failure: 0x1840200: Killing cellsrv:33395 due to hardware memory corruption",
        "memory_lost ERROR INSPECT_HARDWARE None",
    ),
    ("md/raid1:md3: Disk failure on sdb3, disabling device.", "array_degraded WARNING INSPECT_HARDWARE None"),
    (
        "md/raid:md0: read error not correctable (sector 555480 on sdc1).",
        "array_degraded WARNING INSPECT_HARDWARE None",
    ),
    ("XFS (md122): I/O Error Detected. Shutting down filesystem", "file_system_lost ERROR INSPECT_HARDWARE None"),
    (
        "XFS (vdd): xfs_do_force_shutdown(0x2) called from line 1297 of file fs/xfs/xfs_log.c.",
        "file_system_lost ERROR INSPECT_HARDWARE None",
    ),
    (
        "XFS (md122): Internal error XFS_WANT_CORRUPTED_GOTO at line 3305 of file fs/xfs/libxfs/xfs_btree.c.",
        "file_system_corrupt ERROR INSPECT_HARDWARE None",
    ),
    (
        "XFS (dm-3): Metadata corruption detected at xfs_attr3_leaf_verify+0x275/0x2e0, xfs_attr3_leaf block 0x19be8",
        "file_system_corrupt ERROR INSPECT_HARDWARE None",
    ),
    (
        "XFS (sda1): writeback error -12 on sector 131495992",
        "file_system_write_lost WARNING INSPECT_HARDWARE None",
    ),
    (
        "BTRFS error (device dm-0): parent transid verify failed on 1382301696 wanted 262166 found 22",
        "file_system_damaged WARNING INSPECT_HARDWARE None",
    ),
    ("EXT4-fs (sda1): error count since last fsck: 5", "file_system_check_due WARNING INSPECT_HARDWARE None"),
    (
        "[Hardware Error]: CPU 3: Machine Check: 0 Bank 17: d42040000000011b\nTSC 0 ADDR b3cbdbbc0 SYND "
        "6bd210000a801002 IPID 9600650f00",
        "machine_check_corrected INFO INSPECT_HARDWARE None",
    ),
    (
        "[Hardware Error]: CPU 1: Machine Check: 0 Bank 5: bea0000000000108\nPROCESSOR 2:870f10 TIME 1585120217",
        "machine_check_uncorrected ERROR INSPECT_HARDWARE None",
    ),
    (
        "[Hardware Error]: CPU 0: Machine Check: 0 Bank 4: a600000000020408\nPROCESSOR 0:706a1 TIME 1537152664",
        "machine_check_unreported WARNING INSPECT_HARDWARE None",
    ),
    ("EEH: Frozen PHB#41-PE#10000 detected", "pcie_device_removed WARNING INSPECT_HARDWARE None"),
    ("EEH: Frozen PE#1fd on PHB#3 detected", "pcie_device_removed WARNING INSPECT_HARDWARE None"),
    (
        "bnx2x: [bnx2x_timer:5811(enP23p1s0f3)]MFW seems hanged: drv_pulse (0x2ca) != mcp_pulse (0x7fff)",
        "nic_health ERROR REBOOT_NODE None",
    ),
    ("hv_storvsc vmbus_0_1: cmd 0x2a scsi status 0x2 srb status 0x4", "disk_error WARNING INSPECT_HARDWARE None"),
    (
        "hv_storvsc fd1d2cbd-ce7c-535c-966b-eb5f811c95f0: tag#683 cmd 0x28 status: scsi 0x2 srb 0x4 hv 0xc0000001",
        "disk_error WARNING INSPECT_HARDWARE None",
    ),
    ("drbd haqm1/0 drbd100: quorum( yes -> no )", "disk_error WARNING INSPECT_HARDWARE None"),
    (
        "drbd fastexport: peer( Secondary -> Unknown ) conn( Connected -> ProtocolError )",
        "disk_error WARNING INSPECT_HARDWARE None",
    ),
    (
        "gfs2: fsid=xapi-clusterd:16d3f769-afce-7d.0: fatal: I/O error(s)",
        "file_system_lost ERROR INSPECT_HARDWARE None",
    ),
    ("OCFS2: File system is now read-only.", "file_system_lost ERROR INSPECT_HARDWARE None"),
    ("F2FS-fs (nullb0): Stopped filesystem due to reason: 4", "file_system_lost ERROR INSPECT_HARDWARE None"),
    (
        "bcachefs (loop4): inconsistency detected - emergency read only at journal seq 8",
        "file_system_lost ERROR INSPECT_HARDWARE None",
    ),
    (
        "ERROR: (device loop0): remounting filesystem as read-only",
        "file_system_lost ERROR INSPECT_HARDWARE None",
    ),
]

SYNTHETIC = [
    (
        "CIFS VFS: Server 10.240.0.4 has not responded in 120 seconds. Reconnecting...",
        "server_not_responding WARNING NONE None",
    ),
    (
        "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x5 (Recover IMEX Domain)",
        "xid WARNING NONE 0008:01:00.0",
    ),
    ("CMCI storm detected: switching to poll mode", "machine_check_storm WARNING INSPECT_HARDWARE None"),
    (
        "Uhhuh. NMI received for unknown reason 2c on CPU 0.",
        "hardware_interrupt WARNING INSPECT_HARDWARE None",
    ),
    (
        "thermal thermal_zone0: acpitz: critical temperature reached, shutting down",
        "too_hot WARNING INSPECT_HARDWARE None",
    ),
    ("md/raid1:md0: active with 1 out of 2 mirrors", "array_degraded WARNING INSPECT_HARDWARE None"),
    ("XFS (nvme1n1): xfs_log_force: error 5 returned.", "file_system_lost ERROR INSPECT_HARDWARE None"),
    (
        "XFS (nvme1n1): Corruption of in-memory data detected.  Shutting down filesystem",
        "file_system_lost ERROR INSPECT_HARDWARE None",
    ),
    (
        "XFS (nvme1n1): Log I/O Error (0x2) detected at xlog_ioend_work+0x5c/0xb0 [xfs] (fs/xfs/xfs_log.c:1378).",
        "file_system_lost ERROR INSPECT_HARDWARE None",
    ),
    (
        "mlx5_core 0000:41:00.0: probe with driver mlx5_core failed with error -22",
        "nic_not_started ERROR REBOOT_NODE 0000:41:00.0",
    ),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 99999, Fatal, Link 3 something new",
        "sxid ERROR REBOOT_NODE 0000:c3:00.0",
    ),
    (
        "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        "xid ERROR REBOOT_NODE 0008:01:00.0",
    ),
    ("INFO: task nvidia-smi:8123 blocked for more than 122 seconds.", "driver_hung WARNING REBOOT_NODE None"),
    ("mlx5_core 0000:5c:00.0: Port module event: module 1, Cable unplugged", "nic_unplugged INFO NONE 0000:5c:00.0"),
    (
        "mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 3: be00000000800400",
        "machine_check_uncorrected ERROR INSPECT_HARDWARE None",
    ),
    (
        "Memory cgroup out of memory: Killed process 4711 (python) total-vm:81234kB, anon-rss:71234kB",
        "container_out_of_memory INFO CHECK_APPLICATION None",
    ),
    (
        "Out of memory: Killed process 4711 (python) total-vm:81234kB, anon-rss:71234kB",
        "out_of_memory WARNING CHECK_APPLICATION None",
    ),
    (
        "EXT4-fs (nvme0n1p1): Remounting filesystem read-only",
        "file_system_lost ERROR INSPECT_HARDWARE None",
    ),
    (
        "XFS (nvme1n1): Filesystem has been shut down due to log error (0x2).",
        "file_system_lost ERROR INSPECT_HARDWARE None",
    ),
    # arch/powerpc/kernel/eeh_driver.c
    (
        "EEH: PHB#41-PE#10000 has failed 6 times in the last hour and has been permanently disabled.",
        "pcie_link_failed ERROR INSPECT_HARDWARE None",
    ),
    ("CPU5: failed to come online", "cpu_not_started WARNING INSPECT_HARDWARE None"),
    (
        "hv_pci 47505500-0001-0000-3130-444531334632: PCI Pass-through VSP failed D0 Entry with status c0000035",
        "device_error WARNING INSPECT_HARDWARE None",
    ),
    (
        "cxl_pci 0000:d0:00.0: mem0: frozen state error detected, disable CXL.mem",
        "memory_error WARNING INSPECT_HARDWARE 0000:d0:00.0",
    ),
    # drivers/net/ethernet/chelsio/cxgb4, emulex/benet and intel/ice
    (
        "cxgb4 0000:02:00.4: Firmware reports adapter error: Crash",
        "nic_health ERROR REBOOT_NODE 0000:02:00.4",
    ),
    (
        "cxgb4 0000:02:00.4: encountered fatal error, adapter stopped",
        "nic_health ERROR REBOOT_NODE 0000:02:00.4",
    ),
    (
        "be2net 0000:04:00.0: Unrecoverable Error detected in the adapter",
        "nic_health ERROR REBOOT_NODE 0000:04:00.0",
    ),
    (
        "ice 0000:4b:00.0: Firmware recovery mode detected. Limiting functionality.",
        "nic_health ERROR REBOOT_NODE 0000:4b:00.0",
    ),
]

HARMLESS = [
    "",
    "Linux version 6.1.0-18-amd64",
    # Where the kernel was: in a crash, which has a line of its own, or in a notice for developers.
    "RIP: 0010:_nv041234rm+0x1b/0x40 [nvidia]",
    "RIP: 0010:mlx5e_poll_ico_cq+0x8b/0x1a0 [mlx5_core]",
    "NVRM: GPU at PCI:0000:66:00: GPU-12345678-1234-5678-9abc-def012345678",
    "NVRM: GPU 0000:09:00.0: GPU is on Board .",
    "NVRM: GPU1 kbifCacheVFInfo_GB100: Unable to read NV_PF0_INITIAL_AND_TOTAL_VFS",
    "NVRM: A GPU crash dump has been created. If possible, please run\nNVRM: nvidia-bug-report.sh as root",
    "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
    "mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link INIT",
    "workqueue: ib_cache_event_task [ib_core] hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
    "NVRM: Xid : 32, pid=2280636",
    "NVRM: Xid (PCI:0000:66:00): abc, pid=2280636",
    "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Data {0x50610002, 0x10100030}",
    "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Severity 1 Engine instance 60 Sub-engine instance 00",
    "pcieport 0000:00:1d.0: AER: Corrected error received: 0000:07:04.0",
    "pcieport 0000:00:03.0:    [14] CmpltTO                (First)",
    "nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)",
    "pcieport 0000:00:03.0: AER: Root Port link has been reset (0)",
    "nvme nvme1: Abort status: 0x0",
    "EDAC skx MC3: HANDLING MCE MEMORY ERROR",
    "[Hardware Error]: Corrected error, no action required.",
    "python[312]: segfault at 0 ip 000055d0 sp 00007ffd error 4 in python3.11[55d0+1000]",
    "I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
    "virtio-pci 0000:00:01.0: enabling device (0000 -> 0002)",
    "md/raid1:md11: active with 2 out of 2 mirrors",
    "traps: python[312] general protection fault ip:7f00 sp:7ffd error:0 in libc.so.6[7f00+1000]",
    "ODEBUG: 213 of 213 active objects replaced",
    "ALSA sound/core/pcm_lib.c:181: BUG: pcmC0D0p:0, pos = 0x4000, buffer size = 0x4000, period size = 0x400",
    "BUG: sleeping function called from invalid context at mm/slab.h:421",
    "[ BUG: Invalid wait context ]",
    "rcu: Hierarchical SRCU implementation.",
    "rcu:     RCU restricting CPUs from NR_CPUS=8192 to nr_cpu_ids=4.",
    "NMI watchdog: Perf NMI watchdog permanently disabled",
    "EXT4-fs (sdc2): warning: mounting unchecked fs, running e2fsck is recommended",
    "F2FS-fs (loop2): Stopped filesystem due to reason: 0",
    "EXT4-fs (nvme0n1p1): re-mounted. Opts: nodiscard,errors=remount-ro",
    "BTRFS info (device dm-9): disk space caching is enabled",
    "Memory failure: 0x1a2b: already hardware poisoned",
    "ata3: SATA link down (SStatus 0 SControl 300)",
    "[Hardware Error]: event severity: corrected\nError 0, type: corrected\nsection type: unknown, 3c1e3f4b",
    # A healthy H200 at boot, and a line that comes before an Xid.
    "NVRM: gpuClearFbhubPoisonIntrForBug2924523_GA100: FBHUB Interrupt detected. Clearing it.",
    "NVRM: GPU at PCI:0000:00:06: GPU-95ccc2b2-f1ea-2568-940f-8d7616c951e8",
]


@cases(("line", "expected"), REAL + SYNTHETIC)
def test_a_line_is_recognised(line, expected):
    """Code, severity, action and address of each."""
    event = told_by(line)
    assert f"{event.code} {event.severity} {event.action} {event.address}" == expected


@cases("line", HARMLESS)
def test_other_lines_mean_nothing(line):
    """That holds as well for those that only repeat or detail what another line has told."""
    assert told_by(line) is None


def test_the_words_of_a_group_hide_no_line_from_its_rules():
    """They only save time."""
    must_not_be_hidden(line for line, _ in REAL + SYNTHETIC)


def test_every_rule_has_a_line_that_it_recognises():
    """A rule that nothing shows to work is none. Each has a code of its own."""
    recognised = {told_by(line).code for line, _ in REAL + SYNTHETIC}
    assert sorted(recognised) == sorted(rule.code for group in rule_table().group for rule in group.rule)


@pytest.mark.parametrize(
    ("line", "address"),
    [
        (
            "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
            "0008:01:00.0",
        ),
        ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15  Fri Jan 10", None),
        ("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build", None),
    ],
)
def test_a_reset_ends_what_asked_for_it(line, address):
    """The driver says when a GPU needs no recovery any more, and when it was loaded again."""
    assert told_by(line) == EventEnd(("xid", "reset_required"), Action.RESET_GPU, address)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("mlx5_core 0000:53:00.0 enp83s0f0np0: Link up", "nic_link_down"),
        (
            "ice 0000:53:00.0 ens1f2: NIC Link is up 25 Gbps Full Duplex, Requested FEC: RS-FEC",
            "nic_link_down",
        ),
        (
            "tg3 0000:53:00.0 enp63s0: Link is up at 1000 Mbps, full duplex",
            "nic_link_down",
        ),
        (
            "igb 0000:53:00.0 eno1: igb: eno1 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX/TX",
            "nic_link_down",
        ),
        ("mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link ACTIVE", "nic_port_down"),
    ],
)
def test_a_link_that_comes_up_is_no_longer_down(line, code):
    """Every link does so when its driver starts; of flaps `fabric` tells."""
    assert told_by(line) == EventEnd((code,), Action.INSPECT_HARDWARE, "0000:53:00.0")


def test_the_kernels_own_word_names_the_device_that_a_line_does_not():
    """Records about a device carry its address beside the text."""
    line = "mlx5_core: Port module event[error]: module 0, Cable error, High Temperature"
    assert told_by(line, device="0000:5c:00.0").address == "0000:5c:00.0"


@cases(
    ("address", "expected"),
    [
        ("0000:B3:00", "0000:b3:00.0"),
        ("00000000:17:00.0", "0000:17:00.0"),
        ("0000:5c:00.1", "0000:5c:00.1"),
        ("17:00.0", None),
        ("mlx5_0", None),
        ("", None),
    ],
)
def test_addresses_are_written_as_in_sysfs(address, expected):
    """Whoever wrote them in whichever form."""
    assert normal_address(address) == expected


def test_the_driver_of_an_adapter_starts():
    """Its link has not been up yet."""
    assert told_by("mlx5_core 0000:53:00.0: firmware version: 28.39.1002") == LinkStart("0000:53:00.0")
    assert told_by("e1000e 0000:00:1f.6 enp0s31f6: renamed from eth0") == LinkStart("0000:00:1f.6")


@cases(
    "line",
    [
        "r8169 0000:02:00.0 eth0: RTL8168e/8111e at 0xffffc9000064e000, 00:30:18:a4:38:37, XID 0c200000 IRQ 40",
        "r8169 0000:02:00.0 eth0: RTL8125B, d8:5e:d3:00:00:01, XID 641, IRQ 130",
        "tg3 0000:02:00.0 eth0: Tigon3 [partno(BCM95720) rev 5720000] (PCI Express) MAC address 4c:d9:8f:00:00:01",
        "bnxt_en 0000:02:00.0 eth0: Broadcom BCM57416 NetXtreme-E 10GBase-T Ethernet found at mem 92610000, node addr "
        "4c:d9:8f:00:00:01",
    ],
)
def test_an_adapter_starts_whose_ports_keep_their_names(line):
    """The driver presents the port; udev does not rename it."""
    assert told_by(line) == LinkStart("0000:02:00.0")


def test_a_virtual_function_that_is_renamed_has_perhaps_been_up():
    """A driver beside it sets it up before udev names it."""
    assert told_by("mlx5_core a1b2:00:02.0 enP41394s1: renamed from eth1") is None


SECTION = (
    "[Hardware Error]: event severity: {event}\nError 0, type: {type}\nfru_text: x\nsection_type: {section}\n{more}"
)


@cases(
    ("event", "type", "section", "more", "expected"),
    [
        ("corrected", "corrected", "memory error", "", "machine_check_corrected INFO None"),
        ("recoverable", "recoverable", "memory error", "", "machine_check_uncorrected ERROR None"),
        ("fatal", "fatal", "IA32/X64 processor error", "", "machine_check_uncorrected ERROR None"),
        ("recoverable", "recoverable", "ARM processor error", "", "machine_check_uncorrected ERROR None"),
        ("corrected", "corrected", "PCIe error", "device_id: 0000:60:03.1", "pcie_corrected INFO 0000:60:03.1"),
        (
            "recoverable",
            "recoverable",
            "PCIe error",
            "device_id: 0000:c9:02.0",
            "pcie_transaction_failed WARNING 0000:c9:02.0",
        ),
        ("recoverable", "fatal", "PCIe error", "device_id: 0000:04:00.0", "pcie_uncorrected ERROR 0000:04:00.0"),
        ("fatal", "fatal", "Firmware Error Record Reference", "", "firmware_error WARNING None"),
    ],
)
def test_what_firmware_reports_is_judged_by_its_section(event, type, section, more, expected):
    """A section has a severity and a kind of its own; the device decides which link it is."""
    told = told_by(SECTION.format(event=event, type=type, section=section, more=more))
    assert f"{told.code} {told.severity} {told.address}" == expected
