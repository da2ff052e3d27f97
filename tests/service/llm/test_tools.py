"""The tools of a model: what each gives of the log and of what is known, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.logs.inputs import jobs, sources
from service.llm.deadline import Deadline
from service.llm.job_files import read_file
from service.llm.log_view import LogView, Reopen
from service.llm.prompt_context import build_prompt_context
from service.llm.tools import MAX_ROWS, TOOLS, Found, ToolContext, ToolError, call_tool
from service.llm.triage_context import TriageContext
from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.telemetry.snapshot import Cgroup, Gpu, Host, Series, Snapshot, known
from tests.service.llm.answering import asked, asked_of
from tests.tables import each_row
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS, opened

LOG = "\n".join(
    [
        *(
            f"(Trainer pid={1 + number % 2}) step {number}: loss {9 / (1 + number):.3f}"
            for number in range(400)
        ),
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "/job/train.py", line 88, in <module>',
        "[rank1]:     trainer.fit()",
        '[rank1]:   File "/job/trainer.py", line 12, in fit',
        "[rank1]:     torch.save(state, path)",
        "[rank1]: OSError: [Errno 28] No space left on device",
        "[rank0]: Watchdog caught collective operation timeout",
        "",
    ]
)
FAILED = 406


def tools_of(context: TriageContext, reopen: Reopen | None, seconds: float = PATIENCE) -> ToolContext:
    """Make what tools look into."""
    view = LogView(context.report, reopen, Deadline(seconds))
    return ToolContext(build_prompt_context(context), view, context.near)


def tools_on(triage: Triage, log: str = LOG) -> ToolContext:
    """Make what tools look into for a log that is at hand."""
    return tools_of(asked_of(triage, log), lambda: sources.from_text(log))


def run(tools: ToolContext, tool: str, /, **arguments: object) -> Found:
    """Call a tool."""
    return call_tool(tools, tool, arguments)


def test_each_tool_is_told_with_its_parameters() -> None:
    """A provider's schema of functions: a name, a sentence, an object of texts."""
    for name, tool in TOOLS.items():
        made = tool.schema("en")["function"]
        assert made["name"] == name
        assert made["description"].endswith(".")
        assert set(made["parameters"]["required"]) == set(tool.parameters) - tool.optional
        assert tool.optional <= set(tool.parameters)


def test_lines_are_read_as_they_stand_and_bounded(triage: Triage) -> None:
    """From and to, both counted; of many, rows amid a run alike are folded, and the end is kept."""
    tools = tools_on(triage)
    found = run(tools, "read_lines", first="L10", last="[L12]")
    rows = LOG.split("\n")
    assert dict(found.rows) == {number: rows[number - 1] for number in (10, 11, 12)}
    whole = run(tools, "read_lines", first=1, last=MAX_ROWS)
    assert (len(whole.rows), whole.ours) == (MAX_ROWS, ())
    long = run(tools, "read_lines", first=1, last=100_000)
    assert {1, 400, *range(401, 408)} <= set(long.rows)
    assert len(long.rows) <= 30
    assert f"{len(long.rows)} of the lines" in long.ours[0]
    assert run(tools, "read_lines", first="L5000", last="L5001").rows == {}


def test_words_are_found_in_any_order_and_case(triage: Triage) -> None:
    """All words of one alternative; what a row is cut into by chunks changes nothing."""
    table: Mapping[str, list[int]] = {
        "SPACE no": [FAILED],
        "watchdog | errno 28": [FAILED, FAILED + 1],
        "Errno 28 watchdog": [],
        "loss 1.125": [8],
        "step 399": [400],
        ".*": [],
    }
    tools = tools_on(triage)
    wrong = {
        words: list(run(tools, "search_log", words=words).rows)
        for words, expected in table.items()
        if list(run(tools, "search_log", words=words).rows) != expected
    }
    assert wrong == {}
    assert list(run(tools, "search_log", words="step", first="L20", last="L22").rows) == [20, 21, 22]


