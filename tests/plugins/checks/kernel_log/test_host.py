"""What lines mean about processors, memory, buses and the kernel itself.

They were written after the format strings in the source of the kernel, from 4.18 to 6.14. The line of DPC before 5.0
stands so in a public report.
"""

from tests.cases import cases
from tests.plugins.checks.kernel_log.told import told_by

from muster import Action
from muster_plugins.checks.kernel_log.events import EventEnd

HARDWARE_ERRORS = [
    # arch/x86/kernel/cpu/mce
    "mce: Memory error not recovered",
    "mce: Uncorrected memory error in page 0x1b2c3 ignored",
    "mce: Kernel accessed poison in user space at 7f2340",
    "mce: CPUs not responding to MCE broadcast (may include false positives): 12-15",
    "mce: [Hardware Error]: Machine check: Processor context corrupt",
    "Kernel panic - not syncing: Fatal machine check",
    "Kernel panic - not syncing: Fatal local machine check",
    "Kernel panic - not syncing: Timeout: Not all CPUs entered broadcast exception handler",
    "MCE: Killing python:4242 due to hardware memory corruption fault at 7f12340000",
    "Kernel panic - not syncing: Local fatal machine check!",
    "Kernel panic - not syncing: Consecutive machine checks to different user pages",
    "Kernel panic - not syncing: Failed kernel mode recovery",
    # drivers/platform/x86/intel/ifs
    "misc intel_ifs_0: CPU(s) 12,76: test signature incorrect. Batch: 01 version: 0x10004",
    "misc intel_ifs_2: CPU(s) 12,76: Failed signature check",
    # drivers/edac
    "[Hardware Error]: Uncorrected, software restartable error.",
    "[Hardware Error]: System Fatal error.",
    "EDAC DEVICE1: UE: xgene-edac instance: l2c0 block: l2c_0 count: 1 'xgene-edac-pmd'",
    "Kernel panic - not syncing: UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1)",
    "Kernel panic - not syncing: EDAC l2c: UE instance: l2c0 block l2c_0 count: 1 'L2'",
    # Arm
    "Kernel panic - not syncing: Asynchronous SError Interrupt",
    "GHES GHES.3: [Hardware Error]: GHES: python:312: synchronous unrecoverable error (SIGBUS)",
    # POWER, in new and old words
    "MCE: CPU12: machine check (Severe)  UE Load/Store DAR: 00007fff91230000 paddr: 0000001234500000 [Not recovered]",
    "MCE: CPU12: machine check (Severe) Host UE Load/Store DAR: 00007fff91230000 [Recovered]",
    "MCE: CPU12: machine check (Severe)  SLB Multihit DAR: c000000080000000 [Not recovered]",
    "Severe Machine check interrupt [Not recovered]",
    "Machine check interrupt unrecoverable: MSR(RI=0)",
    "Fatal Hypervisor Maintenance interrupt [Not recovered]",
    "opal: Hardware platform error: Unrecoverable Machine Check exception",
    "\tNPU checkstop on chip 0",
    # s390
    "mcck: Terminating task because of machine malfunction (code 0x4000000000000000).",
    "Kernel panic - not syncing: mcck: Attempting to kill init!",
]

