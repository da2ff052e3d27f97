"""What a found value is like: drawn by chance, or a word, a number, a path."""

from __future__ import annotations

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
    rb"changeme|placeholder|redacted|hidden|x{3,}|\.{3,}|\*{2,})\Z"
)
# Where a program takes it from, and not what it is.
_CALL = re.compile(rb"(?:os\.(?:environ|getenv)|getenv\(|getpass|process\.env)\b")
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
    return not (is_path(value) or _NONE.match(value) or _CALL.match(value))


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
    rb"passed|skipped|ok|fail|failure|success|step|true|false)\Z"
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


_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def is_identity(value: bytes) -> bool:
    """Tell whether 18 digits have the check digit of GB 11643, as an identity card's number has."""
    told = sum(weight * (digit - 48) for weight, digit in zip(_WEIGHTS, value, strict=False))
    return value[17:].upper() == b"10X98765432"[told % 11 : told % 11 + 1]


def is_telephone(value: bytes) -> bool:
    """Tell whether digits may be a telephone's: not all alike, and not counted up."""
    digits = bytes(char for char in value if 48 <= char < 58)
    return 7 <= len(digits) <= 15 and len(set(digits)) > 2
