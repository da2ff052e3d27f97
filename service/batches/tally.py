"""Counting a batch's jobs: by cause and crash, what they cost, and which change would have saved most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from corpus.schema import Language
from service.batches.summary import (
    CauseGroup,
    Cost,
    CrashGroup,
    FailureReason,
    JobName,
    ModelUse,
    NodeCount,
    Saving,
    Summary,
    TimeBin,
)
from service.persistence.outcome_summaries import JobSummaryRow, OutcomeSummary
from service.persistence.rows import job_id
from service.schemas.diagnosis import UNKNOWN_CAUSE, Engine, ProposedChange
from service.schemas.records import BatchRecord, JobState

# How much is listed; what is beyond is counted.
MAX_GROUPS = 20
MAX_CHANGES = 10
MAX_FAILURES = 20
MAX_NODES = 10
MAX_TIMES = 48
# Jobs of one crash, or without a failure, that are named.
MAX_NAMES = 12
# Seconds of a stretch of time, the shortest that gives few enough.
_STEPS = (60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86_400, 7 * 86_400, 30 * 86_400)

Word = TypeVar("Word", bound=str)


@dataclass
class _Tally:
    """Jobs as they are counted."""

    jobs: int = 0
    node_count: int = 0
    gpu_hours: float = 0.0
    timed: int = 0
    first: datetime | None = None
    last: datetime | None = None
    names: Counter[str] = field(default_factory=Counter)

    def add(self, job: JobSummaryRow, when: datetime | None) -> None:
        """Count a job."""
        self.jobs += 1
        self.node_count += job.nodes or 0
        for name in job.node_names:
            self.names[name] += 1
        if job.gpu_hours is not None:
            self.gpu_hours += job.gpu_hours
            self.timed += 1
        if when is not None:
            self._stretch(when, when)

    def _stretch(self, first: datetime, last: datetime) -> None:
        self.first = first if self.first is None or first < self.first else self.first
        self.last = last if self.last is None or last > self.last else self.last

    def merge(self, other: _Tally) -> None:
        """Count what another one counted."""
        self.jobs += other.jobs
        self.node_count += other.node_count
        for name, jobs in other.names.items():
            self.names[name] += jobs
        self.gpu_hours += other.gpu_hours
        self.timed += other.timed
        if other.first is not None and other.last is not None:
            self._stretch(other.first, other.last)

    def cost(self) -> Cost:
        """Give what was counted."""
        return Cost(
            jobs=self.jobs,
            nodes=len(self.names) or self.node_count or None,
            gpu_hours=round(self.gpu_hours, 2) if self.timed else None,
            timed=self.timed,
            first=self.first,
            last=self.last,
        )

    def hardest_hit(self, count: int) -> tuple[NodeCount, ...]:
        """Give the nodes that most of the jobs ran on."""
        return tuple(NodeCount(name=name, jobs=jobs) for name, jobs in self.names.most_common(count))


@dataclass
class _Crash(_Tally):
    """The jobs of one answer; `answer` comes with the job whose own it is, which may come later than others.

    Jobs of one crash whose own files differ have answers of their own; they have the same `fingerprint`.
    """

    number: int = 0
    answer: OutcomeSummary | None = None
    fingerprint: str = ""
    name: str = ""
    # The times of its jobs, which belong to no cause before the answer is there.
    times: list[datetime] = field(default_factory=list)
    members: list[tuple[int, str]] = field(default_factory=list)

    def enter(self, *jobs: tuple[int, str]) -> None:
        """Note jobs by number and name; of many, the first by their numbers stay."""
        self.members += jobs
        if len(self.members) > 2 * MAX_NAMES:
            self.members = sorted(self.members)[:MAX_NAMES]

    @property
    def key(self) -> object:
        """What is equal for jobs of one crash; where no line tells of one, each is its own."""
        return self.fingerprint or self.number


class SummaryTables:
    """Counts a batch's jobs one by one, in any order."""

    def __init__(self, batch: str) -> None:
        self._batch = batch
        self._crashes: dict[int, _Crash] = {}
        self._failures: Counter[str] = Counter()
        self._examples: dict[str, JobName] = {}
        self._states: Counter[JobState] = Counter()

    def add(self, job: JobSummaryRow) -> None:
        """Count a job."""
        self._states[job.state] += 1
        if job.state == "failed":
            self._failures[job.error] += 1
            self._examples.setdefault(job.error, JobName(id=job_id(self._batch, job.number), name=job.name))
        elif job.state == "done":
            self._count(job)

    def _count(self, job: JobSummaryRow) -> None:
        key = job.same_as or job.number
        crash = self._crashes.get(key) or self._crashes.setdefault(key, _Crash(number=key))
        if job.gist is not None:
            crash.answer, crash.fingerprint, crash.name = job.gist, job.fingerprint, job.name
        when = job.died_at
        crash.add(job, when)
        crash.enter((job.number, job.name))
        if when is not None:
            crash.times.append(when)

    def summary(self, batch: BatchRecord, titles: Mapping[str, str], language: Language = "en") -> Summary:
        """Give what was counted; `titles` are the causes' own words."""
        answered = [crash for crash in self._crashes.values() if crash.answer is not None]
        died = [crash for crash in answered if _cause(crash)]
        whole = _Tally()
        for crash in died:
            whole.merge(crash)
        failed = self._failures.total()
        well = [crash for crash in answered if crash.answer and crash.answer.ended_well]
        without_end = [
            crash for crash in answered if crash.answer and not _cause(crash) and not crash.answer.ended_well
        ]
        lost = sum(crash.jobs for crash in self._crashes.values() if crash.answer is None)
        return Summary(
            batch=batch.id,
            name=batch.name,
            source=batch.source,
            state=batch.state,
            created=batch.created,
            finished=batch.finished,
            language=language,
            jobs=sum(self._states.values()),
            states=dict(self._states),
            left_out=batch.left_out,
            verdicts=_counted((crash.answer.verdict, crash.jobs) for crash in answered if crash.answer),
            actions=_counted((crash.answer.action, crash.jobs) for crash in died if crash.answer),
            died=whole.cost(),
            healthy=sum(crash.jobs for crash in well),
            open_ends=sum(crash.jobs for crash in without_end),
            healthy_jobs=_names(well, self._batch),
            open_jobs=_names(without_end, self._batch),
            untriaged=failed + lost + self._states["cancelled"],
            crashes=len({crash.key for crash in died}),
            causes=_causes(died, titles, batch.id),
            changes=_savings(died),
            failures=(
                tuple(
                    FailureReason(error=error, jobs=jobs, example=self._examples[error])
                    for error, jobs in self._failures.most_common(MAX_FAILURES)
                )
            ),
            nodes_hit=whole.hardest_hit(MAX_NODES),
            times=_bins(died),
            model=_model_use([crash.answer for crash in answered if crash.answer]),
        )


