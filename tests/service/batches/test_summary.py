"""What a batch's failures come to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from service.batches.summary import Summary
from service.batches.tally import MAX_GROUPS, MAX_NAMES, MAX_TIMES, summarize
from service.batches.trend import BatchSummaries
from service.persistence.store import Store
from service.schemas.diagnosis import Diagnosis, Evidence
from service.schemas.records import JobRecord
from service.settings import Settings
from tests.service.batches.outcomes import NOON, TITLES, answer, batch, healthy, job, line
from tests.service.factories import proposal
from tests.tables import each_row


def _summed(*jobs: JobRecord) -> Summary:
    return summarize(batch(), map(line, jobs), TITLES)


def test_that_jobs_of_one_crash_are_one_group() -> None:
    """A group counts its jobs, their nodes by name, their GPU hours and their time, and shows one of them."""
    found = _summed(
        job(1, answer(), nodes=2, node_names=("n1", "n2"), gpu_hours=8.0, ended=NOON),
        job(
            2, same_as="B-1", nodes=2, node_names=("n2", "n3"), gpu_hours=4.0, ended=NOON + timedelta(hours=2)
        ),
        job(3, same_as="B-1"),
    )
    (group,) = found.causes
    (crash,) = group.groups
    assert (crash.jobs, crash.nodes, crash.gpu_hours, crash.timed) == (3, 3, 12.0, 2)
    assert (crash.first, crash.last) == (NOON, NOON + timedelta(hours=2))
    assert (crash.representative.name, crash.headline) == ("job 1", "It is host-oom-kill")
    assert [(node.name, node.jobs) for node in found.nodes_hit] == [("n2", 2), ("n1", 1), ("n3", 1)]


def test_that_crashes_are_grouped_inside_their_cause() -> None:
    """Causes that cost most come first, and crashes within them likewise."""
    found = _summed(
        job(1, answer("nccl-network"), gpu_hours=1.0),
        job(2, answer(), gpu_hours=5.0),
        job(3, answer("nccl-network"), gpu_hours=2.0),
        job(4, same_as="B-3", gpu_hours=9.0),
    )
    assert [(group.cause, group.title, group.crashes, group.gpu_hours) for group in found.causes] == [
        ("nccl-network", "Network fault", 2, 12.0),
        ("host-oom-kill", "Host memory exhausted", 1, 5.0),
    ]
    assert [crash.representative.id for crash in found.causes[0].groups] == ["B-3", "B-1"]


def test_that_the_order_of_jobs_does_not_matter() -> None:
    """A job may come before the one that stands for its crash."""
    jobs = [job(1, answer()), job(2, same_as="B-1"), job(3, answer("nccl-network")), job(4, same_as="B-3")]
    assert {group.cause: group.jobs for group in _summed(*reversed(jobs)).causes} == {
        "host-oom-kill": 2,
        "nccl-network": 2,
    }


def test_that_what_did_not_die_is_no_loss() -> None:
    """Healthy jobs, failed triages and unfinished jobs are counted apart."""
    found = _summed(
        job(1, healthy(), gpu_hours=50.0),
        job(2, answer(), gpu_hours=1.0),
        job(3, state="failed", error="It hung"),
        job(4, state="failed", error="It hung"),
        job(5, state="cancelled"),
        job(6, state="queued"),
        job(7, same_as="B-99"),
    )
    assert (
        found.jobs,
        found.died.jobs,
        found.died.gpu_hours,
        found.healthy,
        found.untriaged,
        found.crashes,
    ) == (7, 1, 1.0, 1, 4, 1)
    assert found.states == {"done": 3, "failed": 2, "cancelled": 1, "queued": 1}
    assert found.verdicts == {"no-failure": 1, "diagnosed": 1}
    assert [(failure.error, failure.jobs, failure.example.id) for failure in found.failures] == [
        ("It hung", 2, "B-3")
    ]


def test_that_an_unknown_cause_is_a_group_of_its_own() -> None:
    """What is not known is counted under that, whatever was guessed."""
    found = _summed(
        job(1, answer("nccl-network", verdict="unknown")),
        job(2, answer("insufficient-evidence", verdict="unknown")),
    )
    assert [(group.cause, group.jobs) for group in found.causes] == [("insufficient-evidence", 2)]


SAVED: dict[str, tuple[list[tuple[int, Diagnosis, float | None]], tuple[str, object, int, int]]] = {
    "the most GPU hours win": (
        [(9, answer(changes=(proposal("a"),)), 1.0), (2, answer(changes=(proposal("b"),)), 50.0)],
        ("b", 128, 2, 1),
    ),
    "without hours, the most jobs win": (
        [(9, answer(changes=(proposal("a"),)), None), (2, answer(changes=(proposal("b"),)), None)],
        ("a", 128, 9, 1),
    ),
    "one setting with several values is one change": (
        [
            (2, answer(changes=(proposal("a", 1),)), None),
            (3, answer("nccl-network", changes=(proposal("a", 2),)), None),
            (4, answer(changes=(proposal("b"),)), None),
        ],
        ("a", 2, 5, 2),
    ),
    "only first changes count": (
        [(2, answer(changes=(proposal("a"), proposal("b"))), None)],
        ("a", 128, 2, 1),
    ),
    "what is not known saves nothing": (
        [
            (9, answer(verdict="unknown", changes=(proposal("a"),)), None),
            (2, answer(changes=(proposal("b"),)), None),
        ],
        ("b", 128, 2, 1),
    ),
}


@each_row(("crashes", "expected"), SAVED.values(), ids=SAVED)
def test_that_the_best_change_saves_most(
    crashes: list[tuple[int, Diagnosis, float | None]], expected: tuple[str, object, int, int]
) -> None:
    """It is the first change of the jobs that cost most together."""
    jobs = []
    for count, diagnosis, hours in crashes:
        first = job(len(jobs) + 1, diagnosis, gpu_hours=hours)
        jobs += [first, *(job(len(jobs) + 1 + more, same_as=first.id) for more in range(1, count))]
    best = _summed(*jobs).best_saving
    assert best is not None
    assert (best.key, best.to, best.jobs, best.values) == expected


def test_that_a_change_for_few_of_the_lost_hours_is_not_what_to_do_first() -> None:
    """It still stands among the changes; a tenth is a real share, and without hours no one job is."""
    for lost, comes_first in ((89.0, True), (91.0, False)):
        found = _summed(
            job(1, answer(changes=(proposal(),)), gpu_hours=10.0),
            job(2, answer("nccl-network"), gpu_hours=lost),
        )
        assert (found.best_saving is not None) is comes_first, lost
        assert len(found.changes) == 1
    untimed = _summed(job(1, answer(changes=(proposal(),))), job(2, answer("nccl-network")))
    assert untimed.best_saving is None


def test_that_what_can_be_changed_comes_first_and_jobs_are_named() -> None:
    """Within a cause and among causes, however much the others cost; each crash names its first jobs."""
    found = _summed(
        job(1, answer("nccl-network", checks=("Look at `ibstat`",)), gpu_hours=90.0),
        job(2, answer(), gpu_hours=50.0),
        job(3, answer(changes=(proposal(),)), gpu_hours=1.0),
        *(job(number, same_as="B-3") for number in range(4, 4 + 2 * MAX_NAMES)),
        job(90, healthy()),
        job(91, healthy().model_copy(update={"standing": "none"})),
    )
    assert [group.cause for group in found.causes] == ["host-oom-kill", "nccl-network"]
    crashes = [crash for group in found.causes for crash in group.groups]
    assert [(crash.change is not None, crash.step) for crash in crashes] == [
        (True, ""),
        (False, ""),
        (False, "Look at `ibstat`"),
    ]
    assert [member.name for member in crashes[0].members] == [f"job {number}" for number in range(3, 15)]
    assert [[one.name for one in named] for named in (found.healthy_jobs, found.open_jobs)] == [
        ["job 90"],
        ["job 91"],
    ]


def test_that_a_crash_has_its_line_and_how_sure_it_is() -> None:
    """What stands before the message of the line is left out."""
    root = Evidence(line=7, text="[rank3]: RuntimeError: shard 7 is empty", role="root", why="it says so")
    (group,) = _summed(job(1, answer(evidence=(root,), confidence=0.62))).causes
    (crash,) = group.groups
    assert (crash.proof, crash.confidence) == ("RuntimeError: shard 7 is empty", 0.62)


def test_that_what_is_not_known_comes_last() -> None:
    """However much it cost: the other causes can be acted on."""
    unknown = job(1, answer("insufficient-evidence", verdict="unknown", standing="none"), gpu_hours=90.0)
    found = _summed(unknown, job(2, answer(), gpu_hours=1.0), job(3, answer("nccl-network")))
    causes = ["host-oom-kill", "nccl-network", "insufficient-evidence"]
    assert [group.cause for group in found.causes] == causes


def test_that_no_change_saves_nothing() -> None:
    """Hardware is not mended by a setting."""
    assert _summed(job(1, answer())).best_saving is None


def test_that_only_so_many_crashes_are_listed() -> None:
    """What is beyond is counted; the costly ones are listed."""
    (group,) = _summed(
        *(job(number, answer(), gpu_hours=float(number)) for number in range(1, MAX_GROUPS + 6))
    ).causes
    assert (group.crashes, len(group.groups), group.more) == (MAX_GROUPS + 5, MAX_GROUPS, 5)
    assert group.groups[0].gpu_hours == MAX_GROUPS + 5


def test_that_a_log_tells_the_time_where_nobody_else_does() -> None:
    """The time of the root line stands for one that was not given; of another job's log it does not."""
    found = _summed(job(1, answer()), job(2, same_as="B-1"), job(3, answer(), ended=NOON))
    assert found.died.first is not None
    assert (found.died.first.hour, found.died.last) == (10, NOON)
    assert sum(sum(time.causes.values()) for time in found.times) == 2


