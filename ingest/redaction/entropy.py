"""What a found value is like: drawn by chance, or a word, a number, a path."""

from __future__ import annotations

import base64
import binascii
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
_DASHED = re.compile(rb"[_-]")
_NUMBER = re.compile(rb"\d{1,7}|(?=[^.,:_-]*[.,:_-])[\d.,:eE+_-]+")
_PATH = re.compile(rb"~?\.{0,2}/(?:[A-Za-z_.][a-z_.-]+|[\w.-]+/[\w./-]+\.\w{2,5}\Z)(?:/|\Z)|[A-Z]:\\")
_NONE = re.compile(
    rb"(?i)(?:none|null|nil|true|false|empty|dummy|default|required|missing|undefined|unset|files|prompt|"
    rb"changeme|placeholder|your|"
    rb"[\[(<]?(?:redacted|hidden|masked|filtered|removed|scrubbed|sanitized|nil)[\])>]?|"
    rb"(?:[a-z0-9]{1,10}[_-]){0,3}x{3,}|\.{3,}|\*{2,}|(?:\w{1,6}[_-])?(?:your|insert|"
    rb"enter)[_-].*|.*_here|incorrect|invalid|wrong|"
    rb"expired|expected|"
    rb"updated|rotated|reset|rejected|mismatch\w*|failed|denied|authentication|accepted|unknown|changed|"
    rb"(?:not|no|none)[-_ ](?:needed|required|used|set|necessary|provided|available|applicable)|"
    rb"blank|not|set|unset|password|must|should|shall|may|can|cannot|could|will|would|"
    # What somebody has masked already, and left some letters of.
    rb"(?=.{1,40}\Z)[\w-]{0,12}(?:\*{3,}|\.{3}|\xe2\x80\xa6)[\w-]{0,8})[`.]?\Z"
)
# Where a program takes it from, and not what it is.
_CALL = re.compile(
    rb"(?:os\.(?:environ|getenv)|getenv\(|getpass|process\.env)\b|"
    rb"(?:var|vars|local|module|data|secrets|inputs|env)\.[a-z_][\w.-]*\Z|"
    # Another name, a metavariable, a call, a tag of YAML, and what a shell says where a variable is not set.
    rb"[A-Za-z_]\w*(?:\.\w+)*\.\w*(?:token|key|passw(?:or)?d|secret|credentials?)\Z|"
    rb"[a-z_]\w*(?:\.\w+)*\[\Z|"
    rb"(?:(?:api|access|secret|auth|hf|hub|wandb|private|public|client|session|user|db|new|old|app|admin|"
    rb"root|ssh|aws|encryption|signing|service|bot|login)[_-]){1,3}"
    rb"(?:token|key|passw(?:or)?d|secret|credentials?)"
    rb"\Z|"
    rb"(?:[A-Z]{2,}_){3,}[A-Z]{2,}\Z|(?:[A-Z]+_)*(?:PASSWORD|TOKEN|SECRET|KEY|PASS)\Z|"
    rb"[A-Za-z_][\w.]*\((?:\w+=|\.{3})?['\"]?\Z|[a-z]\w*(?:[_.]\w+)+\((?:[a-z][\w.]*|\d{1,6})?\Z|"
    rb"![A-Za-z]{2,10}\Z|"
    # What a build mounts, by its id and its place.
    rb"(?:id|type|src|source|target|env)=[\w./$~-]+(?:,(?:id|type|src|source|target|env)=[\w./$~-]+)*\Z|"
    # A part of a model by its place in it (words with dots may be a password); a file in a folder.
    rb"(?:base_model|model|modules?|layers?|blocks?|encoder|decoder|transformer|backbone|visual|vision\w*|"
    rb"language_model|"
    rb"text_model|lm_head|mlp|attn|self_attn|head|net|network|policy|actor|critic|torch|nn|self|optimizer|"
    rb"h|gpt_neox|"
    rb"bert|roberta|unet|vae|_orig_mod|_fsdp_wrapped_module)(?:\.(?:[A-Za-z_]{2,}\w{0,3}|\d{1,4})){2,}\Z|"
    rb"[a-z]\w*(?:[./-]\w+)*/[a-z]\w*(?:[.-]\w{1,12})*\.[a-z]{2,5}\Z|"
    rb"\?[\w ]*\}\Z|\?[a-z ]*\Z|"
    rb"(?:pydantic\.)?Secret(?:Str|Bytes)\Z|"
    rb"(?:Optional|Union|Annotated|Literal|Final|List|Dict|Callable|list|dict|tuple|type)\["
)
# A variable, or a place to be filled in, stands for a secret and is none.
_REFERENCE = re.compile(
    rb"[:@]?(?:\$[A-Za-z_]\w*|\$\{[^{}\s]{1,80}\}|\$\([^()]{1,80}\)|%[A-Za-z_]\w*%|\{\{[^{}]{1,80}\}\}|"
    rb"<[a-z_ -]{1,40}>)\Z"
)


