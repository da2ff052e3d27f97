r"""The table of secrets: each kind with the expression that finds it, and what its rows cannot do without.

Formats are those that the issuers document. All expressions are for bytes (UTF-8), so that `\b` and `\w` mean
ASCII and a secret is found between Chinese characters too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ingest.redaction import entropy, views

if TYPE_CHECKING:
    from ingest.logs.scanner import SpanFinder

_NOT_BEHIND = r"(?<![A-Za-z0-9])"
# What a secret's characters are once it has begun.
_RUN = r"[A-Za-z0-9_+/=.~%-]"
# How far a match may go into the row below, where its own row leaves a value open.
NEXT_ROW = 200
# What may stand behind a name or a scheme that a row's end has cut.
AFTER_NAME = r"(?:['\"\])]{0,3}[ \t,]*(?:[=: ]|->|：|＝)|['\"]?\r?$)"
# What may stand between a name and the end of its row.
AT_END = r"['\"\])]{0,3}[ \t,]*\\?\r?\n"


class SecretMatch(Protocol):
    """What tells of a secret in a text: the whole, and the group in it that is masked."""

    @property
    def lastgroup(self) -> str | None:
        """The name of the group, where not the whole is masked."""

    def start(self) -> int:
        """Give where the whole begins."""

    def end(self) -> int:
        """Give where the whole ends."""

    def span(self, group: str | int = 0, /) -> tuple[int, int]:
        """Give where the whole, or its group, begins and ends."""


@dataclass(frozen=True, slots=True)
class FoundValue:
    """A value that a function has found, and the part of the text that tells of it."""

    begin: int
    first: int
    last: int
    lastgroup: str | None = "secret"

    def start(self) -> int:
        """Give where what tells of the value begins."""
        return self.begin

    def end(self) -> int:
        """Give where the value ends."""
        return self.last

    def span(self, group: str | int = 0, /) -> tuple[int, int]:
        """Give the whole, or the value alone."""
        return (self.first if group else self.begin), self.last


class Probed(NamedTuple):
    """Whether a place is worth a look, and up to where the same holds."""

    is_worth: bool
    until: int


def run_around(
    signs: bytes, ahead: re.Pattern[bytes], back: int, holds: Callable[[bytes], bool]
) -> Callable[[bytes, int], Probed]:
    """Make a probe for the run of signs around a place: what `ahead` finds, and up to `back` signs before."""

    def probe(text: bytes, place: int) -> Probed:
        before, after = text[max(0, place - back) : place], ahead.match(text, place)
        run = before[len(before.rstrip(signs)) :] + (after[0] if after else b"")
        return Probed(holds(run), after.end() if after else place)

    return probe


def going_on_as(run: str) -> Callable[[bytes, int], Probed]:
    """Make a probe for a condition that a row's end meets, too: the row below then begins with such a run."""
    begin = re.compile(views.BEFORE_ROW + b"[\"']?(?:" + run.encode() + b")")

    def probe(text: bytes, place: int) -> Probed:
        is_end = text[place - 1 : place] == b"\n" and place < len(text)
        return Probed(not is_end or begin.match(text, place) is not None, place)

    return probe


@dataclass(frozen=True, slots=True)
class SecretKind:
    """One row: what is masked is the named group that matched, else the whole match.

    `prefilter` is a Hyperscan expression that matches in the first row of each match. `starts` are literals
    that the end of a row may cut, `after` is what follows them. `check` looks at a found secret and may let
    it stand. `back` and `ahead` say how many bytes a match may go beyond its row; a kind that `wraps` is
    looked for over row ends: where the row ends with what the prefilter found, or anywhere in it (`far`), or
    where the next row begins with what `below` says; what the next row adds must look drawn by chance where
    not the shape alone tells the secret. One that `yields` is left where another kind is found. The
    expression of a `linear` one is a user's: Hyperscan alone reads it, whose time no text can stretch. What
    no expression tells, such as the column of a cell, a `finder` finds; its expression is empty then. Where
    the prefilter's condition is met often and seldom by a secret, a `probe` of the text and the place says
    whether the row is worth more.
    """

    name: str
    prefilter: str
    expression: str
    starts: tuple[str, ...] = ()
    after: str = ""
    check: Callable[[bytes], bool] | None = None
    back: int = 0
    ahead: int = 0
    wraps: bool = True
    below: str = ""
    far: bool = False
    shaped: bool = True
    yields: bool = False
    linear: bool = False
    finder: Callable[[bytes], Iterator[SecretMatch]] | None = None
    probe: Callable[[bytes, int], Probed] | None = None

    @property
    def is_local(self) -> bool:
        """Tell whether a match begins no earlier than the word in which its condition is met."""
        return not self.back and not self.linear and "[^\\n" not in self.prefilter

    def matches(self, text: bytes) -> Iterator[SecretMatch]:
        """Give what the expression, or the function, finds in a text, in its order."""
        if self.finder is not None:
            return self.finder(text)
        if not self.linear:
            return self.compiled().finditer(text)
        # All that any of Hyperscan's matches covers, since it tells of each end.
        spans = _span_finder(self.expression).spans(text)
        return (match for begin, end in spans if (match := _ANYTHING.match(text, begin, end)))

    def compiled(self) -> re.Pattern[bytes]:
        """Give the expression for bytes; made when it is first needed, since most logs need few of them."""
        return _compiled(self.expression)