def test_lines_are_found_by_who_wrote_them(triage: Triage, tmp_path: Path) -> None:
    """By the rank or the label before a line, or by its file's name; without words, all of its lines."""
    steps = [
        f"(WorkerDict pid={40 + row % 2}, ip=10.0.0.{row % 2}) [rank{row % 4}]: step {row}"
        for row in range(8)
    ]
    rows = [*steps, "[rank3]: RuntimeError: shapes differ", "the launcher says rank 3 failed"]
    tools = tools_on(triage, "\n".join(rows))
    table: Mapping[tuple[str, str, str], list[int]] = {
        ("step", "3", ""): [4, 8],
        ("", "rank 3", ""): [4, 8, 9],
        ("step", "", "pid=41"): [2, 4, 6, 8],
        ("", "1", "workerdict ip=10.0.0.1"): [2, 6],
        ("launcher", "3", ""): [],
        ("launcher", "", ""): [10],
    }
    found = {
        asked: list(run(tools, "search_log", words=asked[0], rank=asked[1], stream=asked[2]).rows)
        for asked in table
    }
    assert found == table
    for name in ("host-a.log", "host-b.log"):
        (tmp_path / name).write_text("\n".join([f"from {name}", *rows]))
    several = tools_of(opened(triage, jobs.open_job(tmp_path), "en"), lambda: jobs.open_job(tmp_path))
    named = run(several, "search_log", words="from", stream="host-b").rows
    assert list(named.values()) == ["from host-b.log"]


def test_of_many_lines_with_the_words_the_first_and_last_are_shown(triage: Triage) -> None:
    """The first tell how it began, the last how it ended."""
    rows = list(run(tools_on(triage), "search_log", words="loss").rows)
    assert (rows[0], rows[-1], len(rows)) == (1, 400, 30)
    assert "More such lines" in run(tools_on(triage), "search_log", words="loss").ours[0]
    assert run(tools_on(triage), "search_log", words="loss", last="L30").ours == ()


def test_events_are_listed_by_rank_line_and_time(triage: Triage) -> None:
    """Each with its role; a filter leaves out the others."""
    tools = tools_on(triage)
    everything = run(tools, "read_events")
    assert FAILED in everything.rows
    assert any(f"[L{FAILED}] root" in row for row in everything.ours)
    assert FAILED in run(tools, "read_events", rank="1").rows
    assert FAILED not in run(tools, "read_events", rank="rank 7").rows
    assert FAILED not in run(tools, "read_events", last="L400").rows
    assert run(tools, "read_events", since="2024-01-01 00:00:00").rows == {}


def test_a_traceback_is_read_from_its_first_line(triage: Triage) -> None:
    """By any of its lines: all rows, and the frames as they were taken apart."""
    tools = tools_on(triage)
    for line in (401, 403, FAILED):
        found = run(tools, "read_traceback", line=f"L{line}")
        assert set(range(401, FAILED + 1)) <= set(found.rows), line
    assert any("train.py:88" in text for text in run(tools, "read_traceback", line=f"L{FAILED}").data)


def test_the_last_normal_lines_end_before_the_failure(triage: Triage) -> None:
    """Neither the traceback nor what follows it."""
    assert list(run(tools_on(triage), "last_normal_lines", count="3").rows) == [398, 399, 400]


@each_row(
    ("log", "expected"),
    [
        ("a warning: it may be slow\nRuntimeWarning: it is slow\n", [1, 2]),
        (f"step 1\nTraining:  1%| | 1/90 [00:02]{LOG[LOG.index('Traceback') :]}", [1, 2]),
        (f"step 1\n{LOG[LOG.index('[rank1]: Traceback') :]}", [1]),
    ],
)
def test_the_very_last_normal_line_is_among_them(log: str, expected: list[int], triage: Triage) -> None:
    """Also where a traceback begins in it, and of a log without a failure whatever that line says."""
    assert list(run(tools_on(triage, log), "last_normal_lines").rows) == expected


