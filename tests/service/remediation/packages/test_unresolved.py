"""What an installer could not resolve gives way in the packages that want what the others exclude."""

from __future__ import annotations

from service.remediation.packages.changes import fitting_changes
from tests.factories import ReadLog, whole_corpus
from tests.tables import each_row

PIP = """\
{at}ERROR: Cannot install {names} because these package versions have conflicting dependencies.
{at}
{at}The conflict is caused by:
"""


def pip(*reasons: str, at: str = "") -> str:
    """Give what pip prints of a conflict; a build of an image puts the time before each row."""
    head = PIP.format(at=at, names="some[extra]==1.0 and another")
    return head + "".join(f"{at}    {reason}\n" for reason in reasons)


WANTS = (
    "Because vllm==0.8.2 depends on transformers>=4.48.2 and peft[all]==0.6.0 depends on transformers==4.40.0"
)
UV = f"  \u00d7 No solution found when resolving dependencies:\n  \u2570\u2500\u25b6 {WANTS}.\n"


@each_row(
    ("log", "changes"),
    [
        (pip("axolotl 0.4.1 depends on peft==0.11.1", "trl[peft] 0.15.2 depends on transformers>=4.46.0",
             "The user requested transformers==4.40.0"),
         ["transformers>=4.46.0", "trl==0.12.2"]),
        (pip("sglang[srt] 0.3.6 depends on vllm<=0.7.2,>=0.6.3.post1",
             "The user requested (constraint) vllm==0.8.5", at="31.07 "),
         ["vllm<=0.7.2,>=0.6.3.post1"]),
        (UV, ["peft>=0.6.1"]),
        # Nothing of what it tells is against anything.
        (pip("trl 0.15.2 depends on transformers>=4.46.0", "peft 0.14.0 depends on transformers"), []),
        (pip("nobodys 1.0 depends on other==1", "unknown 2.0 depends on other>2"), []),
    ],
)  # fmt: skip
def test_that_what_wants_the_excluded_gives_way(log: str, changes: list[str], read: ReadLog) -> None:
    """The own pin first, then each package in the nearest release that wants what fits."""
    report = read(log)
    assert report.root is not None
    assert report.root.cause == "package-incompatible"
    made = fitting_changes("package-incompatible", report, whole_corpus())
    assert [f"{item.change.key}{item.change.to}" for item in made][: len(changes) or 9] == changes
