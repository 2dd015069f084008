"""What disks, their controllers, arrays, file systems and the clients of file servers say, and what it means.

The lines were written after the format strings in the source of Linux 6.12, OpenZFS and Lustre.
"""

import pytest
from tests.cases import cases
from tests.plugins.checks.kernel_log.told import told_by

from muster import Action
from muster_plugins.checks.kernel_log.events import EventEnd

LEVEL_INFO = 6

FILE_SYSTEMS = [
    (
        "LDISKFS-fs error (device dm-3): ldiskfs_lookup:1585: inode #2: comm ll_ost_io: deleted inode referenced: 12",
        "file_system_lost ERROR",
    ),
    ("EXT2-fs (sdb1): error: remounting filesystem read-only", "file_system_lost ERROR"),
    ("EXT2-fs (sdb1): error: ext2_get_inode: bad inode number: 1234", "file_system_lost ERROR"),
    ("FAT-fs (sda1): Filesystem has been set read-only", "file_system_lost ERROR"),
    ("exFAT-fs (sdb1): Filesystem has been set read-only", "file_system_lost ERROR"),
    ("OCFS2: abort (device sdb1): ocfs2_start_trans: Detected aborted journal", "file_system_lost ERROR"),
    ("XFS (sdc1): ondisk log corrupt, shutting down fs!", "file_system_lost ERROR"),
    (
        "ceph: [1234-abcd 4567]: error decoding mdsmap -22. Shutting down mount.",
        "file_system_lost ERROR",
    ),
    (
        "WARNING: MMP writes to pool 'tank' have not succeeded in over 60000 ms; suspending pool. Hrtime 1234",
        "file_system_lost ERROR",
    ),
    ("XFS (dm-1): AGF corruption. Please run xfs_repair.", "file_system_corrupt ERROR"),
    (
        "XFS (dm-1): Refcount BTree record corruption in AG 3 detected at xfs_refcount_get_rec+0x12/0x40!",
        "file_system_corrupt ERROR",
    ),
    (
        "OCFS2: ERROR (device dm-1): ocfs2_validate_inode_block: Invalid dinode #12: signature = INODE01",
        "file_system_corrupt ERROR",
    ),
    (
        "On-disk corruption discovered. Please run fsck.ocfs2 once the filesystem is unmounted.",
        "file_system_corrupt ERROR",
    ),
    (
        "NILFS error (device sdb1): nilfs_bmap_last_key: broken bmap (inode number=4)",
        "file_system_corrupt ERROR",
    ),
    ("ERROR: (device sdc1): xtSearch: XT_GETPAGE: xtree page corrupt", "file_system_corrupt ERROR"),
    ("XFS (dm-3): Failing async write on buffer block 0x123. Retrying async write.", "file_system_write_lost WARNING"),
    (
        "XFS (dm-3): page discard on page 00000000deadbeef, inode 0x85, pos 4096.",
        "file_system_write_lost WARNING",
    ),
    (
        "EXT4-fs (dm-0): failed to convert unwritten extents to written extents -- potential data loss!  (inode 12, "
        "error -5)",
        "file_system_write_lost WARNING",
    ),
    (
        "VFS: Dirty inode writeback failed for block device dm-3 (err=-5).",
        "file_system_write_lost WARNING",
    ),
    (
        "WARNING: ZFS read log block error 52, dataset tank/x, seq 0x12",
        "file_system_write_lost WARNING",
    ),
    ("XFS (dm-3): log mount/recovery failed: error -117", "file_system_damaged WARNING"),
    ("EXT4-fs (sda1): error loading journal", "file_system_damaged WARNING"),
    ("JBD2: journal recovery failed", "file_system_damaged WARNING"),
    ("ntfs3: sda2: $Bitmap is corrupted.", "file_system_damaged WARNING"),
    (
        "PANIC: zfs: rt=spa=tank: removing nonexistent segment from range tree (offset=1000 size=1000)",
        "kernel_oops WARNING",
    ),
]