def test_words_in_quotation_marks_stand_together(triage: Triage) -> None:
    """A phrase is one thing that is looked for, beside other words and alternatives."""
    tools = tools_on(triage, "memory is out of reach\nrank 1 is out of memory\nout of memory\n")
    assert list(run(tools, "search_log", words='"out of memory"').rows) == [2, 3]
    assert list(run(tools, "search_log", words='"out of memory" rank | "is out of r"').rows) == [1, 2]


def test_settings_are_listed_by_prefix_and_explained(triage: Triage) -> None:
    """The job's own, as its log and files show them; what each does comes from the catalogue."""
    context = asked(triage)
    tools = tools_of(context, None)
    key = context.assessment.settings[0].key
    listed = run(tools, "job_settings", prefix=key[: max(3, len(key) // 2)])
    assert any(row.startswith(f"{key}=") for row in listed.data)
    assert run(tools, "job_settings", prefix="no.such.prefix").data == ()
    change = next(item for item in context.first.changes if item.kind == "setting")
    assert f"`{change.key}`" in run(tools, "describe_setting", key=change.key).ours[0]
    assert "no such setting" in run(tools, "describe_setting", key="trainer.warp_factor").ours[0]


def test_a_setting_is_told_with_what_is_not_known_of_it(triage: Triage) -> None:
    """Its versions, its value in the job's own files, and what the catalogue lacks."""
    tools = tools_of(asked(triage), None)
    library = tools.prompt_context.library
    own = {item.key for item in tools.prompt_context.assessment.settings}
    frameworks = {found.name for found in tools.prompt_context.report.frameworks}
    specs = [spec for spec in library.specs.values() if spec.framework in frameworks]
    absent = next(
        spec for spec in specs if spec.key not in own and spec.default is None and not spec.explained
    )
    lacking = " ".join(run(tools, "describe_setting", key=absent.key).ours)
    assert "No value of this job's is known." in lacking
    assert "does not say what it does, its default" in lacking
    dated = next(spec for spec in specs if spec.versions and spec.explained)
    assert f"exists in {dated.framework} {dated.versions}" in " ".join(
        run(tools, "describe_setting", key=dated.key).ours
    )


def test_cases_and_causes_are_looked_up(triage: Triage) -> None:
    """A case that a look shows may be cited; a cause comes with what tells it apart."""
    tools = tools_on(triage)
    found = run(tools, "find_cases", words="host memory offload ray killed")
    assert found.cases
    assert all(any(f"[case:{name}]" in text for text in found.ours) for name in found.cases)
    # Without an index, by the words of their titles.
    title = next(iter(tools.prompt_context.library.cases.values())).title.en
    assert run(replace(tools, near=None), "find_cases", words=title).cases
    cause = tools.prompt_context.library.causes["host-oom-kill"]
    told = run(tools, "describe_cause", cause="`host-oom-kill`")
    assert cause.means.en in told.ours[0]
    assert all(any(other.cause in row for row in told.ours) for other in cause.confused_with)


def test_what_may_be_said_in_the_place_of_a_cause_is_defined_too(triage: Triage) -> None:
    """A model that asks before it says that nothing failed is told when that holds, as of any cause."""
    for name in ("no-failure", "insufficient-evidence"):
        assert run(tools_on(triage), "describe_cause", cause=name).ours[0].startswith(f"{name}: ")
    with pytest.raises(ToolError, match="no such cause"):
        run(tools_on(triage), "describe_cause", cause="bad-luck")


def test_telemetry_is_told_for_a_span(triage: Triage) -> None:
    """Readings by name, series within the span; without a snapshot it is said that there is none."""
    assert "not available" in run(tools_on(triage), "read_telemetry").ours[0]
    begin = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    points = tuple((begin + 60 * minute, float(minute)) for minute in range(10))
    machine = Snapshot(
        taken_at=datetime(2026, 1, 1, 0, 10, tzinfo=UTC),
        host=Host(memory_available_gib=known(1.5)),
        cgroup=Cgroup(oom_kill=known(2)),
        history=(Series(name="memory_used_gib", labels={"node": "n1"}, points=points),),
    )
    context = opened(triage, sources.from_text(LOG), "en", telemetry=machine)
    tools = tools_of(context, None)
    everything = run(tools, "read_telemetry").data
    assert {"host.memory_available_gib = 1.5", "cgroup.oom_kill = 2"} <= set(everything)
    part = run(
        tools, "read_telemetry", name="memory", since="2026-01-01 00:02:00", until="2026-01-01 00:04:00"
    )
    assert "cgroup.oom_kill = 2" not in part.data
    assert any("3 points, first 2, last 4" in text for text in part.data)


def test_many_readings_are_folded_and_none_is_lost(triage: Triage) -> None:
    """Of readings that differ only in what they are of: how many, the lowest and the highest."""
    gpus = tuple(
        Gpu(id=f"GPU-{place}", temperature_c=known(60.0 + place), memory_total_gib=known(80.0))
        for place in range(40)
    )
    machine = Snapshot(taken_at=datetime(2026, 1, 1, tzinfo=UTC), gpus=gpus)
    found = run(
        tools_of(opened(triage, sources.from_text(LOG), "en", telemetry=machine), None), "read_telemetry"
    )
    assert any("40 readings, lowest" in row and "60" in row and "99" in row for row in found.data)
    assert any("= 80.0 (all 40)" in row for row in found.data)
    assert "name them more narrowly" in found.ours[0]


def test_a_job_of_several_files_is_read_by_their_names(triage: Triage, tmp_path: Path) -> None:
    """A line is named with its file; a bare number is not guessed at."""
    for rank in range(3):
        rows = [f"rank {rank} step {number}" for number in range(50)]
        rows += ["OSError: [Errno 28] No space left on device"] if rank == 1 else []
        (tmp_path / f"rank{rank}.log").write_text("\n".join(rows) + "\n")
    context = opened(triage, jobs.open_job(tmp_path), "en")
    tools = tools_of(context, lambda: jobs.open_job(tmp_path))
    found = run(tools, "read_lines", first="rank1.log:L7", last="rank1.log:L8")
    assert list(found.rows.values()) == ["rank 1 step 6", "rank 1 step 7"]
    assert "rank1.log:L7" in str(found.says)
    hits = run(tools, "search_log", words="step 49")
    places = [str(context.report.place(number)) for number in hits.rows]
    assert places == ["rank0.log:L50", "rank1.log:L50", "rank2.log:L50"]
    (tmp_path / "rank0.log").unlink()
    assert list(run(tools, "search_log", words="1 step 49").rows.values()) == ["rank 1 step 49"]
    assert (
        str(context.report.place(next(iter(run(tools, "search_log", words="1 step 49").rows)))) == places[1]
    )
    for mark in ("L7", "rank9.log:L7"):
        with pytest.raises(ToolError, match="several files"):
            run(tools, "read_lines", first=mark, last=mark)


def test_without_the_output_the_lines_of_the_report_stand_in(triage: Triage) -> None:
    """What is gone, or was never kept, is not at hand; what the report holds is."""
    context = asked_of(triage, LOG)

    def gone() -> sources.LogSource:
        return sources.from_path(Path("/nonexistent/log"))

    for reopen in (None, gone):
        tools = tools_of(context, reopen)
        assert FAILED in run(tools, "read_lines", first=f"L{FAILED}", last=f"L{FAILED}").rows
        assert run(tools, "read_lines", first="L20", last="L21").rows == {}


def test_a_large_log_is_read_from_where_it_lies(triage: Triage, tmp_path: Path) -> None:
    """Lines and words far behind are found; when the time is up, reading ends and says so."""
    path = tmp_path / "log"
    row = b"worker 3: processed a batch of samples in 0.1 s\n"
    with path.open("wb") as stream:
        for _ in range(40):
            stream.write(row * 20_000)
        stream.write(b"the needle of this haystack\n" + LOG.encode())
    context = opened(triage, sources.from_path(path), "en")
    at = 40 * 20_000 + 1
    tools = tools_of(context, lambda: sources.from_path(path))
    assert list(run(tools, "search_log", words="needle haystack").rows) == [at]
    assert run(tools, "read_lines", first=f"L{at}", last=f"L{at}").rows == {at: "the needle of this haystack"}
    late = tools_of(context, lambda: sources.from_path(path), seconds=0.0)
    assert run(late, "search_log", words="needle haystack").rows == {}
    assert late.view.is_cut


def test_the_rows_of_a_key_are_masked_wherever_one_looks(triage: Triage) -> None:
    """A look into the middle of a private key is judged with the rows above it."""
    body = [f"MIIEpAIBAAKCAQEA{number:02d}x7Vq0Gf3k9LmZt2WnYc4RbHs8Jd6PuEa1" for number in range(24)]
    head, foot = ("-----" + word + " RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
    text = "\n".join([*(f"step {number}" for number in range(50)), head, *body, foot, LOG])
    tools = tools_on(triage, text)
    rows = run(tools, "read_lines", first="L65", last="L66").rows
    assert len(rows) == 2
    assert not any("MIIEpAIB" in row for row in rows.values())
    assert run(tools, "search_log", words="Gf3k9LmZt2WnYc4RbHs8Jd6PuEa1").rows == {}


def test_a_labelled_incident_can_be_walked(triage: Triage) -> None:
    """Over a real log: around its root, the normal lines before it, and its events."""
    path = INCIDENTS / "w-easyr1-offload-host-ram" / "log.txt"
    context = asked(triage)
    assert context.report.root is not None
    line = context.report.root.line
    tools = tools_of(context, lambda: sources.from_path(path))
    rows = path.read_text().split("\n")
    found = run(tools, "read_lines", first=f"L{line - 3}", last=f"L{line + 3}").rows
    assert [number for number in found if found[number].strip() not in rows[number - 1]] == []
    assert line in run(tools, "read_events").rows
    assert max(run(tools, "last_normal_lines").rows) < line


def test_a_line_is_found_in_the_sources_of_frameworks(triage: Triage) -> None:
    """With its place, the versions that have it, and what is tested there; of other lines nothing."""
    said = "ValueError: generation_batch_size (12) must be divisible by num_generations (8)."
    tools = tools_on(triage, f"trl/trainer/grpo_trainer.py step 1\n{said}\n")
    told = "\n".join(run(tools, "find_in_source", line="L2").ours)
    assert "trl >0.19.1: trl/trainer/grpo_config.py, GRPOConfig.__post_init__; ValueError" in told
    assert "involves generation_batch_size, num_generations" in told
    assert run(tools, "find_in_source", line="L1").ours[-1] == "No source that is known says this line."


def test_a_line_is_sought_first_in_the_sources_of_the_jobs_own_packages(triage: Triage) -> None:
    """What another package says is told as another's, and not where one of the job's says it too."""
    said = "ValueError: generation_batch_size (12) must be divisible by num_generations (8)."
    call = (
        'Traceback (most recent call last):\n  File "/env/site-packages/{}/a.py", line 9, in run\n    go()\n'
    )
    ours = run(tools_on(triage, f"{call.format('trl')}{said}\n"), "find_in_source", line="L4").ours
    assert ours[0].startswith("Searched in the sources of what this job shows: ")
    assert ours[0].endswith("trl.")
    assert ours[1].startswith("trl >0.19.1: trl/trainer/grpo_config.py")
    searched, others, *told = run(
        tools_on(triage, f"{call.format('vllm')}{said}\n"), "find_in_source", line="L4"
    ).ours
    assert "vllm" in searched
    assert "trl" not in searched
    assert "packages that the job does not show do" in others
    assert any("trl/trainer/grpo_config.py" in row for row in told)


LONG_ROW = f"Namespace({'a_b=1, ' * 120}output_dir='/data/out', {'c_d=2, ' * 120})"


@each_row(
    ("words", "expected"),
    [
        ("kill", [1]),
        ("memory", [2]),
        ("oom", [3]),
        ("output_dir", [5]),
        # What begins no word is looked for within words.
        ("loom", [4]),
    ],
)
def test_words_are_found_as_words_and_shown(words: str, expected: list[int], triage: Triage) -> None:
    """`oom` is no `bloom`; a word of a name counts; of a long row the piece that holds the words is shown."""
    log = f"Killed process 7\ntorch.OutOfMemoryError: no\ncuda_oom now\na bloom filter\n{LONG_ROW}\n"
    found = run(tools_on(triage, log), "search_log", words=words)
    assert list(found.rows) == expected
    assert all(words in text and len(text) < 600 for text in found.pieces.values())
    assert bool(found.pieces) == (words == "output_dir")


def test_the_jobs_own_files_are_read_by_rows_and_words(triage: Triage) -> None:
    """Redacted, with their numbers; a file that is not there is told, with those that are."""
    code = "\n".join(
        [
            *(f"x{number} = {number}" for number in range(300)),
            "token = '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'",
        ]
    )
    job = triage.read(sources.from_text(LOG), files=[ConfigFile("src/train.py", code)])
    tools = tools_of(triage.diagnose(job), None)
    assert run(tools, "read_job_file", name="train.py", first=40).data[:2] == ("40: x39 = 39", "41: x40 = 40")
    assert "ask for them with first 101" in run(tools, "read_job_file", name="train.py").ours[0]
    held = run(tools, "read_job_file", name="train.py", words="token").data
    assert held[-1].startswith("301: token = ")
    assert (
        run(tools, "read_job_file", name="train.py", words="x5 = | x250 =", first=100).data[0]
        == "247: x246 = 246"
    )
    assert "hf_qWeRtYuIoP" not in held[-1]
    with pytest.raises(ToolError, match=r"src/train\.py"):
        run(tools, "read_job_file", name="other.py")


CALL = "\n".join(
    [
        *(f"x{number} = {number}" for number in range(40)),
        "trainer = Trainer(",
        "    model=model,",
        *(f"    option_{number}=values[{number}]," for number in range(20)),
        "    text=')',  # no end )",
        "    last=True,",
        ")",
        *(f"y{number} = {number}" for number in range(40)),
    ]
)


def test_the_call_around_words_is_read_to_its_end(triage: Triage) -> None:
    """However many rows it has, up to a bound; brackets in texts and remarks end nothing."""
    for words in ("Trainer(", "option_7", "last="):
        rows, _ = read_file([f"{CALL}\ntrain.py"], "train.py", "", words)
        assert rows[0] == "37: x36 = 36"
        assert rows[-1] == "69: y3 = 3"
    flat, _ = read_file([f"{CALL}\ntrain.py"], "train.py", "", "y20")
    assert len(flat) == 9
    data = "[\n" + "\n".join(f"  {number}," for number in range(1000, 1300)) + "\n]"
    held, _ = read_file([f"{data}\ndata.json"], "data.json", "", "1150")
    assert len(held) == 9


def test_words_in_a_file_are_a_phrase_first_then_all_then_any() -> None:
    """Of each alternative by itself; that only some of its words are there is told."""
    rows = ["def max_len(rows):", "    return 1", "batch size", "size", "x = batch_size", "batch", "resize"]
    spread = "\n".join(f"{row}\n" + "\n" * 9 for row in rows)

    def hits(words: str) -> tuple[list[str], tuple[str, ...]]:
        found, more = read_file([f"{spread}\nrun.py"], "run.py", "", words)
        return [row.partition(": ")[2] for row in found], more

    assert hits("batch size") == (["batch size"], ())
    assert hits("size batch") == (["batch size", "x = batch_size"], ())
    assert hits('"size batch"')[0] == []
    assert hits("size") == (["batch size", "size", "x = batch_size"], ())
    assert hits("max_len | resize") == (["def max_len(rows):", "resize"], ())
    found, more = hits("return 2")
    assert found == ["    return 1"]
    assert "return 2" in more[0]
    assert hits("esiz")[0] == ["resize"]
