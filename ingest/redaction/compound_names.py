"""Secrets whose name is made of any words, of which the last ones tell: of a flag, a variable, a key."""

from __future__ import annotations

from collections.abc import Callable

from ingest.redaction import entropy
from ingest.redaction.kinds import SecretKind
from ingest.redaction.named import NO_KEYWORD, NOTHING, SPECIAL, WORD

# A name of any words whose last ones are a secret's: of a flag, a variable, a key. What its words count, or
# what kind of token it is, is no secret; nor where one is kept (`token_file`), nor of which kind
# (`auth_type`).
_WORDS = (
    rf"(?:(?!(?:{SPECIAL}|dp|cp|tp|pp|sp|ep|sequence|seq|padding|separator|word|byte|vocab|tokens?|"
    rf"tokenizer|num|n|sort|primary|foreign|cache|query|dispatch|group|shuffle|rng|prng|key|partition|index|"
    rf"hot|by)[_.-])[A-Za-z0-9]{{1,30}}[_.-]){{0,8}}"
)
_LAST = (
    r"(?:passw(?:or)?d|pass[ _-]?phrase|passcode|pass|pwd|pw|secret|cred(?:ential)?s?|token[_.-]secret|auth|"
    r"(?:secret|passw(?:or)?d|api[_.-]?key|access[_.-]?token)[_.-]?(?:string|value|text|plain(?:text)?)|"
    r"auth[_.-]?token|jwt|bearer|(?:auth|session)[_.-]?cookie|requirepass|masterauth|authtok|"
    r"device[_.-]?code|(?:src|dest)?(?:store|key)pass|"
    r"access[_.-]?token|hub[_.-]?token|refresh[_.-]?token|"
    r"(?:api|secret|access|private|auth|encryption|signing|master|account|license|wandb|ssh|client|server|"
    r"application|app|insert|ingest|unseal|recovery|cipher|shared|"
    # A grammar's token is a word of the language that is parsed.
    r"storage|service|hmac)[_.-]?key|(?<!unexpected[ ])(?<!illegal[ ])(?<!expected[ ])(?<!near[ ])token)"
)
_LAST_SIEVE = (
    r"(?:passw(?:or)?d|phrase|passcode|pass|pwd|pw|secret|creds?|credentials?|auth|[a-z0-9_.-]key|token|jwt|"
    r"bearer|cookie|masterauth|authtok|device_code|device-code|(?:secret|passw(?:or)?d|key|token)[_.-]?"
    r"(?:string|value|text|plain(?:text)?))"
)
# A value that a name without anything else beside it gives away; no option, no variable, no path, and none of
# the words for nothing.
_PLAIN = r"[^\s'\"\\,;:&|<>(){}\[\]\x80-\xff-][^\s'\"\\,;&|<>(){}\[\]\x80-\xff]{3,200}"
_BARE_VALUE = (
    rf"(?:\$(?=['\"]))?(?:\"{NOTHING}(?P<quoted>(?:[^\"\n\\]|\\[\"\\]){{4,400}})\"|"
    rf"'{NOTHING}(?P<single>(?:[^'\n\\]|\\[^\n]){{4,400}})'|"
    rf"\\\"{NOTHING}(?P<escaped>[^\"\n\\]{{4,400}})\\\"|{NOTHING}(?P<secret>{_PLAIN}))"
)
_CALLS = (
    r"(?!(?:os|self|args|cfg|config|env|environ|settings|getenv|process|kwargs|opt|options|params?)\.|"
    r"getpass|[A-Za-z_][\w.]{0,60}[(\[])"
)


def _called(
    name: str, prefilter: str, before: str, between: str, check: Callable[[bytes], bool]
) -> SecretKind:
    """Make the row of a name of any words, of which the last ones tell, with its value in the same row."""
    return SecretKind(
        name,
        rf"(?i){prefilter}",
        rf"(?i:{before}){between}{_CALLS}{_BARE_VALUE}",
        check=check,
        wraps=False,
        shaped=False,
    )


