"""What leads a reader away from the answer: addresses, numbers to call, requests for credentials, commands.

A model that follows a poisoned log puts its author's address into words of its own, so that none of these
stands in what a model writes, however it is spelled. Better a true sentence lost than one that sends a reader
somewhere.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterator

from corpus.message import Message
from service.llm.prompt_injection import INVISIBLE

MASK = "[…]"

_PROGRAMS = (
    "sudo|su|rm|mv|cp|dd|mkfs|curl|wget|nc|ncat|ssh|scp|rsync|bash|sh|zsh|eval|exec|source|export|unset|"
    "alias|chmod|chown|kill|pkill|killall|"
    "pip3?|conda|mamba|uv|apt(?:-get)?|yum|dnf|npm|docker|podman|kubectl|helm|systemctl|service|modprobe|"
    "rmmod|sysctl|mount|umount|reboot|shutdown|"
    "python3?|torchrun|deepspeed|accelerate|ray|srun|sbatch|scancel|scontrol|sacct|nvidia-smi|dmesg|"
    "journalctl|git|make|echo|cat|tee|find|xargs|sed|awk|"
    "crontab|iptables|ulimit|powershell|perl|ruby|node|certutil|iwr|invoke-\\w+"
)
# Those that are no word of a sentence about a job.
_TOOLS = (
    "sudo|rm|curl|wget|nc|ssh|scp|bash|sh|chmod|chown|pkill|pip3?|conda|apt(?:-get)?|docker|kubectl|helm|"
    "systemctl|sysctl|python3|nvidia-smi|dmesg|git|powershell"
)
# Programs of a shell whose names begin no sentence, nor a value in words.
_SHELL_ALONE = (
    rf"(?:{_TOOLS}|su|dd|mkfs(?:\.\w+)?|ncat|rsync|zsh|eval|unset|kill|pkill|killall|mamba|yum|dnf|npm|"
    r"podman|modprobe|rmmod|umount|scancel|scontrol|sacctmgr|crontab|iptables|nft|setenforce|xargs|"
    r"sed|awk|perl|certutil|iwr|invoke-\w+)"
)
COMMAND = re.compile(
    # "kill -9" alone is what became of a process.
    rf"\b(?!kill\s+-(?:9|15|kill|term)\b(?!\s+-?\d)){_SHELL_ALONE}\s+(?:(?:\w+\s+){{0,2}}-{{1,2}}[a-z]\w*|"
    rf"-{{1,2}}\w|\w+\s+\w+=)|"
    rf"^\s*{_SHELL_ALONE}\s+[/~]|"
    rf"^\s*[$>]\s+\S|```|`\s*(?:[$#]\s*)?(?:{_PROGRAMS})\s+[^`]+`|\|\s*(?:{_PROGRAMS})\b|\$\(|&&|"
    rf";\s*(?:{_PROGRAMS})\b|>\s*/|"
    rf"\b(?:run|execute|type|invoke|issue|paste|运行|执行|输入)\s*[:：]?\s*[`\"']?(?:{_TOOLS})\b|"
    r"\b(?:sudo|rm|curl|wget|chmod|chown|pip3?|apt-get|conda|docker|kubectl|git|ssh|scp|bash|sh|eval|"
    r"nvidia-smi|python3?|perl|powershell)\s+(?:-{1,2}\w|install|run|exec|apply|delete|clone|/|~|https?:)|"
    # A blob that somebody is to decode.
    r"(?<![\w/+])[A-Za-z0-9+/]{40,}={0,2}(?![\w/+])|(?:\\x[0-9a-f]{2}){4,}|(?:%[0-9a-f]{2}){4,}",
    re.IGNORECASE | re.MULTILINE,
)
_ADDRESS = re.compile(
    # With a scheme, also one that was defanged (`hxxp`) and that a reader still understands; a share; `www`.
    r"[a-z][a-z0-9+.-]{1,15}\s*(?::|\[:\])\s*/\s*/\S*|\bh(?:xx|\*\*|tt_)ps?\b\S*|(?<!\w)\\\\[\w.-]+|"
    r"\bwww\s*[.\[(]\S*|\b(?:mailto|tel|sms|javascript|data):\S+|"
    # A dot written otherwise.
    r"[\w-]+\s*[\[({<]\s*(?:\.|dot|点)\s*[\])}>]\s*[\w-]+|\b[\w-]+\s+(?:dot|点)\s+(?!product|"
    r"plot)[a-z]{2,}\b|[^\W\d_][\w-]*\s+\.\s*[a-z]{2,}\b|"
    # Mail, also where it is masked already, handles, punycode, a host with its port.
    r"[\w.+-]+\s*(?:@|\(at\)|\[at\])\s*[\w-]+|(?<!\w)@\w{2,}|\bxn--[\w.-]+|\[redacted:email\]|"
    r"(?<![\w.])[a-z][\w-]*:\d{2,5}(?![\w.])|\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?",
    re.IGNORECASE,
)
_SIXES = re.compile(r"(?<![\w:])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
_DOTTED = re.compile(r"(?<![\w@/.-])(?!\d+(?:\.\d+)+(?![\w.-]))[^\W_][\w-]*(?:\.[^\W_][\w-]*)+")
# Endings of files that no registry sells as a domain's.
_FILES = re.compile(
    r"py|pyx|cpp|hpp|cuh|log|yaml|yml|json|jsonl|txt|toml|cfg|ini|conf|out|err|ipynb|slurm|sbatch|"
    r"safetensors|ckpt|pth|pkl|gguf|onnx|npy|npz|h5|hdf5|zarr|csv|tsv|parquet|arrow|feather|tfrecord|"
    r"lmdb|sqlite|tar|gz|tgz|zst|png|jpe?g|wav|flac",
    re.IGNORECASE,
)
# What OmegaConf fills in, as configurations write it: omegaconf/resolvers, hydra/conf (HydraConf).
_FILLED_IN = re.compile(r"\$\{(?:hydra:(?:runtime|job|run|sweep)\.[a-z_]{2,20}|oc\.env:[A-Z_]{2,40})\}")
_ABBREVIATED = frozenset({"e.g", "i.e", "a.k.a", "u.s", "p.s"})
_SPELLED = (
    r"(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|ten|double|triple|hundred|thousand|nought)"
)
_CALL = re.compile(
    r"(?<!\w)\+\s?\d[\d\s().-]{5,}\d|\(\d{2,4}\)\s*\d{3,}|"
    r"(?<![\w.])\d{3,4}[\s.-]\d{3,4}(?:[\s.-]\d{2,4})+(?!\w)|(?<![\w.])\d{3}-\d{4}(?!\w)|"
    r"(?<!\w)1[3-9]\d{9}(?!\w)(?!\s*(?:bytes?|B)\b)|\[redacted:phone\]|"
    # An account to pay into, whole or its beginning (ISO 13616); a precision or a card is written alike.
    r"(?<!\w)(?-i:(?!(?:FP|BF|TF|SM|TP|PP|DP|EP|CP|SP|MX|NV|CU|KV|GB(?!\d\d[ -]?[A-Z]{4}))\d)[A-Z]{2}\d{2}"
    r"(?:[ -]\d{4}|(?:[ -]?[A-Z0-9]{4}){2,}))(?![^\W_])|\biban\b|"
    # One that begins with a nought, and wallets: of Bitcoin, Ethereum, Tron.
    r"(?<![\w.:-])0\d{2,4}[\s-]\d{3,}(?!\w|[.:]\d)|(?-i:(?<!\w)(?:0x[0-9a-fA-F]{40}|bc1[0-9a-z]{20,}|"
    r"[13T][1-9A-HJ-NP-Za-km-z]{25,34})(?!\w))|"
    # Sums of money.
    r"(?<![\w$])[$€£¥₿]\s?\d[\d.,]+|(?<![\w.])\d[\d.,]*\s?(?:[€£¥₿]|(?:eur|usd|gbp|cny|rmb|chf|jpy|"
    r"krw|inr|rub|btc|eth|xmr|euros?|dollars?|yuan|rubles?|pounds sterling)(?!\w)|元|美元|万元|块钱)|"
    r"\b(?:eur|usd|gbp|cny|rmb|chf|btc|xmr)\s\d|"
    rf"\b{_SPELLED}(?:[\s,-]+{_SPELLED}){{4,}}\b|[零〇一二三四五六七八九幺]{{7,}}|"
    r"\b(?:hot[\s-]?line|help\s?desk|qr[\s-]?code|cryptocurrenc\w+|bitcoins?|btc|ethereum|monero|usdt|"
    r"paypal|invoices?|"
    r"whatsapp|wechat|weixin|telegram|discord|skype|viber|threema|kakao\s?talk|icq|snapchat|instagram|"
    r"facebook|linkedin|line id|reach out|toll-free)\b|QQ\s*[:：]?\s*\d{5,}|[薇威vV]信|"
    r"\b(?:contact|e-?mail|phone|telephone|dial|text|call|ring)\s+(?:us|me|support|our|your|"
    r"the\s+(?:support|vendor|hotline|number|team|admin\w*)|\+?\d)|"
    r"微信|电话|热线|拨打|致电|QQ\s*群|客服|扫码|二维码|请联系|联系(?:我们|客服|管理员|支持)|加群",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(
    r"\b(?:passwords?|passphrases?|passwd|credentials?|api[ _-]?keys?|(?:access|secret|private|ssh)[ "
    r"_-]?keys?|(?:auth|access|bearer|hf|api|wandb)[ _-]?tokens?|"
    r"one-time (?:code|password)s?|2fa|otp|seed phrase|credit card|bank "
    r"account|(?:log|sign)\s?in)\b|密码|口令|凭据|凭证|密钥|令牌|验证码|账号|帐号|银行卡|登录",
    re.IGNORECASE,
)
_LEADS = re.compile(
    # A person who speaks, or is spoken of; letters that are set apart.
    r"(?<![\w.$-])(?:me|my|mine|him|her|his)(?!\w|[.=-]\w)|(?<![\w'])(?:[a-z] ){3,}[a-z](?![\w'])|"
    r"\b(?:visit|click|browse to|navigate to)\b|\bdownload (?:and|the "
    r"(?:fix|patch|tool|script)|this|our|from|it)\b|"
    r"\b(?:open|go to|follow|use|see) (?:the |this |our )?(?:link|page|site|website|url|web "
    r"address)\b|点击|访问(?:网站|网址|链接|页面|以下|该)|打开(?:链接|网址|网站)|下载(?:并|补丁|脚本|工具)",
    re.IGNORECASE,
)
_SHAPES = (
    (COMMAND, "model.holds-command"),
    (_ADDRESS, "model.holds-link-address"),
    (_CALL, "model.holds-number-call-way"),
    (_CREDENTIALS, "model.speaks-credentials"),
    (_LEADS, "model.leads-reader-elsewhere"),
)
# Addresses of nodes among themselves, which workers print before each line.
NODES = re.compile(
    r"\b(?:10\.\d{1,3}|127\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2}\b(?::\d+)?"
)


def nobody(_name: str) -> bool:
    """Know no name."""
    return False


def lead(text: str, is_known: Callable[[str], bool] = nobody) -> str:
    """Say what in a text leads a reader away, or give the empty string.

    `is_known` tells which dotted names are no domains.
    """
    for form in _forms(text):
        if why := next((why for shape, why in _SHAPES if shape.search(form)), ""):
            return Message(why)
        if next(_hosts(form, is_known), None):
            return Message("model.holds-link-address")
    return ""


def masked(text: str) -> str:
    """Give a text with all that leads away taken out, for the list of what was dropped."""
    if not lead(text):
        return text
    plain = next(iter(_forms(text)))
    if found := COMMAND.search(plain):
        plain = plain[: found.start()] + MASK
    for shape in (_ADDRESS, _CALL):
        plain = shape.sub(MASK, plain)
    for host in set(_hosts(plain, nobody)):
        plain = plain.replace(host, MASK)
    return plain


def _forms(text: str) -> Iterator[str]:
    """Give a text as a reader sees it: without invisible characters and with look-alikes folded.

    A path that a configuration fills in is no name of a host. The second form is without the letters'
    accents, too.
    """
    folded = _FILLED_IN.sub("$", unicodedata.normalize("NFKC", INVISIBLE.sub("", text)))
    yield folded
    bare = "".join(sign for sign in unicodedata.normalize("NFD", folded) if not unicodedata.combining(sign))
    if bare != folded:
        yield bare


def _hosts(text: str, is_known: Callable[[str], bool]) -> Iterator[str]:
    """Yield what can be the name or the number of a host."""
    for match in _SIXES.finditer(text):
        try:
            ipaddress.ip_address(match[0])
        except ValueError:
            continue
        yield match[0]
    for match in _DOTTED.finditer(text):
        name = match[0]
        *_, last_but_one, last = name.split(".")
        # What is bought as a domain has no underscore in its last two parts, and ends in letters.
        is_host = "_" not in last_but_one + last and not last[0].isdecimal() and len(last) > 1
        if is_host and not _FILES.fullmatch(last) and name.lower() not in _ABBREVIATED and not is_known(name):
            yield name
