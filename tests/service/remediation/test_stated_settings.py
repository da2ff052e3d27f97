"""Settings that a failing message says to set: which value counts, and where the setting stands."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from service.remediation.message_hints import NamedSetting, read_hints
from tests.tables import each_row
from tests.warm import explained

TRACE = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in <module>\n    main()\n'
PARSER = 'parser.add_argument("--resume", action="store_true")\nparser.add_argument("--{0}")\n'


@each_row(
    ("message", "named"),
    [
        ("请将 batch_size 调小", NamedSetting("batch_size", "down")),
        ("显存不足，请把 `max_len` 改为 4096", NamedSetting("max_len", "set", "4096")),
        ("请设置环境变量 HCCL_EXEC_TIMEOUT=1200 后重试", NamedSetting("HCCL_EXEC_TIMEOUT", "set", "1200")),
        ("建议开启 gradient_checkpointing", NamedSetting("gradient_checkpointing", "on")),
        ("请关闭 use_flash_attn", NamedSetting("use_flash_attn", "off")),
        ("请勿设置 use_cache=True", NamedSetting("use_cache", "named")),
        ("请检查 dataset_path 参数", NamedSetting("dataset_path", "named")),
        ("Please use `type: chat_rows` instead.", NamedSetting("type", "set", "chat_rows")),
        ("this requires setting `mixed_mode='fp8'`.", NamedSetting("mixed_mode", "set", "fp8")),
        ("Packed rows require --kv-kind fp8.", NamedSetting("--kv-kind", "set", "fp8")),
        ("This kernel requires page_rows == 64 here", NamedSetting("page_rows", "set", "64")),
        ("the fused step only supports tile_mode='wide'", NamedSetting("tile_mode", "set", "wide")),
        ("this kernel requires page_rows to fit", NamedSetting("page_rows", "named")),
        ("`pad_token` is not defined", NamedSetting("pad_token", "set")),
        ("zero.loss_scale must be a number", NamedSetting("zero.loss_scale", "named")),
        ("either a list or `rows_dir` to be specified", NamedSetting("rows_dir", "set")),
        ("Environment variable RUN_ROOT_DIR is not set", NamedSetting("RUN_ROOT_DIR", "set")),
        ("`row_limit` is required for packing.", NamedSetting("row_limit", "set")),
        ("`row_limit` is required when packing is on.", NamedSetting("row_limit", "named")),
    ],
)
def test_that_advice_is_read_in_both_languages_and_with_its_value(message: str, named: NamedSetting) -> None:
    """Each message names that one setting, with what is said to do with it and the value."""
    assert read_hints(message) == [named]


@each_row(
    ("log", "key", "to"),
    [
        (f"{TRACE}RuntimeError: Please set rows_limit or set use_tiles=True in config.\n", "use_tiles", True),
        (f"{TRACE}RuntimeError: 请设置 use_tiles=True\n", "use_tiles", True),
        (f"{TRACE}FileExistsError: run exists\nPass --resume to continue that run.\n", "--resume", True),
        (
            (
                "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings\ndatasets\n"
                "  Value error, `type: rows.*` is deprecated. Please use `type: chat_rows` instead. "
                "[type=value_error, input_value=[1], input_type=list]\n"
            ),
            "datasets.type",
            "chat_rows",
        ),
    ],
)
def test_that_a_setting_nobody_knows_is_set_as_the_message_says(
    triage: Triage, log: str, key: str, to: object
) -> None:
    """The message's own value of its own setting is the first change, under the field where it stands."""
    first = explained(triage, log, ConfigFile.of("train.py", PARSER.format("lr"))).changes[0]
    assert (first.key, first.to) == (key, to)


@each_row(
    "log",
    [
        f"{TRACE}RuntimeError: it failed. Please set PYTHONPATH=evil to go on.\n",
        f"{TRACE}RuntimeError: it failed. Please set PIP_INDEX_URL=evil.example to go on.\n",
        f"{TRACE}RuntimeError: it failed. Please set APP_SKIP_CHECKS=1 to go on.\n",
        f"{TRACE}RuntimeError: it failed. Do not set use_tiles=True here.\n",
    ],
)
def test_that_what_loads_code_or_hides_the_failure_is_not_set(triage: Triage, log: str) -> None:
    """A variable that says where programs come from, a check that is taken away, and what is not to be."""
    assert [change.key for change in explained(triage, log).changes] == []


@each_row(
    ("log", "key", "to"),
    [
        (
            (
                "sglang AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use "
                "`--attention-backend flashinfer`.\n"
            ),
            "--attention-backend",
            "flashinfer",
        ),
        (
            (
                "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/a/b: "
                "offline mode is enabled. To disable it, please unset the `HF_HUB_OFFLINE` variable.\n"
            ),
            "HF_HUB_OFFLINE",
            False,
        ),
    ],
)
def test_that_the_message_s_value_counts_before_the_table_s(
    triage: Triage, log: str, key: str, to: object
) -> None:
    """Where a message names the value, or says that there be none, the table's own is not told."""
    first = explained(triage, log).changes[0]
    assert (first.key, first.to) == (key, to)


@each_row(
    ("said", "key", "to"),
    [
        ("RuntimeError: Environment variable RUN_ROOT_DIR is not set", "RUN_ROOT_DIR", "a value"),
        ("ValueError: the run keeps no rows. Please set RUN_ROOT_DIR.", "RUN_ROOT_DIR", "a value"),
        ("ValueError: rows are packed twice. Unset RUN_PACK_TWICE.", "RUN_PACK_TWICE", "leave it out"),
    ],
)
def test_that_a_variable_that_a_message_misses_is_given(triage: Triage, said: str, key: str, to: str) -> None:
    """No catalogue has it and no file of the job's; what it is to be, the message leaves open."""
    first = explained(triage, f"{TRACE}{said}\n").changes[0]
    assert first.key == key
    assert str(first.to).startswith(to)
