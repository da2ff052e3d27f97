"""Secrets that stand alone in a row, below what a program was asked to print or the title of a box."""

from __future__ import annotations

from ingest.redaction import entropy
from ingest.redaction.kinds import SecretKind

# Commands of password stores and clouds that print one secret, and nothing else.
_PRINTERS: tuple[str, ...] = (
    r"(?:go)?pass[ ]show",
    r"lpass[ ]show",
    r"bw[ ]get[ ](?:password|totp)",
    r"op[ ](?:read|item[ ]get)",
    r"keyring[ ]get",
    r"secret-tool[ ]lookup",
    r"security[ ]find-(?:generic|internet)-password",
    r"vault[ ](?:kv[ ]get|read)[^\n|]{0,80}-field",
    r"gcloud[ ]secrets[ ]versions[ ]access",
    r"gcloud[ ]auth[ ](?:application-default[ ])?print-(?:access|identity)-token",
    r"aws[ ](?:secretsmanager[ ]get-secret-value|ssm[ ]get-parameters?|ecr[ ]get-login-password)",
    r"az[ ](?:keyvault[ ]secret[ ]show|account[ ]get-access-token|acr[ ]credential[ ]show)",
    r"kubectl[^\n]{0,200}[ ]get[ ]secrets?[^\n]{0,200}(?:jsonpath|template)",
    r"kubectl[^\n]{0,80}[ ]create[ ]token",
    r"(?:gh|glab)[ ]auth[ ](?:token|status[ ]-t)",
    r"(?:doppler|infisical)[ ]secrets[ ]get",
    r"terraform[ ]output[ ]-raw",
    r"consul[ ]kv[ ]get|etcdctl[^\n]{0,80}[ ]get[ ][^\n]{0,80}--print-value-only",
    r"heroku[ ]auth:token|heroku[ ]config:get",
    r"jupyter[ ](?:server|lab|notebook)[ ]password|openssl[ ]rand|pwgen|wg[ ](?:genkey|genpsk)",
    r"cat[ ][\w./~-]{0,200}(?:password|passphrase|secret|token|api[_-]?key)[\w-]{0,40}[ \t\r]{0,4}\n",
)
_TITLES = (
    r"(?:passw(?:or)?d|passphrase|passcode|secret(?:[ _-](?:key|token|value))?|credentials?|token|"
    r"(?:api|access|private|auth|secret|signing|encryption|licen[cs]e|admin|root|master)[ _-]?(?:key|token))"
)
# The edge of a box, with its padding.
_EDGE = r"(?:[ \t]|\||│|┃|║)*"

PRINTED = (
    SecretKind(
        "secret",
        rf"(?i)(?:{'|'.join(_PRINTERS)})",
        rf"(?i)(?:(?:{'|'.join(_PRINTERS[:-1])})[^\n]{{0,400}}\n|{_PRINTERS[-1]})"
        r"[ \t]*['\"]?(?P<secret>[^\s'\"<>{}\[\]]{8,400})['\"]?[ \t]*\r?(?=\n|\Z)",
        check=entropy.is_key,
        ahead=800,
        wraps=False,
        shaped=False,
    ),
    SecretKind(
        "secret",
        rf"(?i){_TITLES}:?(?:[ \t]|\||│|┃|║)*\r?\n",
        rf"(?i)(?m:^){_EDGE}(?:[a-z]+[ ]){{0,3}}{_TITLES}:?{_EDGE}\r?\n"
        rf"{_EDGE}(?P<secret>[^\s'\"<>|\x80-\xff]{{8,400}}){_EDGE}\r?(?=\n|\Z)",
        check=entropy.is_password,
        ahead=400,
        wraps=False,
        shaped=False,
    ),
)