def is_reference(value: bytes) -> bool:
    """Tell whether a value only says where another one stands: a variable, a template's place."""
    return _REFERENCE.match(value) is not None


def is_fetched(value: bytes) -> bool:
    """Tell whether a value says where a program takes it from: a call, a variable."""
    return is_reference(value) or _CALL.match(value) is not None


_AMOUNT = re.compile(
    rb"\d[\d.]*(?:[mun]?s|min|[hmx%]|[kKMGT]i?B?)?(?:/(?:[mun]?s|min|h))?\Z|"
    # Programs with their versions, and what tests are called.
    rb"[A-Za-z][A-Za-z_]*[-=@ ]?v?\d+(?:\.\d+)+[a-z0-9.+-]*\Z|(?:tests?[_/]|Test[A-Z])"
)
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
    return not (is_path(value) or _NONE.match(value) or is_fetched(value))


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
    behind = _SUFFIX.sub(b"", value)
    return is_drawn(behind) and not all(map(is_word, _DASHED.split(behind)))


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
    rb"secretstr|"
    rb"password|passwd|secret|key|set|unset|given|found|invalid|expired|failed|"
    rb"wrong|error|str|string|bytes|int|bool|float|optional|any|type|object|self|env|file|stdin|ask|prompt|"
    rb"keyring|store|cache|oauth2?|ldap|krb5|munge|through|mean|sum|token-mean|"
    rb"your[_-].*|my[_-]?(?:token|key|password|secret).*|<.*|\[.*|x+|example.*|insecure|permission|denied|"
    rb"passed|skipped|ok|fail|failure|success|step|true|false|enabled?|disabled?|required|optional|active|"
    rb"inactive|plain|ssl|tls|sasl|iam|jwt|sso|saml|kerberos|gssapi|simple|"
    rb"manual|private|public|user|service|server|client|anonymous|"
    rb"either|neither|present|absent|loaded|to_be_filled|"
    rb"has|have|had|needs?|does|did|do|be|been|see|"
    # How a sentence goes on behind a verb and a colon ("make it pass: those ...").
    rb"this|that|these|those|they|them|there|their|then|than|which|when|where|while|what|who|why|how|"
    rb"every|each|all|both|some|here|only|also|because|since|otherwise|else|but|if|its?|we|you|he|she|"
    rb"[a-z_]{2,20}=(?:[a-z_]{2,20}|[\d.eE+-]{1,12}))\Z"
)


def is_given(value: bytes) -> bool:
    """Tell whether what stands behind a name whose last word is a secret's is one.

    No number, path, address, or word that is said of one, also where Markdown's sign ends it.
    """
    if b"`" in value[-2:]:
        value = value[: value.rindex(b"`")]
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


_SPOKEN = re.compile(rb"[A-Za-z]+(?:[-_/.'][A-Za-z]+)*")


def is_made(value: bytes) -> bool:
    """Tell whether a word of a sentence is none of its language: digits or signs are among its letters."""
    value = value.rstrip(b".:")
    return is_given(value) and _SPOKEN.fullmatch(value) is None and any(char >= 65 for char in value)


def is_dense(value: bytes) -> bool:
    """Tell whether a run holds capitals and digits, as base64 does, and a digest in hexadecimal does not."""
    return (
        is_drawn(value)
        and not _HEX_ONLY.fullmatch(value)
        and any(48 <= char < 58 for char in value)
        and any(65 <= char < 91 for char in value)
    )