def summarize(
    batch: BatchRecord, jobs: Iterable[JobSummaryRow], titles: Mapping[str, str], language: Language = "en"
) -> Summary:
    """Sum up a batch's jobs."""
    tables = SummaryTables(batch.id)
    for job in jobs:
        tables.add(job)
    return tables.summary(batch, titles, language)


def _cause(crash: _Crash) -> str:
    """Give the cause that a crash is counted under; the empty text where nothing failed."""
    answer = crash.answer
    if answer is None or answer.verdict == "no-failure":
        return ""
    return UNKNOWN_CAUSE if answer.verdict == "unknown" else answer.cause or UNKNOWN_CAUSE


def _counted(pairs: Iterable[tuple[Word, int]]) -> dict[Word, int]:
    counts: Counter[Word] = Counter()
    for word, jobs in pairs:
        counts[word] += jobs
    return dict(counts.most_common())


def _worth(cost: Cost) -> tuple[float, int]:
    return cost.gpu_hours or 0.0, cost.jobs


def _causes(died: Sequence[_Crash], titles: Mapping[str, str], batch: str) -> tuple[CauseGroup, ...]:
    by_cause: dict[str, list[_Crash]] = defaultdict(list)
    for crash in died:
        by_cause[_cause(crash)].append(crash)
    groups = [
        _cause_group(cause, crashes, titles.get(cause, cause), batch) for cause, crashes in by_cause.items()
    ]
    # What can be acted on comes first; what is not known comes last, however much it cost.
    return tuple(
        sorted(
            groups,
            key=lambda group: (
                group.cause != UNKNOWN_CAUSE,
                any(crash.change is not None for crash in group.groups),
                *_worth(group),
            ),
            reverse=True,
        )
    )


def _names(crashes: Iterable[_Crash], batch: str) -> tuple[JobName, ...]:
    """Name the first jobs of crashes, in the order of their numbers."""
    first = sorted(member for crash in crashes for member in crash.members)[:MAX_NAMES]
    return tuple(JobName(id=job_id(batch, number), name=name) for number, name in first)