FILE_SERVERS = [
    ("lockd: server 10.0.0.1 not responding, still trying", "server_not_responding WARNING"),
    ("ceph: [1234-abcd 4567]: mds0 hung", "server_not_responding WARNING"),
    ("ceph: [1234-abcd 4567]: mds0 caps stale", "server_not_responding WARNING"),
    ("ceph: mds0 session blocklisted", "server_not_responding WARNING"),
    ("LustreError: 2345:0:(file.c:12:ll_file_open()) LBUG", "server_error WARNING"),
    ("dlm: node 1: socket error sending to node 2 at 10.0.0.2, dport 21064, sk_err=110/110", "server_error WARNING"),
    ("o2hb: node 1 hb write hung for 60s on region A1B2 (dm-3).", "server_error WARNING"),
]

DISKS = [
    (
        "I/O error, dev xvdf, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
        "disk_error WARNING",
    ),
    ("Buffer I/O error on dev rbd2, logical block 145, async page read", "disk_error WARNING"),
    (
        "recoverable transport error, dev sdc, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
        "disk_error WARNING",
    ),
    ("timeout error, dev sdc, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "disk_error WARNING"),
    (
        "critical space allocation error, dev dm-3, sector 2048 op 0x1:(WRITE) flags 0x0 phys_seg 1 prio class 2",
        "disk_error WARNING",
    ),
    ("nvme nvme0: IO queues not created", "disk_error WARNING"),
    (
        "sd 0:0:1:0: attempting task abort!scmd(0x00000000deadbeef), outstanding for 30512 ms & timeout 30000 ms",
        "disk_error WARNING",
    ),
    (
        " connection1:0: ping timeout of 5 secs expired, recv timeout 5, last rx 1, last ping 2, now 3",
        "disk_error WARNING",
    ),
    ("ata1.00: disable device", "disk_error WARNING"),
    ("ahci 0000:00:17.0: AHCI controller unavailable!", "disk_error WARNING"),
    ("mpt3sas_cm0: attempting host reset! scmd(0x00000000deadbeef)", "disk_error WARNING"),
    ("mpt3sas_cm0: coredump_state(0x4011)!", "disk_error WARNING"),
    ("mpi3mr0: controller is not present", "disk_error WARNING"),
    ("megaraid_sas 0000:64:00.0: cannot recover from previous reset failures", "disk_error WARNING"),
    (
        "megaraid_sas 0000:64:00.0: pending commands remain after waiting, will reset adapter scsi7.",
        "disk_error WARNING",
    ),
    ("megaraid_sas 0000:64:00.0: Controller is not OPERATIONAL,SCSI host:7", "disk_error WARNING"),
    (
        "megaraid_sas 0000:64:00.0: megasas_wait_for_outstanding:2886 killing adapter scsi0 disableOnlineCtrlReset 1",
        "disk_error WARNING",
    ),
    ("AAC0: adapter self-test failed.", "disk_error WARNING"),
    ("qla2xxx [0000:05:00.0]-8009:1: PCI/Register disconnect, exiting.", "disk_error WARNING"),
    ("qla2xxx [0000:05:00.0]-803a:1: Wait for hba online failed board disabled.", "disk_error WARNING"),
    ("md/raid:md0: read error NOT corrected!! (sector 7 on sdb1).", "array_degraded WARNING"),
    (
        "device-mapper: thin: 253:4: switching pool to out-of-data-space (queue IO) mode",
        "disk_error WARNING",
    ),
    ("device-mapper: cache: 253:4: switching cache to read-only mode", "disk_error WARNING"),
    # The 2 is no number of an error.
    ("device-mapper: crypt: dm-2: INTEGRITY AEAD ERROR, sector 12", "disk_error WARNING"),
    (
        "kvdo0:journalQ: Unrecoverable error, entering read-only mode: VDO Status: Bad",
        "disk_error WARNING",
    ),
    ("drbd r0/0 drbd0: Split-Brain detected but unresolved, dropping connection!", "disk_error WARNING"),
]

HARMLESS = [
    # A person or a program asked for it.
    "XFS (sdb1): User initiated shutdown received.",
    "XFS (sdb1): User initiated shutdown (0x1) detected at xfs_fs_goingdown+0x5d/0xb0 [xfs] (fs/xfs/xfs_fsops.c:495).  "
    "Shutting down filesystem.",
    "EXT4-fs (sda1): shut down requested (2)",
    "device-mapper: table: 253:3: multipath: error getting device (-EBUSY)",
    "device-mapper: ioctl: error adding target to table",
    "device-mapper: thin: 253:4: switching pool to write mode",
    "device-mapper: thin: 253:4: reached low water mark for data device: sending event.",
    "md: cannot remove active disk sdb1 from md0 ...",
    "block nbd0: shutting down sockets",
    # What not every disk or controller has, or how it describes itself.
    "device-mapper: table: 253:0: adding target device md0 caused an alignment inconsistency: physical_block_size=4096",
    "operation not supported error, dev sdb, sector 0 op 0x9:(WRITE_ZEROES) flags 0x800 phys_seg 0 prio class 2",
    "nvme0n1: Dataset Management(0x9) @ LBA 0, 256 blocks, Invalid Command Opcode (sct 0x0 / sc 0x1) DNR",
    "nvme nvme0: failed to set APST feature (2)",
    "nvme nvme0: bad crto:0 cap:800203028033fff",
    "nvme nvme0: unable to set dbbuf",
    "nvme nvme0: failed to set host mem (err 4, flags 0x1).",
    "nvme nvme0: Failed to configure AEN (cfg 300)",
    "nvme nvme1: use of /dev/disk/by-id/ may cause data corruption",
    "sd 6:0:0:0: [sdb] Asking for cache data failed",
    "sd 6:0:0:0: [sdb] Test WP failed, assume Write Enabled",
    "sd 6:0:0:0: [sdb] Missing header in MODE_SENSE response",
    "ata1.00: failed to get NCQ Send/Recv Log Emask 0x1",
    "ata1.00: READ LOG DMA EXT failed, trying PIO",
    "blkfront: xvda: discard op failed",
    "megaraid_sas 0000:5a:00.0: 4215 (733123s/0x0002/WARN) - Unexpected sense: PD 0c(e0xfc/s12) Path 5000, CDB: "
    "12 01 dc 01 1d 00, Sense: 5/24/00",
    # Starts and recoveries.
    "mpt3sas_cm0: sending message unit reset !!",
    "ahci 0000:00:17.0: Skipping global host reset",
    "sd 0:0:1:0: Power-on or device reset occurred",
    "LDISKFS-fs (sdc): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
    "FAT-fs (sda1): Volume was not properly unmounted. Some data may be corrupt. Please run fsck.",
    "XFS (dm-3): Torn write (CRC failure) detected at log block 0x1a0. Truncating head block from 0x1a8.",
    "XFS (sdb): Invalid superblock magic number",
    "dlm: Using TCP for communications",
    # Others have died, or have gone away.
    "rbd: rbd0: client1234 seems dead, breaking lock",
    "rpc-srv/tcp: nfsd: got error -32 when sending 140 bytes - shutting down socket",
]


@cases(("line", "expected"), FILE_SYSTEMS + FILE_SERVERS + DISKS)
def test_a_fault_of_storage_is_recognised(line, expected):
    """Its code and its severity."""
    event = told_by(line)
    assert f"{event.code} {event.severity}" == expected


@cases("line", HARMLESS)
def test_what_is_no_fault_of_storage_means_nothing(line):
    """Although words of failure are in most of these lines."""
    assert told_by(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "lockd: server 10.0.0.1 OK",
        "ceph: mds0 came back",
        "ceph: [1234-abcd 4567]: mds0 caps renewed",
        "ceph: [1234-abcd 4567]: mds0 reconnect success",
    ],
)
def test_a_file_server_that_is_back_answers(line):
    """Each client has words of its own for it."""
    assert told_by(line) == EventEnd(("server_not_responding",), Action.NONE, None)


def test_a_pool_of_disks_that_is_full_is_told_as_information():
    """The rule for it does not look at the kernel's level."""
    line = "device-mapper: thin: 253:4: switching pool to out-of-data-space (error IO) mode"
    assert told_by(line, level=LEVEL_INFO) == told_by(line) is not None
