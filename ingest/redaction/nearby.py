"""Secrets that stand somewhere behind a word for one, and that only chance can have drawn.

How sure a value must look depends on the word, and on what stands between: behind a word for a key a long run
that no language and no programmer has made; behind a word for a password also what people make of words,
digits and signs. A name of something else between them (a digest, an id, a path) takes the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ingest.redaction import entropy
from ingest.redaction.code_values import is_tokens_code
from ingest.redaction.kinds import FoundValue, Probed, SecretKind
from ingest.redaction.named import decode_named

# So far behind the word a value may begin.
REACH = 80
_KEYED = (
    r"(?:api|access|auth|private|secret|licen[cs]e|account|recovery|backup|unseal|encryption|signing|root|"
    r"service|master|deploy|session|shared|client|admin|trial|personal|bot)"
)
_ABROAD_PASSWORDS = (
    "密码|口令|密碼|パスワード|비밀번호|пароль|Пароль|mot de passe|passwort|kennwort|contraseña|senha|clave|"
    "wachtwoord|hasło|şifre"
)
_ABROAD_KEYS = "密钥|秘钥|金鑰|私钥|令牌|授权码|トークン|토큰|токен|ключ|jeton|clé"
_PASSWORD = (
    rf"pass(?:word|wd|phrase|code)s?|(?<![a-z])pwd?s?|psk|sudo|cred(?:ential)?s?|"
    rf"(?:log|sign)(?:ged|ging|ed|ing)?[ -]?in|authenticat(?:ed?|ing)[ ]as|"
    rf"{_ABROAD_PASSWORDS}|账号|帐号|账户|benutzer|identifiants?|usuario"
)
# The lookahead names the first letters of all, which `re` asks for much faster than for each of the words.
# `pass` alone, `auth`, a bare key and what makes a client take only what is drawn beyond doubt.
_CUE = re.compile(
    rf"(?=[abcdehijklmopstuw\x80-\xff])(?:(?P<key>secrets?|bearer|oauth2?|tokens?|{_ABROAD_KEYS})|"
    rf"(?P<password>{_PASSWORD})|"
    rf"(?P<weak>keys?|codes?|seed|encrypt|(?<!\w)(?:auth|pass|pat)(?=[ ])|"
    rf"(?:client(?:v\d)?|connect|authenticate)(?=\()))(?![a-z])".encode()
)
_KEYED_BEFORE = re.compile(rf"(?i)(?:(?<![a-z]){_KEYED}|[a-z])[ _-]?\Z".encode())
# What a value is made of, and in which runs it is looked for.
_RUN = re.compile(rb"[^\s'\"`,;<>()\[\]{}|\x00-\x1f\x80-\xff]{8,2000}")
_OPENS, _CLOSES = b"=:>*/", b".:!?"
_NAMED = re.compile(rb"[\w.-]{1,60}[=:]")
_HAS_DIGIT = re.compile(rb"\d")
_WITHOUT_DIGITS = 24
_SHORTEST = 8
# The shortest run that chance has drawn, behind any word.
_SHORTEST_DRAWN = 12
# Names of what looks drawn and is none, and of where one lies.
_OTHER = re.compile(
    rb"(?i)(?:digest|(?<![a-z])sha\d|hash|commit|uuid|fingerprint|checksum|etag|revision|request|trace|span|"
    rb"\bmd5|integrity|build|snapshot|(?<![a-z])(?:id|ids|run|job|pod|node|actor|file|path|dir|version|ver|"
    rb"host|url|uri|user-agent|image|tag|ref|branch|cipher|suite|kex|layer|tensor|weight|module|cache|cached|"
    rb"kernel)(?![a-z]))"
)
_HASHED = re.compile(
    rb"(?i)(?:[._-]|\A)(?:file|path|dir|id|url|uri|host|name|type|ttl|count|len|length|mode)\Z"
)
# The name that stands right before a value, and gives it to itself.
_OWN_NAME = re.compile(rb"([A-Za-z_][\w.-]*)['\"]?[ \t]*(=|:)[ \t]*['\"]?\Z")
# Words before a colon that give the value to nothing else.
_SAYS = re.compile(
    rb"(?i)(?:is|was|now|it|value|new|old|code|codes|rejected|provided|given|here|following|used|"
    rb"received|got|"
    rb"valid|invalid|failed|expired|key|token|secret|password|pass|pwd|temporary|initial|current|"
    rb"default|root|"
    rb"admin|need|one|this|\w*(?:pass|password|secret|token|key))\Z"
)
# What hands a value over to the word right before it.
_LINK = re.compile(
    rb"(?i)(?:\A|[\s'\"])(?:is|was|now|still|just|currently|again|"
    rb"became|to|to be|in|as|set|with|tried|typed|entered|sent|gave|using|:|=|->|=>|-|/|\d|\xe2\x86\x92|"
    rb"\xe2\x80[\x93\x94]|lautet|ist|est|es|\xc3\xa8|\xd1\x8d\xd1\x82\xd0\xbe)['\"]?[ \t]*['\"`]?\Z|"
    rb"\A[ \t:=]*['\"`]?\Z|\xef\xbc\x9a[ \t]*\Z|"
    # Chinese, Japanese and Korean words end where the value begins.
    rb"[\xe3-\xed][\x80-\xbf]{2}[ ]?\Z"
)
_TAGS = re.compile(rb"</?[a-z]{1,10}[^<>]{0,40}>|\*\*")
# A word that goes on is a name, whose value it gives by a sign; or it is another word.
_GOES_ON = frozenset(
    bytes([char]) for char in b"_-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_NAME_ENDS = re.compile(
    rb"[\w.-]{1,60}['\"]?\]?[ \t]*[=:]|\.[\w-]{1,30}[ ]|[_-](?:value|text|string|plain)[ ]|-[ ]"
)
# Keys that open nothing.
_OTHERS_KEY = re.compile(
    rb"(?i)(?:cached?|hash|sort|sorting|partition|primary|foreign|object|dedup|compile|shard|lookup|"
    rb"idempotency|public|dict|missing|unexpected|join|index|unique|map|query|attention|same|each|first|"
    rb"last|next|"
    rb"special|added|stop|pad|image|mask|cache (?:miss|hit|bypass|lookup)(?: for)?)[ _.'\"-]{1,2}\Z"
)
_GROUPS = re.compile(rb"(?:[A-Za-z0-9]{4,8}-){1,9}[A-Za-z0-9]{4,8}")
_SIGNS = frozenset(b"!#$%^&*?~@")
# A password that people make is no longer than this.
_LONGEST_WORD = 40
# Keys that belong together stand side by side.
_SECOND = re.compile(
    rb"[ ]?(?:/|:|,|\||&|;|and|and secret)[ ]?(?P<value>[A-Za-z0-9+/_-]{20,200}={0,2})(?![\w.])"
)
_MORE_CODES = re.compile(rb"[ ,;]{1,2}(?P<value>[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,4})(?![\w.-])")
# So near its word a UUID is a key, and further away an id of anything.
_BESIDE = 24
# Behind a key's word a password of people stands at once.
_NEXT = 12


def find_near(text: bytes) -> Iterator[FoundValue]:
    """Yield the first value behind each word for a secret that looks like one."""
    for cue in _CUE.finditer(text.lower()):
        begin = cue.end()
        end = text.find(b"\n", begin, begin + REACH)
        # Most rows end before a value could stand there.
        if 0 <= end < begin + _SHORTEST:
            continue
        kind = _weight(text, cue)
        if not kind:
            continue
        for run in _RUN.finditer(text, begin, begin + REACH + 2000):
            if run.start() > (begin + REACH if end < 0 else end):
                break
            if not _HAS_DIGIT.search(run[0]) and len(run[0]) < _WITHOUT_DIGITS:
                continue
            between = text[begin : run.start()]
            other = _OTHER.search(between)
            if b"[redacted:" in between or (other is not None and kind != "password"):
                break
            first, last = _value(run)
            value, between = text[first:last], between + text[run.start() : first]
            # What is called something else may be it; what only people make is none.
            is_one = (
                _is_password(between, value, signed=False)
                if other
                else _is_one(kind, text[cue.start() : begin], between, value)
            )
            if first < last and is_one:
                yield FoundValue(cue.start(), first, last)
                yield from _following(text, cue.start(), last)
                break


def _following(text: bytes, begin: int, last: int) -> Iterator[FoundValue]:
    """Yield what stands beside a key that was found: its pair, and more codes of a list of them."""
    second = _SECOND.match(text, last)
    if second is not None and entropy.is_chance(second["value"]):
        yield FoundValue(begin, *second.span("value"))
    while more := _MORE_CODES.match(text, last):
        last = more.end()
        if not entropy.is_word(more["value"]):
            yield FoundValue(begin, *more.span("value"))


def _weight(text: bytes, cue: re.Match[bytes]) -> str:
    """Tell how much a word weighs: a password's, a key's, a weak one; nothing where it is part of another."""
    kind, begin, end = cue.lastgroup or "", *cue.span()
    if cue[0][-1] < 128 and text[end : end + 1] in _GOES_ON and not _NAME_ENDS.match(text, end):
        return ""
    before = text[max(0, begin - 24) : begin]
    if kind != "password" and _OTHERS_KEY.search(before):
        return ""
    if kind != "weak":
        return kind
    if cue[0] in (b"auth", b"pass", b"pat"):
        return kind if cue[0] == b"pass" or text[begin:end].isupper() else ""
    if text[end : end + 1] == b"(":
        return "password" if cue[0].startswith((b"connect", b"auth")) else kind
    if before.endswith(b"--") or (
        _KEYED_BEFORE.search(before) and (not before[-1:].isalpha() or text[begin] < 97)
    ):
        return "key"
    return kind if not before[-1:].isalnum() and cue[0].startswith((b"key", b"seed", b"encrypt")) else ""


def _value(run: re.Match[bytes]) -> tuple[int, int]:
    """Give the value in a run: behind the name and the sign before it, without what ends a sentence."""
    text = run[0].lstrip(_OPENS)
    first = run.end() - len(text)
    word = text.rstrip(_CLOSES)
    text = word if len(word) >= _SHORTEST else text
    named = _NAMED.match(text)
    skip = named.end() if named is not None and len(text) - named.end() >= _SHORTEST else 0
    return first + skip, first + len(text)


def _is_elsewhere(value: bytes) -> bool:
    """Tell whether a value is an address, or says where another one stands."""
    return b"://" in value or entropy.is_coded(value) or entropy.is_path(value) or entropy.is_fetched(value)


def _is_one(kind: str, cue: bytes, between: bytes, value: bytes) -> bool:
    between = _TAGS.sub(b"", between)
    named = _OWN_NAME.search(between)
    if named is not None and not between[: named.start()].strip(b"_.-"):
        if _HASHED.search(named[1]):
            return False
    elif named is not None and (named[2] == b"=" or b"_" in named[1]) and not _SAYS.match(named[1]):
        return False
    if is_tokens_code(cue, value) or _is_elsewhere(value):
        return False
    beside = 2 * _BESIDE if between.rstrip().endswith((b":", b"=")) else _BESIDE
    if kind != "password" and len(between) <= beside and entropy.is_uuid(value):
        return True
    if kind == "weak":
        if entropy.is_chance(
            value, least=_SHORTEST_DRAWN if cue.isupper() else 20
        ) and not entropy.is_hexadecimal(value):
            return True
        return b"(" not in cue and len(between) <= len(" is '") and _is_password(b"", value, signed=True)
    if entropy.is_chance(value, least=_SHORTEST_DRAWN if kind == "password" else 16):
        least = 16 if kind == "password" and between.rstrip().endswith((b":", b"=", b" is")) else 32
        return not entropy.is_hexadecimal(value) or (
            len(value) >= least and not cue.lower().startswith(b"log")
        )
    if b"code" in cue.lower() and _GROUPS.fullmatch(value):
        return any(48 <= char < 58 for char in value) and not entropy.is_word(value)
    return _is_password(
        _VALUE_OF.sub(b"", between), value, signed=kind == "key" and b"ecret" not in cue.lower()
    )


_VALUE_OF = re.compile(rb"\A[_-](?:value|text|string|plain)")


def _is_password(between: bytes, value: bytes, *, signed: bool) -> bool:
    """Tell whether people make passwords so: of letters, digits and signs; of fewer where a link says it."""
    if b"/" in value and value.count(b"/") == 1 and value.split(b"/")[0].isalpha():
        value = value.split(b"/")[1]
    if len(value) > _LONGEST_WORD or b"/" in value or b"=" in value or not entropy.is_made(value):
        return False
    if entropy.is_coded(value):
        return False
    signs = set(value) & _SIGNS
    letters, digits = sum(char >= 65 for char in value), any(48 <= char < 58 for char in value)
    if not (digits and letters >= 3):
        return False
    if signs - {ord("@")} or signed:
        return (
            len(value) >= _SHORTEST
            and bool(signs - {ord("@")})
            and len(between) <= (_NEXT if signed else REACH)
        )
    return _LINK.search(between) is not None and (bool(signs) or any(65 <= char < 91 for char in value))


# The necessary condition of what chance has drawn: letters of both cases and digits turn by turn.
DRAWN = r"(?:(?:[a-z]+[A-Z0-9]+){2}[a-z]+[A-Z0-9]|(?:[A-Z]+[0-9]+){2}[A-Z]+[0-9])"
_BEFORE = (
    r"(?:pass(?:word|wd|phrase|code)s?|pwd?s?|psk|sudo|creds?|credentials?|"
    r"(?:log|sign)(?:ged|ging|ed|ing)?[ -]?in|authenticat(?:ed?|ing)[ ]as|"
    r"Benutzer|identifiants?|usuario|mot de passe|passwort|kennwort|senha|clave|wachtwoord|connect\(|"
    r"authenticate\()"
)
_BEFORE_KEY = r"(?:secrets?|keys?|tokens?|bearer|codes?|oauth2?|seed|encrypt|\bAUTH|\bPASS|Client(?:V\d)?\()"
_SIGN = "[!#$^&*?~]"
_ANY_SIGN = "[!#$%^&*?~@]"
_HELD = r"[^\s'\"=/:<>(){}\[\]|;,\x80-\xff]"
_WHOSE = "(?:the|our|my|a|an|your|its|new|old|current|root|admin|db|api|auth|access)"
_APART = r"(?:[^a-zA-Z\n]|\\|%)"


_SIGNS_OF_RUN = rb"[A-Za-z0-9+/_-]"
_BEFORE_PLACE, _RUN_ON = (
    re.compile(_SIGNS_OF_RUN + rb"{0,300}\Z"),
    re.compile(_SIGNS_OF_RUN + rb"{0,400}={0,2}"),
)


def _is_near_chance(text: bytes, place: int) -> Probed:
    """Tell whether the letters and digits around a place are drawn by chance."""
    before, after = _BEFORE_PLACE.search(text, max(0, place - 300), place), _RUN_ON.match(text, place)
    run = (before[0] if before else b"") + (after[0] if after else b"")
    return Probed(entropy.is_chance(run, _SHORTEST_DRAWN), after.end() if after else place)


def _near(name: str, prefilter: str, probe: Callable[[bytes, int], Probed] | None = None) -> SecretKind:
    return SecretKind(
        name, prefilter, "", wraps=False, shaped=False, yields=True, finder=find_near, probe=probe
    )


NEARBY = (
    _near("password", rf"(?i){_BEFORE}(?:[^a-z\n]|\\|%)[^\n]{{0,80}}\d"),
    _near("secret", rf"(?i:{_BEFORE_KEY}){_APART}[^\n]{{0,80}}{DRAWN}", _is_near_chance),
    _near("password", rf"(?i)(?:{decode_named(_ABROAD_PASSWORDS + '|账号|帐号|账户')})[^\n]*\d"),
    _near("secret", rf"(?i:{decode_named(_ABROAD_KEYS)})[^\n]*{DRAWN}", _is_near_chance),
    _near("secret", r"(?i)codes?[^a-z\n][^\n]{0,60}[^a-z0-9][a-z0-9]{4,8}-[a-z0-9]{4,8}"),
    _near(
        "secret",
        rf"(?i:secrets?|keys?|tokens?|\bAUTH|\bpass|oauth){_APART}[^\n]{{0,12}}?(?:\d[^\s]{{0,20}}{_SIGN}|"
        rf"{_SIGN}[^\s]{{0,20}}\d)",
    ),
    _near("secret", r"(?i)secret[ ]\d[ ]"),
    _near("secret", r"(?i)(?:key|token|secret|\bPAT|oauth)[^\n]{0,40}[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-"),
    # What only a password looks like, behind a flag of one letter or before a pipe, whatever the program.
    SecretKind(
        "command-password",
        rf"(?i)\s-(?:[pwaku]|pw)(?:[ =]|%20|['\"])[^\n]{{0,60}}?(?:\d[^\s]{{0,30}}{_ANY_SIGN}|"
        rf"{_ANY_SIGN}[^\s]{{0,30}}\d)",
        r"(?<=\s)-(?:[pwakuPWAKU]|pw)[ =]?(?:'(?P<single>[^'\s]{8,60})'|\"(?P<double>[^\"\s]{8,60})\"|"
        rf"(?:[\w.-]{{1,40}}%)?(?P<secret>(?!-){_HELD}{{8,60}}))(?=[\s'\"]|\Z)",
        check=entropy.is_signed,
        wraps=False,
        shaped=False,
        yields=True,
    ),
    SecretKind(
        "command-password",
        r"(?i)(?:echo|printf)\W[^\n|]{0,60}?\d[^\n|]{0,40}\|",
        r"\b(?:echo|printf)\s+(?:-\w\s+)?['\"]?(?P<secret>[^\s'\"|\\/=\x80-\xff]{8,60})['\"]?\s*\|",
        check=entropy.is_signed,
        wraps=False,
        shaped=False,
        yields=True,
    ),
    # "tried 'X' as passphrase", "X is the new password"
    SecretKind(
        "password",
        rf"(?i)(?:\s|%20)(?:as|is|was)(?:\s|%20)(?:{_WHOSE}(?:\s|%20)){{0,4}}(?:pass|pwd|token|secret|"
        rf"psk|key)",
        r"(?i)(?P<secret>(?<![^\s'\"`(])[^\s'\"`,;<>()\[\]{}|=/\x80-\xff]{8,200})['\"`)]{0,2}[ ]"
        rf"(?:as|is|was)[ ](?:{_WHOSE}[ ]){{0,4}}"
        r"(?:pass(?:word|phrase|code|wd)?|pwd|psk|token|secret|key)(?![\w-])",
        check=entropy.is_password,
        wraps=False,
        shaped=False,
    ),
)
