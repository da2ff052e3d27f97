"""What the bot says of itself, in both languages, and the words for what an answer's fields mean."""

from __future__ import annotations

from collections.abc import Mapping

from corpus.schema import Language
from service.schemas.diagnosis import Diagnosis

_WORDS: Mapping[str, tuple[str, str]] = {
    "help": (
        (
            "Give me the output of a job that died: in a code block, as a snippet or as attached files "
            "(logs, archives of them, "
            "launch scripts, configs). Mention me, write to me directly, use the message shortcut, or "
            "`/whycrash LOG`. "
            "In a thread, mention me and I read the log that it is about; then ask on. `/whycrash search "
            "WORDS` looks up known cases."
        ),
        (
            "把失败作业的输出给我：放在代码块里、作为代码片段，或作为附件（日志、日志压缩包、启动脚本、配置）。可以 @ 我、私信我、"
            "用消息快捷方式，或 `/whycrash 日志`。在消息列里 @ 我，我会读它所说的日志，之后可以继续追问。`/whycrash search 关键词` 可查已知案例。"
        ),
    ),
    "reading": ("Reading the log: {done} MB so far.", "正在读取日志：已读 {done} MB。"),
    "reading-of": ("Reading the log: {done} of {total} MB.", "正在读取日志：{done} / {total} MB。"),
    "fetching": ("Fetching {count} files.", "正在下载 {count} 个文件。"),
    "explaining": (
        "The model is still explaining; this message will be edited.",
        "模型仍在解释，这条消息会更新。",
    ),
    "thinking": ("Looking into it.", "正在查看。"),
    "model": ("What the model ({model}) says, beside the rules", "模型（{model}）的说法，供参考"),
    "unfinished": ("The explanation ended early: {error}", "解释提前结束：{error}"),
    "stopped": (
        "The server was stopped before I had an answer; ask again, and I begin anew.",
        "还没有得出答案，服务器就停止了；请再问一次，我会重新开始。",
    ),
    "stopped-model": (
        (
            "The server was stopped before the model had finished; this answer is by the rules alone. Ask "
            "again to have the model explain."
        ),
        "模型还没有解释完，服务器就停止了；以上是只按规则得出的答案。再问一次，模型会重新解释。",
    ),
    "failed": ("I have no answer: {error}", "没有得到答案：{error}"),
    "broken": (
        "Something went wrong on my side; it is in the server's log.",
        "我这边出错了，详情在服务器日志里。",
    ),
    "busy": (
        "Many jobs are being looked at right now; I try again in {wait} s.",
        "现在要看的作业很多，{wait} 秒后我再试一次。",
    ),
    "too-busy": (
        "Too many jobs are being looked at right now; ask again in a few minutes.",
        "现在要看的作业太多，请过几分钟再试。",
    ),
    "unreachable-thread": (
        "I cannot read this thread: invite me to the channel, or give me the log itself.",
        "我读不到这个消息列：请把我邀请进频道，或直接把日志给我。",
    ),
    "asked-by": ("{user} asks why a job died.", "{user} 询问作业失败的原因。"),
    "lost-file": ("{file} is left out: {why}", "未读取 {file}：{why}"),
    "no-file": ("None of the files could be read as a log.", "没有一个文件可以作为日志读取。"),
    "change": ("What to change", "建议修改"),
    "why": ("Why", "原因"),
    "evidence": ("Evidence", "证据"),
    "machine": ("What the machine says", "机器自身的读数"),
    "else": ("Or else", "其他可能"),
    "checks": ("To confirm", "如何确认"),
    "cases": ("Known cases", "已知案例"),
    "was": ("was {value}", "原为 {value}"),
    "costs": ("Costs: {costs}", "代价：{costs}"),
    "unverified": ("not in the catalogue for this version; check it", "目录中没有该版本的记录，请核对"),
    "redacted": ("{count} secrets were masked.", "已遮盖 {count} 处敏感信息。"),
    "cut": ("{count} further parts are left out for length.", "因篇幅省略了 {count} 处内容。"),
    "cut-see": (
        "{count} further parts are left out for length; open in chat to see all.",
        "因篇幅省略了 {count} 处内容，可在网页中查看全部。",
    ),
    "hint": (
        "If this was not the log itself, put it into a code block or attach it.",
        "如果这不是日志本身，请把日志放进代码块或作为附件。",
    ),
    "right": ("Right", "正确"),
    "wrong": ("Wrong", "不正确"),
    "patch": ("Show patch", "查看补丁"),
    "open": ("Open in chat", "在网页中打开"),
    "thanks": ("Noted as right, thank you.", "已记录为正确，谢谢。"),
    "noted": (
        "Noted, thank you: it helps to tell such failures apart.",
        "已记录，谢谢：这有助于区分此类失败。",
    ),
    "no-patch": ("There is no patch for this answer.", "这个答案没有补丁。"),
    "patch-title": ("Patch of the first step", "第一步的补丁"),
    "forgotten": ("This triage is no longer kept.", "该记录已不再保留。"),
    "modal": ("The real cause", "真实原因"),
    "modal-cause": ("What was the cause?", "原因是什么？"),
    "modal-choose": ("Choose a cause", "选择原因"),
    "modal-fix": ("What fixed it?", "怎样解决的？"),
    "modal-comment": ("Anything else?", "其他说明"),
    "send": ("Send", "提交"),
    "cancel": ("Cancel", "取消"),
    "unnamed-cause": ("Choose a cause, or say in words what it was.", "请选择原因，或用文字说明。"),
    "nothing-found": ("Nothing found.", "没有找到。"),
    "search-what": (
        "Say what to look for: `/whycrash search WORDS`.",
        "请写明要查什么：`/whycrash search 关键词`。",
    ),
    # How firmly an answer stands.
    "end": ("the way it ended says so", "由结束方式可知"),
    "established": ("the log states it", "日志已写明"),
    "supported": ("several signs support it", "多个迹象支持"),
    "hypothesis": ("a hypothesis", "仅为推测"),
    "none": ("", ""),
    # What may be done next.
    "do:retry": ("a retry may help", "可以重试"),
    "do:change-config": ("change the configuration", "修改配置"),
    "do:change-environment": ("change the environment", "调整环境"),
    "do:fix-code": ("fix the code", "修复代码"),
    "do:fix-data": ("fix the data", "修复数据"),
    "do:replace-hardware": ("take the hardware out", "更换硬件"),
    "do:collect-more": ("collect more first", "先补充信息"),
    "do:none": ("", ""),
    # What the machine says of a cause.
    "agrees": ("agrees", "支持"),
    "contradicts": ("contradicts", "不支持"),
    "neither": ("says nothing either way", "无法判断"),
    # Why a file was not fetched.
    "file:large": ("it is larger than {limit} MB.", "超过 {limit} MB。"),
    "file:many": ("no more than {limit} files are read of one message.", "一条消息最多读取 {limit} 个文件。"),
    "file:place": ("it does not lie at Slack.", "不在 Slack 上。"),
    "file:refused": (
        "Slack does not give it to me; invite me to the channel that it was shared in.",
        "Slack 不允许我读取，请把我邀请进分享它的频道。",
    ),
    "file:short": ("the connection broke off.", "连接中断。"),
    "file:unknown": ("Slack does not know it any more.", "Slack 上已经没有它。"),
    "file:kind": ("it is neither a log nor a configuration.", "既不是日志也不是配置。"),
    "file:slow": ("it took too long.", "耗时过长。"),
}


def say(name: str, language: Language, **values: object) -> str:
    """Give a sentence in `language` with its values filled in."""
    return _WORDS[name][language == "zh"].format(**values)


def is_chinese(text: str) -> bool:
    """Tell whether a text holds Chinese characters."""
    return any("一" <= char <= "鿿" for char in text)


def spoken(text: str) -> Language:
    """Tell the language that a person writes in."""
    return "zh" if is_chinese(text) else "en"


def language_of(diagnosis: Diagnosis) -> Language:
    """Tell the language that an answer is in."""
    return spoken(diagnosis.headline)
