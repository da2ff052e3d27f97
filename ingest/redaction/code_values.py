"""Values that are code, or a package's release, where the name before them only ends as a secret's does.

Behind a password's, a secret's or an API key's name nothing is spared here: people make such values of words,
numbers and signs, too.
"""

from __future__ import annotations

import re

# `pad_token=tokenizer.eos_token_id`, `flops_per_token = 12*L*H`: behind a token's name alone.
_TOKENS_CODE = re.compile(
    rb"(?:[a-z_]{1,30}\.){0,3}"
    rb"(?:eos|bos|pad|padding|unk|sep|cls|mask|next|last|first|prev|input|output|prompt|completion|image|"
    rb"vision|video|audio|special|target|stop|start|end|draft|new|num|max|hidden)_(?:tokens?|states?)"
    rb"(?:_(?:ids?|idx|index|mask|count|len))?[.:]?\Z|"
    # A call with names alone, the place of an f-string, an argument that is called as its parameter.
    rb"[a-z]+(?:[_.][a-z]+)+\((?:[a-z]+(?:[_.][a-z]+)*(?:\[[a-z_.]{1,40}\])?)?\)?\Z|"
    rb"\{[a-z][a-z_]*(?:\.[a-z_]+)*\}\Z|"
    rb"(?P<argument>[a-z]{2,20})=(?P=argument)(?:_[a-z]{1,12})?\Z|"
    # A quotient of two names, a product of letters.
    rb"[a-z][a-z0-9]*(?:_[a-z]+)+/[a-z]+(?:_[a-z]+)+\Z|(?:\d{1,4}\*)?[A-Za-z](?:\*[A-Za-z]){1,8}\Z"
)
# A name in capitals, and the table of the next row: `info[VERSION_KEY] = VERSION_VALUE`.
_TABLE = re.compile(rb"[A-Z]+(?:_[A-Z]+)+[a-z]+\[[A-Z]+(?:_[A-Z]+)+\Z")
_IN_TABLE = re.compile(rb"\[[A-Z]+(?:_[A-Z]+)*_KEY\]\s*=\s*\Z")
# A token's name, up to its value, with the words of a sentence on it or a type between.
_TOKENS_NAME = re.compile(
    rb"(?i)(?:token|tokens)(?![a-z0-9])[^=:\n]{0,40}(?:[=:]|->|[ ](?=['\"]))[=>\s'\"(\[fbru]{0,40}\Z"
)
# What gives access by whatever else its name says.
_GIVES_ACCESS = re.compile(
    rb"(?i)pass|pwd|(?<![a-z])(?:pw|psk|pat|jwt)(?![a-z])|secret|cred|auth|bearer|cookie|login|private|"
    rb"refresh|session|"
    rb"(?:api|access|master|signing|encryption|service|account|storage|admin|deploy|client|server|app)"
    rb"[ _.-]?(?:key|token)|[\x80-\xff]"
)
# A row of a list of packages: `google-auth==2.16.0`; of conda's: `- google-auth=2.29.0=py39h06a4308_0`.
_PACKAGE_BEFORE = re.compile(rb"(?:^|\n)[ \t]*(?:-[ \t]+)?[\"']?[a-z][a-z0-9]*(?:[._-][a-z0-9]+)+=\Z")
_PASSWORDS_PACKAGE = re.compile(rb"pass|pwd|(?<![a-z])pw(?![a-z])|secret|cred|key|token")
_RELEASE = re.compile(
    rb"=\d{1,4}(?:\.\d{1,4}){1,3}(?:\.?(?:rc|a|b|post|dev)\d{1,3})?\Z|"
    rb"=?\d{1,4}(?:\.\d{1,4}){1,3}=(?:py\d{2,3}|cuda\d{1,4})?(?:(?:h|pyh|pyhd)[0-9a-f]{6,8}_)?\d{1,3}\Z"
)
# A variable of the parameter's own name, or of that with whose it is: `api_key=gemini_api_key`.
_VARIABLE = re.compile(rb"(?:(?:gemini|openai|anthropic|cohere|azure|google)_api_key|credentials)\Z")
_PARAMETER = re.compile(rb"(?<![\w.-])(?P<name>api_key|credentials)=\Z")
# A name is looked for in so many bytes of its row.
_BACK = 120


def is_of_code(text: bytes, begin: int, first: int, value: bytes) -> bool:
    """Tell whether the value at `first` is of code or a release.

    `begin` is where the match begins; the words that its name begins with may stand before it.
    """
    if _TOKENS_CODE.match(value):
        name = text[_name_begin(text, begin) : first]
        return _TOKENS_NAME.search(name) is not None and _GIVES_ACCESS.search(name) is None
    before = text[max(0, first - _BACK) : first]
    if _TABLE.match(value):
        return _IN_TABLE.search(before) is not None and _GIVES_ACCESS.search(before) is None
    if _RELEASE.match(value):
        row = _PACKAGE_BEFORE.search(before)
        return row is not None and _PASSWORDS_PACKAGE.search(row[0]) is None
    parameter = _PARAMETER.search(before) if _VARIABLE.match(value) else None
    return parameter is not None and value.endswith(parameter["name"])


def is_tokens_code(name: bytes, value: bytes) -> bool:
    """Tell whether a value is of code, and a name that of a token that gives no access."""
    return (
        _TOKENS_CODE.match(value) is not None
        and name.lower().endswith((b"token", b"tokens"))
        and _GIVES_ACCESS.search(name) is None
    )


_NAME_END = re.compile(rb"[A-Za-z0-9_.-]*\Z")


def _name_begin(text: bytes, begin: int) -> int:
    found = _NAME_END.search(text, max(0, begin - _BACK), begin)
    return found.start() if found else begin
