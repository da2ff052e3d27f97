"""Values that a program shows below the row that asks for them: a debugger, a prompt, a validator, a form."""

from __future__ import annotations

import re
from collections.abc import Callable

from ingest.redaction import entropy
from ingest.redaction.kinds import Probed, SecretKind

_NAME = (
    r"[\w.-]{0,80}(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|(?:api|access|private|auth|"
    r"secret|"
    r"signing|encryption|license)[_.-]?key|(?<=[_.-])pass)"
)
_NAME_SIEVE = r"(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|[._-]?key|[_.-]pass)"
_QUOTED = r"(?:'(?P<{0}1>[^'\n]{{4,400}})'|\"(?P<{0}2>[^\"\n]{{4,400}})\")"


_BELOW = re.compile(
    # What a prompt or a validator writes below a name.
    rb"(?i)[ \t]*(?:Out[ ]?\[|\$\d|=>|0x[0-9a-f]+[ ]\"|['\"]|[^\s=:]{8,400}[ \t]*\r?(?:\n|\Z))|"
    rb"[^\n]{0,300}\binput"
)


def _is_shown(text: bytes, place: int) -> Probed:
    """Tell whether below the row that ends at a place there may be what its last word holds."""
    return Probed(_BELOW.match(text, place) is not None, place)


def _shown(
    prefilter: str, expression: str, ahead: int = 600, probe: Callable[[bytes, int], Probed] | None = None
) -> SecretKind:
    return SecretKind(
        "secret",
        rf"(?i){prefilter}",
        rf"(?i){expression}",
        check=entropy.is_made,
        probe=probe,
        ahead=ahead,
        wraps=False,
        shaped=False,
    )


