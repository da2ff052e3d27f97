"""Secrets whose name stands beside them, and not before a colon.

In sentences, markup, tables, pairs and manifests.
"""

from __future__ import annotations

from ingest.redaction import entropy
from ingest.redaction.kinds import SecretKind
from ingest.redaction.named import NOTHING, PASSWORDS, SECRETS, TOKENS, WORD, decode_named

# What a variable or a setting of a secret is called, in any of its spellings.
_CALLED = (
    r"[\w.-]{0,80}(?:passw(?:or)?d|passphrase|secret(?:[._-]?(?:access[._-]?)?key)?|"
    r"token|credentials?|(?:api|access|private|auth|account|storage|"
    r"encryption|signing)[_.-]?key|(?<![a-z])pwd|(?<=[_.-])pass)"
)
_CALLED_SIEVE = r"(?:passw(?:or)?d|passphrase|secret|token|credential|key|pwd|pass)"
_ENV = r"[A-Z][A-Z0-9_]{0,60}(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|SECRET_?KEY|ACCESS_?KEY(?:_ID)?)"
_ENV_SIEVE = r"(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|SECRET_?KEY|ACCESS_?KEY(?:_ID)?)"
_HELD = r"[A-Za-z0-9._~+/!#$%^&*=-]"
# A word of a sentence, between the name of a secret and its value.
_AMONG = r"(?: [^\s.:=;,]{1,60}){0,4}?"
_QUOTE = r"(?:\\?['\"])"
# A pair of strings in a list of them; what a writer of JSON or URLs makes of the signs between, the prefilter
# must let pass.
_APART_SIEVE = r"(?:['\"],|\\|%|&)"
_MANY = 4000
_SERVICES = "wandb|swanlab|comet|neptune|openai|deepseek|dashscope|anthropic|langfuse|clearml|mlflow"
# A manifest's names and encoded values; the rows before it are few.
_MANIFEST = 16_000
_MANIFEST_OF = r"kind[\"'\\:%\w ]{0,20}Secret\b"


def _beside(
    name: str, prefilter: str, expression: str, *, ahead: int = 0, back: int = 0, far: bool = False
) -> SecretKind:
    """Make the row of a value that may be a word of a sentence as well: it must look drawn by chance."""
    return SecretKind(
        name,
        prefilter,
        expression,
        check=entropy.is_key,
        ahead=ahead,
        back=back,
        far=far,
        wraps=not (ahead or back),
        shaped=False,
    )


