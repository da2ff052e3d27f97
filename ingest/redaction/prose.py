"""Secrets as people write them: in sentences of several languages, phrases, licences, beside a bare key."""

from __future__ import annotations

import base64
from collections.abc import Callable

from ingest.redaction import entropy
from ingest.redaction.kinds import SecretKind
from ingest.redaction.named import decode_named

_HELD = r"[^\s'\"`,;<>()\[\]{}|\x80-\xff]"
# What a password is called where people write to each other, and what stands between it and its value.
_ABROAD = (
    "пароль|Пароль|mot de passe|contraseña|contrasena|passwort|kennwort|senha|wachtwoord|hasło|lösenord|"
    "salasana|heslo|jelszó|parolası|şifre|mật khẩu|kata sandi|parola d'ordine|parola chiave|lozinka|geslo|"
    "slaptažodis|adgangskode|passord|κωδικός πρόσβασης|סיסמה|كلمة المرور|पासवर्ड|รหัสผ่าน"
)
_EQUALS = r"(?:lautet|ist|est|es|é|è|är|on|je|jest|is|это|là|adalah|:|=)"
_WORDS_BETWEEN = r"(?:[ ][^\s:=\"'`]{1,40}){0,6}?"
# What a configuration's values are called, as base64 writes it: at each of the three places that a name may
# have in a group of three bytes, without the letters that its neighbours decide.
_ENCODED_NAMES: tuple[str, ...] = (
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apiKey",
    "uthorization",
    "PASSWORD",
)
_ENCODED_NAMES += ("SECRET", "TOKEN", "API_KEY", "_KEY=", "private_key", "PRIVATE KEY")