CALLED = (
    # `--db-password X`, `-Dspring.datasource.password=X`, `++wandb.api_key=X`
    _called(
        "secret",
        rf"[-+][a-z0-9_.-]*{_LAST_SIEVE}['\"]?(?:[ =,]|%20|%3D)",
        rf"(?<![^\s'\"=,;(\[])(?:--?|\+\+?|~)(?!(?:disabled?|no|skip|ask|require|allow|"
        rf"enable|reset|change|expire)[_.-]){_WORDS}{_LAST}['\"]?(?![\w.-])",
        rf"(?:[ \t]{{1,4}}|=|['\"]?,[ ]?{NO_KEYWORD})",
        entropy.is_given,
    ),
    # Servers count tokens in every row; so the prefilter lets no number pass.
    # `DB_PASS=X`, `pass: X`, `"accessToken": "X"`, `config.auth_token=X`
    _called(
        "secret",
        rf"{_LAST_SIEVE}['\"\\]{{0,3}}[\])]?[ \t]{{0,8}}(?:=>|->|:=|=|:)[ "
        rf"\t]{{0,8}}(?:[^\s\d]|\d[^\s,;]{{0,200}}[A-Za-z!@#$^&*])",
        rf"(?<![A-Za-z0-9$/]){_WORDS}(?:{_LAST}|"
        rf"(?-i:(?!existing|imagePull)[A-Za-z][A-Za-z0-9]{{0,30}}(?:Pass|"
        rf"Password|Secret|"
        rf"Token|"
        rf"ApiKey|AccessKey|PrivateKey)))(?:\\?['\"])?\]?",
        r"[ \t]{0,8}(?:=>|->|:=|=|:)[ \t]{0,8}",
        entropy.is_given,
    ),
    # | DB_PASSWORD | X |
    _called(
        "secret",
        rf"{_LAST_SIEVE}['\"`]?[ \t]*\|",
        rf"(?<![A-Za-z0-9$/]){_WORDS}{_LAST}['\"`]?",
        r"[ \t]{0,60}\|[ \t]{0,4}`?",
        entropy.is_cell,
    ),
    # `setenv DB_PASSWORD X`, `set -gx API_TOKEN X`, `secret_access_key X`
    _called(
        "secret",
        rf"(?:setenv|\bset[ ]-|\b(?:env|arg)(?:[ ]|%20|\\)|config[ ](?:create|set|update))[^\n]{{0,80}}"
        rf"{_LAST_SIEVE}[ \t]",
        rf"\b(?:setenv|set[ ]-\w{{1,3}}|ENV|ARG|config[ ](?:create|set|update)(?:[ "
        rf"][\w.-]{{1,40}}){{0,4}})[ ]{_WORDS}{_LAST}",
        r"[ \t]{1,4}",
        entropy.is_given,
    ),
    # `PASSWORD 'x'`, `IDENTIFIED BY 'x'`, `SET PASSWORD FOR 'bob' = 'x'`
    SecretKind(
        "password",
        r"(?i)(?:password|identified\W[^\n]{0,40}by)\W[^\n]{0,80}['\"%\\]",
        r"(?i)(?:\b(?:with|encrypted|login|set|using)[ ]+password|\bidentified[ ]+(?:with[ ]+\w{1,40}[ "
        r"]+)?(?:by|as))(?:[ ]+for[ ]+\S{1,80})?[ ]*=?[ "
        r"]*(?:password\()?(?:'(?P<single>[^'\n]{3,400})'|\"(?P<quoted>[^\"\n]{3,400})\")",
        check=entropy.is_telling,
        wraps=False,
        shaped=False,
    ),
    # `useradd -p X`, `usermod -p X`
    SecretKind(
        "command-password",
        r"(?i)user(?:add|mod)\W",
        rf"(?i)\buser(?:add|mod)\b[^\n]{{0,200}}?\s(?:-p|--password)[ "
        rf"=]?['\"]?(?P<secret>[^\s'\"-]{WORD}{{3,200}})",
        far=True,
        shaped=False,
    ),
    # `chpasswd <<< "bob:X"`
    SecretKind(
        "command-password",
        r"(?i)chpasswd\W[^\n]{0,80}<<",
        rf"(?i)\bchpasswd\b[^\n]{{0,80}}?<<<?\s*['\"]?[^\s:'\"]{{1,80}}:(?P<secret>(?!\$){WORD}{{4,200}})",
        far=True,
        shaped=False,
    ),
    # `Password for svc: X`, `the password is X`, `setting smtp_password to 'X'`
    SecretKind(
        "password",
        r"(?i)pass(?:word|wd|phrase|code)(?:\s|%20)(?:for|is|to|of)\W",
        r"(?i)(?<![a-z])[\w.-]{0,40}pass(?:word|wd|phrase|code)[ ](?:(?:for|of)[ ][^\n:=]{1,60}(?::|=|[ "
        r"]is)|(?:is|to)(?=[ ]['\"]?[^\s'\"]*[\d!@#$%^&*-])):?[ ]['\"]?(?P<secret>[^\s'\",;]{4,200})",
        check=entropy.is_telling,
        wraps=False,
        shaped=False,
    ),
    # <apiToken>X</apiToken>
    SecretKind(
        "secret",
        rf"(?i)<[\w.:-]{{0,60}}{_LAST_SIEVE}>",
        rf"(?i)<([\w.:-]{{0,60}}{_LAST})>{NOTHING}(?P<secret>[^<>\s]{{4,400}})</",
        check=entropy.is_given,
        wraps=False,
        shaped=False,
    ),
    # -- name: DB_PASSWORD value: X, in one row
    _called(
        "secret",
        rf"name['\"]?[ ]?[:=][^\n]{{0,80}}{_LAST_SIEVE}[^\n]{{0,8}}value",
        rf"name['\"]?[ ]?[:=][ ]?['\"]?{_WORDS}{_LAST}['\"]?,?[ ]{{1,4}}['\"]?value['\"]?",
        r"[ ]?[:=][ ]?",
        entropy.is_given,
    ),
    # login?pass=X
    _called(
        "url-token",
        rf"(?:[?&]|%3F|%26){_LAST_SIEVE}(?:=|%3D)",
        rf"[?&]{_WORDS}{_LAST}",
        "=",
        entropy.is_given,
    ),
)