_CHINESE = "密码|口令|密碼|令牌|密钥|秘钥|金鑰|私钥|授权码|凭证|凭据"
_CHINESE_PASSWORDS = "密码|口令|密碼"
# What Japanese and Korean call one; behind the name stands a particle, and behind the value, without a
# blank, the verb.
_JAPANESE_KOREAN = (
    "パスワード|パスフレーズ|暗証番号|"
    "暗証キー|暗証コード|トークン|シークレット|秘密鍵|秘密キー|APIキー|API キー|アクセスキー|"
    "認証キー|비밀번호|패스워드|비번|암호|토큰|시크릿|비밀키|비밀 키|API키|API 키|인증키|인증 키|액세스 키|"
    "접근 키|개인키"
)
_PARTICLE = "は|が|を|の値は|은|는|이|가|을|를|값은"
_LOGIN = (
    r"(?i)(?:\blogin|basicauth|digestauth|(?:auth|creds?|credentials?|login)['\"\\]{0,4}"
    r"(?:\s|%20)?(?:[=:]|%3[AaDd])(?:\s|%20)?)(?:\(|%28|"
    r"\[)"
)
_LOGIN_OF = (
    rf"(?i)(?:\blogin|basicauth|digestauth|(?<![a-z])(?:auth|creds?|credentials?|login){_QUOTE}?\s?[=:]\s?)"
    r"[(\[]"
)
_KEYS = r"(?:api|access|session|secret|auth|bearer|account|license|private)[ _-]?(?:key|token|secret)"
BESIDE = (
    # "the password of job is ...", "Incorrect API key provided: ...", "using API key ..."
    _beside(
        "password",
        r"(?i)pass(?:word|phrase|code|wd)(?:\s|%20)(?:[^\n]*(?:\s|%20))?(?:is|was|to)(?:\s|:|%|\\)",
        rf"(?i:\bpass(?:word|phrase|code|wd)){_AMONG} (?:is|was|to):? "
        rf"['\"`]?(?P<secret>{_HELD}{{5,200}}[A-Za-z0-9!#$%^&*=])",
    ),
    _beside(
        "secret",
        r"(?i)(?:api|access|session|secret|auth|bearer|account|license|private)(?: "
        r"|_|-|%20)?(?:key|token|secret)(?:\s|%20|\\)",
        rf"(?i:(?<![A-Za-z]){_KEYS})(?i:{_AMONG} (?:is|was|to|provided|given|used|in use):?| "
        rf"\[[^\]\n]{{0,40}}\]:)? ['\"`]?(?P<secret>[A-Za-z0-9._~+/*-]{{11,400}}[A-Za-z0-9=])",
    ),
    _beside(
        "token",
        r"(?i)token(?:\s|%20)(?:[^\n]*(?:\s|%20))?(?:is|was)(?:\s|:|%|\\)",
        r"(?i:\btoken)(?i: (?:for|of) [^\s.:=;,]{1,60})? (?i:is|was):? "
        r"['\"`]?(?P<secret>[A-Za-z0-9._~+/-]{11,4000}[A-Za-z0-9=])",
    ),
    SecretKind(
        "password",
        rf"(?:{decode_named(_CHINESE)})",
        rf"(?:{_CHINESE})(?!学|桶|对|策略)(?:[\xe4-\xe9][\x80-\xbf]{{2}}){{0,8}}?(?:(?:是|为|為|叫)(?::|：)? "
        rf"?|(?:】|」|\])(?::|：)? ?| )(?:['\"`]|“|‘|「)?(?P<secret>{_HELD}{{5,400}})",
        check=entropy.is_made,
        shaped=False,
    ),
    # Of Chinese and ASCII signs both, up to the mark that ends its part of the sentence.
    SecretKind(
        "password",
        rf"(?:{decode_named(_CHINESE_PASSWORDS)})(?:是|为|為|：|:|%|\\)",
        rf"(?:{_CHINESE_PASSWORDS})(?:(?:是|为|為)?(?:：|:)|是|为|為)[ ]?(?:“|‘|「|\")?"
        r"(?P<secret>(?:[A-Za-z0-9._~+/!#$%^&*@-]|[\xe4-\xe9][\x80-\xbf]{2}){6,100})",
        check=entropy.is_made_of_both,
        shaped=False,
        wraps=False,
    ),
    SecretKind(
        "password",
        rf"(?:{decode_named(_JAPANESE_KOREAN)})",
        rf"(?:{_JAPANESE_KOREAN})(?:[ _]?(?:キー|키|ID))?(?:[ ]?(?:{_PARTICLE}))?[ \t]?(?:=|:|：|＝|->)?"
        rf"[ \t]?(?:['\"`]|“|‘|「|『)?(?P<secret>{_HELD}{{6,400}})",
        check=entropy.is_secret,
        shaped=False,
    ),
    # <password>...</password>, and <name>...secret.key</name><value>...</value>
    SecretKind(
        "password",
        r"(?i)passw(?:or)?d[\w.-]{0,20}(?:\s[^<>\n]{0,80})?(?:>|\\|%|&)",
        rf"(?i)<[\w.:-]{{0,60}}passw(?:or)?d[\w.-]{{0,20}}(?:\s[^<>\n]{{0,200}})?>(?:<!\[CDATA\[|{NOTHING})"
        r"(?P<secret>[^<>\s\]]{4,400})(?:\]\]>)?</",
        check=entropy.is_telling,
        shaped=False,
    ),
    _beside(
        "secret",
        r"(?i)(?:secret|token|key)[\w.-]{0,20}(?:>|\\|%|&)",
        rf"(?i)<{_CALLED}[\w.-]{{0,20}}>\s{{0,80}}{NOTHING}(?P<secret>[^<>\s]{{8,{_MANY}}})\s{{0,80}}</",
        ahead=600,
    ),
    # The cells of a page's table, and of its lists of terms.
    _beside(
        "secret",
        rf"(?i){_CALLED_SIEVE}:?[ ]{{0,4}}(?:</|\\|%|&)",
        rf"(?i)(?<![A-Za-z0-9]){_CALLED}:?\s{{0,20}}(?:</[a-z]{{1,10}}>[:=]?\s{{0,80}}){{1,4}}"
        rf"(?:<[a-z]{{1,10}}(?:\s[^<>\n]{{0,200}})?>\s{{0,80}}){{0,4}}"
        # A highlighter colours the sign between them, too.
        rf"(?:[:=]</[a-z]{{1,10}}>\s{{0,4}}(?:<[a-z]{{1,10}}(?:\s[^<>\n]{{0,200}})?>){{0,2}})?['\"]?{NOTHING}"
        rf"(?P<secret>[^<>\s'\"]{{8,{_MANY}}})['\"]?<",
        ahead=600,
    ),
    # ("DB_PASSWORD", "X"): a pair alone, since a list of names has no values.
    SecretKind(
        "password",
        r"(?i)pass(?:word|wd|phrase)?['\"\\]{1,4},",
        rf"(?i)[(\[]\s?b?{_QUOTE}(?:[\w.-]{{0,40}}[_.-])?pass(?:word|wd|phrase)?{_QUOTE},\s?b?"
        rf"{_QUOTE}{NOTHING}(?P<secret>[^'\"\n\\]{{6,400}}){_QUOTE}\s?[)\]]",
        check=entropy.is_given,
        wraps=False,
        shaped=False,
    ),
    # A manifest's list of arguments: `- --hf-token`, and in the row below `- X`.
    SecretKind(
        "secret",
        rf"(?i)-[ ]['\"]?--?[\w.-]*{_CALLED_SIEVE}['\"]?[ \t]*\r?\n",
        r"(?i)(?m:^)(?P<in>[ \t]*-[ ]+)['\"]?--?(?:[\w]{1,20}[.-]){0,4}"
        r"(?:password|passwd|secret|token|(?:api|secret|access|auth|admin|master)[_-]?key)['\"]?[ \t]*\r?\n"
        r"(?P=in)(?:'(?P<single>[^'\n]{6,400})'|\"(?P<quoted>[^\"\n]{6,400})\"|"
        r"(?P<secret>[^\s'\"-][^\s'\"]{5,400}))"
        r"[ \t]*\r?(?=\n|\Z)",
        check=entropy.is_given,
        ahead=440,
        wraps=False,
        shaped=False,
    ),
    # A tool's setting of who logs in, which takes a token: sonar.login=...
    _beside(
        "token", r"(?i)\.login(?:=|%3D)", r"(?i)(?<=\w)\.login=(?P<secret>[A-Za-z0-9_-]{24,120})(?![\w.])"
    ),
    # {"db_token": {"value": "..."}}, and a block of a variable whose default stands some rows below its name.
    _beside(
        "secret",
        rf"(?i){_CALLED_SIEVE}['\"\\]{{0,4}}(?:\s?:?\s?\{{|\\|%|&)",
        rf"(?i)(?<![A-Za-z0-9]){_CALLED}{_QUOTE}\s?:?\s?\{{(?:[^{{}}\n]{{0,120}}\n){{0,4}}?[ \t]{{0,40}}"
        rf"{_QUOTE}?(?:value|plaintext|string|default)"
        rf"{_QUOTE}?[ \t]{{0,20}}[:=]\s?{_QUOTE}{NOTHING}(?P<secret>[^\s'\"\\<>]{{8,{_MANY}}})",
        ahead=600,
    ),
    # A notebook, a build or a traceback shows in the next row what the name at a row's end holds.
    _beside(
        "secret",
        r"(?:└ |Out\[\d{1,5}\]: |Result: )['\"]",
        rf"(?i)(?<![A-Za-z0-9]){_CALLED}\)?[ \t]*\r?\n[ \t│┃|]{{0,120}}"
        rf"(?:└|Out\[\d{{1,5}}\]:|[\w#\[\]]{{0,20}}Result:)[ ]"
        rf"(?:'(?P<single>[^\s'\n\\]{{8,400}})'|\"(?P<quoted>[^\s\"\n\\]{{8,400}})\")[ \t]*\r?(?=\n|\Z)",
        back=600,
    ),
    _beside(
        "secret",
        rf"(?i)name(?:>|\\|%|&)[^\n]*{_CALLED_SIEVE}",
        rf"(?i)<name>\s{{0,40}}{_CALLED}[\w.-]{{0,40}}\s{{0,40}}</name>\s{{0,200}}"
        rf"<value>\s{{0,40}}(?P<secret>[^<>\s]{{8,{_MANY}}})\s{{0,40}}</value>",
        ahead=600,
    ),
    SecretKind(
        "password",
        r"(?i)name(?:>|\\|%|&)[^\n]*(?:passw(?:or)?d|passphrase|pwd|[_.-]pass)",
        rf"(?i)<name>\s{{0,40}}[\w.-]{{0,80}}(?:passw(?:or)?d|passphrase|(?<![a-z])pwd|(?<=[_.-])pass)"
        rf"\s{{0,40}}</name>\s{{0,200}}<value>\s{{0,40}}(?P<secret>[^<>\s]{{6,{_MANY}}})\s{{0,40}}</value>",
        check=entropy.is_given,
        ahead=600,
        wraps=False,
        shaped=False,
    ),
    # A container's variable: its name in one row, its value in the next.
    SecretKind(
        "secret",
        rf"(?i)(?:name|key)[\"'\\%]{{0,6}}(?:\s|%20)*(?:[:=]|%|\\)[^\n]*{_CALLED_SIEVE}[\w\"'\\,%\t "
        rf"]{{0,60}}(?:\n|value)",
        rf"(?i)(?<![a-z])(?:name|key){_QUOTE}?[ \t]{{0,30}}[:=]\s?{_QUOTE}?{_CALLED}(?:_?(?:id|\d{{1,2}}))?"
        rf"{_QUOTE}?\s*,?\s*{_QUOTE}?(?<![a-z])value{_QUOTE}?[ \t]{{0,30}}[:=]\s?{_QUOTE}?{NOTHING}"
        # In quotes it goes on to the closing one; a list wraps a long value below its own column.
        rf"(?:(?<=\")(?P<quoted>[^\"\n\\]{{6,400}})(?=\")|(?<=')(?P<single>[^'\n\\]{{6,400}})(?=')|"
        rf"(?P<secret>[^\s'\",}}\\<>]{{6,{_MANY}}}"
        r"(?:\r?\n[ ]{12,40}[A-Za-z0-9+/=_.-]{4,200}(?=[ \t]*\r?(?:\n|\Z))){0,8}))",
        check=entropy.is_secret,
        ahead=600,
        wraps=False,
        shaped=False,
    ),
    # The same, where what writes it sorts by another order: value, then name.
    SecretKind(
        "secret",
        rf"(?i)(?:name|key)[\"'\\%]{{1,6}}(?:\s|%20)*(?::|%3A)[^\n]*{_CALLED_SIEVE}",
        rf"(?i)(?<![a-z])value{_QUOTE}[ ]?:\s?{_QUOTE}{NOTHING}(?P<secret>[^'\"\n\\]{{6,{_MANY}}}){_QUOTE},"
        rf"\s{{0,40}}{_QUOTE}(?:name|key){_QUOTE}[ ]?:\s?{_QUOTE}{_CALLED}(?:_?(?:id|\d{{1,2}}))?{_QUOTE}",
        check=entropy.is_secret,
        back=600,
        wraps=False,
        shaped=False,
    ),
    # Tables, `ENV NAME value`, `setenv NAME value`.
    _beside(
        "secret",
        rf"{_ENV_SIEVE}(?:\s|\||│|┃|%|\\)",
        rf"(?<![A-Za-z0-9_]){_ENV}(?:[ \t]{{1,80}}|[ \t]*(?:\||│|┃)[ "
        rf"\t]*)['\"]?{NOTHING}(?P<secret>{_HELD}{{10,{_MANY}}})",
    ),
    # Tables of settings: `name ..... value`, `| name | value |`, `name     value`.
    _beside(
        "secret",
        rf"(?i){_CALLED_SIEVE}(?:[ \t]{{2}}|\t|[ \t]{{0,40}}(?:\||│|┃)|[ "
        r"\t]?\.\.\.|%20(?:%20|%7C|\.\.\.|%E2)|%09|\\)",
        rf"(?i)(?<![A-Za-z0-9]){_CALLED}(?:[ \t]{{0,60}}(?:\||│|┃)[ \t]{{0,4}}|[ \t]?\.{{3,80}}:?[ \t]|[ "
        rf"\t]{{2,60}}|\t)['\"]?{NOTHING}(?P<secret>{_HELD}{{10,{_MANY}}})",
    ),
    # Lists of keys, in brackets and in rows.
    SecretKind(
        "secret",
        rf"(?i)(?:{_CALLED_SIEVE})s?['\"\\]{{0,4}}(?:\s|%20)?(?:[:=]|%3[AD]|\\)(?:\s|%20)?(?:\[|%5B)",
        rf"(?i)(?:{PASSWORDS}|{SECRETS}|(?:auth|access|api|hf|hub|bearer)[_-]?token)s?{_QUOTE}?[ "
        rf"\t]?[:=][ \t]?\[(?P<secret>\s{{0,40}}[^\[\]\n]{{8,{_MANY}}})\]",
        check=entropy.holds_key,
        ahead=600,
        wraps=False,
        shaped=False,
    ),
    SecretKind(
        "secret",
        rf"(?i)(?:{_CALLED_SIEVE})s?['\"\\]{{0,4}}(?::|%3A|\\)(?:[ \t]*\r?\n|\\|%0A)",
        rf"(?i)(?:{PASSWORDS}|{SECRETS}|(?:auth|access|api|hf|hub|bearer)[_-]?token)s?['\"]?:[ "
        rf"\t]*\r?\n(?P<secret>(?:[ \t]*-[ ]+[^\s]{{6,400}}[ \t]*\r?(?:\n|\Z)){{1,40}})",
        check=entropy.holds_key,
        ahead=600,
        wraps=False,
        shaped=False,
    ),
    # A service's own settings, of which one is only called its key.
    SecretKind(
        "secret",
        rf"(?i)(?:{_SERVICES})['\"\\]{{0,4}}(?:\s|%20)?(?:[:=]|%3[AD]|\\|\()",
        rf"(?i)(?<![a-z])(?:{_SERVICES}){_QUOTE}?[ ]?[:=][ "
        rf"]?(?:dict\(|\{{)?\s{{0,40}}(?:(?:[ \t]*[^\s{{}}][^\n{{}}]{{0,80}}\n[ \t]{{1,40}}){{1,4}}?|"
        rf"[^\n{{}}]{{0,240}}?[\s,])??{_QUOTE}?(?:api_?)?key{_QUOTE}?[ "
        rf"]?[:=][ ]?{_QUOTE}?(?P<secret>[A-Za-z0-9._-]{{20,200}})",
        check=entropy.is_key,
        ahead=400,
        wraps=False,
        shaped=False,
    ),
    SecretKind(
        "cookie",
        r"(?i)cookie(?:\s|%20)",
        r"<Cookie [^=\s]{1,80}=(?P<secret>[^\s]{8,4000}) for ",
        shaped=False,
    ),
    # ('NAME', 'value'), as headers and variables stand in lists.
    _beside(
        "secret",
        rf"(?i)(?:{_CALLED_SIEVE}|authorization)(?:[_-]?(?:id|\d{{1,2}}))?{_APART_SIEVE}",
        rf"(?i){_QUOTE}(?:{PASSWORDS}|{SECRETS}|{TOKENS}|{_CALLED}|"
        rf"(?:proxy-)?authorization){_QUOTE},\s?b?{_QUOTE}{NOTHING}(?:(?:bearer|basic|token|bot|key|"
        rf"digest)[ ])?(?P<secret>[^\s'\"\\]{{8,{_MANY}}})",
    ),
    # A wrapper that was to hide it: api_key=SecretStr('...')
    SecretKind(
        "secret",
        r"(?i)secret\w{0,20}(?:\(|%28|\\)",
        rf"(?i)secret\w{{0,20}}\((?:\w{{1,20}}=)?b?"
        rf"{_QUOTE}{NOTHING}(?P<secret>[^'\"\n\\]{{4,{_MANY}}}){_QUOTE}",
        check=entropy.is_secret,
        shaped=False,
    ),
    # login('name', '...') and auth=('name', '...'); a shell takes the quotes away.
    SecretKind(
        "password",
        _LOGIN,
        rf"{_LOGIN_OF}{_QUOTE}[^'\"\n\\]{{0,100}}{_QUOTE},\s?"
        rf"{_QUOTE}{NOTHING}(?P<secret>[^'\"\n\\]{{4,400}}){_QUOTE}",
        check=entropy.is_telling,
        shaped=False,
    ),
    _beside(
        "password", _LOGIN, rf"{_LOGIN_OF}[^'\"\n\\,()]{{1,100}},\s?(?P<secret>[^\s'\"\\,()]{{6,400}})[)\]]"
    ),
    # Cookies as libraries of Python and curl take them.
    SecretKind(
        "cookie",
        r"(?i)cookies?(?:\s|%20)?(?:=|%3D|\\)(?:\s|%20)?",
        rf"(?i)\bcookies?\s?=\s?(?:dict\(|\{{)(?P<secret>[^{{}}()\n]{{8,{_MANY}}})[)}}]",
        shaped=False,
    ),
    SecretKind(
        "cookie",
        r"(?i)curl\W",
        rf"(?i)\bcurl\b[^\n]{{0,500}}?[\s'\"](?:-b|--cookie)['\"]?,?[ "
        rf"=](?:'(?P<quoted>[^'=\n]{{1,100}}=[^'\n]{{6,{_MANY}}})'|"
        rf"\"(?P<double>[^\"=\n]{{1,100}}=[^\"\n]{{6,{_MANY}}})\"|"
        rf"(?P<secret>[^\s'\"=]{{1,100}}=[^\s'\"]{{6,{_MANY}}}))",
        far=True,
        shaped=False,
    ),
    # Keys of a service that are two strings.
    SecretKind(
        "secret",
        r"(?i)username(?:['\"]|\\|%)[^\n]*key(?:['\"]|\\|%)",
        rf"(?i){_QUOTE}username{_QUOTE}:\s?{_QUOTE}[^'\"\\\n]{{1,80}}{_QUOTE},\s{{0,20}}"
        rf"{_QUOTE}key{_QUOTE}:\s?{_QUOTE}(?P<secret>[0-9a-f]{{32}}){_QUOTE}",
        wraps=False,
    ),
    SecretKind(
        "aws-signature",
        r"AWS4-HMAC-SHA256",
        r"AWS4-HMAC-SHA256\b[^\n]{0,600}?\bSignature=(?P<secret>[0-9a-f]{64})",
        far=True,
    ),
    # Databases' passwords hold what an address cannot.
    SecretKind(
        "url-credentials",
        r"(?i)(?:sql|postgres|redis|rediss|mongodb|\+srv|amqps?|clickhouse|\+\w{2,20})(?::|%3A|\\u003a)"
        r"(?:/|%2F|\\)",
        r"(?i)(?:sql|postgres|rediss?|mongodb|\+srv|amqps?|clickhouse|sql\+\w{2,20})://"
        r"(?P<secret>[^\s/:@\"']{0,100}:(?!\*{2,}@)[^\s\"'<>]{1,300})@"
        r"(?=[\w.-]{1,200}(?::\d|[/?\s\"',)]|\Z))",
        wraps=False,
    ),
    _beside(
        "url-token",
        r"/t/|%2[Ff]t%2[Ff]|u002[fF]t\\|\\/t\\",
        r"(?i)://[^\s/]{1,200}/t/(?P<secret>[A-Za-z0-9-]{20,80})/",
    ),
    # Commands.
    _beside(
        "access-pair",
        r"(?i)(?:ossutil\d{0,2}|coscmd|coscli|swanlab|obsutil|qshell)(?:\s|%20)",
        r"(?i)\b(?:ossutil\d{0,2}|coscmd|coscli|swanlab|obsutil|qshell)\s[^\n]{0,300}?\s-[ks][ "
        r"=](?P<secret>[A-Za-z0-9+/]{16,80})",
        far=True,
    ),
    _beside(
        "command-password",
        r"(?i)vault(?:\s|%20)login\W",
        r"(?i)\bvault\s+login\s+(?:-\S+\s+){0,4}(?:token=)?['\"]?(?P<secret>[A-Za-z0-9._-]{8,400})",
    ),
    SecretKind(
        "command-password",
        r"(?i)(?:mc|mcli)(?:\s|%20)(?:alias|config)\W",
        rf"(?i)\bmc(?:li)?\s+(?:alias\s+set|"
        rf"config\s+host\s+add)\s+\S+\s+\S+\s+['\"]?"
        rf"(?P<secret>{WORD}{{1,200}}['\"]?\s+['\"]?{WORD}{{8,200}})",
        far=True,
    ),
    SecretKind(
        "command-password",
        r"(?i)lftp\W",
        rf"(?i)\blftp\b[^\n]{{0,200}}?\s-u[ =]?['\"]?[^\s,'\"]{{1,100}},(?P<secret>{WORD}{{3,200}})",
        far=True,
    ),
    SecretKind(
        "command-password",
        r"(?i)(?:smbclient|rpcclient|smbget)\W",
        rf"(?i)\b(?:smbclient|rpcclient|smbget)\b[^\n]{{0,200}}?\s(?:-U|--user)[ "
        rf"=]?['\"]?[^\s%'\"]{{1,100}}%(?P<secret>{WORD}{{3,200}})",
        far=True,
    ),
    SecretKind(
        "command-password",
        r"(?i)(?:stdin|with-token)['\"]?(?:\s|%20)*(?:<|%3C|\\|&lt;)",
        rf"(?i)--(?:password-stdin|with-token)\s*<<<\s*['\"]?(?P<secret>{WORD}{{4,400}})",
    ),
    SecretKind(
        "command-password",
        r"(?i)echo\W[^\n]*(?:stdin|with-token|chpasswd)",
        r"(?i)\becho\s+(?:-\w\s+)?['\"]?(?P<secret>(?!\$)[^\s'\"|"
        r"\\\x80-\xff]{4,400})['\"]?\s*\|[^\n]{1,200}(?:--(?:password-stdin|with-token)|\bchpasswd)",
        far=True,
    ),
    SecretKind(
        "secret",
        r"(?i)secret\W[^\n]*from-literal",
        rf"(?i)\bsecret\b[^\n]{{0,300}}?(?P<secret>--from-literal[ =]{WORD}{{1,400}}(?:\s+--from-literal[ "
        rf"=]{WORD}{{1,400}}){{0,40}})",
        far=True,
    ),
    # A manifest of a Secret: all its values, whatever they are called; written by people, and by the cluster,
    # which sorts.
    SecretKind(
        "kubernetes-secret",
        _MANIFEST_OF,
        r"(?m:^)(?P<in>[ \t]*)kind: *['\"]?Secret['\"]?[ "
        rf"\t]*\r?\n(?:(?!---|(?P=in)kind:)[^\n]*\n){{0,40}}?(?P=in)(?:stringData|data):[ "
        rf"\t]*\r?\n(?P<secret>(?:(?P=in)[ \t]+[^\n]{{1,{_MANIFEST}}}(?:\n|\Z))+)",
        ahead=_MANIFEST,
        wraps=False,
    ),
    SecretKind(
        "kubernetes-secret",
        _MANIFEST_OF,
        r"(?m:^)(?P<in>[ \t]*)(?:stringData|data):[ \t]*\r?\n(?P<secret>(?:(?P=in)[ "
        rf"\t]+[^\n]{{1,{_MANIFEST}}}\n)+)(?:(?P=in)immutable:[^\n]*\n)?(?P=in)kind: *['\"]?Secret\b",
        back=_MANIFEST,
        wraps=False,
    ),
    SecretKind(
        "kubernetes-secret",
        _MANIFEST_OF,
        rf"\"(?:stringData|data)\":\s{{0,40}}\{{(?P<secret>[^{{}}]{{4,{_MANIFEST}}})\}},\s{{0,40}}"
        r"(?:\"immutable\":\s?\w+,\s{0,40})?\"kind\":\s?\"Secret\"",
        back=_MANIFEST,
        wraps=False,
    ),
    SecretKind(
        "kubernetes-secret",
        _MANIFEST_OF,
        rf"\"kind\":\s?\"Secret\"(?:(?!\"kind\":)[\s\S]){{0,4000}}?\"(?:stringData|"
        rf"data)\":\s{{0,40}}\{{(?P<secret>[^{{}}]{{4,{_MANIFEST}}})\}}",
        ahead=_MANIFEST,
        wraps=False,
    ),
)
