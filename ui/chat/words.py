"""The words of the page, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from corpus.schema import Language

# How what was handed in is called where it is no file; the store keeps these names, a page tells them in its
# language.
PASTED, EXAMPLE = "pasted text", "example: "

_WORDS: Mapping[str, tuple[str, str]] = {
    # The page around an answer; the browser puts these in place.
    "title": ("Why did the job die?", "作业为什么失败？"),
    "tagline": ("finds why a GPU job died", "找出 GPU 作业失败的原因"),
    "skip-answer": ("Skip to the answer", "跳到答案"),
    "skip-input": ("Skip to the log input", "跳到日志输入"),
    "paste": ("Paste the end of the log, or the whole of it", "粘贴日志的末尾，或整份日志"),
    "paste-hint": (
        "Traceback, NCCL timeout, OOM, a full interleaved log: whatever the job printed…",
        "报错堆栈、NCCL 超时、显存不足、多进程混杂的整份日志：作业输出的内容都可以……",
    ),
    "add-files": ("Add files", "添加文件"),
    "drop": (
        "or drop them anywhere: logs, archives, launch scripts, configs, a telemetry snapshot",
        "或拖放到页面任意位置：日志、压缩包、启动脚本、配置、遥测快照",
    ),
    "drop-here": ("Drop to add", "松开即可添加"),
    "remove-file": ("Remove {name}", "移除 {name}"),
    "explain": ("Explain", "分析原因"),
    "live": (
        "The job ran on this server: read its telemetry too",
        "作业就跑在这台服务器上：同时读取它的遥测数据",
    ),
    "ask-model": ("Let {model} explain too", "同时让 {model} 解释"),
    "stays": (
        "Read on this server. No model is set, so nothing leaves it.",
        "只在这台服务器上读取。没有配置模型，内容不会离开服务器。",
    ),
    "goes": (
        "Read on this server. {model} gets a short excerpt with secrets masked.",
        "在这台服务器上读取。只有遮盖了敏感信息的一小段摘录会发给 {model}。",
    ),
    "examples": ("Or see an example", "或者看一个例子"),
    "new": ("New log", "新日志"),
    "history": ("History", "历史"),
    "search-history": ("Search past triages", "搜索历史记录"),
    "more": ("More", "更多"),
    "no-history": ("Nothing here yet.", "这里还没有内容。"),
    "theme": ("Switch dark and light", "切换深色和浅色"),
    "language": ("切换到中文", "Switch to English"),
    "language-short": ("中文", "EN"),
    "follow": ("Ask about this answer", "就这个答案提问"),
    "follow-hint": (
        "Why not…? We cannot change the batch size. What does it cost?",
        "为什么不……？batch size 不能改。代价是什么？",
    ),
    "ask": ("Ask", "提问"),
    "empty": ("Paste a log or add a file first.", "请先粘贴日志或添加文件。"),
    "uploading": ("Uploading {name}…", "正在上传 {name}……"),
    "upload-failed": ("{name} could not be uploaded: {why}", "{name} 上传失败：{why}"),
    "lost": (
        (
            "The server stopped while it was answering. What it had said is kept; this page comes back by "
            "itself when the server does."
        ),
        "服务器在回答途中停止了。已经给出的内容会保留；服务器恢复后，本页会自动恢复。",
    ),
    "lost-before": (
        (
            "The server cannot be reached. What you pasted is kept on this page, which comes back by itself "
            "when the server does."
        ),
        "无法连接服务器。你粘贴的内容仍保留在本页；服务器恢复后，本页会自动恢复。",
    ),
    "back": (
        (
            "The server is back. It had not taken the log in: look over it and ask again. Files are to be "
            "added anew."
        ),
        "服务器已恢复，但日志还没有提交成功：请检查后重新提交；文件需要重新添加。",
    ),
    "too-large": (
        (
            "{name} is larger than {limit} MB, the most that this server takes. The last part of the log is "
            "enough."
        ),
        "{name} 超过服务器的上限 {limit} MB。只给日志的最后部分即可。",
    ),
    "copied": ("Copied", "已复制"),
    "copy-failed": (
        "The browser does not let the page copy; select the text instead.",
        "浏览器不允许复制，请手动选择文本。",
    ),
    "sent": ("Thank you, noted.", "谢谢，已记录。"),
    "failed-call": ("The server did not answer. Try again.", "服务器没有响应，请重试。"),
    "forgotten": ("Deleted.", "已删除。"),
    "forget-sure": (
        "Delete this triage, its log excerpt and its conversation?",
        "删除这次分析、日志摘录和对话？",
    ),
    "link-copied": ("Link copied", "链接已复制"),
    # The stages.
    "pasted": (PASTED, "粘贴的文本"),
    "stage-wait": ("Waiting for its turn", "排队中"),
    "stage-reading": ("Reading {done} of {total}", "正在读取 {done} / {total}"),
    "stage-reading-some": ("Reading {done}", "正在读取 {done}"),
    "stage-read": ("Read {size}, {lines} lines", "已读取 {size}，{lines} 行"),
    "stage-part": ("(part of it)", "（部分）"),
    "stage-events": ("{count} failure events", "{count} 个失败事件"),
    "stage-event": ("1 failure event", "1 个失败事件"),
    "stage-cases": ("{count} known cases", "{count} 个已知案例"),
    "stage-case": ("1 known case", "1 个已知案例"),
    "stage-telemetry": ("Telemetry: {sources}", "遥测：{sources}"),
    "stage-no-telemetry": ("No telemetry", "没有遥测"),
    "stage-model": ("The model is writing…", "模型正在撰写……"),
    "stage-model-done": ("Explained by {model}", "由 {model} 解释"),
    "stage-rules": ("Answered in {ms} ms, without a model", "{ms} 毫秒内得出，未用模型"),
    "stage-rules-known": ("Answered without a model", "未用模型得出"),
    # The answer.
    "verdict-diagnosed": ("Cause found", "已找到原因"),
    "verdict-probable": ("Probable cause", "可能的原因"),
    "verdict-ambiguous": ("Two causes fit", "有两种可能"),
    "verdict-unknown": ("Cause not shown by the log", "日志未显示原因"),
    "verdict-no-failure": ("No failure found", "未发现失败"),
    "verdict-open-end": ("No failure, and no end seen", "未见失败，也未见结束"),
    "standing": ("How sure", "把握"),
    "standing-established": ("The log states it", "日志已写明"),
    "standing-supported": ("Several signs support it", "多个迹象支持"),
    "standing-hypothesis": ("A hypothesis: check before acting", "仅为推测，请先核实"),
    "standing-end": ("The way it ended says so", "由结束方式可知"),
    "standing-none": ("Not decided", "未定"),
    "action": ("Next step", "下一步"),
    "outcome": ("How it ended", "结束方式"),
    "action-retry": ("Run it again: a retry is safe", "重新运行即可，重试是安全的"),
    "action-change-config": ("Change the job's configuration", "修改作业配置"),
    "action-change-environment": ("Change the environment", "修改运行环境"),
    "action-fix-code": ("Fix the code", "修改代码"),
    "action-fix-data": ("Fix the data", "修正数据"),
    "action-replace-hardware": ("Take the hardware out of service", "停用并更换硬件"),
    "action-collect-more": ("Collect more before acting", "先收集更多信息"),
    "action-none": ("Nothing to do", "无需处理"),
    "proof": ("Proof", "依据"),
    "line": ("line {line}", "第 {line} 行"),
    "what-to-change": ("What to change", "修改什么"),
    "what-to-check": ("What to look at next", "接下来看什么"),
    "nothing-to-change": (
        "No setting is known to help here; see what to check below.",
        "没有已知可用的设置；请看下面的检查项。",
    ),
    "healthy-change": ("Nothing needs to change.", "无需修改。"),
    "patch": ("Patch", "补丁"),
    "patch-of": ("Patch of {files}", "{files} 的补丁"),
    "patch-of-command": ("The command in line {line} of the log, changed", "日志第 {line} 行的命令，修改后"),
    "kind-setting": ("setting", "设置"),
    "kind-flag": ("flag", "命令行参数"),
    "kind-env": ("environment variable", "环境变量"),
    "kind-package": ("package", "软件包"),
    "kind-command": ("command", "命令"),
    "no-patch": (
        "Add the launch script or config to get this as a patch.",
        "附上启动脚本或配置文件，就能得到补丁。",
    ),
    "copy": ("Copy", "复制"),
    "download": ("Download", "下载"),
    "was": ("instead of {value}", "原为 {value}"),
    "costs": ("Costs", "代价"),
    "unverified": ("Not in the catalogue for this version: check it", "目录中没有该版本的记录，请核对"),
    "replaces": ("replaces {key}, which the job sets in vain", "替换无效的 {key}"),
    "other-changes": ("{count} more that can help", "另外 {count} 项可能有用的修改"),
    "other-change": ("1 more that can help", "另外 1 项可能有用的修改"),
    "why": ("Why", "为什么"),
    "model-says": ("What the model ({model}) says, beside the rules", "模型（{model}）的说法，供参考"),
    "alternatives": ("It could also be", "也可能是"),
    "checks": ("To confirm", "如何确认"),
    "share": ("Copy link", "复制链接"),
    "running-elsewhere": (
        "This triage is still being worked on, or its server was stopped. Here is what it has so far.",
        "这次分析仍在进行，或其服务器已停止。以下是目前已有的内容。",
    ),
    # Feedback.
    "was-right": ("Was this right?", "这个结论对吗？"),
    "right": ("Yes, that was it", "对，就是它"),
    "wrong": ("No, it was not", "不对"),
    "real-cause": ("The real cause was", "真正的原因是"),
    "dont-know": ("I do not know", "不清楚"),
    "what-fixed": ("What fixed it (optional)", "怎么修好的（可选）"),
    "send": ("Send", "提交"),
    # Evidence.
    "evidence": ("The log", "日志"),
    "evidence-whole": ("The whole log, secrets masked", "完整日志，已遮盖敏感信息"),
    "evidence-part": ("The parts that matter, secrets masked", "关键部分，已遮盖敏感信息"),
    "evidence-few": ("The lines that the answer rests on", "结论所依据的行"),
    "no-evidence": ("No line of the log was needed for this answer.", "这个结论没有引用日志中的行。"),
    "gap": ("{count} lines not kept", "省略 {count} 行"),
    "jump": ("Jump to", "跳转到"),
    "role-root": ("Root", "根因"),
    "role-collateral": ("Collateral", "连带"),
    "role-recovered": ("Recovered", "已恢复"),
    "role-teardown": ("Teardown", "退出清理"),
    "role-context": ("Same cause", "同一原因"),
    "log-lines": ("Log lines", "日志行"),
    # Cascade.
    "cascade": ("How it spread", "故障如何扩散"),
    "cascade-recovered": ("What it recovered from", "已恢复的错误"),
    "cascade-plot": (
        "Failures over {lanes} in the order of their first lines; the list below says the same.",
        "{lanes}上的失败，按首次出现的行排序；下面的列表内容相同。",
    ),
    "cascade-lanes": ("{count} processes", "{count} 个进程"),
    "cascade-lane": ("one process", "一个进程"),
    "cascade-list": ("All {count} events", "全部 {count} 个事件"),
    "job": ("job output", "作业输出"),
    "silent": ("rank {ranks}: no failure", "rank {ranks}：没有报错"),
    "silent-told": ("not from rank {ranks}", "没有 rank {ranks}"),
    # Cases.
    "cases": ("Known cases", "已知案例"),
    "no-cases": ("No known case is near.", "没有相近的已知案例。"),
    "match": ("{percent} match", "匹配 {percent}"),
    "cited": ("used for the answer", "答案所用"),
    "kind-case": ("case", "案例"),
    "kind-note": ("note", "笔记"),
    "kind-report": ("past crash", "历史事件"),
    "sources": ("Sources", "来源"),
    "fixed-by": ("Fixed by", "解决办法"),
    # Telemetry.
    "telemetry": ("The machine", "机器状态"),
    "telemetry-none": (
        "No telemetry was given. Add a snapshot (`whycrash snapshot --out FILE`) to have it weighed.",
        "没有提供遥测。附上快照（`whycrash snapshot --out FILE`）即可纳入判断。",
    ),
    "telemetry-silent": ("No reading tells for or against: {causes}", "没有读数能证实或否定：{causes}"),
    "says-agrees": ("agrees", "一致"),
    "says-contradicts": ("contradicts", "矛盾"),
    "says-neither": ("neither confirms nor contradicts", "既不证实也不否定"),
    "says-not available": ("not available", "没有数据"),
    "taken": ("Taken at {when} from {sources}", "取自 {when}，来源：{sources}"),
    "reading": ("Reading", "读数"),
    "value": ("Value", "值"),
    "not-available": ("not available: {why}", "没有数据：{why}"),
    "plot-of": ("{name}: from {first} to {last} over {span}", "{name}：{span} 内从 {first} 到 {last}"),
    "before-end": ("{span} before", "{span} 前"),
    "snapshot-end": ("snapshot", "快照时刻"),
    # Privacy.
    "privacy": ("Privacy", "隐私"),
    "masked": (
        "{count} secrets masked before anything was stored, sent or shown",
        "在存储、发送、显示之前遮盖了 {count} 处敏感信息",
    ),
    "masked-one": (
        "1 secret masked before anything was stored, sent or shown",
        "在存储、发送、显示之前遮盖了 1 处敏感信息",
    ),
    "masked-none": ("No secrets were found", "没有发现敏感信息"),
    "sent-nothing": ("Nothing was sent to a model", "没有向模型发送任何内容"),
    "sent-model": (
        "Sent to {model}: {sent} tokens; it wrote {received}",
        "发送给 {model}：{sent} 个 token；返回 {received} 个",
    ),
    "sent-failed": ("A model was asked: {note}", "曾询问模型：{note}"),
    "omitted": ("Left out of the prompt for want of room: {what}", "因篇幅未放入提示词：{what}"),
    "dropped": (
        "{count} claims did not pass the checks and are not shown as fact",
        "{count} 条说法未通过核对，没有作为事实显示",
    ),
    "dropped-one": (
        "1 claim did not pass the checks and is not shown as fact",
        "1 条说法未通过核对，没有作为事实显示",
    ),
    "show-prompt": ("Show exactly what a model is sent", "查看发给模型的确切内容"),
    "forget": ("Delete this triage", "删除这次分析"),
    "kept": (
        "Kept on this server: this answer, the masked lines above and the conversation.",
        "服务器保存：这个答案、上面已遮盖的日志行，以及对话。",
    ),
    # Conversation.
    "talk": ("Conversation", "对话"),
    "you": ("You", "你"),
    "whycrash": ("whycrash", "whycrash"),
    "ruled-out": ("You ruled out", "你排除了"),
    "thinking": ("Looking…", "正在查找……"),
    # History.
    "state-running": ("running", "进行中"),
    "state-failed": ("failed", "失败"),
    "just-now": ("just now", "刚刚"),
    "minutes-ago": ("{count} min ago", "{count} 分钟前"),
    "hours-ago": ("{count} h ago", "{count} 小时前"),
    "days-ago": ("{count} d ago", "{count} 天前"),
    # Errors; their own sentences are those of ui.sentences.
    "error": ("That did not work", "没有成功"),
    "try-again": ("Back to the log", "返回日志输入"),
    # The examples.
    "example-gpu-memory": ("CUDA out of memory in the update", "更新阶段显存不足"),
    "example-nccl-timeout": ("NCCL timeout: one rank is late", "NCCL 超时：一个 rank 迟到"),
    "example-host-memory": ("Ray worker killed, exit code 137", "Ray worker 被杀，退出码 137"),
    "example-recovered": ("A run that ended well, for all its errors", "虽有报错，其实正常结束"),
}


def say(name: str, language: Language, /, **values: object) -> str:
    """Give the words for `name`, filled in."""
    text = _WORDS[name][language == "zh"]
    return text.format(**values) if values else text


def named(source: str, language: Language) -> str:
    """Give what a triage's log is called in a page's language; a file's name is its own."""
    if source == PASTED:
        return say("pasted", language)
    example = f"example-{source.removeprefix(EXAMPLE)}"
    return say(example, language) if source.startswith(EXAMPLE) and example in _WORDS else source


def counted(name: str, one: str, count: int, language: Language) -> str:
    """Give the words for a number of things: `one` where it is a single one."""
    return say(one, language) if count == 1 else say(name, language, count=f"{count:,}")


def table() -> dict[str, list[str]]:
    """Give all words for the browser: name to [English, Chinese]."""
    return {name: list(texts) for name, texts in _WORDS.items()}