def is_encoded_text(value: bytes) -> bool:
    """Tell whether a run is base64 of a text of one byte a character, its cut end left out."""
    run = value.rstrip(b"=")
    try:
        text = base64.b64decode(run[: len(run) // 4 * 4], validate=True)
    except binascii.Error:
        return False
    return all(32 <= char < 127 or char in b"\t\r\n" for char in text)


def is_cell(value: bytes) -> bool:
    """Tell whether the cell beside a secret's name holds one: neither words nor what is said of one."""
    return is_given(value) and is_secret(value)


_ASCII_RUN = re.compile(rb"[A-Za-z]{3,}\d|\d{2,}[A-Za-z]|[A-Za-z]{4,}(?=[\x80-\xff])")


def is_made_of_both(value: bytes) -> bool:
    """Tell whether a run of Chinese and ASCII signs is a password: letters and digits, and no mere amount."""
    return (
        not value.isascii()
        and any(48 <= char < 58 for char in value)
        and _ASCII_RUN.search(value) is not None
        and is_telling(value)
    )


_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def is_identity(value: bytes) -> bool:
    """Tell whether 18 digits have the check digit of GB 11643, as an identity card's number has."""
    told = sum(weight * (digit - 48) for weight, digit in zip(_WEIGHTS, value, strict=False))
    return value[17:].upper() == b"10X98765432"[told % 11 : told % 11 + 1]


def is_iban(value: bytes) -> bool:
    """Tell whether letters and digits have the check digits of ISO 13616: the remainder by 97 is 1."""
    plain = value.replace(b" ", b"").decode()
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def is_telephone(value: bytes) -> bool:
    """Tell whether digits may be a telephone's: not all alike, and not counted up."""
    digits = bytes(char for char in value if 48 <= char < 58)
    return 7 <= len(digits) <= 15 and len(set(digits)) > 2


# The pairs of letters that the words of programs and of English are made of, one behind the other: of those
# of a run that chance has drawn, a quarter are among them, of those of words five in six.
_PAIRS = (
    b"abacadagaialamanaparasataubabeblbocacechckclcocrctcudadedidodseaecedeeefegelemeneperesetevexfafe"
    b"fffifogegigrhahehihoiaibicidieigiliminioipirisitivizkelaldlelilllolslulymamemimompnancndnenfngni"
    b"nnnonsntnvobocodolomonoooporosotouowpapepiplpoppprptpuqurarcrdrerirmrorrrsrtrurysascseshsisospss"
    b"stsutatctethtitotrtstttutyueulumunupurusutvaveviwawe"
)
_FAMILIAR = frozenset(_PAIRS[at : at + 2] for at in range(0, len(_PAIRS), 2))
_CORE = re.compile(rb"[A-Za-z0-9]+")
# A run of both cases without a digit is asked to be longer.
_BOTH_CASES = 24
_FAMILIAR_SHARE = 0.45


# Base64 of either alphabet, whose signs part a run of chance into short ones.
_BASE64_RUN = re.compile(rb"[A-Za-z0-9+/]{22,}={0,2}|[A-Za-z0-9_-]{32,}={0,2}")
_BASE64_SIGNS = b"+/_-="


def _core(value: bytes) -> bytes:
    """Give the longest run of letters and digits; all of base64, whatever signs are in it."""
    core = max(_CORE.findall(value), key=len, default=b"")
    if len(core) < len(value.rstrip(b"=")) and _BASE64_RUN.fullmatch(value):
        joined = value.translate(None, _BASE64_SIGNS)
        if is_dense(joined) and not joined.isupper():
            return joined
    return core


def is_chance(value: bytes, least: int = 16) -> bool:
    """Tell whether a value has a run of so many letters and digits that no words' pairs make up."""
    core = _core(value)
    if len(core) < least:
        return False
    has_digits = any(48 <= char < 58 for char in core)
    has_both = not core.isupper() and not core.islower()
    if not (has_digits or (has_both and len(core) >= _BOTH_CASES)):
        return False
    low = core.lower()
    pairs = [low[at : at + 2] for at in range(len(low) - 1) if not low[at : at + 2].isdigit()]
    letters = sum(97 <= char < 123 for char in low)
    return (
        4 * letters >= len(low)
        and len(set(low)) > min(len(low) // 5, 8)
        and sum(pair in _FAMILIAR for pair in pairs) < _FAMILIAR_SHARE * len(pairs)
    )


_HEXADECIMAL = re.compile(rb"(?:0x)?(?:[0-9a-f-]+|[0-9A-F-]+)")


def is_hexadecimal(value: bytes) -> bool:
    """Tell whether a value may be a digest or an id: hexadecimal alone."""
    return _HEXADECIMAL.fullmatch(value) is not None


# What identifies and gives no access: requests, runs, messages, files.
_IDENTIFIES = re.compile(
    rb"(?i)(?:req|request|msg|message|chatcmpl|cmpl|resp|response|run|thread|asst|call|toolu|file|batch|"
    rb"evt|event|"
    rb"cus|ch|pi|in|sub|price|prod|org|user|proj|project|acct|account|trace|span|job|task|session|sess|"
    rb"ids?|uid|"
    rb"sha\d*|md5|hash|digest|etag|build|img|vol|ssh|rsa|pod|node|actor|model|ckpt|checkpoint|step|gen|"
    rb"rs|ws|fc|"
    rb"srvtoolu|container|image|blob|layer|exp|trial|sweep|worker|log|cache|tmp|version|"
    rb"v\d*(?=[._-]\d)|part|chunk|"
    rb"shard|"
    rb"object|key|snap|ami|vpc|eni|sg|subnet|igw|lib|_?zn\w*|_zt\w*|torch|triton|cutlass|nccl|sm\d*)[._-]"
)


def is_identified(value: bytes) -> bool:
    """Tell whether a value begins with a word for what identifies and gives no access."""
    return _IDENTIFIES.match(value) is not None


_BETWEEN_PARTS = re.compile(rb"[._-]")


def is_issued(value: bytes) -> bool:
    """Tell whether a value is a short word and, behind it, capitals, small letters and digits of chance."""
    core = max(_BETWEEN_PARTS.split(value), key=len)
    return (
        _IDENTIFIES.match(value) is None
        and len(core) >= LONG
        and any(48 <= char < 58 for char in core)
        and not core.isupper()
        and not core.islower()
        and is_chance(core, LONG)
    )


_PAIR = re.compile(rb"[^=;\s]{1,100}=([^;\s]*)")
_UUID = re.compile(rb"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")


def is_cookie(value: bytes) -> bool:
    """Tell whether one of a cookie's values is more than a setting: no word, and not short."""
    # Words without a pair among them speak of cookies.
    values = _PAIR.findall(value) or ([] if b" " in value.strip() else [value])
    return any(len(each) >= 6 and not is_word(each) for each in values)


def is_session(value: bytes) -> bool:
    """Tell whether the value of a session's name opens it: one that is a UUID names a run or a job."""
    return is_key(value) and _UUID.match(value) is None


_MADE_SIGNS = frozenset(b"!#$%^&*?~@")


def is_password(value: bytes) -> bool:
    """Tell whether a word of a sentence is a password: chance drew it, or people made it with signs."""
    return is_chance(value, 12) or (
        is_made(value)
        and any(48 <= char < 58 for char in value)
        and bool(set(value) & _MADE_SIGNS)
        and b"://" not in value
    )


def is_typed(value: bytes) -> bool:
    """Tell whether people make passwords so: of letters and digits, with a capital or a sign among them."""
    return (
        is_made(value)
        and any(48 <= char < 58 for char in value)
        and sum(char >= 65 for char in value) >= 3
        and (any(65 <= char < 91 for char in value) or bool(set(value) & _MADE_SIGNS))
    )


def is_telling_hexadecimal(value: bytes) -> bool:
    """Tell whether digits in hexadecimal are a text of printed characters, as a kernel writes a command."""
    text = bytes.fromhex(value[: len(value) // 2 * 2].decode())
    return all(32 <= char < 127 or char in b"\0\t\r\n" for char in text)


def is_coded(value: bytes) -> bool:
    """Tell whether a value has a URL's escapes, which are read in a view of their own."""
    return _CODED.search(value) is not None


def is_uuid(value: bytes) -> bool:
    """Tell whether a value is a UUID."""
    return _UUID.fullmatch(value) is not None


def is_signed(value: bytes) -> bool:
    """Tell whether a word has what only passwords have together: letters, digits, signs between no words."""
    return (
        is_password(value)
        and _CODED.search(value) is None
        and bool(set(value) & _MADE_SIGNS)
        and sum(char >= 65 and char != 94 and char != 126 for char in value) >= 3
        and not value.startswith(b"-")
        and value.count(b"@") + value.count(b"%") < 3
        and _ADDRESS.fullmatch(value) is None
    )


# Written for a URL: what it stands for is read in a view of its own.
_CODED = re.compile(rb"%[0-9A-Fa-f]{2}")
_ADDRESS = re.compile(rb"[\w.+-]+@[\w.-]+|[\w.-]*[*?]\.?\w*|\$\w+|%[\w.-]+|#\w+|[\w.]+[%&]")


def is_named_secret(value: bytes) -> bool:
    """Tell whether the quoted word behind `secret` is one, and not a name of small letters with a number."""
    return is_secret(value) and not (value.islower() and is_word(value))
