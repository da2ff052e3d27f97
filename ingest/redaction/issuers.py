"""Keys of issuers by their marks, and by what all these marks have in common."""

from __future__ import annotations

import re
import string

from ingest.redaction import entropy
from ingest.redaction.kinds import SecretKind, run_around

_NOT_BEHIND = r"(?<![A-Za-z0-9])"
_END = r"(?![A-Za-z0-9])"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_ISSUED_RUN = re.compile(rb"[A-Za-z0-9._-]{0,400}")
_ISSUED_SIGNS = (string.ascii_letters + string.digits + "._-").encode()

# Issuers whose mark no row's end is known to cut.
_OTHER_ISSUERS = (
    r"ph[cx]_|lin_oauth_|shp(?:ca|pa|ss)_|sq[apu]_|CCIP(?:AT|RJ)_|pscale_(?:pw|oauth)_|sb_secret_|"
    r"sq0(?:csp|atp)-|EAAAl|"
    r"x(?:keysib|smtpsib)-|PMAK-|SWMTKN-1-|fm2_|FwoGZXIvYXdz|napi_|tvly-|CWK_|dp\.(?:st|ct|sa|scim|"
    r"audit)\.|rdme_|"
    r"flb_|whpk_|ABSK|HRKU-"
)
ISSUERS = (
    SecretKind(
        "issuer-token",
        rf"(?:{_OTHER_ISSUERS})[A-Za-z0-9]",
        rf"{_NOT_BEHIND}(?:{_OTHER_ISSUERS})[A-Za-z0-9_.=+/-]{{28,1200}}",
    ),
    # An account's number, and behind it what it signs with.
    SecretKind(
        "issuer-token",
        r"AC[0-9a-f]{8}",
        rf"(?<![A-Za-z0-9])AC[0-9a-f]{{32}}:(?P<secret>[0-9a-f]{{32}}){_END}",
    ),
    SecretKind("issuer-token", r"SK[0-9a-f]{8}", rf"{_NOT_BEHIND}SK[0-9a-f]{{32}}{_END}"),
    SecretKind(
        "issuer-token", r"st\.[0-9a-f]{8}-", rf"{_NOT_BEHIND}st\.{_UUID}(?:\.[0-9a-f]{{32,64}}){{1,3}}"
    ),
    SecretKind("issuer-token", r"key-[0-9a-f]{8}", rf"(?<![A-Za-z0-9_-])key-[0-9a-f]{{32}}{_END}"),
    SecretKind("issuer-token", r"1/\d{10}", rf"(?<![\w/.])1/\d{{13,19}}:(?P<secret>[0-9a-f]{{32}}){_END}"),
    # What opens a service, and behind it digits in hexadecimal.
    SecretKind(
        "issuer-token",
        r"(?:live|prod|secret|tok|token|pat|apikey|[spr]k|e2b)_[0-9a-f]{8}",
        r"(?<![A-Za-z0-9/._-])(?:live|prod|secret|tok|token|pat|apikey|[spr]k|e2b)_[0-9a-f]{32,64}"
        r"(?![A-Za-z0-9/.])",
    ),
    # What issuers have in common: a short word, and behind it what chance has drawn.
    SecretKind(
        "issuer-token",
        r"[._-][A-Z0-9]*(?:[a-z]+[A-Z0-9]+){2}[a-z]+[A-Z0-9]",
        r"(?<![A-Za-z0-9/._-])(?P<secret>[A-Za-z][A-Za-z0-9]{1,9}(?:[._-][A-Za-z0-9]{1,8}){0,2}?[._-]"
        r"[A-Za-z0-9_.-]{20,400})(?![A-Za-z0-9/])",
        check=entropy.is_issued,
        probe=run_around(_ISSUED_SIGNS, _ISSUED_RUN, 300, entropy.is_issued),
        wraps=False,
        yields=True,
    ),
)
