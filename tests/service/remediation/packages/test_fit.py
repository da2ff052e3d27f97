"""A package's change as this job can have it: its Python, and a source copy that it imports."""

from __future__ import annotations

from ingest.logs.report import CrashReport
from ingest.logs.stacks.stack import Frame
from service.remediation.packages.fit import fitting_installs, python_version, source_copy
from tests.service.factories import failed, proposal, report
from tests.tables import each_row


def under(*files: str, launches: tuple[str, ...] = ()) -> CrashReport:
    """Make a job that failed in calls of these files."""
    frames = tuple(Frame(file, 9, "forward") for file in files)
    return report(failed(frames=frames), launches=launches)


OLD = under("/usr/local/lib/python3.8/dist-packages/peft/config.py")
NEW = under("/env/lib/python3.11/site-packages/peft/config.py")


@each_row(
    ("job", "present", "wanted", "to"),
    [
        (OLD, None, ">=0.14.0", "==0.13.2"),
        (OLD, "0.6.0", ">=0.14.0", "==0.13.2"),
        (NEW, None, ">=0.14.0", ">=0.14.0"),
        (OLD, None, ">=0.7", ">=0.7"),
        (OLD, None, "install", "install"),
        (under(), None, ">=0.14.0", ">=0.14.0"),
        (OLD, "0.13.2", ">=0.14.0", "peft>=0.14.0, which wants Python >=3.9.0: this job runs 3.8"),
    ],
)
def test_a_release_that_the_python_does_not_run_gives_way(
    job: CrashReport, present: str | None, wanted: str, to: str
) -> None:
    """The newest release that runs is offered, or a newer Python where the job has that one."""
    change = proposal("peft", wanted, kind="package", framework="pip", from_=present)
    (found,) = fitting_installs([change], job, "en")
    assert found.to == to


def test_a_release_that_a_case_tells_of_gives_no_way() -> None:
    """What the case is about is wrong in the older ones, too."""
    change = proposal("peft", ">=0.14.0", kind="package", framework="pip", from_case="peft/case")
    (found,) = fitting_installs([change], OLD, "en")
    assert found.to == "peft>=0.14.0, which wants Python >=3.9.0: this job runs 3.8"


def test_other_changes_are_left_as_they_are() -> None:
    """A setting called as a package is none."""
    change = proposal("peft", ">=0.14.0")
    assert fitting_installs([change], OLD, "en") == [change]


@each_row(
    ("job", "package", "at"),
    [
        (under("/w/deps/DeepSpeed/deepspeed/checkpoint/zero.py"), "deepspeed", "/w/deps/DeepSpeed"),
        (under("/w/vllm-main/vllm/engine/llm.py"), "vllm", "/w/vllm-main"),
        (under("/env/lib/python3.11/site-packages/vllm/engine/llm.py"), "vllm", ""),
        # A project of another name may have a module that is called so.
        (under("/home/me/project/vllm/engine/llm.py"), "vllm", ""),
        (under("/w/a/vllm/vllm/x.py", "/w/b/vllm/vllm/x.py"), "vllm", ""),
        (under("vllm/vllm/x.py"), "vllm", ""),
        # What a log holds in place of a path is none that one pastes.
        (under("/w/$(reboot)/vllm/vllm/x.py"), "vllm", ""),
        (under("/w/../vllm/vllm/x.py"), "vllm", ""),
    ],
)
def test_a_source_copy_is_told_by_its_folder(job: CrashReport, package: str, at: str) -> None:
    """What is imported from a clone is changed in the clone; what is installed is not."""
    assert source_copy(package, job) == at
    change = proposal(package, ">=9", kind="package", framework="pip")
    (found,) = fitting_installs([change], job, "en")
    assert (at in str(found.to) and found.to != ">=9") if at else found.to == ">=9"


@each_row(
    ("job", "version"),
    [
        (OLD, "3.8.99"),
        (under(launches=('{"os": "Linux", "python": "3.9.18"}\nwandb-metadata.json',)), "3.9.99"),
        (under(launches=('{"python": "CPython 3.12.1"}\nwandb-metadata.json',)), "3.12.99"),
        (under(launches=("dependencies:\n  - python=3.10\n  - pip\nenv.yml",)), "3.10.99"),
        (under("/a/lib/python3.8/x.py", "/b/lib/python3.9/y.py"), None),
        (under(), None),
    ],
)
def test_the_python_of_a_job_is_read_where_it_shows(job: CrashReport, version: str | None) -> None:
    """Paths of calls come before what files say; two that differ tell none."""
    found = python_version(job)
    assert (str(found) if found else None) == version