OTHERS = [
    ("Memory failure: buffer overflow when queuing memory failure at 0x1234", "ERROR memory_lost"),
    ("smpboot: do_boot_cpu failed(-1) to wakeup CPU#33", "WARNING cpu_not_started"),
    ("CPU33 failed to report alive state", "WARNING cpu_not_started"),
    ("CPU5: failed to come online", "WARNING cpu_not_started"),
    ("CPU5: is stuck in kernel", "WARNING cpu_not_started"),
    ("CPU12: died during early boot", "WARNING cpu_not_started"),
    ("CPU12: will not boot", "WARNING cpu_not_started"),
    ("smp: failed starting cpu 12 (rc -2)", "WARNING cpu_not_started"),
    ("Processor 12 is stuck.", "WARNING cpu_not_started"),
    ("CPU:0, Error:cbb-fabric, Errmon:2", "WARNING hardware_interrupt"),
    ("Severe Hypervisor Maintenance interrupt [Recovered]", "WARNING hardware_interrupt"),
    ("Recoverable hardware error detected", "WARNING firmware_error"),
    # It does not say which: the lines of the record before it do.
    ("GHES: Fatal hardware error but panic disabled", "WARNING firmware_error"),
    ("Kernel panic - not syncing: Fatal hardware error!", "WARNING kernel_oops"),
    ("reboot: HARDWARE PROTECTION shutdown (Temperature too high)", "WARNING too_hot"),
    ("High ambient temperature detected. Check RTAS error log for details", "WARNING too_hot"),
    # The kernel
    ("watchdog: CPU 3 Hard LOCKUP", "WARNING cpu_locked_up"),
    (
        "smp: csd: Detected non-responsive CSD lock (#1) on CPU#12, waiting 5000000012 ns for CPU#45 do_flush_tlb_all",
        "WARNING cpu_stalled",
    ),
    ("Fixing recursive fault but reboot is needed!", "WARNING kernel_oops"),
    ("list_del corruption. prev->next should be ffff8881, but was dead000000000100. (prev=f)", "WARNING kernel_oops"),
    ("pagealloc: single bit error", "WARNING kernel_oops"),
    ("get_swap_device: Bad swap file entry 3ffc000000000", "WARNING kernel_oops"),
    ("BUG kmalloc-64 (Tainted: P           OE     ): Poison overwritten", "WARNING kernel_oops"),
    ("vmalloc_node_range for size 8192 failed: Address range restricted to 0xa - 0xb", "WARNING kernel_memory_full"),
    (
        "modprobe: vmalloc error: size 4194304, page order 0, failed to allocate pages, mode:0xcc2(GFP_KERNEL), "
        "nodemask=(null)",
        "WARNING memory_short",
    ),
    (
        "percpu: allocation failed, size=8192 align=16 atomic=0, failed to allocate new chunk",
        "WARNING memory_short",
    ),
    ("Read-error on swap-device (259:0:123456)", "WARNING disk_error"),
    ("Buffer I/O error on dev pmem0, logical block 0, async page read", "WARNING disk_error"),
    # PCIe, before and after 5.2
    ("dpc 0000:00:03.2:pcie008: DPC containment event, status:0x1f01 source:0x0000", "ERROR pcie_link_failed"),
    ("pcieport 0000:00:03.0: AER: Device recovery failed", "ERROR pcie_link_failed"),
    ("EEH: dead PHB#4 detected, location: U78D2.ND1", "ERROR pcie_link_failed"),
    ("EEH: Unrecoverable slot failure on PHB#4-PE#1", "ERROR pcie_link_failed"),
    ("EEH: Fenced PHB#4 detected, location: U78D2.ND1", "WARNING pcie_device_removed"),
    ("pciehp 0000:00:1c.0:pcie004: Slot(4): Link Down", "WARNING pcie_device_removed"),
    ("pcieport 0000:00:01.0: pciehp: Slot(1): Power fault", "WARNING pcie_device_removed"),
    ("pcieport 0000:00:01.0: pciehp: Slot(1): Cannot train link: status 0x1001", "WARNING pcie_device_removed"),
    ("pci 0000:3b:00.0: not ready 65535ms after bus reset; giving up", "WARNING pcie_device_removed"),
    ("pci 0000:3b:00.0: not ready after 60000ms; giving up", "WARNING pcie_device_removed"),
    (
        "pcieport 0000:3a:00.0: can't change power state from D3cold to D0 (config space inaccessible)",
        "WARNING pcie_device_removed",
    ),
    (
        "hv_pci 47505500-0001-0000-3130-444531334632: PCI Pass-through VSP failed D0 Entry with status c0000035",
        "WARNING device_error",
    ),
    (
        "hv_pci 47505500-0001-0000-3130-444531334632: Need 0x8000000000 of high MMIO space. Consider reconfiguring "
        "the VM.",
        "WARNING device_error",
    ),
    ("cxl_pci 0000:d0:00.0: mem0: frozen state error detected, disable CXL.mem", "WARNING memory_error"),
    ("cxl_region region0: failed to activate, re-commit region and retry", "WARNING memory_error"),
    # IOMMUs
    ("AMD-Vi: Command buffer timeout", "WARNING iommu_timeout"),
    ("DMAR: VT-d detected Invalidation Queue Error: Reason 6", "WARNING iommu_timeout"),
    (
        "arm-smmu-v3 arm-smmu-v3.0.auto: CMD_SYNC timeout at 0x00000a3f [hwprod 0x00000a3f, hwcons 0x00000a3e]",
        "WARNING iommu_timeout",
    ),
    (
        "arm-smmu-v3 arm-smmu-v3.0.auto: CMDQ error (cons 0x03000a3f): ATC invalidate timeout",
        "WARNING iommu_timeout",
    ),
    ("arm-smmu 12000000.iommu: TLB sync timed out -- SMMU may be deadlocked", "WARNING iommu_timeout"),
    ("arm-smmu 12000000.iommu: Unexpected global fault, this could be serious", "WARNING iommu_fault"),
    (
        "acpi NVDA200C:00: tegra241_cmdqv: unexpected error reported. vintf_map: 0000000000000001, vcmdq_map 1",
        "WARNING iommu_fault",
    ),
    ("virtio_iommu virtio1: page fault from EP 8 at 0x1000 [RW ]", "WARNING iommu_fault"),
]

