"""What prepares a job's surroundings and fails: a script's last word undoes it only where work was seen."""

from __future__ import annotations

from tests.factories import ReadLog
from tests.tables import each_row

UNKNOWN = 'Lmod has detected the following error:  The following module(s) are unknown: "cuda/99"\n'
NO_ENVIRONMENT = "EnvironmentNameNotFound: Could not find conda environment: quux\n"
NO_RELEASE = "Could not find a version that satisfies the requirement q (from versions: none)\n"
UNREACHED = (
    "WARNING: Retrying (Retry(total=0)) after connection broken by 'NameResolutionError(\"Failed to resolve "
    "'pypi.org' ([Errno -3] Temporary failure in name resolution)\")': /simple/q/\n"
)
WORK = "".join(f"step {step}/100 loss {3 - step / 50:.2f}\n" for step in range(10, 101, 10))


@each_row("failure", [UNKNOWN, NO_ENVIRONMENT, NO_RELEASE])
def test_no_work_was_seen(failure: str, read: ReadLog) -> None:
    """A script that says that it is done, where nothing worked, has not got over what it lacks."""
    report = read(f"Job started on n3\n{failure}Job finished at Mon Mar  2 11:20:44 CET 2026\n")
    assert report.root is not None
    assert report.root.cause == "package-missing"


@each_row("failure", [UNKNOWN, NO_ENVIRONMENT, NO_RELEASE])
def test_work_was_seen(failure: str, read: ReadLog) -> None:
    """Who went on and came to its last step did without."""
    assert read(f"Job started on n3\n{failure}{WORK}Training completed.\n").root is None


@each_row(
    ("text", "cause"),
    [
        ("Run cmd[9] failed with the following details.\n" + NO_RELEASE, "package-missing"),
        (UNREACHED + NO_RELEASE, "external-service-failed"),
        (
            "Run cmd[9] failed.\nERROR: ResolutionImpossible: for help visit the page\n",
            "package-incompatible",
        ),
    ],
)
def test_what_an_environment_lacks(text: str, cause: str, read: ReadLog) -> None:
    """What the tool said that Ray prepares an environment with is why that could not be made."""
    report = read(f"ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment.\n{text}")
    assert report.root is not None
    assert report.root.cause == cause
