"""In which language somebody wrote beside a pasted log."""

from __future__ import annotations

from ingest.logs.prose import is_written_in_chinese
from tests.tables import each_row

STACK = 'File "/env/lib/python3.10/site-packages/peft/utils.py", line 4, in from peft import LoraConfig ' * 6


@each_row(
    ("row", "expected"),
    [
        ("我安装了peft之后启动训练，出现了下面的问题", True),
        # A log that goes on in the same row is no part of the sentence.
        (f"我用pip安装了peft，启动训练之后出现了这样的问题：{STACK}", True),
        # Nor is an exception that a sentence names, or an address that it links to.
        (f"训练几步之后出现 RuntimeError: {STACK}", True),
        (f"参考 [脚本](https://example.org/{'a' * 200}) 修改了几个参数", True),
        (f"见 RuntimeError: {STACK}", False),
        (f"Error：{STACK}", False),
        (f"I installed peft and this came up: {STACK}", False),
        ("2025-01-02 03:04:05 INFO 正在加载模型权重：/models/base", False),
    ],
)
def test_that_a_sentence_tells_the_language(row: str, expected: bool) -> None:
    assert is_written_in_chinese([row]) is expected