@each_row("minutes", [0, 1, 59, 600, 60 * 24 * 3, 60 * 24 * 400])
def test_that_times_are_few_and_lose_no_job(minutes: int) -> None:
    """Deaths over any length of time are counted in a bounded number of stretches."""
    found = _summed(
        *(job(number, answer(), ended=NOON + timedelta(minutes=minutes * number / 9)) for number in range(10))
    )
    assert sum(time.causes.get("host-oom-kill", 0) for time in found.times) == 10
    assert len(found.times) <= MAX_TIMES + 1


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(
        st.sampled_from(["own", "same", "healthy", "failed", "queued", "cancelled", "orphan"]), max_size=30
    ),
    st.randoms(use_true_random=False),
)
def test_that_every_job_is_counted_once(kinds: list[str], rng: Random) -> None:
    """Whatever becomes of jobs, each is died, healthy, untriaged or not over."""
    jobs: list[JobRecord] = []
    for number, kind in enumerate(kinds, 1):
        own = [one.id for one in jobs if one.diagnosis is not None]
        fields: dict[str, object] = {"gpu_hours": rng.choice([None, 1.0])}
        if kind in ("failed", "queued", "cancelled"):
            jobs.append(job(number, **{**fields, "state": kind}))
        elif kind == "orphan" or (kind == "same" and not own):
            jobs.append(job(number, same_as="B-0", **fields))
        elif kind == "same":
            jobs.append(job(number, same_as=rng.choice(own), **fields))
        else:
            jobs.append(
                job(
                    number,
                    healthy() if kind == "healthy" else answer(rng.choice(["host-oom-kill", "nccl-network"])),
                    **fields,
                )
            )
    found = _summed(*jobs)
    assert (
        found.died.jobs + found.healthy + found.untriaged + found.states.get("queued", 0)
        == found.jobs
        == len(jobs)
    )
    assert sum(group.jobs for group in found.causes) == found.died.jobs
    assert Summary.model_validate_json(found.model_dump_json()) == found