def _cause_group(cause: str, answered: Sequence[_Crash], title: str, batch: str) -> CauseGroup:
    whole = _Tally()
    for crash in answered:
        whole.merge(crash)
    crashes = _joined(answered)
    ranked = sorted(
        crashes,
        key=lambda crash: (bool(crash.answer and crash.answer.change), crash.gpu_hours, crash.jobs),
        reverse=True,
    )
    category = next(
        (crash.answer.category for crash in crashes if crash.answer and crash.answer.category), ""
    )
    return CauseGroup(
        **whole.cost().model_dump(),
        cause=cause,
        title=title,
        category=category,
        crashes=len(crashes),
        groups=tuple(_crash_groups(ranked[:MAX_GROUPS], batch)),
        more=max(0, len(crashes) - MAX_GROUPS),
    )


def _joined(answered: Iterable[_Crash]) -> list[_Crash]:
    """Put answers of one crash together.

    A model's stands for it before those by rules, else that of its first job.
    """
    by_key: dict[object, list[_Crash]] = defaultdict(list)
    for crash in answered:
        by_key[crash.key].append(crash)
    return [crashes[0] if len(crashes) == 1 else _one_of(crashes) for crashes in by_key.values()]


def _one_of(crashes: Sequence[_Crash]) -> _Crash:
    first = min(
        crashes,
        key=lambda crash: (crash.answer is not None and crash.answer.engine == Engine().name, crash.number),
    )
    whole = _Crash(number=first.number, answer=first.answer, fingerprint=first.fingerprint, name=first.name)
    for crash in crashes:
        whole.merge(crash)
        whole.enter(*crash.members)
    return whole


def _crash_groups(crashes: Iterable[_Crash], batch: str) -> Iterator[CrashGroup]:
    for crash in crashes:
        answer = crash.answer
        if answer is not None:
            yield CrashGroup(
                **crash.cost().model_dump(),
                fingerprint=crash.fingerprint,
                representative=JobName(id=job_id(batch, crash.number), name=crash.name),
                headline=answer.headline,
                verdict=answer.verdict,
                standing=answer.standing,
                action=answer.action,
                change=answer.proposal,
                confidence=answer.confidence,
                proof=answer.proof,
                step=answer.step,
                members=_names([crash], batch),
                nodes_hit=crash.hardest_hit(3),
            )


def _savings(died: Iterable[_Crash]) -> tuple[Saving, ...]:
    """Rank the changes that jobs should have had first."""
    wanting: dict[tuple[str, str, str], list[tuple[_Crash, ProposedChange]]] = defaultdict(list)
    for crash in died:
        answer = crash.answer
        if answer and answer.verdict in ("diagnosed", "ambiguous") and (change := answer.proposal):
            wanting[change.framework, change.kind, change.key].append((crash, change))
    return tuple(sorted(map(_saving, wanting.values()), key=_worth, reverse=True)[:MAX_CHANGES])


def _saving(wanting: Sequence[tuple[_Crash, ProposedChange]]) -> Saving:
    whole = _Tally()
    values: Counter[str] = Counter()
    for crash, change in wanting:
        whole.merge(crash)
        values[str(change.to)] += crash.jobs
    usual = values.most_common(1)[0][0]
    change = next(change for _, change in wanting if str(change.to) == usual)
    return Saving(
        **whole.cost().model_dump(),
        framework=change.framework,
        kind=change.kind,
        key=change.key,
        to=change.to,
        values=len(values),
        why=change.why,
        costs=change.costs,
        causes=tuple(dict.fromkeys(_cause(crash) for crash, _ in wanting)),
    )


def _model_use(answers: Sequence[OutcomeSummary]) -> ModelUse | None:
    asked = [(answer, *answer.tokens) for answer in answers if answer.tokens]
    if not asked:
        return None
    return ModelUse(
        asked=len(asked),
        explained=sum(answer.engine != Engine().name for answer, *_ in asked),
        silent=sum(not got for _, _, got, _ in asked),
        sent=sum(sent for _, sent, *_ in asked),
        received=sum(got for _, _, got, _ in asked),
        counted=all(counted for *_, counted in asked),
    )


def _bins(died: Sequence[_Crash]) -> tuple[TimeBin, ...]:
    """Count deaths over time, in at most MAX_TIMES equal stretches of a round length.

    Nothing where few times are known.
    """
    times = [(when, _cause(crash)) for crash in died for when in crash.times]
    if len(times) < 2 or 2 * len(times) < sum(crash.jobs for crash in died):
        return ()
    first, last = min(times)[0].timestamp(), max(times)[0].timestamp()
    step = next(
        (step for step in _STEPS if last // step - first // step < MAX_TIMES), (last - first) / MAX_TIMES + 1
    )
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for when, cause in times:
        counts[int(when.timestamp() // step)][cause] += 1
    return tuple(
        TimeBin(begin=datetime.fromtimestamp(place * step, UTC), causes=dict(counts.get(place, {})))
        for place in range(int(first // step), int(last // step) + 1)
    )
