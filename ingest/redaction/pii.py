"""What tells who somebody is, and how to reach them.

Numbers of telephones, of identity cards, of bank cards.
"""

from __future__ import annotations

from ingest.redaction import entropy
from ingest.redaction.kinds import SecretKind
from ingest.redaction.named import decode_named

_PHONES = "电话|手机|手机号|手机号码|联系方式"
_CARDS = "身份证|护照|银行卡|卡号"
_DIGITS = r"(?:\s|%[0-9A-Fa-f]{2}|[:=：＝是为'\"\\+%()-]|u[0-9a-f]{4}){0,24}\d"
# A number of bytes or of parameters may have as many digits as a telephone has; so its name must stand before
# it.
PEOPLE = (
    SecretKind(
        "phone",
        rf"(?i)(?:phone|phone[ _-]?(?:number|no)|mobile|\btel|whatsapp|{decode_named(_PHONES)}){_DIGITS}",
        r"(?i)(?:(?<![a-z])(?:tele|cell)?phone(?:[ "
        r"_-]?(?:number|no))?|(?<![a-z])(?:mobile|tel|whatsapp)|电话(?:号码)?|手机(?:号码|号)?|"
        r"联系方式)['\"]?\s?(?:[:=]|：|＝|是|为)?\s?['\"]?"
        r"(?P<secret>(?:\+\d{1,3}[- ]?)?(?:\(\d{1,4}\)[- ]?)?\d(?:[- ]?\d){6,12})(?![\d.])",
        check=entropy.is_telephone,
        wraps=False,
    ),
    SecretKind(
        "phone",
        r"(?i)(?:\+|%2B|u002b)86(?:[- ]|%20)?1[3-9]\d",
        r"(?<![\w+])\+86[- ]?(?P<secret>1[3-9]\d(?:[- ]?\d{4}){2})(?!\d)",
        wraps=False,
    ),
    SecretKind(
        "phone",
        r"\+[1-9]\d{0,2}[ -]\(?\d{2,4}\)?[ -]?\d{2}",
        r"(?<![\w+.-])\+(?P<secret>[1-9]\d{0,2}[ -]\(?\d{2,4}\)?(?:[ -]?\d{2,8}){1,4})(?![\w.])",
        check=entropy.is_telephone,
        wraps=False,
    ),
    SecretKind(
        "phone",
        r"\(\d{3}\) \d{3}-\d{4}",
        r"\(\d{3}\) \d{3}-\d{4}(?!\d)",
        check=entropy.is_telephone,
        wraps=False,
    ),
    SecretKind(
        "iban",
        r"IBAN\W",
        r"\bIBAN[ :=]{1,3}(?P<secret>[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,4})?)"
        r"(?![A-Za-z0-9])",
        check=entropy.is_iban,
        wraps=False,
    ),
    SecretKind(
        "id-number",
        r"[1-9]\d{5}(?:19|20)\d{2}[01]\d[0-3]\d{4}[\dXx]",
        r"(?<![\w.])[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?![\w.])",
        check=entropy.is_identity,
        wraps=False,
    ),
    SecretKind(
        "id-number",
        rf"(?i)(?:ssn|passport|id_?card|card_?(?:number|no)|{decode_named(_CARDS)}){_DIGITS}",
        r"(?i)(?:(?<![a-z])(?:ssn|passport(?:_no)?|id_?card|(?:bank_?)?card_?(?:number|no))|(?:身份证|护照|"
        r"银行卡)(?:号码|号)?|卡号)['\"]?\s?(?:[:=]|：|＝|是|"
        r"为)?\s?['\"]?(?P<secret>[A-Z]?\d(?:[- ]?[\dXx]){7,20})(?![\w.])",
        wraps=False,
    ),
    SecretKind(
        "password",
        rf"(?i)(?:\botp|(?:verification|one-time)(?:\s|%20)(?:code|password)|"
        rf"{decode_named('验证码')})(?:(?:\s|%20)(?:is|was))?{_DIGITS}",
        r"(?i)(?:验证码|\botp|\bone-time (?:code|password)|\bverification code)(?: "
        r"(?:is|was))?['\"]?\s?(?:[:=]|：|＝|是|为)?\s?['\"]?(?P<secret>\d{4,8})(?!\d)",
        wraps=False,
    ),
)
