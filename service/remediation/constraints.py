"""What a person says cannot be changed, and the changes that this rules out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from corpus.keys import levels
from service.schemas.diagnosis import ProposedChange

_VERBS = (
    "change|touch|lower|raise|reduce|increase|modify|alter|cut|shrink|grow|turn (?:on|off)|switch(?: on| "
    "off)?|disable|enable|use|upgrade|"
    "downgrade|update|install|add|set|edit|adjust|decrease|drop|get|have|afford"
)
_LIMIT = re.compile(
    r"\b(?:can(?:no|')?t|can not|cannot|could not|couldn't|must not|mustn't|may not|won't|will "
    r"not|(?:am|are|is|'re|'m) not (?:allowed|able|permitted) to|unable to|"
    r"(?:do|does) not want to|don't want to|shouldn't|should not|no (?:way|permission) to|do "
    rf"not|don't|never)\s+(?:just |simply |really |be )?(?:{_VERBS})|"
    r"\b(?:must|has to|have to|need(?:s)? to|should) (?:keep|stay|remain|be "
    r"kept|not)\b|\b(?:is|are|stays?|remains?) (?:fixed|frozen|given|set in stone|pinned)\b|\bwithout "
    r"(?:changing|touching|lowering|reducing)\b|"
    r"不能|不可以|不允许|无法|没法|没有权限|必须保持|必须保留|不想|不要|别(?:改|动|调|降)|固定(?:的|不变)|不变",
    re.IGNORECASE,
)
# A proposal to change something, as a model words it.
_PROPOSAL = re.compile(
    r"\b(?:lower|raise|reduce|increase|decrease|change|cut|halve|double|shrink|smaller|larger|fewer|more|"
    r"less|turn (?:on|off)|disable|enable|switch|upgrade|downgrade|update|install|set)\b|"
    r"降低|减小|减少|调小|调大|调低|调高|增大|增加|提高|改为|改成|换成|关闭|开启|升级|降级|安装|设置",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Topic:
    """Something of a job that people speak of: their words for it, and the settings that it is."""

    name: str
    words: re.Pattern[str]
    keys: re.Pattern[str]


def _topic(name: str, words: str, keys: str) -> Topic:
    return Topic(name, re.compile(words, re.IGNORECASE), re.compile(keys, re.IGNORECASE))


# `keys` is searched in `kind framework key` of a change.
TOPICS: tuple[Topic, ...] = (
    _topic(
        "batch size",
        r"batch[ _-]?siz\w*|(?:micro|mini|global)[ _-]?batch\w*|\bbatch(?:es)?\b|"
        r"批(?:次|量|处理)?(?:的)?大小|批量",
        r"batch|gradient_accumulation|num_generations",
    ),
    _topic(
        "sequence length",
        r"(?:sequence|context|prompt|response|generation|max|completion|model)[ "
        r"_-]?len\w*|max_model_len|context window|cutoff|序列长度|上下文(?:长度)?|(?:提示|回复|最大)长度",
        r"length|model_len|seq_len|seqlen|max_tokens|cutoff|context",
    ),
    _topic("offload", r"off[ -]?load\w*|卸载", r"offload"),
    _topic(
        "precision",
        r"precision|dtype|\bbf16\b|\bfp16\b|\bfp32\b|\bfp8\b|quanti[sz]\w*|精度|量化",
        r"dtype|bf16|fp16|fp32|fp8|precision|quant",
    ),
    _topic(
        "number of GPUs and nodes",
        r"\bgpus?\b(?! memory)|\bnodes?\b|\bcards?\b|\bmachines?\b|hardware|parallel\w*|tensor[ "
        r"_-]parallel|\btp\b|显卡|卡数|节点|机器|并行",
        r"n_gpus|nnodes|num_nodes|num_gpus|parallel|tp_size|pp_size|dp_size|world_size|nproc|gres|--gpus|"
        r"nvidia\.com",
    ),
    _topic(
        "GPU memory share",
        r"gpu[ _-]memory[ _-]\w+|memory utili[sz]ation|mem[ _-]fraction|显存(?:占用|比例|利用率)",
        r"gpu_memory_utilization|mem_fraction",
    ),
    _topic(
        "host memory",
        r"(?:host|system|node|container)[ _-]memory|\bram\b|memory limit|\bshm\b|主机内存|内存上限|物理内存",
        r"(?:--|\.|_)mem(?:ory)?$|mem-per|shm|limits\.memory|memory_limit",
    ),
    _topic(
        "versions of packages",
        r"versions?\b|upgrad\w*|downgrad\w*|\binstall\w*|packages?|版本|升级|降级|安装",
        r"^package ",
    ),
    _topic("environment variables", r"env(?:ironment)?[ _-]?var\w*|环境变量", r"^env "),
    _topic("learning rate", r"learning[ _-]rate|\blr\b|学习率", r"learning_rate|(?:^|[._ ])lr(?:$|[._])"),
    _topic("time-outs", r"time[ _-]?outs?|超时", r"timeout|time_out|--time"),
    _topic("checkpoints", r"check[ _-]?point\w*|saving|检查点|保存(?:频率|间隔)", r"save|checkpoint"),
    _topic(
        "gradient checkpointing",
        r"gradient[ _-]checkpointing|recomput\w*|activation[ _-]checkpointing|重计算|梯度检查点",
        r"gradient_checkpointing|recompute|activation_checkpoint",
    ),
    _topic(
        "the model",
        r"\b(?:the|another|smaller|this|our) model\b(?![ _-]?len)|model size|模型",
        r"model_name|model_path|model\.path|pretrain",
    ),
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Something that cannot be changed; `said` is how the user put it."""

    topic: Topic
    said: str

    def bars(self, change: ProposedChange) -> bool:
        """Tell whether a change is ruled out, spelled with underscores or, as a flag is, with dashes."""
        spelled = f"{change.kind} {change.framework} {change.key}"
        return any(map(self.topic.keys.search, (spelled, spelled.replace("-", "_"))))

    def is_broken_by(self, sentence: str) -> bool:
        """Tell whether a sentence proposes to change it all the same."""
        return bool(self.topic.words.search(sentence) and _PROPOSAL.search(sentence))


def stated_constraints(text: str, changes: Sequence[ProposedChange] = ()) -> list[Constraint]:
    """Read what a person says cannot be changed; `changes` are settings that may be meant by their names."""
    found: dict[str, Constraint] = {}
    for sentence in filter(_LIMIT.search, re.split(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n", text)):
        named = list(_named(sentence, changes))
        # Who names one setting speaks of that one, not of all its kind.
        rest = reduce(lambda left, topic: topic.words.sub(" ", left), named, sentence)
        for topic in (*named, *(topic for topic in TOPICS if topic.words.search(rest))):
            found.setdefault(topic.name, Constraint(topic, sentence.strip()[:200]))
    return list(found.values())


def _named(sentence: str, changes: Sequence[ProposedChange]) -> Iterator[Topic]:
    for change in changes:
        last = levels(change.key)[-1].strip("-")
        spelled = "[-_]".join(map(re.escape, re.split("[-_]", last)))
        if len(last) > 2 and re.search(rf"(?<![\w]){spelled}(?![\w])", sentence):
            yield Topic(change.key, re.compile(spelled), re.compile(rf"(?:^|[ ._-]){spelled}$"))


def remaining_changes(
    changes: Sequence[ProposedChange], constraints: Sequence[Constraint]
) -> tuple[ProposedChange, ...]:
    """Give the changes that no constraint rules out."""
    return tuple(
        change for change in changes if not any(constraint.bars(change) for constraint in constraints)
    )