# What a mail server's prompt is in base64, and what a client's answers stand behind.
_ASKED = r"(?:UGFzc3dvcmQ6|UGFzc3dvcmQ|VXNlcm5hbWU6)"
_ANSWERS = r"(?:send|sent|C|client|user)?[ ]?(?::|>{1,3}|->|=>|~>)[ ]?b?['\"]?"
_SHELL = r"(?:-?(?:ba|z|da|k|fi|a|c|tc)?sh)"
# A prompt for a phrase, and the words that answers to one never hold but messages do.
_MESSAGE = (
    r"(?:is|are|was|not|no|the|a|an|for|to|of|try|again|bad|wrong|incorrect|denied|required|failed|error|"
    r"invalid|empty|skip\w*|using|read\w*|same|match|mismatch|timed|timeout|interrupt\w*|eof|cannot)"
)
SHOWN = (
    # A mail server asks in base64, and in a row below the client answers so.
    SecretKind(
        "authorization",
        _ASKED,
        rf"{_ASKED}[^\n]{{0,40}}\n(?:[^\n]{{0,60}}?{_ANSWERS}|[ \t]{{0,20}})"
        rf"(?P<secret>[A-Za-z0-9+/]{{6,400}}={{0,2}})(?=[\s'\"\\]|\Z)",
        ahead=500,
        wraps=False,
        shaped=False,
    ),
    # A phrase of plain words, which only its prompt tells.
    SecretKind(
        "password",
        r"(?i)pass-?phrase[^\n]{0,200}:(?:\s|%20)[a-z0-9]+[ -][a-z0-9]",
        r"(?i)(?:enter|type|repeat|retype|confirm|new|old|same)[ ][^\n:]{0,60}pass-?phrase[^\n]{0,200}?:[ ]"
        rf"(?P<secret>(?:(?!{_MESSAGE}(?![A-Za-z]))[A-Za-z0-9]{{1,20}}[ -]){{2,11}}(?!{_MESSAGE}(?![A-Za-z]))"
        r"[A-Za-z0-9]{1,20})[ \t]*\r?(?=\n|\Z)",
        wraps=False,
    ),
    # A password that was typed where the shell took a command: in its row, and in the shell's answer.
    SecretKind(
        "password",
        r"(?i)sh:[ ][^\n]{0,160}not found",
        rf"(?<![\w-]){_SHELL}:(?:[ ](?:line[ ])?\d{{1,5}}:)?[ ](?:command not found:[ ])?"
        r"(?P<secret>(?![\w.-]+@)[^\s:]{8,100})(?=:?[ ](?:command[ ])?not found|[ \t]*\r?(?:\n|\Z))",
        check=entropy.is_password,
        wraps=False,
        shaped=False,
    ),
    SecretKind(
        "password",
        r"(?i)sh:[ ][^\n]{0,160}not found",
        rf"(?m:^)[^\n]{{0,120}}?[$#%>][ ](?P<secret>(?![\w.-]+@)[^\s:]{{8,100}})[ \t]*\r?\n[^\n]{{0,40}}?"
        rf"{_SHELL}:[^\n]{{0,40}}?[ ](?P=secret)(?::|[ \t]*\r?(?:\n|\Z))",
        check=entropy.is_password,
        back=400,
        wraps=False,
        shaped=False,
    ),
    # A prompt at which a name is asked for, and what it holds in the row below.
    _shown(
        rf"{_NAME_SIEVE}[\])'\"]{{0,4}}[ \t]*\r?\n",
        rf"(?:>>>|\bIn[ ]?\[\d+\]:|\((?:gdb|lldb|Pdb|dlv|rdb)\)|ipdb>|irb[^\n>]{{0,30}}>|"
        rf"pry[^\n>]{{0,30}}>|>|(?m:^)[^\n$#%]{{0,60}}[$#%][ ])"
        rf"[^\n]{{0,200}}?(?<![a-z]){_NAME}[\])'\"]{{0,4}}[ \t]*\r?\n"
        rf"[ \t]*(?:Out[ ]?\[\d+\]:[ ]|\$\d+[ ]=[ ]|=>[ ])?(?:0x[0-9a-f]+[ ])?"
        rf"(?:{_QUOTED.format('q')}|(?P<secret>[^\s'\"<>(){{}}\[\]]{{8,400}}))[ \t]*\r?(?=\n|\Z)",
        probe=_is_shown,
    ),
    # A validator: the field in a row of its own, and the value behind `input_value=` below it.
    _shown(
        rf"{_NAME_SIEVE}[\])'\"]{{0,4}}[ \t]*\r?\n",
        rf"(?m:^)[\w.>\[\] -]{{0,100}}?(?<![a-z]){_NAME}[ \t]*\r?\n[^\n]{{0,300}}?\binput(?:_value)?="
        rf"{_QUOTED.format('v')}",
        probe=_is_shown,
    ),
    # A variable's value below a traceback's row, before the call that has the name.
    _shown(
        r"└ ['\"]",
        rf"└[ ]{_QUOTED.format('a')}[^\n]{{0,80}}\n(?:[^\n]{{0,120}}└[^\n]{{0,400}}\n){{0,4}}?"
        rf"[^\n]{{0,120}}└[ ]<function[ ][^\n]{{0,80}}\((?:[^\n()]{{0,60}}[ ,])?{_NAME}[ ,)]",
        ahead=800,
    ),
    # A form's field, and behind an empty row its value; a page's field of a password.
    _shown(
        rf"name=['\"\\]{{0,4}}[\w.-]{{0,60}}{_NAME_SIEVE}['\"\\]{{0,4}}[ ]?(?:\\r|\r|\n)",
        rf"name=['\"]?{_NAME}['\"]?[ ]?(?:\r?\n){{2}}(?P<secret>[^\r\n]{{4,400}})",
    ),
    _shown(
        r"type=['\"\\]{0,4}password",
        r"<input[^<>\n]{0,200}?type=['\"]?password['\"]?[^<>\n]{0,200}?"
        r"value=['\"](?P<secret>[^'\"\n]{4,400})['\"]",
        ahead=0,
    ),
)
