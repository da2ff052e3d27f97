"""What a found value is like: drawn by chance, or a word, a number, a path."""

from __future__ import annotations

import base64
import binascii
import re

# A word, or words put together as names are; after them a number may stand.
# Each part can be spoken: it has a vowel, or begins with one.
_PART = rb"(?:[AEIOU][a-z]{2,15}|[A-Z](?=[a-z]*[aeiouy])[a-z]{2,15}|[A-Z]{2,5}(?=[a-z]*[aeiouy])[a-z]{3,15})"
_WORD = (
    rb"(?:(?:" + _PART + rb")+|(?=[a-z]*[aeiouy])[a-z]{2,15}|[a-z]{2,4}(?![a-z])|[A-Z]{2,5}(?![A-Z])|"
    rb"(?=[A-Z]*[AEIOU])[A-Z]{6,15})"
)
_WORDS = re.compile(_WORD + rb"(?:[-_.]?\d{1,6})?(?:[-_.](?:" + _WORD + rb"|\d{1,6}))*")
# Longer than words are.
LONG = 20
_SUFFIX = re.compile(rb"\A[^_-]*[_-]")
_NUMBER = re.compile(rb"\d{1,7}|(?=[^.,:_-]*[.,:_-])[\d.,:eE+_-]+")
_PATH = re.compile(rb"~?\.{0,2}/(?:[A-Za-z_.][a-z_.-]+|[\w.-]+/[\w./-]+\.\w{2,5}\Z)(?:/|\Z)|[A-Z]:\\")
_NONE = re.compile(
    rb"(?i)(?:none|null|nil|true|false|empty|dummy|default|required|missing|undefined|unset|files|prompt|"
    rb"changeme|placeholder|[\[(<]?(?:redacted|hidden|masked|filtered|removed|scrubbed|sanitized|nil)[\])>]?|"
    rb"x{3,}|\.{3,}|\*{2,}|(?:your|insert|enter)[_-].*|.*_here|incorrect|invalid|wrong|expired|"
    rb"rejected|mismatch\w*|failed|denied|authentication|accepted|unknown|changed|blank|not|set|unset)[`.]?\Z"
)
# Where a program takes it from, and not what it is.
_CALL = re.compile(
    rb"(?:os\.(?:environ|getenv)|getenv\(|getpass|process\.env)\b|"
    rb"(?:var|vars|local|module|data|secrets|inputs|env)\.[a-z_][\w.-]*\Z|"
    # Another name, a metavariable, a call, a tag of YAML, and what a shell says where a variable is not set.
    rb"[A-Za-z_]\w*(?:\.\w+)*\.\w*(?:token|key|passw(?:or)?d|secret|credentials?)\Z|"
    rb"(?:[A-Z]{2,}_){3,}[A-Z]{2,}\Z|(?:[A-Z]+_)*(?:PASSWORD|TOKEN|SECRET|KEY|PASS)\Z|"
    rb"[A-Za-z_][\w.]*\(['\"]?\Z|![A-Za-z]{2,10}\Z|"
    rb"\?[\w ]*\}?\Z|"
    rb"(?:Optional|Union|Annotated|Literal|Final|List|Dict|Callable|list|dict|tuple|type)\["
)
# A variable, or a place to be filled in, stands for a secret and is none.
_REFERENCE = re.compile(
    rb"[:@]?(?:\$[A-Za-z_]\w*|\$\{[^{}\s]{1,80}\}|\$\([^()]{1,80}\)|%[A-Za-z_]\w*%|\{\{[^{}]{1,80}\}\}|"
    rb"<[a-z_ -]{1,40}>)\Z"
)


def is_reference(value: bytes) -> bool:
    """Tell whether a value only says where another one stands: a variable, a template's place."""
    return _REFERENCE.match(value) is not None


def is_fetched(value: bytes) -> bool:
    """Tell whether a value says where a program takes it from: a call, a variable."""
    return is_reference(value) or _CALL.match(value) is not None


_AMOUNT = re.compile(rb"\d[\d.]*(?:[mun]?s|min|[hmx%]|[kKMGT]i?B?)\Z")
_HEX_ONLY = re.compile(rb"[0-9a-f\s]+|[0-9A-F\s]+")


def is_word(value: bytes) -> bool:
    """Tell whether a value reads as words or a plain number."""
    return bool(_NUMBER.fullmatch(value) or _WORDS.fullmatch(value))


def is_mixed(value: bytes) -> bool:
    """Tell whether a value has letters and digits."""
    return any(48 <= char < 58 for char in value) and any(char >= 65 for char in value)


def is_path(value: bytes) -> bool:
    """Tell whether a value is a path in a file system."""
    return bool(_PATH.match(value))


def is_drawn(value: bytes) -> bool:
    """Tell whether a value may come from chance: it is no word, number, or path."""
    return not (value.isdigit() or is_word(value) or is_path(value) or _NONE.match(value))


