"""What a message in Chinese advises, in the words of the English one that the reader of hints knows.

Only the verbs and the words between them are put over, around the names that stand in a message as they are.
"""

from __future__ import annotations

import re

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_NAME = r"[`'\"“「]?(?P<name>-{0,2}[A-Za-z][\w.-]{1,80})[`'\"”」]?"
_VALUE = r"[`'\"“「]?(?P<value>[A-Za-z0-9][\w.-]{0,40})[`'\"”」]?"
# Who says so before `把 x 设为 y` says not to do it.
_DENIED = "".join(
    f"(?<!{word})" for word in ("不要", "不可以", "不可", "不能", "不应", "不应该", "不建议", "请勿", "勿")
)
# The name before its verb: `把 x 改为 y`, `将 x 调小`.
_INVERTED = tuple(
    (
        re.compile(
            rf"{_DENIED}(?:将|把|请将|请把)\s*(?:参数|选项|配置项?|环境变量|变量)?\s*{_NAME}\s*(?:的值)?\s*(?:{verbs})"
        ),
        put,
    )
    for verbs, put in (
        (
            rf"(?:设置?|改|修改|调整|指定|置)(?:为|成|到)\s*{_VALUE}",
            r" please set `\g<name>` to `\g<value>` ",
        ),
        ("调大|增大|提高|加大|增加|调高", r" please increase `\g<name>` "),
        ("调小|减小|降低|减少|缩小|调低", r" please decrease `\g<name>` "),
        ("关闭|禁用|关掉|去掉|删除|移除", r" please disable `\g<name>` "),
        ("打开|开启|启用", r" please enable `\g<name>` "),
    )
)
# The verb before its name; the longer words first.
_WORDS = (
    ("不(?:要|应该|应当|应|需要|需|可以|可|能|得|建议|推荐)|请勿|切勿|勿|禁止|避免|无需|不必", " do not "),
    ("失败|出错", " failed "),
    ("运行|执行|启动", " run "),
    ("通过", " with "),
    ("先", " first "),
    ("不支持", " is not supported "),
    ("(?:请|建议|推荐|可以|需要|应该|应|尝试|试试)先?", " please "),
    ("设置环境变量|设置参数|设置|设定|指定|配置|传入|添加|加上|改用|使用", " set "),
    ("增大|调大|提高|加大|增加|调高", " increase "),
    ("减小|调小|降低|减少|缩小|调低", " decrease "),
    ("关闭|禁用|关掉|去掉|删除|移除|取消", " disable "),
    ("打开|开启|启用", " enable "),
    ("或者|或", " or "),
    ("和|并且|并|同时", " and "),
    ("参数|选项|环境变量|变量|配置项", " "),
    ("[，、]", ", "),
    ("[。！]", ". "),
    ("；", "; "),
    ("：", ": "),
    (r"(?<=[\w`'\"\s])(?:为|成)(?=\s{0,2}[`'\"\w-])(?![\u4e00-\u9fff])", " to "),
)
_TABLE = tuple((re.compile(words), put) for words, put in _WORDS)


def in_english(message: str) -> str:
    """Give a message with its Chinese advice put over; one without any as it is."""
    if not _CHINESE.search(message):
        return message
    for expression, put in (*_INVERTED, *_TABLE):
        message = expression.sub(put, message)
    return re.sub(r" {2,}", " ", message)