def test_that_a_summary_is_made_once_and_a_trend_leads_to_it(make_settings: Callable[..., Settings]) -> None:
    """Of a batch that is over, the summary is kept; earlier batches of the same source make the trend."""
    made = make_settings()
    with Store.open(made) as store:
        for number, (source, state, count) in enumerate(
            (("folder", "done", 1), ("slurm", "done", 9), ("folder", "cancelled", 9), ("folder", "done", 3)),
            1,
        ):
            name = f"01K{number:023d}"
            jobs = [
                job(
                    at,
                    answer() if at == 1 else None,
                    same_as=None if at == 1 else f"{name}-1",
                    batch=name,
                    id=f"{name}-{at}",
                )
                for at in range(1, count + 1)
            ]
            store.batches.restore(
                batch(id=name, source=source, state=state, created=NOON + timedelta(days=number)), jobs
            )
            (made.home / "batches" / name).mkdir(parents=True)
        summaries = BatchSummaries(made, store)
        last = f"01K{4:023d}"
        first = summaries.of(last, "zh")
        kept = made.home / "batches" / last / "summary-2-zh.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert summaries.of(last, "zh") == first
        assert first.causes[0].title == "主机内存不足，进程被系统杀死"
        points = summaries.trend(last)
        assert [(point.jobs, point.causes) for point in points] == [
            (1, {"host-oom-kill": 1}),
            (3, {"host-oom-kill": 3}),
        ]
        assert len(summaries.trend(last, caller="somebody else")) == 1
        kept.write_text("{broken")
        assert summaries.of(last, "zh") == first


def test_that_a_running_batch_is_summed_up_anew(make_settings: Callable[..., Settings]) -> None:
    """What is not over is not kept."""
    made = make_settings()
    with Store.open(made) as store:
        store.batches.restore(
            batch(id="01K", state="running"),
            [
                job(1, answer(), batch="01K", id="01K-1"),
                job(2, batch="01K", id="01K-2", state="queued", finished=None),
            ],
        )
        (made.home / "batches" / "01K").mkdir(parents=True)
        found = BatchSummaries(made, store).of("01K")
        assert (found.died.jobs, found.state) == (1, "running")
        assert list((made.home / "batches" / "01K").iterdir()) == []
