"""A folder that is to have room lies on the roomiest local disk that the log itself lists."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

HEADER = "Filesystem      Size  Used Avail Use% Mounted on\n"
ROOT = "/dev/sda2        90G   70G   15G  83% /\n"
SCRATCH = "/dev/md0        3.5T  500G  2.9T  15% /scratch\n"
SHARED = "fs1:/export     200T  100T  100T  50% /lake\n"
FULL = (
    "(raylet, ip=10.0.0.7) [2026-11-24 00:14:06,112 E 70113 70151] (raylet) file_system_monitor.cc:116: "
    "{folder}/session_2026-11-23_23-58-02_118834_40211 is over 95% full, available space: 1.91 GB; capacity: "
    "90.0 GB. Object creation will fail if spilling is required.\n"
    "ray.exceptions.OutOfDiskError: Local disk is full\n"
)
START = "ray start --head --temp-dir {folder} --object-store-memory 70000000000 --num-cpus 32\n"


@each_row(
    ("disks", "folder", "to"),
    [
        (ROOT + SCRATCH + SHARED, "/tmp/ray", "/scratch/ray"),
        ("/dev/sda2   94371840  73400320  15728640  83% /\n" + SCRATCH, "/tmp/own", "/scratch/own"),
        # Nothing has more room, only a network's folder, or where it lies now.
        (ROOT, "/tmp/ray", ""),
        (ROOT + SHARED, "/tmp/ray", ""),
        (ROOT + SCRATCH, "/scratch/ray", ""),
        (ROOT + "/dev/sdb1   30G  10G  20G  33% /data\n", "/tmp/ray", ""),
        # The memory that it lies in has more room than the disk.
        (ROOT + "tmpfs   900G  1G  899G  1% /tmp\n/dev/sdb1   300G  1G  299G  1% /data\n", "/tmp/ray", ""),
    ],
)
def test_that_the_log_s_own_disks_give_the_folder(triage: Triage, disks: str, folder: str, to: str) -> None:
    log, start = HEADER + disks + FULL.format(folder=folder), START.format(folder=folder)
    made = explained(triage, log, ConfigFile("start.sh", start))
    assert made.cause == "disk-full"
    first = made.changes[0]
    assert first.key == "--temp-dir"
    assert not to or first.to == to
    assert (f"+{start.replace(folder, to)}" in (made.patch or "")) is bool(to)


def test_that_a_store_which_spills_gets_no_smaller(triage: Triage) -> None:
    """What no longer fits into memory is what fills the disk."""
    log, start = HEADER + ROOT + FULL.format(folder="/tmp/ray"), START.format(folder="/tmp/ray")
    made = explained(triage, log, ConfigFile("start.sh", start))
    assert "--object-store-memory" not in {change.key for change in made.changes}