def _in_base64(name: str) -> list[str]:
    found = []
    for lead in range(3):
        whole = base64.b64encode(b" " * lead + name.encode()).decode().rstrip("=")
        first = (lead * 8 + 5) // 6
        found.append(whole[first : (lead + len(name)) * 8 // 6])
    return found


_ENCODED = "|".join(sorted({part for name in _ENCODED_NAMES for part in _in_base64(name) if len(part) > 5}))
_HEX_NAMES = "|".join(name.encode().hex() for name in (*_ENCODED_NAMES, "api-key", "PRIVATE KEY", "pwd="))
_BELOW_KEYS = r"(?:api|access|private|certificate|encryption|unseal|recovery|licen[cs]e)[ _-]key"
# What a code of digits is sent for.
_CODE_FOR = (
    r"(?:verification|security|login|2fa|mfa|two[ -]factor|second[ -]factor|sms|confirmation|backup|unlock|"
    r"pairing|sign-?in|authenticator)"
)
_BAR = r"(?:\||│|┃|║)"
_LICENCE = r"(?:licen[cs]e|(?:serial|activation|product)[ _-]?(?:key|code|number|no))"
_SHAPE = r"[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){3,7}"


def _said(
    prefilter: str,
    expression: str,
    *,
    name: str = "password",
    check: Callable[[bytes], bool] = entropy.is_made,
) -> SecretKind:
    return SecretKind(name, rf"(?i){prefilter}", rf"(?i){expression}", check=check, wraps=False, shaped=False)


PROSE = (
    # "try pwd X", "the passphrase was 'some words'", "le mot de passe de la base est X"
    _said(
        r"(?:password|passwd|passphrase|pwd|\Wpw|passcode)(?:\s|%20)",
        rf"(?<![\w-])(?!(?<=[$])(?-i:PWD)[ ])(?:password|passwd|passphrase|pwd|pw|passcode)"
        rf"(?:[ ](?:type|enter|use|try|of))?[ ]['\"`]?(?P<secret>{_HELD}{{6,200}})",
    ),
    _said(
        r"pass(?:word|phrase|code|wd)(?:\s|%20)[^\n]{0,80}?(?:is|was|to|:)(?:\s|%20|\\)",
        # A linter names what it found a password assigned to.
        r"(?<![\w-])(?<!hardcoded[ ])pass(?:word|phrase|code|wd)(?:[ ][^\s:=\"']{1,40}){0,6}?"
        r"(?:[ ](?:is|was|to)|:)[ ]"
        r"(?:\"(?P<quoted>[^\"\n\\]{6,200})\"|'(?P<single>[^'\n\\]{6,200})')",
        check=entropy.is_telling,
    ),
    _said(
        rf"(?:{decode_named(_ABROAD)})",
        # Some languages write an article, or a case, behind the noun.
        rf"(?:{_ABROAD})(?:et|en|t|a|u|em|ul|ın|ını|ni)?{_WORDS_BETWEEN}[ ]?{_EQUALS}:?[ ]['\"`]?"
        rf"(?P<secret>{_HELD}{{5,200}})",
    ),
    # "la password di root è X", where the word is English and the sentence is not
    _said(
        r"password[^\n]{0,80}?(?:lautet|ist|est|es|è|é|är|jest|это|là|adalah)(?:[ ]|%20)",
        rf"(?<![\w-])password{_WORDS_BETWEEN}[ ](?:lautet|ist|est|es|è|é|är|jest|это|là|adalah)[ ]['\"`]?"
        rf"(?P<secret>{_HELD}{{6,200}})",
    ),
    # "log in with user bob and pass X"
    _said(
        r"(?:user(?:name)?|login|account)(?:[ ]|%20)[^\n]{1,80}(?:pass|pw|pwd|password)(?:[ ]|%20)",
        rf"(?<![\w-])(?:user(?:name)?|login|account)[ ][^\s,;]{{1,60}},?[ ](?:and|with|plus|&|/)?[ ]?"
        rf"(?:pass|pw|pwd|password)[ ]['\"`]?(?P<secret>{_HELD}{{6,200}})",
    ),
    # "the pass for db is X"
    _said(
        r"(?:pass|pw|pwd)(?:\s|%20)[^\n]{0,60}?(?:is|was)(?:\s|:|%20)",
        rf"(?<![\w-])(?:pass|pw|pwd)(?:[ ](?:for|of|on|to)(?:[ ][^\s:=\"']{{1,40}}){{1,5}}?)?[ ]"
        rf"(?:is|was)(?:[ ](?:still|now|just|currently|again))?:?[ ]['\"`]?(?P<secret>{_HELD}{{6,200}})",
    ),
    # A number that opens a device or an account.
    _said(
        rf"(?:\bpin|\botp|one[ -]time[ ](?:code|password)|{_CODE_FOR}[ ]code|"
        rf"{decode_named('验证码|動態密碼|인증번호')})[^\n]{{0,40}}?(?:\Wis|是|：|\W)"
        r"[^\n]?[ ]?\d{4}",
        r"(?:(?-i:\bPIN|\bOTP)(?:[ ]code)?|\bpin[ ]code|one[ -]time[ ](?:code|password)|"
        rf"{_CODE_FOR}[ ]code|验证码|動態密碼|인증번호)"
        r"(?:[ ](?:for|of|to)(?:[ ][^\s:=]{1,30}){1,4})?(?:[ ]is|[ ]?[:=]|是|：)[ ]?"
        r"(?P<secret>\d{4,10}(?:[ -]\d{3,4})?)(?![\w.%])",
        name="password",
        check=lambda value: len(set(value)) > 1,
    ),
    # What a provider of mail makes for one program.
    _said(
        r"(?:app|application)[ -](?:specific[ -])?password[^\n]{0,24}[a-z]{4}[ -][a-z]{4}[ -]",
        r"\b(?:app|application)[ -](?:specific[ -])?password(?:[ ]is|[ ]?[:=])?[ ]['\"`]?"
        r"(?P<secret>[a-z]{4}(?:[ -][a-z]{4}){3})(?![a-z-])",
        check=entropy.is_telling,
    ),
    # "use X as the db password": words with a number, too.
    _said(
        r"(?:use|try|set|with|is)[ ][^\n]{6,80}[ ]as[ ][^\n]{0,40}pass",
        r"\b(?:use|try|set|with|is)[ ]['\"`]?(?P<secret>[^\s'\"`,;<>()\[\]{}|=/]{6,100})['\"`]?[ ]{1,2}as[ ]"
        r"(?:[a-z0-9_-]{1,20}[ ]){0,4}pass(?:word|phrase|code|wd)(?![\w-])",
        check=entropy.is_typed,
    ),
    # The seed of a second factor, in base32.
    _said(
        r"(?:2fa|totp|otp|mfa|authenticator)[ _-]?(?:seed|secret|key|code)?[^\n]{0,8}[A-Z2-7]{16}",
        r"(?<![a-z])(?:2fa|totp|otp|mfa|authenticator)(?:[ _-](?:seed|secret|key))?['\"]?[ ]?[:=][ ]?['\"]?"
        r"(?P<secret>[A-Z2-7]{16,128})(?![A-Za-z0-9])",
        name="secret",
        check=entropy.is_dense,
    ),
    # Licences, phrases of a wallet.
    SecretKind(
        "licence-key",
        rf"(?i)(?:{_LICENCE}[^\n]{{0,80}}[^A-Za-z0-9-][A-Z0-9]{{4,6}}-[A-Z0-9]{{4,6}}-[A-Z0-9]{{4}}|"
        rf"(?:serial|activation|product)[ _-]?(?:key|code|number)[^\n]{{0,60}}\n)",
        rf"(?i:{_LICENCE})(?i:[ _-]?(?:key|code|number|no))?[^\n]{{0,60}}(?:\n[^\n]{{0,80}}?)?"
        rf"(?<![A-Za-z0-9-])(?P<secret>{_SHAPE})(?![A-Za-z0-9-])",
        ahead=240,
        wraps=False,
    ),
    _said(
        r"(?:mnemonic|wallet|(?:seed|recovery|secret)(?:\s|_|%20)phrase)\W",
        r"(?:mnemonic|wallet|(?:seed|recovery|secret)[ _]phrase)\b[^\n:=|]{0,60}[:=|][ ]?['\"]?"
        r"(?P<secret>(?:[a-z]{3,8}[ ]){11,23}[a-z]{3,8})",
        name="seed-phrase",
        check=entropy.is_telling,
    ),
    # A bare key in base64: in hexadecimal it would be a digest of anything.
    SecretKind(
        "secret",
        r"(?i)key(?:[ ]\d)?['\"\\]{0,3}(?:[ ]?[:=]|%3A|%3D)[ '\"\\]{0,4}(?:[A-Za-z0-9+/_-]{16}|"
        r"[A-Za-z0-9+/_-]{0,15}\r?\n)",
        r"(?i:key)(?:[ ]\d{1,2})?['\"]?[ ]?[:=][ ]?['\"]?(?P<secret>[A-Za-z0-9+/_-]{32,400}={0,2})"
        r"(?![A-Za-z0-9./_-])",
        check=entropy.is_dense,
    ),
    # A configuration in base64 holds secrets where it names some.
    SecretKind(
        "encoded",
        rf"(?:{_ENCODED})",
        rf"(?<![A-Za-z0-9+/])(?P<secret>[A-Za-z0-9+/]{{0,8000}}?(?:{_ENCODED})"
        r"[A-Za-z0-9+/]{8,16000}={0,2})",
        check=entropy.is_encoded_text,
        wraps=False,
    ),
    # The same in hexadecimal, as the kernel's records of commands write it.
    SecretKind(
        "encoded",
        rf"(?i)(?:{_HEX_NAMES})",
        rf"(?i)(?<![0-9a-f])(?P<secret>(?:[0-9a-f]{{2}}){{0,4000}}?(?:{_HEX_NAMES})"
        r"(?:[0-9a-f]{2}){8,4000})"
        r"(?![0-9a-f])",
        check=entropy.is_telling_hexadecimal,
        wraps=False,
    ),
    # argparse repeats what it refuses.
    _said(
        r"argument [^\n]{0,20}--[a-z0-9_-]*(?:pass|pw|secret|token|key|auth)[^\n]{0,80}:[^\n]{0,80}'",
        r"argument (?:-\w/)?--[\w-]*(?:pass(?:word|wd)?|pw|secret|token|[_-]key|auth)(?:/\S{1,40})?:"
        r"[^'\n]{0,80}'"
        r"(?P<secret>[^'\n]{6,400})'",
        name="secret",
    ),
    # A directive of a server's file: `requirepass X`, alone in its row.
    _said(
        r"^[\w.-]{0,30}(?:pass|passwd|password|pw|secret|auth)[ \t]+\S{6}",
        r"(?m:^)[ \t]*(?!(?-i:PASS)\b)[\w.-]{0,30}(?:pass|passwd|password|pw|secret|auth)[ \t]{1,20}['\"]?"
        r"(?P<secret>[^\s'\"]{6,200})['\"]?[ \t]*\r?(?:\Z|(?=\n))",
    ),
    # SQL: SECRET 'X', and strings that stand side by side.
    _said(
        r"(?:secret|passw(?:or)?d|passphrase|pass|auth|token|_key)['\"]?[ ]+['\"]",
        r"(?<![A-Za-z0-9])(?:\w{0,40}_)?(?:secret|passw(?:or)?d|passphrase|requirepass|masterauth|pass|"
        r"session_token|token|secret_key|access_key|api_key)"
        r"['\"]?[ ]{1,4}(?:'(?P<single>[^'\n\\]{6,400})'|\"(?P<quoted>[^\"\n\\]{6,400})\")",
        name="secret",
        check=entropy.is_named_secret,
    ),
    # A shell that traces writes each part of a pipe in a row of its own.
    SecretKind(
        "command-password",
        r"(?i)^\++ [^\n]{0,200}(?:--stdin|password-stdin|with-token|chpasswd|sudo[^\n]{0,40} -S|kinit|"
        r"cryptsetup)",
        r"(?m:^)\++[ ](?:echo|printf)[ ](?:-\w[ ]|%s[ ])?"
        r"(?:'(?P<single>[^'\n]{4,400})'|['\"]?(?P<secret>(?!\$)[^\s'\"|]{4,400})['\"]?)[ ]*\r?\n"
        r"\++[ ][^\n]{0,200}?(?:--stdin|password-stdin|with-token|chpasswd|sudo[^\n]{0,40} -S|kinit|"
        r"cryptsetup)",
        back=500,
        wraps=False,
    ),
    # SMTP: AUTH PLAIN X
    _said(
        r"auth(?:\s|%20)(?:plain|login|xoauth2|cram-md5)\s",
        r"\bauth[ ](?:plain|login|xoauth2)[ ](?P<secret>[A-Za-z0-9+/]{8,2000}={0,2})",
        name="authorization",
    ),
    SecretKind(
        "encrypted",
        r"\$ANSIBLE_VAULT;",
        r"\$ANSIBLE_VAULT;[^\s]{1,60}(?P<secret>(?:\r?\n[^\n]{0,60}?[0-9a-f]{20,100}[ \t]*"
        r"(?=\r?\n|\Z)){1,400})",
        ahead=16_000,
        wraps=False,
    ),
    # `kinit bob <<< 'X'`
    _said(
        r"(?:kinit|cryptsetup|passwd|gpg|login|sudo|(?:^|\W)su\W)[^\n]{0,120}<<<",
        r"\b(?:kinit|cryptsetup|passwd|gpg|login|sudo|su)\b[^\n]{0,120}?<<<[ ]?['\"]?"
        r"(?P<secret>[^\s'\"]{4,200})",
        name="command-password",
        check=entropy.is_telling,
    ),
    _said(
        r"etcdctl[^\n]{0,200}--user",
        r"\betcdctl\b[^\n]{0,200}?--user[ =][^\s:]{1,60}:(?P<secret>\S{3,200})",
        name="command-password",
        check=entropy.is_telling,
    ),
    # A name and, alone in the row below it, the value; in a box, too.
    SecretKind(
        "secret",
        rf"(?i)(?:password|passphrase|secret|token|{_BELOW_KEYS})[^\n]{{0,120}}:[ \t]*{_BAR}?[ \t]*\r?\n",
        rf"(?i)(?:password|passphrase|secret|token|{_BELOW_KEYS})\b[^\n]{{0,120}}?:"
        rf"[ \t]*{_BAR}?[ \t]*\r?\n[ \t]*{_BAR}?[ \t]*"
        rf"(?P<secret>[^\s'\"\x80-\xff]{{8,400}})[ \t]*{_BAR}?[ \t]*\r?(?=\n|\Z)",
        check=entropy.is_key,
        ahead=440,
        wraps=False,
        shaped=False,
    ),
    # What is quoted right behind the word is it.
    _said(
        r"pass(?:word|phrase|wd)[ ]['\"]",
        r"(?<![\w-])pass(?:word|phrase|wd)[ ](?:'(?P<single>[^\s'\\]{4,200})'|"
        r"\"(?P<quoted>[^\s\"\\]{4,200})\")",
        check=entropy.is_telling,
    ),
    _said(
        r"cookie[ ]['\"]",
        r"\bcookie[ ]['\"](?P<secret>[A-Za-z0-9_-]{12,400})['\"]",
        name="cookie",
        check=entropy.is_key,
    ),
    _said(
        r"(?:with|using|use|(?:client|account):?)(?:\s|%20)(?:(?:the|my|this|our)(?:\s|%20))?key(?:\s|%20)",
        r"\b(?:with|using|use|(?:client|account):?)[ ](?:(?:the|my|this|our)[ ])?key[ ]"
        r"(?P<secret>[A-Za-z0-9_-]{24,400})(?![\w.])",
        name="secret",
        check=entropy.is_key,
    ),
    _said(
        r"name=[\"'\\]{0,4}(?:password|passwd|secret|token|api_key)[\"'\\]{0,4}(?:\\r|\r|\n)",
        r"name=[\"']?(?:password|passwd|secret|token|api_key)[\"']?(?:\r?\n){2}(?P<secret>[^\r\n]{4,400})",
        name="secret",
        check=entropy.is_telling,
    ),
    _said(
        r"<signature(?:value)?>",
        r"<signature(?:value)?>\s{0,4}(?P<secret>[A-Za-z0-9+/]{40,4000}={0,2})",
        name="authorization",
        check=entropy.is_key,
    ),
    # All that stands behind these schemes, of which the last word is the signature.
    _said(
        r"authorization[^\n]{0,8}(?:digest|oauth|hawk)\W",
        r"authorization['\"]?[ ]?[:=][ ]?['\"]?(?:digest|oauth|hawk)[ ](?P<secret>[^\r\n]{8,4000})",
        name="authorization",
        check=entropy.is_telling,
    ),
    _said(
        r"(?:x|cloudfront)-[a-z0-9-]{0,40}signature",
        r"\b(?:x-[a-z0-9-]{0,40}|cloudfront-)signature[a-z0-9-]{0,20}['\"]?[ ]?[:=][ ]?['\"]?"
        r"(?:(?:sha\d{1,3}|v\d)=)?(?P<secret>[A-Za-z0-9+/~_-]{24,800}={0,2})",
        name="authorization",
        check=entropy.is_key,
    ),
    # Fields of a page's form.
    _said(
        r"(?:samlresponse|csrf[_-]?token|authenticity_token)",
        r"name=[\"'](?:samlresponse|csrf[_-]?token|authenticity_token)[\"'][ ](?:value|content)=[\"']"
        r"(?P<secret>[^\"'\s]{16,8000})",
        name="secret",
        check=entropy.is_key,
    ),
    SecretKind(
        "private-key",
        r"BEGIN OpenVPN Static key",
        r"-----BEGIN OpenVPN Static key V1-----(?P<secret>(?:\r?\n[^\n]{0,60}?[0-9a-f]{16,64}[ \t]*"
        r"(?=\r?\n|\Z)){1,40})",
        ahead=4000,
        wraps=False,
    ),
    SecretKind(
        "licence-key",
        r"(?:FEATURE|INCREMENT) [^\n]{8,200}[0-9A-F]{12}",
        r"\b(?:FEATURE|INCREMENT)[ ][^\n]{8,200}?[ ](?P<secret>[0-9A-F]{12,400})(?![0-9A-Fa-f])",
        wraps=False,
    ),
    _said(
        r"\blogin[ ]\S+[ ]['\"]",
        r"\blogin[ ][^\s:'\"]{1,200}[ ]\"(?P<secret>[^\"\n\\]{4,200})\"",
        check=entropy.is_telling,
    ),
    # Go's form of a database's address.
    _said(
        r"@(?:tcp|udp|unix)\(",
        r"(?<![\w.-])[\w.-]{1,60}:(?P<secret>[^\s@]{3,100})@(?:tcp|udp|unix)\(",
        name="url-credentials",
        check=entropy.is_telling,
    ),
)