@cache
def _compiled(expression: str) -> re.Pattern[bytes]:
    return re.compile(expression.encode())


_ANYTHING = re.compile(rb"(?s:.+)")


@cache
def _span_finder(expression: str) -> SpanFinder:
    # Imported here: who sets no expressions, and whoever reads settings alone, does not wait for Hyperscan.
    from ingest.logs.scanner import SpanFinder

    return SpanFinder(expression)


def _issued(
    name: str,
    starts: str,
    letters: str,
    size: str,
    end: str = "",
    check: Callable[[bytes], bool] | None = None,
) -> SecretKind:
    """Make the row of a secret that begins with one of some literals, and goes on with so many letters."""
    literals = tuple(starts.split())
    begin = "|".join(re.escape(literal) for literal in literals)
    # A short literal stands in many words; then some of what follows is asked for, or the row's end.
    some = min(10, int(re.findall(r"\d+", size)[0]))
    more = (
        rf"(?:{letters}{{{some}}}|{letters}{{0,{some - 1}}}[\"'\\]{{0,2}}\s*(?:\n|\z))"
        if min(map(len, literals)) < 5
        else ""
    )
    return SecretKind(
        name,
        f"(?:{begin}){more}",
        rf"{_NOT_BEHIND}(?:{begin}){letters}{size}{end}",
        literals,
        rf"{letters}{{8}}",
        check,
    )


