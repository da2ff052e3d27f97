"""What the first change says where a file at hand is not as the traceback quotes it."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

TRACE = (
    'Traceback (most recent call last):\n  File "/job/train.py", line {line}, in {function}\n'
    "    {code}\n{error}\n"
)
READ = TRACE.format(
    line=3,
    function="<module>",
    code='rows = read_rows("/old/place/rows.csv")',
    error="FileNotFoundError: [Errno 2] No such file or directory: '/old/place/rows.csv'",
)
LOOKED_UP = TRACE.format(
    line=3, function="load", code="name = row['shard_name']", error="KeyError: 'shard_name'"
)
ASKED = TRACE.format(
    line=9,
    function="info",
    code="return self.patterns_of()",
    error="AttributeError: 'Model' object has no attribute 'patterns_of'",
)
GIVEN = TRACE.format(
    line=2,
    function="main",
    code="model = made(size=3)",
    error="TypeError: made() got an unexpected keyword argument 'size'",
)
SHAPED = TRACE.format(
    line=4,
    function="forward",
    code="wide = mask.unsqueeze(1).expand(rows, heads, steps)",
    error="RuntimeError: The expanded size of the tensor (8) must match the existing size (512) at "
    "non-singleton dimension 1.  Target sizes: [512, 8, 128]. Tensor sizes: [512, 1, 12]",
)


@each_row(
    ("log", "text", "line"),
    [
        (READ, 'import os\n\n\nrows = read_rows("/new/place/rows.csv")\n', 4),
        (ASKED, "class Model:\n    def patterns_of(self):\n        return []\n", 2),
        (
            ASKED,
            (
                "class Info:\n    def info(self):\n        return self.patterns_of()\n\n"
                "    def patterns_of(self):\n        return []\n\n\nclass Model(Info):\n    pass\n"
            ),
            5,
        ),
        (GIVEN, "def made(size):\n    return size\n\n\ndef main():\n    model = made(size=3)\n", 1),
        (GIVEN, "def made(**kwargs):\n    return kwargs\n\n\ndef main():\n    model = made(size=3)\n", 1),
    ],
)
def test_that_a_cure_that_the_file_has_is_told_first(triage: Triage, log: str, text: str, line: int) -> None:
    """What the message misses or blames is mended in the file: nothing is to be done but to start again."""
    first = explained(triage, log, ConfigFile.of("train.py", text)).changes[0]
    assert str(first.to).startswith("nothing to do")
    assert f"row {line}" in str(first.to)


UNKNOWN = (
    'Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/llamafactory/hparams/'
    'parser.py", line 61, in _parse_args\n    return parser.parse_dict(args)\n'
    '  File "/env/lib/python3.11/site-packages/transformers/hf_argparser.py", line 383, in parse_dict\n'
    '    raise ValueError(f"Some keys are not used by the HfArgumentParser: {sorted(unused_keys)}")\n'
    "ValueError: Some keys are not used by the HfArgumentParser: ['booster']\n"
)


@each_row(
    ("log", "text", "told"),
    [
        (UNKNOWN, "stage: sft\nlora_rank: 8\n", "None of the files at hand sets `booster`"),
        (UNKNOWN, "stage: sft\nbooster: auto\n", ""),
    ],
)
def test_that_a_key_that_no_file_has_any_more_is_told(triage: Triage, log: str, text: str, told: str) -> None:
    """Where a key is to go that the files at hand do not set, they are not those that ran."""
    first = explained(triage, log, ConfigFile.of("sft.yaml", text)).changes[0]
    assert first.key == "booster"
    assert ("None of the files" in first.why) is bool(told)


def test_that_a_value_that_a_file_has_as_the_message_wants_it_is_told(triage: Triage) -> None:
    """Where the file has what the message asks for, another place set it, or it was edited since."""
    log = TRACE.format(
        line=3, function="main", code="run()", error="RuntimeError: Please set use_tiles=True."
    )
    changes = explained(triage, log, ConfigFile.of("config.yaml", "model:\n  use_tiles: true\n")).changes
    assert [change.key for change in changes] == ["model.use_tiles"]
    assert "`config.yaml` has `use_tiles` = True already" in str(changes[0].to)


@each_row(
    ("log", "text"),
    [
        (READ, 'rows = read_rows("/old/place/rows.csv", header=0)\n'),
        (LOOKED_UP, "import os\n\n\ndef load(row):\n    name = os.path.join(row['shard_name'], 'x')\n"),
        (ASKED, "class Model:\n    def info(self):\n        return self.patterns_of()\n"),
        (
            ASKED,
            (
                "class Model:\n    def info(self):\n        return self.patterns_of()\n\n    @property\n"
                "    def patterns_of(self):\n        return self.gone\n"
            ),
        ),
        (GIVEN, "def made(width):\n    return width\n\n\ndef main():\n    model = made(size=3)\n"),
        (
            GIVEN,
            "class One:\n    def made(self, size):\n        return size\n\n\ndef made(width):\n    pass\n",
        ),
    ],
)
def test_that_what_still_lacks_it_is_not_called_mended(triage: Triage, log: str, text: str) -> None:
    """A row that has what the message blames, or a definition without what it misses, is no cure."""
    changes = explained(triage, log, ConfigFile.of("train.py", text)).changes
    assert not any("nothing to do" in str(change.to) or "mended since" in change.why for change in changes)


def test_that_another_statement_at_hand_is_told_where_nothing_else_is_known(triage: Triage) -> None:
    """Of a failing statement that the file has otherwise by now, the answer says how it reads."""
    text = "def forward(mask):\n    h = 1\n    wide = mask.unsqueeze(1).unsqueeze(1).expand(1, h, steps)\n"
    strange = SHAPED.partition("RuntimeError:")[0] + "RuntimeError: the mask is of another house\n"
    first = explained(triage, strange, ConfigFile.of("train.py", text)).changes[0]
    assert "another statement there, row 3" in str(first.to)


def test_that_a_change_which_cannot_help_is_told_with_its_numbers(triage: Triage) -> None:
    """No queue gives the time that the whole would take; a shorter run is offered its time instead."""
    script = "#!/bin/bash\n#SBATCH --time=15:00:00\nsrun python train.py\n"
    log = (
        "  {bar}slurmstepd: error: *** JOB 4711 ON node-1 CANCELLED AT 2026-01-05T03:04:05 "
        "DUE TO TIME LIMIT ***\n"
    )
    long = log.format(bar="1%|    | 596/50000 [14:59:49<1235:36:48, 90.04s/it]")
    told = explained(triage, long, ConfigFile.of("job.sh", script))
    assert "--time" not in [change.key for change in told.changes]
    assert "596 of 50,000 were done" in told.explanation
    short = log.format(bar="75%|###  | 600/800 [14:59:49<04:59:48, 90.04s/it]")
    told = explained(triage, short, ConfigFile.of("job.sh", script))
    assert [change.key for change in told.changes][:1] == ["--time"]
    assert "were done" not in told.explanation


def test_that_nothing_is_to_be_printed_in_a_file_that_does_not_parse(triage: Triage) -> None:
    log = (
        'Traceback (most recent call last):\n  File "/job/train.py", line 2\n    print "done"\n    ^^^^\n'
        "SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?\n"
    )
    told = explained(triage, log, ConfigFile.of("train.py", 'import os\nprint "done"\n'))
    assert [change.key for change in told.changes] == ["train.py:2"]
    assert "A second slip of this file" in told.explanation
    assert "print what goes into it" not in told.explanation
