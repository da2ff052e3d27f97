"""Take secrets out of text before it is stored, sent or shown.

Each row names a kind of secret and the expression that finds it; the group `secret` is what is masked,
else the whole match. Formats are those that the issuers document.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

_NAME = r"(?:pass(?:word|wd|phrase)|pwd|secret(?:[_-]?(?:access)?[_-]?key)?|api[_-]?key|apikey|access[_-]?key(?:[_-]?(?:id|secret))?|auth[_-]?token|private[_-]?key|client[_-]?secret|credentials?|account[_-]?key)"
# A tokenizer's special tokens and token counts are settings; they must stay readable.
_SPECIAL = r"(?<![a-z0-9])(?:(?!bos|eos|pad|unk|sep|cls|mask|image|video|audio|max|num|stop|special|new|per|next|first|last)[a-z0-9]{1,40}[_-])?token"

# Between a flag and its value: blanks, or the end of a row that goes on (in a diff, the next one begins with its sign).
_APART = r"(?:[= ]|\\\r?\n[ +-]?[ \t]*+)++"
# A key that is cut off goes on over the rows that still look like its text.
_PRIVATE = (
    "private-key",
    (r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]{0,16000}?-----END [A-Z ]*PRIVATE KEY-----|[^\n]*(?:\n[^\n]{0,200}?[A-Za-z0-9+/=]{60,100}[ \t]*(?=\n|\Z))*+)|"
     r"(?m:^)(?:[A-Za-z0-9+/=]{1,100}[ \t]*\n){1,100}+-----END [A-Z ]*PRIVATE KEY-----"),
)
_FLAGS = (
    ("password", rf"(?i)\s--?{_NAME}{_APART}(?!None\b|--|\*\*|\[redacted|\$)['\"]?(?P<secret>[^\s'\"-][^\s'\"]{{3,}})"),
    ("token", rf"(?i)\s--{_SPECIAL}{_APART}(?!None\b|--|\*\*|\[redacted|<|\$)['\"]?(?P<secret>[A-Za-z0-9._~+/-]{{12,}}=*)"),
)

_ROWS: tuple[tuple[str, str], ...] = (
    _PRIVATE,
    ("url-credentials", r"(?<=://)(?P<secret>[^\s/:@]{0,100}:[^\s/@]{1,200})@"),
    ("aws-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{22,255})\b"),
    ("gitlab-token", r"\bgl(?:pat|ptt|dt|rt|cbt|agent)-[A-Za-z0-9_-]{20,}"),
    ("huggingface-token", r"\b(?:hf|api_org)_[A-Za-z]{30,40}\b|\bhf_[A-Za-z0-9]{30,40}\b"),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-|admin-|or-v1-)?[A-Za-z0-9_-]{20,}"),
    ("google-key", r"\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{28}"),
    ("slack-token", r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}|\bxapp-[0-9A-Za-z-]{10,}"),
    ("slack-webhook", r"https://hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/_+-]{20,})"),
    ("stripe-key", r"\b[srp]k_(?:live|test)_[0-9A-Za-z]{16,}"),
    ("sendgrid-key", r"\bSG\.[\w-]{16,32}\.[\w-]{16,64}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-token", r"\bpypi-AgE[A-Za-z0-9_-]{40,}"),
    ("databricks-token", r"\bdapi[0-9a-f]{32}(?:-\d)?\b"),
    ("azure-key", r"(?i)\b(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{20,}={0,2})"),
    ("azure-sas", r"(?i)[?&]sig=(?P<secret>[A-Za-z0-9%+/=]{20,})"),
    ("alibaba-key", r"\bLTAI[0-9A-Za-z]{12,26}\b"),
    ("tencent-key", r"\bAKID[0-9A-Za-z]{13,40}\b"),
    ("telegram-token", r"\b\d{8,10}:AA[0-9A-Za-z_-]{33}\b"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("aws-signature", r"(?i)X-Amz-(?:Signature|Security-Token|Credential)=(?P<secret>[^&\s'\"]{16,})"),
    ("authorization", r"(?i)\b(?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token|digest)\s+)?(?P<secret>[^\s'\",]{8,})"),
    ("bearer", r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/-]{12,}=*)"),
    ("cookie", r"(?i)\b(?:set-)?cookie['\"]?\s*:\s*['\"]?(?P<secret>[^\s'\"][^'\"\r\n]{6,})"),
    ("api-header", r"(?i)\bx-(?:api|auth|access)-(?:key|token)['\"]?\s*[:=]\s*['\"]?(?P<secret>[^\s'\",]{8,})"),
    ("wandb-key", r"(?i)\bwandb[\w .:=-]{0,40}?(?P<secret>\b[0-9a-f]{40}\b)"),
    ("password", rf"(?i)(?<![a-z]){_NAME}['\"]?\s*(?:=>|[:=])\s*(?!None\b|null\b|true\b|false\b|\*\*|\[redacted|\$)(?P<quote>['\"]?)(?!\[redacted)(?P<secret>[^\s'\",;)}}\]]{{4,}})"),
    ("token", rf"(?i){_SPECIAL}['\"]?\s*(?:=>|[:=])\s*(?!None\b|null\b|true\b|false\b|\*\*|\[redacted|<|\$)['\"]?(?P<secret>[A-Za-z0-9._~+/-]{{12,}}=*)"),
    *_FLAGS,
    ("email", r"\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,5}(?:com|org|net|edu|io|ai|cn|de|fr|uk|jp|kr|in|ru|eu|gov|co|dev|cloud|us|ca|au|ch|nl|se|tw|hk|sg)\b"),
)
_EXPRESSIONS = tuple((kind, re.compile(expression)) for kind, expression in _ROWS)
# What may go on from one row to the next.
_OVER_ROWS = tuple((kind, re.compile(expression)) for kind, expression in (_PRIVATE, *_FLAGS))

# Text without any of these cannot hold a secret of the table; most log lines end here.
_MAYBE = re.compile(
    r"(?i)pass|pwd|secret|key|token|credential|bearer|authoriz|cookie|wandb|sig=|x-amz|@|://[^/\s]*:|"
    r"AKIA|ASIA|ABIA|ACCA|gh[pousr]_|github_pat|gl(?:pat|ptt|dt|rt|cbt|agent)-|hf_|api_org|sk-|AIza|ya29|GOCSPX|xox|xapp|hooks\.slack|"
    r"[srp]k_(?:live|test)|SG\.|npm_|pypi-|dapi|LTAI|AKID|:AA|eyJ|-----BEGIN"
)


class Redactor:
    """Mask secrets and count how many different ones there were."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    @property
    def count(self) -> int:
        """Give the number of different secrets that were masked."""
        return len(self._seen)

    def clean(self, text: str) -> str:
        """Give the text with each secret replaced by `[redacted:<kind>]`."""
        if not _MAYBE.search(text):
            return text
        for kind, expression in _EXPRESSIONS:
            text = expression.sub(partial(self._mask, kind), text)
        return text

    def rows(self, texts: Sequence[str]) -> list[str]:
        """Clean rows that stand below each other: each by itself, and what goes on over several of them."""
        whole = "\n".join(texts)
        for kind, expression in _OVER_ROWS:
            whole = expression.sub(partial(self._mask, kind), whole)
        return [self.clean(text) for text in whole.split("\n")[: len(texts)]]

    def value(self, key: str, value: str) -> str:
        """Mask a setting's value where it, or its name, tells a secret."""
        together = self.clean(f"{key}={value}")
        return together[len(key) + 1 :] if together.startswith(f"{key}=") else together

    def _mask(self, kind: str, match: re.Match[str]) -> str:
        self._seen.add(hash(match["secret"] if "secret" in match.re.groupindex else match[0]))
        begin, end = match.span("secret") if "secret" in match.re.groupindex else match.span()
        # A key over several lines leaves its line ends, so that what follows keeps its number.
        mark = f"[redacted:{kind}]" + "\n" * match.string.count("\n", begin, end)
        return match.string[match.start() : begin] + mark + match.string[end : match.end()]
