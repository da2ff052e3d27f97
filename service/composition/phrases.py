"""The sentences of an answer that are not a case's own, in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from corpus import phases
from corpus.schema import Language
from ingest.logs.facts import Fact, Value
from ingest.logs.timeline import Place
from service.schemas.diagnosis import Outcome, Telemetry

_PHRASES = {
    "at": ("{line}{source} reads:", "{line}{source}写道："),
    "by": (" ({source})", "（{source}）"),
    "repeated": (
        "The same message came {count} times, from {streams} processes.",
        "同样的信息出现了 {count} 次，来自 {streams} 个进程。",
    ),
    "novel": (
        "The healthy run prints nothing like these last lines:",
        "正常运行的日志里没有类似的最后几行：",
    ),
    "missing": (
        "{count} ranks report it; rank {ranks} does not: look at what it printed last.",
        "有 {count} 个 rank 报了这个错误，rank {ranks} 没有：请先看它最后输出了什么。",
    ),
    "not-by": ("not from rank {ranks}", "没有 rank {ranks}"),
    "followed": ("What came after it is a consequence:", "其后的这些是它的后果："),
    "recovered": (
        "Earlier errors that the run recovered from are not the cause ({lines}).",
        "更早的错误之后运行仍在继续，不是原因（{lines}）。",
    ),
    "last-step": ("The last step seen was {step}.", "日志中最后一步是第 {step} 步。"),
    "why": ("Why", "原因"),
    "do": ("What to do", "处理"),
    "similar": ("Past incidents that look alike:", "相似的历史事件："),
    "fixed-by": ("{owner}: cause {cause}; fixed by: {fix}", "{owner}：原因 {cause}；当时的解决办法：{fix}"),
    "seen-before": ("{owner}: cause {cause}", "{owner}：原因 {cause}"),
    "unnamed": ("not recorded", "未记录"),
    "root": ("the first failure that nothing before it explains", "最早的、没有更早原因的失败"),
    "same": ("points to the same cause", "指向同一原因"),
    "quoted": ("quoted by the model", "模型引用"),
    "after": ("follows from the first failure", "由首个失败引起"),
    "unknown-headline": ("The log does not show why the job died", "这份日志里看不出作业为什么失败"),
    "unknown": (
        (
            "The log shows that something failed, but no line in it tells the cause. Guessing would be worse "
            "than asking for more."
        ),
        "日志表明有进程失败，但没有哪一行说明原因。与其猜测，不如先补充信息。",
    ),
    "seen": ("What was seen:", "看到的是："),
    "maybe": (
        "It may be one of these, but the log does not settle it:",
        "可能是下列之一，但日志不足以确定：",
    ),
    "nearest": ("The nearest known cases, by likeness only:", "仅按相似度，最接近的已知案例："),
    "ambiguous-headline": (
        "Two causes fit: {first}, or {second}",
        "有两个原因都说得通：{first}，或 {second}",
    ),
    "healthy-headline": (
        "No failure found, and the log shows a good end",
        "没有发现失败，日志显示作业正常结束",
    ),
    "healthy": (
        "Nothing in it speaks of a failure that the run did not recover from.",
        "其中没有运行未能恢复的失败。",
    ),
    "ended": ("{line} shows that the run came to its end.", "{line}表明运行已结束。"),
    "open-headline": (
        "Nothing in this log failed; it ends at step {step}{of} without an end",
        "日志里没有失败，但停在第 {step} 步{of}，没有结束标志",
    ),
    "open-headline-uncounted": (
        "Nothing in this log failed; it ends amid the work without an end",
        "日志里没有失败，但在运行中戛然而止，没有结束标志",
    ),
    "of-steps": (" of {total}", "（共 {total} 步）"),
    "open-end": (
        "Nothing in this log failed; it ends at step {step}{of} without an end.",
        "日志里没有失败，但停在第 {step} 步{of}，没有结束标志。",
    ),
    "open-end-uncounted": (
        "Nothing in this log failed; the job was at work until it ends.",
        "日志里没有失败，直到最后作业都在运行。",
    ),
    "open-where": (" {line} is the last sign of work.", "{line}是最后一处运行迹象。"),
    "open-do": (
        (
            "If the job still runs, all is well. If it died, the reason is outside this log, as a SIGKILL "
            "leaves no trace in it: look at the job's exit "
            "code or signal, the kernel's log (`dmesg`), the scheduler's accounting, and the logs of the "
            "other ranks and of the launcher."
        ),
        (
            "如果作业还在运行，则一切正常。如果它已经死掉，原因不在这份日志里（SIGKILL 就不会留下痕迹）：请查看作业的退出码或信号、内核日志（`dmesg`）、"
            "调度器的记账信息，以及其他 rank 和启动器的日志。"
        ),
    ),
    "no-sign-headline": (
        "The log shows neither a failure nor a good end",
        "这份日志既没有显示失败，也没有显示正常结束",
    ),
    "no-sign": (
        (
            "No line of it is known as a failure, and none shows that the job came to a good end or was "
            "still "
            "at work: what became of it cannot be told from here."
        ),
        "没有哪一行是已知的失败，也没有哪一行表明作业正常结束或仍在运行：从这里看不出作业的结局。",
    ),
    "cut-headline": ("The log is cut: its end was not seen", "日志被截断：没有看到它的结尾"),
    "cut": (
        (
            "What could be read of it shows no failure, but the file is cut or damaged, and how the job "
            "ended stands in what is missing. "
            "Give the whole file: copy it again, or read it where the job wrote it."
        ),
        "能读到的部分没有失败，但文件被截断或已损坏，作业如何结束在缺失的部分里。请提供完整的文件：重新复制，或在作业写入它的地方读取。",
    ),
    "unrecognised-headline": ("This is not recognised as a job's output", "这段文字看不出是作业的输出"),
    "unrecognised": (
        (
            "Nothing in it is known as what a training or serving job prints: no failure, no progress, no "
            "good end. "
            "Give what the job itself printed, up to its last line."
        ),
        "其中没有训练或推理作业会输出的内容：没有失败、没有进度，也没有正常结束的标志。请提供作业自己的输出，直到最后一行。",
    ),
    "ended-unknown": ("{end}; the log does not say why", "{end}；日志没有说明原因"),
    "signs": (" ({signs})", "（{signs}）"),
    "and": (", ", "，"),
    "stop": (".", "。"),
    "exit-code": ("exit code {value}", "退出码 {value}"),
    "state": ("state {value}", "状态 {value}"),
    "signal": ("signal {value}", "信号 {value}"),
    "at-step": ("last step {value}", "最后一步 {value}"),
    "at-checkpoint": ("last checkpoint {value}", "最近检查点 {value}"),
    "printed-nothing": ("It printed nothing.", "它没有输出任何内容。"),
    "silent": ("The log shows no failure that would explain it.", "日志里没有能解释它的失败。"),
    "said-done": (
        "{line} says that the run finished; how it ended says otherwise.",
        "{line}表示运行已完成，但它的结束方式并非如此。",
    ),
    "went-on": (
        "Errors that the run went on after; with such an end, one of them may be the cause all the same:",
        "运行越过了下列错误；但以这样的方式结束，其中之一仍可能是原因：",
    ),
    "ended-well": ("{end}.", "{end}。"),
    "ended-well-though": (
        (
            "{end}, though: see whether whoever started it went on after the failure, as a shell script "
            "without `set -e` does."
        ),
        "不过{end}：请确认启动它的脚本是否在失败后继续执行（没有 `set -e` 的 shell 脚本就会这样）。",
    ),
    "machine": ("What the machine itself says:", "机器自身的读数："),
    "agrees": ("agrees", "支持"),
    "contradicts": ("contradicts", "不支持"),
    "neither": ("says nothing either way", "无法判断"),
    "not available": ("not available", "没有数据"),
    "collect": ("What to collect next", "接下来收集什么"),
}

_FACTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "gpu_oom": (
        "{asked_gib} GiB were asked for with {free_gib} GiB free of {capacity_gib} GiB",
        "申请 {asked_gib} GiB，空闲 {free_gib} GiB，总容量 {capacity_gib} GiB",
        ("asked_gib", "free_gib", "capacity_gib"),
    ),
    "host_oom": (
        "the node used {used_gib} of {limit_gib} GiB",
        "节点已用 {used_gib} / {limit_gib} GiB",
        ("used_gib", "limit_gib"),
    ),
    "collective": (
        "{op} (sequence {seq}) timed out after {timeout_s} s",
        "{op}（序号 {seq}）在 {timeout_s} 秒后超时",
        ("op", "seq", "timeout_s"),
    ),
    "exit": ("the process ended with exit code {code}", "进程退出码为 {code}", ("code",)),
    "port": ("port {port} is taken", "端口 {port} 已被占用", ("port",)),
    "batch": ("{size} is not divisible by {divisor}", "{size} 不能被 {divisor} 整除", ("size", "divisor")),
    "sequence": (
        "length {length} against a limit of {limit}",
        "长度 {length}，上限 {limit}",
        ("length", "limit"),
    ),
}


def phrase(name: str, language: Language, **values: object) -> str:
    """Give a sentence in `language` with its values filled in."""
    return _PHRASES[name][language == "zh"].format(**values)


def phase(name: str, language: Language) -> str:
    """Give the words for a phase of a job, or the empty string for none."""
    known = phases.load().by_name.get(name)
    return known.title.to(language) if known else ""


def place(where: Place, language: Language) -> str:
    """Say where a line stands, at the beginning of a sentence."""
    if language == "zh":
        return f"{where.file} 第 {where.line} 行" if where.file else f"第 {where.line} 行"
    return f"Line {where.line}" + (f" of {where.file}" if where.file else "")


def fact(found: Fact, language: Language) -> str:
    """Put a fact into words; empty where it lacks the fields for it."""
    if found.kind not in _FACTS:
        return ""
    english, chinese, needed = _FACTS[found.kind]
    if any(name not in found.fields for name in needed):
        return ""
    values: dict[str, Value] = {
        name: f"{value:.4g}" if isinstance(value := found.fields[name], float) else value for name in needed
    }
    return (chinese if language == "zh" else english).format(**values)


def outcome(ended: Outcome, language: Language) -> str:
    """Write how a job ended in a line, with how far its log shows that it came.

    Empty where nobody told how.
    """
    if not ended.is_given:
        return ""
    told = {
        "exit-code": ended.exit_code,
        "signal": ended.signal,
        "state": ended.state,
        "at-step": ended.last_step,
        "at-checkpoint": ended.last_checkpoint,
    }
    return " · ".join(
        phrase(name, language, value=value) for name, value in told.items() if value is not None
    )


def telemetry(said: Telemetry, language: Language) -> list[str]:
    """Put what the machine says of each cause into words, with the readings that it rests on."""
    spoken = [
        item for place, item in enumerate(said.causes) if place == 0 or item.says in ("agrees", "contradicts")
    ]
    rows = []
    for item in spoken:
        there = [f"{one.name} = {one.value}" for one in item.readings if one.value is not None]
        missing = [f"{one.name}: {one.unavailable}" for one in item.readings if one.value is None]
        shown = "; ".join("`{}`".format(text.replace("`", "'")[:160]) for text in (there or missing)[:3])
        line = f"- {item.cause}: {phrase(item.says, language)}. {item.why}"
        rows.append(f"{line} ({shown})" if shown else line.rstrip())
    return rows