HARMLESS = [
    # Corrected, or over.
    "Harmless Hypervisor Maintenance interrupt [Recovered]",
    "Severe Machine check interrupt [Recovered]",
    "MCE: CPU12: machine check (Warning)  SLB Multihit DAR: c00800000 [Recovered]",
    "RAS: Soft-offlining pfn: 0x1c2d3e",
    "Soft offline: 0x1234: page already poisoned",
    "mce: CPU12 BANK7 CMCI storm subsided",
    "mce: CPU3: Package temperature is above threshold, cpu clock is throttled (total events = 5)",
    "DMAR: Invalidation Time-out Error (ITE) cleared",
    "pcieport 0000:00:01.0: pciehp: Slot(1): Link Down/Up ignored (recovered by DPC)",
    "smp: csd: CSD lock (#1) got unstuck on CPU#12, CPU#45 released the lock.",
    "EEH: PHB#4 informative error detected, location: U78D2.ND1",
    # Asked for, or nobody's fault.
    "Kernel panic - not syncing: sysrq triggered crash",
    "misc intel_ifs_0: CPU(s) 12,76: SCAN operation did not start. Other thread could not join.",
    "psci: CPU5 killed (polled 0 ms)",
    "CPU4: failed to boot: -22",
    "BUG nvidia_stack_cache (Tainted: P           OE     ): Objects remaining on __kmem_cache_shutdown()",
    # At the limit of a container, an absurd size, and what is tried again.
    "python: vmalloc error: size 4194304, page order 0, failed to allocate pages, mode:0x4dc2(GFP_KERNEL_ACCOUNT)",
    "prog: vmalloc error: size 18446744073709547520, exceeds total pages, mode:0xdc0(GFP_KERNEL), nodemask=(null)",
    "percpu: allocation failed, size=16 align=8 atomic=1, atomic alloc failed",
    # Starts.
    "CPU5: Booted secondary processor 0x0000000005 [0x410fd4f0]",
    "EDAC DEVICE0: Giving out device to module highbank_l2_edac controller l2cache: DEV l2c (INTERRUPT)",
    "dpc 0000:00:03.2:pcie008: DPC error containment capabilities: Int Msg #0, RPExt+ PoisonedTLP+ SwTrigger+",
    "arm-smmu-v3 arm-smmu-v3.0.auto: no priq irq - PRI will be broken",
    "hv_pci 47505500-0001-0000-3130-444531334632: PCI VMBus probing: Using version 0x10004",
    "cxl_pci 0000:d0:00.0: No component registers (-19)",
    # No job needs a radio.
    "iwlwifi 0000:03:00.0: not ready 65535ms after resume; giving up",
]


@cases("line", HARDWARE_ERRORS)
def test_an_error_of_memory_or_a_processor_is_one_on_every_architecture(line):
    """Also if the kernel panics because of it: then the hardware decides, and not the panic."""
    event = told_by(line)
    assert f"{event.severity} {event.code}" == "ERROR machine_check_uncorrected"


@cases(("line", "expected"), OTHERS)
def test_faults_of_the_host_are_told(line, expected):
    """Severity and code of each."""
    event = told_by(line)
    assert f"{event.severity} {event.code}" == expected


@cases("line", HARMLESS)
def test_what_is_corrected_asked_for_or_only_told_is_no_fault(line):
    """Although the same parts speak."""
    assert told_by(line) is None


def test_corrected_errors_of_a_cache_are_counted():
    """As those of memory are."""
    event = told_by("EDAC DEVICE1: CE: l3c instance: l3c0 block: l3c_0 count: 2 'l3c'")
    assert f"{event.severity} {event.code}" == "INFO machine_check_corrected"


@cases(
    ("line", "expected"),
    [
        (
            "pciehp 0000:00:1c.0:pcie004: Slot(4): Card present",
            EventEnd(("pcie_device_removed",), Action.INSPECT_HARDWARE, "0000:00:1c.0"),
        ),
        (
            "pcieport 0000:00:1c.0: pciehp: Slot(4): Card present",
            EventEnd(("pcie_device_removed",), Action.INSPECT_HARDWARE, "0000:00:1c.0"),
        ),
    ],
)
def test_a_card_that_is_back_ends_its_loss(line, expected):
    """In the words of old and of new kernels."""
    assert told_by(line) == expected
