"""Sentences that tell a reader that nothing failed, or that nothing is to be done."""

from __future__ import annotations

import re

FINE = re.compile(
    r"\b(?:no|not an?|without "
    r"an?y?)\s+(?:real\s+)?(?:failure|error|problem|issue|crash)s?\b(?=\s*(?:[.,;!]|$|(?:was|were|is|are) "
    r"(?:found|seen|detected|present)|occurred|happened|at "
    r"all|here|\[|(?:with|in|of) (?:this|the|your) (?:run|job|training|log)\b))|"
    r"^\W*(?:this|it|that|all of (?:this|it)) (?:is|was) (?:all |quite |perfectly |entirely )?"
    r"(?:normal|expected|harmless|intended)\b|"
    r"\b(?:ticket|case|incident|issue|alert|report)s? (?:can|may|should|must|is to) "
    r"(?:now |simply |safely )?be (?:closed|ignored|dismissed|muted|resolved)\b|"
    r"\bno (?:further )?action (?:is |was )?(?:needed|required|necessary)\b|"
    r"\b(?:completed|finished|ended)\s+(?:success|normal|correct)|"
    r"\b(?:is|was|are|looks?|ran|seems?)\s+(?:perfectly\s+|completely\s+)?(?:healthy|fine|successful|"
    r"ok(?:ay)?)\b|nothing (?:failed|is wrong|went wrong)|\b(?:all|everything) (?:is|was|looks|went|"
    r"works) (?:well|good|fine|okay|ok|normal|correct)|"
    r"(?:没有|并无|未)(?:发生)?(?:任何)?(?:失败|故障|问题|错误)|运行正常|一切正常|"
    r"一切(?:都)?好|成功完成|可以?(?:直接)?(?:关单|结单)",
    re.IGNORECASE,
)
# What makes little of a failure: that it is none, is to be borne, or needs nothing.
_LITTLE = re.compile(
    r"\b(?:no|zero) (?:further |other )?(?:changes?|fix(?:es)?|steps?|repairs?|measures?|errors?) "
    r"(?:is |are |was |were )?(?:needed|required|necessary|detected|found|left)\b|"
    r"\bnothing to (?:fix|do|change|worry)\b|"
    r"\b(?:is|was|are|were) (?:only|just|merely|but) (?:an? )?(?:\w+ )?(?:warning|notice|hint|test|drill|"
    r"artefact|artifact|joke|formality)s?\b|\bfalse alarms?\b|"
    r"\b(?:may|can|could|should|will) (?:simply|just|safely|now) (?:go on|continue|proceed)\b|"
    r"\b(?:may|can|could|should) (?:simply |just |safely |now )*be (?:ignored|disregarded)\b|"
    r"\b(?:nobody|no ?one) (?:should|must|needs? to|has to) (?:look|act|worry|care|check)\b|"
    r"(?:属于|是|均为)正常(?:现象|情况|行为)?|无(?:需|须|要)(?:处理|理会|修改|关注)|"
    r"不(?:用|必|需要)(?:处理|理会|修改|管)|误报",
    re.IGNORECASE,
)


def comforts(text: str) -> bool:
    """Tell whether a text says that a failure is none, or that nothing is to be done about it."""
    return FINE.search(text) is not None or _LITTLE.search(text) is not None