_END = r"(?![A-Za-z0-9])"
ISSUED = (
    _issued("aws-key", "AKIA ASIA ABIA ACCA", r"[0-9A-Z]", r"{16}", _END),
    _issued("github-token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"[A-Za-z0-9_]", r"{20,255}"),
    _issued("grafana-token", "glsa_ glc_", r"[A-Za-z0-9+/=]", r"{32,400}(?:_[0-9a-f]{8})?", _END),
    _issued(
        "gitlab-token",
        "glpat- glptt- gldt- glrt- glcbt- glagent- gloas- glft- glimt- glsoat- glffct-",
        r"[A-Za-z0-9_-]",
        r"{20,300}(?:\.[a-z0-9.]{2,12})?",
    ),
    _issued("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]", r"{24,40}", _END, entropy.is_suffixed),
    _issued("whycrash-key", "whycrash_", r"[0-9a-zA-Z_-]", r"{40,80}"),
    _issued("wandb-key", "wandb_v1_", r"[A-Za-z0-9_]", r"{40,120}"),
    _issued("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]", r"{20,200}"),
    _issued("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-or-v1-", r"[A-Za-z0-9_-]", r"{20,250}"),
    _issued("google-key", "AIza", r"[0-9A-Za-z_-]", r"{35}"),
    _issued("google-key", "ya29. GOCSPX- 1//0", r"[0-9A-Za-z_-]", r"{20,300}"),
    _issued(
        "slack-token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xapp- xoxe.xoxp- xoxe.xoxb-",
        r"[0-9A-Za-z%-]",
        r"{10,400}",
    ),
    _issued(
        "stripe-key",
        "sk_live_ rk_live_ pk_live_ sk_test_ rk_test_ pk_test_ whsec_",
        r"[0-9A-Za-z]",
        r"{16,120}",
    ),
    _issued("npm-token", "npm_", r"[A-Za-z0-9]", r"{24,36}", _END, entropy.is_suffixed),
    _issued("pypi-token", "pypi-AgE", r"[A-Za-z0-9_-]", r"{40,400}"),
    _issued("docker-auth", "dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]", r"{20,60}"),
    _issued("databricks-token", "dapi", r"[0-9a-f]", r"{32}(?:-\d)?", _END),
    _issued("alibaba-key", "LTAI", r"[0-9A-Za-z]", r"{12,26}", _END),
    _issued("tencent-key", "AKID", r"[0-9A-Za-z]", r"{13,40}", _END),
    _issued("volcengine-key", "AKLT", r"[0-9A-Za-z_-]", r"{20,60}={0,2}"),
    _issued("groq-key", "gsk_", r"[A-Za-z0-9]", r"{40,60}", _END),
    _issued("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]", r"{40,80}"),
    _issued("replicate-token", "r8_", r"[A-Za-z0-9]", r"{24,37}", _END, entropy.is_suffixed),
    _issued("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]", r"{32}_[0-9a-f]{10}", _END),
    _issued(
        "issuer-token",
        "bkua_ bkct_ pnu_ pnb_ rnd_ pplx- xai- fw_ tgp_v1_ csk- pcsk_ esecret_ rpa_ KGAT_ r2_ jina_ fc-",
        r"[A-Za-z0-9_]",
        r"{32,120}",
        _END,
    ),
    _issued(
        "issuer-token",
        "dop_v1_ doo_v1_ dor_v1_ sntryu_ pul- shpat_ lin_api_ ntn_ sbp_ nfp_ pscale_tkn_ dp.pt. rubygems_ "
        "figd_",
        r"[A-Za-z0-9_-]",
        r"{32,120}",
    ),
    _issued(
        "issuer-token",
        "tskey-auth- tskey-api- tskey-client- sntrys_ ops_eyJ AKCp NRAK- CLOUDSDK_AUTH_",
        r"[A-Za-z0-9_=+/-]",
        r"{24,900}",
    ),
    _issued("vault-token", "hvs. hvb. hvr. s.CAES", r"[A-Za-z0-9_-]", r"{24,300}"),
    _issued("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]", r"{58}", _END),
    _issued("neptune-token", "eyJhcGlfYWRkcmVz", r"[A-Za-z0-9+/]", r"{20,900}={0,2}"),
    _issued(
        "docker-auth", "eyJhdXRocyI6 ewogICJhdXRocyI6 ewoJImF1dGhzIjo", r"[A-Za-z0-9+/]", r"{16,8000}={0,2}"
    ),
    _issued("jwt", "eyJ", r"[A-Za-z0-9_-]", r"{8,4000}\.[A-Za-z0-9_-]{8,8000}(?:\.[A-Za-z0-9_-]{8,2000})?"),
    _issued("kubernetes-key", "LS0tLS1CRUdJTi", r"[A-Za-z0-9+/]", r"{40,16000}={0,2}"),
    _issued("issuer-token", "ATBB ATATT3 ATCTT3", r"[A-Za-z0-9_=-]", r"{24,300}"),
    _issued("issuer-token", "gAAAAA", r"[A-Za-z0-9_-]", r"{50,4000}={0,2}"),
    _issued("issuer-token", "oy2", r"[a-z0-9]", r"{43}", _END),
    _issued("sendgrid-key", "SG.", r"[\w-]", r"{16,32}\.[\w-]{16,64}"),
)

_DIGEST_BEFORE = re.compile(rb"[0-9a-f]{32}(?:\.[A-Za-z0-9]|\.?[\"'\\]{0,2}\r?\n)\Z")
# What has sixteen signs behind such a digest, in its row or, where that ends before, in the one below.
_SIGNED = re.compile(rb"[A-Za-z0-9]{15}(?![A-Za-z0-9])|[A-Za-z0-9]{0,14}[\"'\\ \t|]{0,4}\r?(?:\n|\Z)")
_signed_below = going_on_as(r"\.(?:[A-Za-z0-9]|[\"'\\]?\r?\n)|[A-Za-z0-9]{4,16}(?![A-Za-z0-9])")


def _is_behind_digest(text: bytes, place: int) -> Probed:
    """Tell whether 32 hexadecimal digits end at a place, and whether what goes on may be a key's rest."""
    if _DIGEST_BEFORE.search(text, max(0, place - 37), place) is None:
        return Probed(is_worth=False, until=place)
    if text[place - 1 : place] == b"\n":
        return _signed_below(text, place)
    return Probed(_SIGNED.match(text, place) is not None, place)


_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
SHAPED = (
    SecretKind(
        "openai-key",
        rf"sk-(?:{_RUN}{{6}}|{_RUN}{{0,5}}[\"'\\]{{0,2}}\s*(?:\n|\z))",
        rf"{_NOT_BEHIND}(?<![-_])sk-[A-Za-z0-9_-]{{20,250}}",
        ("sk-",),
        "[A-Za-z0-9_-]{12}",
        entropy.is_suffixed,
    ),
    SecretKind(
        "baidu-key",
        "bce-v3",
        rf"{_NOT_BEHIND}bce-v3/[A-Za-z0-9-]{{10,40}}/[0-9a-f]{{40}}{_END}",
        ("bce-v3/ALTAK-",),
        "[A-Za-z0-9]{8}",
    ),
    SecretKind(
        "modelscope-token",
        r"ms-(?:[0-9a-f]{4}|[0-9a-f]{0,8}[\"'\\]{0,2}\s*\n)",
        rf"{_NOT_BEHIND}ms-{_UUID}{_END}",
        ("ms-",),
        "[0-9a-f]{8}",
    ),
    SecretKind(
        "zhipu-key",
        # Counting to 32 at each digit of a log takes a sixth of the whole pass; the probe does it.
        r"[0-9a-f]{12}(?:\.[A-Za-z0-9]|\.?[\"'\\]{0,2}\r?\n)",
        rf"{_NOT_BEHIND}[0-9a-f]{{32}}\.[A-Za-z0-9]{{16}}{_END}",
        check=entropy.is_mixed,
        probe=_is_behind_digest,
        below=r"[0-9a-f]{0,31}\.(?:[A-Za-z0-9]{16}|[A-Za-z0-9]{0,15}[\"'\\]{0,2}\r?$)",
    ),
    SecretKind(
        "telegram-token",
        r"(?i)(?::|%3A|u003a)A(?:A|\s*\n)",
        rf"(?:{_NOT_BEHIND}|(?<=bot))\d{{8,10}}:AA[0-9A-Za-z_-]{{24,33}}{_END}",
        (":AA",),
        "[0-9A-Za-z_-]{12}",
        below=r"\d{0,9}:AA(?:[0-9A-Za-z_-]{33}|[0-9A-Za-z_-]{0,32}[\"'\\]{0,2}\r?$)",
    ),
    SecretKind(
        "azure-secret",
        r"\dQ(?:~|\s*\n)",
        rf"{_NOT_BEHIND}[A-Za-z0-9_~.-]{{0,3}}\dQ~[A-Za-z0-9_~.-]{{31,34}}{_END}",
        ("Q~",),
        "[A-Za-z0-9_~.-]{12}",
        below=r"Q~[A-Za-z0-9_~.-]{12}",
    ),
    SecretKind(
        "wandb-key",
        r"(?i)wandb[\w .,:=%\"'(\\+-]{0,120}?(?:[0-9a-f]{8}|[0-9a-f]{0,7}[\"'\\]{0,2}\s*\n)",
        # A commit, a run and a file have forty digits, too; what they are is said between.
        rf"(?i)wandb(?:(?!(?:commit|sha|rev|revision|hash|digest|head|ref|branch|git|version|run|"
        rf"id|artifact)(?![a-z]))"
        rf"[\w .,:=\"'(+-]){{0,100}}?(?P<secret>(?<![0-9a-zA-Z])[0-9a-f]{{40}}){_END}",
        ("wandb",),
        r"[\w .,:=\"'(+-]{1,60}?[0-9a-f]{8}",
        probe=going_on_as(r"[\w .,:=%\"'(\\+-]{0,120}?[0-9a-f]{8}"),
    ),
    SecretKind(
        "password-hash",
        r"\$(?:apr1|[1567y]|gy|2[abxy]|argon2\w{0,2}|scrypt|pbkdf2-sha\d+)\$|\{SS?HA\d*\}|%24(?:apr1|"
        r"[156y]|2[abxy])%24|u0024(?:apr1|[156y]|2[abxy])\\",
        r"\$(?:apr1|[1567y]|gy|2[abxy]|argon2\w{0,2}|scrypt|pbkdf2-sha\d+)\$[A-Za-z0-9./$=,+-]{16,200}|"
        r"\{SS?HA\d*\}[A-Za-z0-9+/]{20,120}={0,2}",
        ("$apr1$", "$6$", "$5$", "$1$", "$y$", "$2y$", "$2b$", "$argon2id$"),
        "[A-Za-z0-9./$=,+-]{8}",
    ),
    SecretKind(
        "discord-token",
        r"[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
        rf"{_NOT_BEHIND}[MNO][A-Za-z0-9_-]{{22,27}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,40}}",
        check=entropy.is_dense,
    ),
    SecretKind(
        "issuer-token",
        r"pat[A-Za-z0-9]{14}\.[0-9a-f]{8}",
        rf"{_NOT_BEHIND}pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}",
    ),
    # A key of a user's number: pk_123456_X
    SecretKind(
        "issuer-token", r"pk_\d{4,12}_[A-Z0-9]{16}", rf"{_NOT_BEHIND}pk_\d{{4,12}}_[A-Z0-9]{{32}}{_END}"
    ),
    SecretKind(
        "issuer-token",
        r"t1\.[A-Za-z0-9_-]{16}",
        rf"{_NOT_BEHIND}t1\.[A-Za-z0-9_-]{{40,400}}={{0,2}}\.[A-Za-z0-9_-]{{40,100}}{_END}",
        check=entropy.is_dense,
    ),
    # What a disk's lock takes in place of its password.
    SecretKind(
        "licence-key",
        r"\d{6}-\d{6}-\d{6}-\d{6}-\d{6}-\d{6}-",
        r"(?<![\w-])(?:\d{6}-){7}\d{6}(?![\w-])",
        wraps=False,
    ),
    SecretKind("age-key", r"AGE-SECRET-KEY-", rf"AGE-SECRET-KEY-[0-9A-Z]{{58,60}}{_END}"),
)

# A key that is cut off goes on over the rows that still look like its text; between its ends there are no two
# dashes.
_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?"
_PUBLIC = r"(?:[A-Z0-9 ]{0,20} )?(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY|X509 CRL|PGP SIGNATURE|PKCS7|CMS)"
_BEFORE_ROW = r"(?:\([^()\n]{1,80}\) ?|[ \t]{1,24})?"
_ROW_OF_KEY = rf"{_BEFORE_ROW}(?:[A-Za-z0-9+/]{{64}}|[A-Za-z0-9+/]{{70}}|[A-Za-z0-9+/]{{76}})"

PRIVATE = (
    SecretKind(
        "private-key",
        r"PRIVATE(?: |%20|\+|\\u0020)KEY",
        rf"-{{4,5}} ?BEGIN {_LABEL}-{{0,5}}(?:(?>(?:[^-]|-(?!-)){{0,16000}})-{{4,5}} ?END {_LABEL}-{{0,5}}|"
        r"[^\n]*(?>(?:\n[^\n]{0,200}?[A-Za-z0-9+/=]{60,100}[ "
        r"\t]*\r?(?=\n|\Z))*)(?:\n[^\n]{0,80}?[A-Za-z0-9+/]{4,59}(?:={1,2}|\.{3}|\xe2\x80\xa6)[ "
        r"\t]*\r?(?=\n|\Z))?)",
        ahead=20_000,
        wraps=False,
    ),
    SecretKind(
        "private-key",
        r"END [A-Z0-9 ]{0,40}PRIVATE KEY",
        rf"(?m:^)(?>(?:[^\n]{{0,100}}?[A-Za-z0-9+/=]{{1,100}}[ \t]*\r?\n){{1,100}})[^\n]{{0,100}}?-----END "
        rf"{_LABEL}-----",
        back=12_000,
        wraps=False,
    ),
    SecretKind(
        "private-key",
        r"(?:Private-Lines|PuTTY-User-Key-File)",
        r"Private-Lines: \d{1,3}(?P<secret>(?>(?:\s+[^\n]{0,80}?[A-Za-z0-9+/=]{8,100}(?=\s|\Z)){1,100}))",
        ahead=12_000,
        wraps=False,
    ),
    SecretKind(
        "private-key",
        # From the row's begin on: a run of letters that may begin anywhere takes a third of the whole pass.
        r"^(?:\([^()\n]*\) ?|[ \t]*)[A-Za-z0-9+/]{64,76}\r?\n(?:\([^()\n]*\) ?|[ \t]*)[A-Za-z0-9+/]{64}",
        # What says of itself that all may read it is passed over as a whole.
        rf"-----BEGIN {_PUBLIC}-----(?:[^-]|-(?!-)){{0,16000}}(?:-----END {_PUBLIC}-----)?|"
        rf"(?m:^)(?P<secret>(?:{_ROW_OF_KEY}\r?(?:\n|\Z)){{2,}}+(?:{_BEFORE_ROW}[A-Za-z0-9+/]{{2,69}}={{0,2}}"
        rf"(?=\s|\Z))?)",
        check=lambda value: not value.startswith(b"-----BEGIN") and entropy.is_base64(value),
        back=200,
        ahead=12_000,
        wraps=False,
    ),
)
