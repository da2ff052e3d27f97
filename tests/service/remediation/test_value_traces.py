"""What the failing line names is looked up in the rest of the log and in the job's settings."""

from __future__ import annotations

from service.pipeline.triage import Triage
from tests.service.composition.test_message_forms import raised
from tests.tables import each_row
from tests.warm import explained

CHECK = raised("AssertionError", "/job/data/pack.py:52:rows:assert not args.keep_tail or rows")
FOUND = raised(
    "FileExistsError: [Errno 17] File exists: '/data/team/run/round1/shards'",
    "/job/collect.py:12:main:store.create(root)",
)
LOST = raised(
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/team/Corpus_A/train.json'",
    "/job/collect.py:12:main:rows = json.load(open(path))",
)
ASKED = "ValueError: asked for 10347 tokens, but 10240 prompt tokens and 107 new ones were counted\n"
BUFFER = raised("ValueError: 7340 rows do not fit", "/job/run.py:3:fill:raise ValueError(text)")
COLUMN = raised("KeyError: 'prompt_ids'", "/job/run.py:3:read:x = row[name]")


@each_row(
    ("log", "told"),
    [
        (f"Namespace(keep_tail=True, lr=0.1)\n{CHECK}", "`keep_tail`, which this line tests, is `True`"),
        (
            f"writing to /data/team/run/round2/shards\n{FOUND}",
            "has `round1`; [L1] has `round2` in its place: `/data/team/run/round2/shards`",
        ),
        (f"reading /data/team/corpus-a\n{LOST}", "has `Corpus_A`; [L1] has `corpus-a`"),
        (ASKED, "10347 = 10240 + 107, all three in the message"),
        (f"Namespace(buffer_rows=7340, seed=3)\n{BUFFER}", "`7340` is `buffer_rows` ([L1])"),
        (f"columns: promptIds answer_ids\n{COLUMN}", "The log has `promptIds` ([L1])"),
        (f"columns: Prompt-Ids answer_ids\n{COLUMN}", "The log has `Prompt-Ids` ([L1])"),
    ],
)
def test_the_answer_says_where_else_stands_what_the_failing_line_names(
    log: str, told: str, triage: Triage
) -> None:
    text = explained(triage, log, language="en").explanation
    assert told in text


@each_row(
    "log",
    [
        # A power of two that the message does not speak of is met by chance, and so is a small number.
        f"Namespace(hidden=4096, seed=3)\n{BUFFER.replace('7340', '4096')}",
        f"Namespace(buffer_rows=16)\n{BUFFER.replace('7340', '16')}",
        f"Namespace(hidden_rows=4096, batch=2)\n{BUFFER.replace('7340 rows', '4096 columns')}",
        # Of three settings nobody can say which is meant.
        f"Namespace(a_rows=7340, b_rows=7340, c_rows=7340)\n{BUFFER}",
        # A path of code, one that differs in two parts, and one that is another name altogether.
        f'  File "/data/team/run/round2/shards", line 3, in read\n{FOUND}',
        f"writing to /data/team/walk/round2/shards\n{FOUND}",
        f"writing to /data/team/run/validation/shards\n{FOUND}",
        # A name of another number, or that only goes on, is another name.
        f"columns: prompt_ids2 prompt_idss\n{COLUMN}",
        # What the statement calls is no setting that it tests.
        f"Namespace(rows=7, check='x')\n{CHECK.replace('not args.keep_tail or rows', 'check(1)')}",
    ],
)
def test_what_is_met_by_chance_is_not_told(log: str, triage: Triage) -> None:
    assert "Elsewhere in this job" not in explained(triage, log, language="en").explanation


def test_that_the_change_of_the_code_tells_what_the_statement_tests(triage: Triage) -> None:
    log = f"Namespace(keep_tail=True, lr=0.1)\n{CHECK}"
    for language, told in (("en", "is `True` in this run ([L1])"), ("zh", "`True`（[L1]）")):
        changes = explained(triage, log, language=language).changes
        # What the check reads comes first, then what to do at the check itself.
        assert changes[0].key == "keep_tail"
        assert [told in change.why for change in changes if change.kind == "code"] == [True]
