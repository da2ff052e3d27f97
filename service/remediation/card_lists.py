"""Cards that a job is to take, held against the degrees by which it spreads its model over them.

Two commands of one script that exchange weights are to take different ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from corpus.keys import canonical, last_level
from corpus.message import in_both, joined, words
from corpus.schema import Language
from ingest.logs.configs.launch import Setting
from service.remediation.code_edits.failing_code import JobFile
from service.remediation.own_edits import OwnEdit
from service.remediation.setting_values import is_guidance
from service.schemas.diagnosis import ProposedChange

_LISTS = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
# Of each kind the largest counts: an engine and a trainer beside it may have one each.
_DEGREES = (
    re.compile(r"(?:tensor_)?(?:model_)?parallel_(?:size|degree)|tp(?:_size|_degree)?|model_parallel_size"),
    re.compile(r"(?:pipeline|pipe)_(?:model_)?parallel_(?:size|degree)|pp(?:_size|_degree)?"),
    re.compile(r"context_parallel_(?:size|degree)|cp(?:_size|_degree)?"),
)
_MOST = 4096
# NCCL's and PyTorch's words for two ranks of one group that have the same card.
_SHARED = re.compile(r"(?i)attempting to use the same CUDA device|duplicate GPU detected")
_GIVEN = re.compile(
    rf"(?<![\w$])(?P<name>{'|'.join(_LISTS)})=(?P<quote>['\"]?)(?P<list>\d{{1,2}}(?:,\d{{1,2}})*)(?P=quote)"
)
# Launchers' options for how many processes they start, one to a card.
_COUNT = re.compile(r"--(?:num[_-]processes|nproc[_-]per[_-]node|num[_-]gpus)[ =](?P<count>\d{1,3})\b")


def with_degrees(
    changes: Sequence[ProposedChange], settings: Sequence[Setting], language: Language
) -> list[ProposedChange]:
    """Say of each list of cards, which words alone describe, of what number its count must be a multiple."""
    degrees = [
        max(numbers, default=1)
        for kind in _DEGREES
        for numbers in [
            [
                int(item.value)
                for item in settings
                if kind.fullmatch(canonical(last_level(item.key)).lower())
                and re.fullmatch(r"\d{1,4}", item.value.strip())
            ]
        ]
    ]
    total = prod(max(1, degree) for degree in degrees)
    if not 1 < total <= _MOST:
        return list(changes)
    told = words("changes.cards-multiple", language, total=total)
    return [
        change.model_copy(update={"why": joined(change.why, told, language)})
        if change.key in _LISTS and change.purpose == "cure" and is_guidance(change.to)
        else change
        for change in changes
    ]


def disjoint_lists(file: JobFile, said: str) -> OwnEdit | None:
    """Take the cards of a script's first command from the list of its second one, where both have some.

    As many processes as there were cards are as many as are left.
    """
    rows = file.text.split("\n")
    given = [
        (at, found)
        for at, row in enumerate(rows)
        if not row.lstrip().startswith("#")
        for found in _GIVEN.finditer(row)
    ]
    if _SHARED.search(said) is None or len(given) != 2 or given[0][0] == given[1][0]:
        return None
    first, second = (found["list"].split(",") for _, found in given)
    left = [card for card in second if card not in first]
    if not left or len(left) == len(second):
        return None
    at, found = given[1]
    put = list(rows)
    put[at] = rows[at][: found.start("list")] + ",".join(left) + rows[at][found.end("list") :]
    for line in range(at, len(rows)):
        number = _COUNT.search(put[line])
        if number is not None and int(number["count"]) == len(second):
            put[line] = put[line][: number.start("count")] + str(len(left)) + put[line][number.end("count") :]
        if not rows[line].rstrip().endswith("\\"):
            break
    told = {"name": found["name"], "row": given[0][0] + 1, "cards": ",".join(first), "left": len(left)}
    why = in_both("changes.cards-disjoint", **told)
    place = f"{file.name.replace(chr(92), '/').rpartition('/')[2]}:{at + 1}"
    return OwnEdit("replace", place, rows[at].strip(), put[at].strip(), why, file, "\n".join(put))