def is_nothing(value: bytes) -> bool:
    """Tell whether a value is whole, and no secret: true, false, none, or another word for nothing."""
    return _NONE.match(value.strip()) is not None


def is_telling(value: bytes) -> bool:
    """Tell whether a value that a secret's name stands before is one: no path and no word for nothing."""
    return not (is_path(value) or _NONE.match(value) or is_fetched(value))


def is_secret(value: bytes) -> bool:
    """Tell whether the value of something that is called a secret is one.

    Telling, and no short plain word.
    """
    return is_telling(value) and (len(value) >= LONG or is_mixed(value) or not is_word(value))


def is_key(value: bytes) -> bool:
    """Tell whether the value of something that may be a secret's name is one.

    Drawn, and long or with letters and digits.
    """
    return is_drawn(value) and (len(value) >= LONG or is_mixed(value))


def is_suffixed(value: bytes) -> bool:
    """Tell whether what stands behind a value's first dash or underscore may come from chance."""
    return is_drawn(_SUFFIX.sub(b"", value))


def is_base64(value: bytes) -> bool:
    """Tell whether rows are base64 of something that is not text in hexadecimal."""
    return (
        not _HEX_ONLY.fullmatch(value)
        and any(48 <= char < 58 for char in value)
        and any(97 <= char < 123 for char in value)
    )


_KEPT_APART = re.compile(rb"[\s'\"\[\],-]+")


def holds_key(value: bytes) -> bool:
    """Tell whether one of the values of a list may come from chance."""
    return any(is_key(part) for part in _KEPT_APART.split(value))


_SAID = re.compile(
    rb"(?i)(?:yes|no|on|off|and|or|not|is|are|was|for|from|with|auto|basic|bearer|oidc|digest|token|tokens|"
    rb"password|passwd|secret|key|set|unset|given|found|invalid|expired|failed|"
    rb"wrong|error|str|string|bytes|int|bool|float|optional|any|type|object|self|env|file|stdin|ask|prompt|"
    rb"keyring|store|cache|oauth2?|ldap|krb5|munge|through|mean|sum|token-mean|"
    rb"your[_-].*|my[_-]?(?:token|key|password|secret).*|<.*|\[.*|x+|example.*|insecure|permission|denied|"
    rb"passed|skipped|ok|fail|failure|success|step|true|false|enabled?|disabled?|required|optional|active|"
    rb"inactive|plain|ssl|tls|sasl|iam|jwt|sso|saml|kerberos|gssapi|simple|"
    rb"manual|private|public|user|service|server|client|anonymous)\Z"
)


def is_given(value: bytes) -> bool:
    """Tell whether what stands behind a name whose last word is a secret's is one.

    No number, path, address, or word that is said of one.
    """
    return (
        not (
            _NUMBER.fullmatch(value)
            or _AMOUNT.match(value)
            or value[:1] in b"$<[*"
            or b"://" in value
            or b"/" in value[:1]
            or value.isdigit()
        )
        and is_telling(value)
        and not _SAID.match(value)
    )


_SPOKEN = re.compile(rb"[A-Za-z]+(?:[-_/.'][A-Za-z]+)*")


def is_made(value: bytes) -> bool:
    """Tell whether a word of a sentence is none of its language: digits or signs are among its letters."""
    value = value.rstrip(b".:")
    return is_given(value) and _SPOKEN.fullmatch(value) is None and any(char >= 65 for char in value)


def is_dense(value: bytes) -> bool:
    """Tell whether a run holds capitals and digits, as base64 does, and a digest in hexadecimal does not."""
    return (
        is_drawn(value)
        and not _HEX_ONLY.fullmatch(value)
        and any(48 <= char < 58 for char in value)
        and any(65 <= char < 91 for char in value)
    )


def is_encoded_text(value: bytes) -> bool:
    """Tell whether a run is base64 of a text of one byte a character, its cut end left out."""
    run = value.rstrip(b"=")
    try:
        text = base64.b64decode(run[: len(run) // 4 * 4], validate=True)
    except binascii.Error:
        return False
    return all(32 <= char < 127 or char in b"\t\r\n" for char in text)


def is_cell(value: bytes) -> bool:
    """Tell whether the cell beside a secret's name holds one: neither words nor what is said of one."""
    return is_given(value) and is_secret(value)


_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def is_identity(value: bytes) -> bool:
    """Tell whether 18 digits have the check digit of GB 11643, as an identity card's number has."""
    told = sum(weight * (digit - 48) for weight, digit in zip(_WEIGHTS, value, strict=False))
    return value[17:].upper() == b"10X98765432"[told % 11 : told % 11 + 1]


def is_iban(value: bytes) -> bool:
    """Tell whether letters and digits have the check digits of ISO 13616: the remainder by 97 is 1."""
    plain = value.replace(b" ", b"").decode()
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def is_telephone(value: bytes) -> bool:
    """Tell whether digits may be a telephone's: not all alike, and not counted up."""
    digits = bytes(char for char in value if 48 <= char < 58)
    return 7 <= len(digits) <= 15 and len(set(digits)) > 2
