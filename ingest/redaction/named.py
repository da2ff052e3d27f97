"""Secrets that are known by what stands before them: the name of a setting, a header, a flag, a command."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from ingest.redaction import entropy
from ingest.redaction.kinds import AFTER_NAME, AT_END, NEXT_ROW, SecretKind

# Between a name and its value; in YAML also the end of the row, where the next one is indented.
_IS = (
    r"['\"`]?\]?(?:\([^()\n]{1,24}\)|（[^\n]{1,36}?）)?[ \t]*(?:=>|:[ "
    r"]?(?:Optional\[)?(?:str|bytes|SecretStr)\]?(?: ?\| ?None)?[ ]?=|->|:=|=|:|：|＝)(?:[ "
    r"\t]|\xc2\xa0)*(?:[>|][+-]?[ \t]*)?(?:\\?\r?\n(?:[+-][ \t]*|[ \t]+))?"
)
# What a value may stand in: a list, an Option of Rust's, three quotes, quotes of Chinese.
_OPENS = (
    r"(?:[\[(][ ]?(?=b?['\"])|Some\(\s{0,20}|`|(?:string|str)\(\d{1,5}\)[ ](?=[\"'])|"
    r"\(string\)[ ]\(len=\d{1,5}\)[ ](?=\")|\$(?=['\"])|\"\"(?=\")|''(?=')|“|‘|「|"
    # A pointer before what it points to, a tag or an anchor of YAML. Some tags say where the value is kept.
    r"0x[0-9a-f]{1,16}[ ](?=\")|!{1,2}(?!(?i:vault|secrets?|env|ref|sub|ssm|include|sops|importvalue)[ ])"
    r"[\w:.-]{1,20}[ ]|&\w{1,20}[ ])?"
)
# The same for the prefilter, with what a writer of JSON, URLs or Python may have made of it.
_IS_CODED = rf"(?:['\"`]?,?\]?[ \t]*(?:（|=|->|:|：|＝)|['\"]?,? |\\|%|&|{AT_END})"
_BEHIND_FLAG = rf"(?:['\"]?,?(?:[ =]|\\|%)|{AT_END})"
# Counts of tokens stand in every line of some servers; so a long value is asked for, or the row's end.
_IS_LONG = (
    r"(?:['\"`]?\]?[ \t]*(?:=>|->|:=|=|:|：|＝)[ "
    r"\t]*b?(?:[|>'\"`\[($]|\(string\)[ ]\(len=\d{1,5}\)[ ]|\xc2\xa0|\xe2\x80[\x9c\x98]|Some\(|'')?[ "
    r"\t'\"]*(?:[A-Za-z0-9._~+/:$'\"-]{12}|[A-Za-z0-9._~+/-]{0,11}(?:[\"'\\]{0,2}[ "
    r"\t]*\r?\n|\\)|%|&)|\\|%|&|['\"\])]{0,3}[ \t,]*\r?\n)"
)
# What stands where a secret would: nothing, a mask, a variable.
NOTHING = r"(?!None\b|null\b|true\b|false\b|nil\b|\*\*|<|\[redacted|\$[A-Za-z_{(]|%\(|\{\{)"
# Plain characters, and letters of two bytes; Chinese text behind a value is no part of it.
VALUE = r"(?:[^\s'\",;)}\]\\\x80-\xff]|\\(?![nrtu'\"\\/])|[\xc2-\xdf][\x80-\xbf])"
# A vocabulary marks so where a word begins: the number behind it is the word's own.
_NO_ENTRY = r"(?<!Ġ)(?<!▁)"
# What a parser of arguments is told of a flag, behind its name.
NO_KEYWORD = (
    r"(?!(?:type|help|default|action|dest|required|nargs|metavar|choices|const|envvar|prompt|hide_input|"
    r"is_flag)=)"
)
# Between a flag and its value: blanks, the parts of a list, the end of a row that goes on (in a diff, the
# next begins with its sign).
_APART = r"(?>(?:['\"]?,?[= ]+(?:\$(?=['\"]))?['\"]?|\\\r?\n[ +-]?[ \t]*+)+)"


def decode_named(words: str) -> str:
    """Give Chinese words as they are, and as JSON and URLs write them, for the prefilter."""
    found = words.split("|")
    found += [r"\\{1,8}".join(["", *(f"u{ord(char):04x}" for char in word)]) for word in words.split("|")]
    return "|".join((*found, *(quote(word) for word in words.split("|"))))


PASSWORDS = (
    r"(?:passw(?:or)?d|passphrase|(?<![a-z])(?:pwd|psk)|(?<=[a-z0-9][_-])pass|sshpass|"
    r"rediscli_auth|密码|口令|密碼|授权码|"
    r"パスワード|비밀번호|암호|пароль|Пароль|passwort|kennwort|contraseña|mot de passe)(?:[_-]?\d{1,2})?"
)
_PASSWORDS_SIEVE = (
    r"(?:passw(?:or)?d|passphrase|pwd|psk|[_-]pass|sshpass|rediscli_auth|passwort|kennwort|mot de "
    rf"passe|{decode_named('密码|口令|密碼|授权码|パスワード|비밀번호|암호|пароль|Пароль|contraseña')})(?:[_-]?\d{{1,2}})?"
)
SECRETS = (
    r"(?:(?<!existing)(?<!pull)secret(?:[._-]?access)?(?:[._-]?(?:key|cookie))?(?:[_-]?id)?|"
    r"api[_-]?(?:secret|key)|"
    r"access[._-]?(?:key(?:[_-]?(?:id|secret))?|id)|"
    r"(?<![a-z])(?:private|encryption|signing|master|auth|account|license|service|storage|certificate|"
    r"deploy|admin|hmac|subscription|ssh|"
    r"wandb|openai|hf|huggingface|comet|swanlab|neptune|dashscope|deepseek|zhipu|glm|moonshot|kimi|minimax|"
    r"anthropic|claude|gemini|cohere|mistral|groq|together|"
    r"fireworks|openrouter|siliconflow|volc|tavily|serper|serpapi|langfuse|langsmith|ngc|"
    r"pre[_-]?shared)[_-]?keys?|private[_-]?key[_-]?id|"
    r"api[_-]?keys|code_verifier|client_assertion|samlresponse|"
    r"(?<=routing)_key(?=\W{1,5}[0-9a-f]{32})|"
    r"client[_-]?secret|(?<![a-z])credentials?|密钥|秘钥|金鑰|私钥|私鑰|凭证|凭据|憑證)(?:[_-]?\d{1,2})?"
)
# Of names and of flags both, which would cost a second expression.
_SECRETS_SIEVE = (
    rf"(?:secret|[aeghinorstibf._-]key|access[._-]?id|credential|code_verifier|client_assertion|samlresponse|"
    rf"{decode_named('密钥|秘钥|金鑰|私钥|私鑰|凭证|凭据|憑證')})[a-z0-9_-]{{0,14}}"
)
# A tokenizer's special tokens and token counts are settings; they must stay readable.
SPECIAL = (
    "bos|eos|pad|unk|sep|cls|mask|image|video|audio|max|min|num|stop|special|new|per|next|first|last|start|"
    "end|text|input|output|prompt|total|think"
)
TOKENS = (
    rf"(?:(?<![a-z0-9])(?:(?!(?:{SPECIAL})[_-])[a-z0-9]{{1,40}}[_-])?token|"
    r"(?<=access)token|(?<=auth)token|(?<=refresh)token|(?<=session)token|(?<=bearer)token|(?<=api)token|"
    r"(?<=identity)token|(?<=registry)token|(?<=id)token|(?<=bot)token|令牌|(?<=[a-z0-9]_)pat)"
)
_TOKENS_SIEVE = rf"(?:token|_pat|{decode_named('令牌')})"
# The names as a row's end may cut them.
_CUT_PHRASES = "password passwd passphrase pwd _pass -pass sshpass rediscli_auth 密码 口令 密碼"
_CUT_KEYS = (
    "secret secret_key secret-key secretkey access_key access-key accesskey access_key_id api_key api-key "
    "apikey private_key private-key auth_key "
    "account_key encryption_key signing_key master_key license_key service_key storage_key credentials 密钥 "
    "秘钥 金鑰"
)
_CUT_BEARERS = "token _pat 令牌"
_LONG_VALUE = r"[A-Za-z0-9._~+/-]{12,4000}=*"


# What the names of secrets and of tokens begin with: `re` asks for a set of signs faster than for each name.
_SECRETS_BEGIN = r"(?=[ac-hk-pstvwzAC-HK-PSTVWZ_\x80-\xff])"
_TOKENS_BEGIN = r"(?=[A-Za-z0-9_\x80-\xff])"


def kind_of_name(
    name: str,
    before: str,
    prefilter: str,
    value: str,
    size: str,
    cuts: str,
    check: Callable[[bytes], bool] | None = None,
    coded: str = _IS_CODED,
    below: str = "",
    begins: str = "",
) -> SecretKind:
    """Make the row of a value that has a name; in quotes it goes on to the closing one."""
    double, single = rf"\"{NOTHING}(?P<quoted>[^\"\n]{size})\"", rf"'{NOTHING}(?P<single>[^'\n]{size})'"
    expression = (
        rf"{begins}{_NO_ENTRY}(?i:{before}){_IS}{_OPENS}{NOTHING}(?:[bBrRuUfF]?{double}|[bBrRuUfF]?{single}|"
        rf"['\"]?{NOTHING}(?P<secret>{value}))"
    )
    return SecretKind(
        name,
        rf"(?i){prefilter}{coded}",
        expression,
        tuple(cuts.split()),
        AFTER_NAME,
        check,
        ahead=NEXT_ROW,
        below=below,
        shaped=False,
    )


def kind_of_flag(
    name: str,
    before: str,
    prefilter: str,
    value: str,
    cuts: str,
    check: Callable[[bytes], bool] | None = None,
    coded: str = _IS_CODED,
) -> SecretKind:
    """Make the row of a value that stands behind a flag."""
    expression = (
        rf"(?i:(?<![^\s'\"=\x80-\xff])--?{before}){_APART}{NO_KEYWORD}(?!None\b|--|\*\*|<|\$)"
        rf"(?P<secret>{value})"
    )
    below = rf"(?:[A-Za-z0-9_-]{{1,24}}[_-])?(?:{'|'.join(cuts.split()[:4])})['\"]?[ =]"
    return SecretKind(
        name,
        rf"(?i){prefilter}{coded}",
        expression,
        tuple(cuts.split()),
        AFTER_NAME,
        check,
        ahead=NEXT_ROW,
        below=below,
        shaped=False,
    )


WORD = r"(?:[^\s'\"\\\x80-\xff]|[\xc3-\xdf][\x80-\xbf])"


def _command(programs: str, prefilter: str, expression: str, shaped: bool = False) -> SecretKind:
    """Make the row of a command that takes a password."""
    return SecretKind(
        "command-password",
        prefilter,
        expression,
        tuple(programs.split()),
        r"['\"]?,?(?:[ \t]|\r?$)",
        far=True,
        shaped=shaped,
    )


NAMED = (
    SecretKind(
        "access-pair",
        r"(?i)obsutil\W",
        r"(?i)\bobsutil\b[^\n]{0,200}?\s-[ik]=(?P<secret>[A-Za-z0-9+/]{16,64})",
        far=True,
        starts=("obsutil",),
        after=r"[ \t]",
    ),
    SecretKind(
        "kubernetes-token",
        r"(?:[tT][oO][kK][eE][nN]|[bB]ootstrap|BOOTSTRAP)[^\n]{0,40}?[a-z0-9]\.[a-z0-9]{16}",
        r"(?i:token|bootstrap)[\w'\"-]{0,10}[ "
        r"=:'\",]{1,6}(?P<secret>[a-z0-9]{6}\.[a-z0-9]{16})(?![A-Za-z0-9])",
        wraps=False,
    ),
    SecretKind(
        "kubernetes-key",
        r"(?i)(?:client-key-data|token-data|tls\.key)",
        r"(?i)(?:client-key-data|token-data|"
        r"tls\.key)['\"]?:\s*['\"]?(?P<secret>[A-Za-z0-9+/]{40,16000}={0,2})",
        starts=("client-key-data", "token-data", "tls.key"),
        after=AFTER_NAME,
    ),
    SecretKind(
        "docker-auth",
        r"(?i)(?:[\"'_]|%22)auth[\"'\\%]",
        r"(?i)[\"']_?auth[\"']:\s*[\"'](?P<secret>[A-Za-z0-9+/]{8,4000}={0,2})",
        starts=('"auth"', "'auth'"),
        after=AFTER_NAME,
    ),
    SecretKind(
        "npm-token",
        r"(?i)_(?:authToken|auth|password)\s*(?:=|%|\\)",
        r"(?i)(?<![A-Za-z0-9])_(?:authToken|auth|password)\s?=\s?[\"']?(?P<secret>[^\s\"']{8,400})",
        starts=("_authToken", "_auth", "_password"),
        after=AFTER_NAME,
    ),
    SecretKind(
        "authorization",
        rf"(?i)authorization(?:['\"]?\s*[:=]|\\|%|{AT_END})",
        r"(?i)\b(?:proxy-)?authorization['\"]?[ \t]*[:=][ "
        r"\t]*['\"]?(?:\[(?!redacted:))?(?:(?:bearer|basic|token|digest|negotiate|apikey|bot|key|"
        r"aws4-hmac-sha256)[ "
        r"\t]+|[A-Za-z-]{3,24}[ \t]+(?=\S{0,40}\d|\[redacted))?(?P<secret>[^\s'\",\\]{8,8000})",
        check=entropy.is_telling,
        far=True,
        shaped=False,
        starts=("authorization",),
        after=AFTER_NAME,
    ),
    SecretKind(
        "bearer",
        r"(?i)bearer(?:\s|%|\\)",
        r"(?i)\bbearer[ \t]+(?!authori[sz]ation\b|authentication\b)(?P<secret>[A-Za-z0-9._~+/-]{12,8000}=*)",
        starts=("bearer",),
        after=r"[ \t]",
    ),
    SecretKind(
        "cookie",
        rf"(?i)cookie(?:['\"]?\s*:|\\|%|{AT_END})",
        r"(?i)\b(?:set-)?cookie['\"]?[ \t]*:[ \t]*['\"]?"
        # A pair's value may stand in quotes.
        r"(?P<secret>[^\s'\"\\](?:[^'\"\r\n\\]|(?<==)\"[^\"\r\n\\]{0,4000}\"){6,8000})",
        check=entropy.is_cookie,
        starts=("cookie",),
        after=AFTER_NAME,
    ),
    SecretKind(
        "cookie",
        rf"(?i)(?:sess(?:ion)?_?id|_session|sessdata|connect\.sid|csrf_?token|xsrf)(?:=|['\"]:|%|\\|"
        rf"{AT_END})",
        r"(?i)(?:[jp](?:hp)?sess(?:ion)?id|(?<![a-z])session_?id|[a-z0-9]{1,30}_session|sessdata|"
        r"connect\.sid|csrf_?token|_?xsrf)(?:=['\"]?|['\"]:[ ]?['\"])(?P<secret>[^;\s'\",&]{12,4000})",
        check=entropy.is_session,
        starts=(
            "jsessionid",
            "phpsessid",
            "session_id",
            "sessionid",
            "sessdata",
            "connect.sid",
            "csrftoken",
            "csrf_token",
            "xsrf",
        ),
        after="=",
    ),
    SecretKind(
        "api-header",
        rf"(?i)x-(?:[a-z]{{1,12}}-)?(?:api|auth|access|subscription|functions|vault|honeycomb)?-?(?:key|"
        rf"token|team)(?:['\"]?\s*[:=]|\\|%|{AT_END})",
        r"(?i)\bx-(?:(?:[a-z]{1,12}-)?(?:api|auth|access|subscription|functions|vault)?-?(?:key|"
        r"token)|honeycomb-team)['\"]?[ \t]*[:=][ \t]*['\"]?(?P<secret>[^\s'\",\\]{8,4000})",
        check=entropy.is_secret,
        starts=("x-api-key", "x-auth-token", "x-access-token", "x-token"),
        after=AFTER_NAME,
        shaped=False,
    ),
    _command(
        "mysql mariadb mysqldump",
        r"(?i)(?:mysql|mariadb)[a-z]{0,8}(?:['\"]|\W)",
        rf"(?i)\b(?:mysql|"
        rf"mariadb)[a-z]{{0,8}}\b[^\n]{{0,300}}?[\s'\",]-p['\"]?(?P<secret>[^\s'\"\\-]{WORD}{{3,200}})",
    ),
    _command(
        "sshpass",
        r"(?i)sshpass\W",
        r"(?i)\bsshpass['\"]?,?\s+['\"]?-p['\"]?,?[ "
        rf"\t]*(?:'(?P<quoted>[^'\n]{{3,200}})'|['\"]?(?P<secret>{WORD}{{3,200}}))",
    ),
    _command(
        "curl",
        r"(?i)curl\W",
        rf"(?i)\bcurl\b[^\n]{{0,500}}?[\s'\"](?:-\w{{0,6}}[uU]|--user|--proxy-user)['\"]?,?[ "
        rf"=]{{0,2}}['\"]?[^\s:'\"]{{0,100}}:(?P<secret>{WORD}{{3,200}})",
    ),
    _command(
        "redis-cli",
        r"(?i)redis-cli\W",
        rf"(?i)\bredis-cli\b[^\n]{{0,300}}?[\s'\"](?:-a|--pass)['\"]?,?[ =]['\"]?(?P<secret>{WORD}{{4,200}})",
    ),
    _command(
        "login docker podman nerdctl helm oras skopeo",
        r"(?i)login\W",
        rf"(?i)\b(?:docker|podman|nerdctl|helm|oras|skopeo|buildah|az|acr|oc|"
        rf"argocd)\b[^\n]{{0,100}}?\blogin\b[^\n]{{0,300}}?[\s'\"]-p['\"]?,?[ "
        rf"=]['\"]?(?P<secret>{WORD}{{4,400}})",
    ),
    _command(
        "mongo mongosh mongodump ldapsearch influx clickhouse-client",
        r"(?i)(?:mongo|mongosh|mongodump|mongorestore|ldap[a-z]{3,8}|influx|clickhouse-client)\W",
        rf"(?i)\b(?:mongo\w{{0,8}}|ldap[a-z]{{3,8}}|influx|clickhouse-client)\b[^\n]{{0,300}}?[\s'\"](?:-p|"
        rf"-w)['\"]?,?[ =]['\"]?(?P<secret>[^\s'\"\\-]{WORD}{{3,200}})",
    ),
    _command(
        "-passin -passout pass:",
        r"(?i)pass(?:in|out)?['\",]{0,3}(?:(?:\s|%20)+['\"]?pass(?::|%)|[ \t]*\\?\r?\n)",
        rf"(?i)-pass(?:in|out)?['\"]?,?[ \t]+['\"]?pass:(?P<secret>{WORD}{{4,200}})",
    ),
    _command(
        "unzip zip 7z 7za unrar ipmitool",
        r"(?i)(?:^|[^a-z0-9.]|%[0-9a-f]{2}|\\[nrt]|\\u[0-9a-f]{4})"
        r"(?:unzip|zip|7z|7za|unrar|ipmitool)(?:[\s'\"\\,]|%20)",
        rf"(?i)\b(?:(?:(?:un)?zip|ipmitool)\b[^\n]{{0,200}}?\s-P[ "
        rf"]?|(?:7za?|unrar)\b[^\n]{{0,200}}?\s-p)['\"]?(?P<secret>[^\s'\"\\-]{WORD}{{3,200}})",
    ),
    _command(
        "htpasswd",
        r"(?i)htpasswd\W",
        rf"(?i)\bhtpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+['\"]?(?P<secret>{WORD}{{4,200}})",
    ),
    _command(
        "echo sudo",
        r"(?i)echo\W[^\n]*sudo\W|echo(?:\W[^\n|]*)?\|?[ \t]{0,3}\w{0,5}\r?\n",
        r"(?i)\becho\s+['\"]?(?P<secret>[^\s'\"|"
        r"\\\x80-\xff]{4,200})['\"]?\s*(?:\|\s*)?sudo\s+(?:-\w+\s+){0,4}-\w*S",
        shaped=True,
    ),
    SecretKind(
        "netrc",
        r"(?i)login(?:\s|%20|\\)",
        r"(?i)\blogin\s{1,20}[^\s'\"]{1,200}(?:\s{1,20}account\s{1,20}\S{1,80})?"
        r"\s{1,20}password\s{1,20}(?P<secret>[^\s'\"\\]{4,400})",
        ahead=600,
        far=True,
        starts=("login",),
        after=r"[ \t]",
        shaped=False,
    ),
    SecretKind(
        "pgpass",
        # A row that ends with host and port alone is any server's; `below` knows what goes on with it.
        r"(?::|%3A)(?:\d{4,5}|\*|%2A)(?::|%3A)(?:[A-Za-z_*][\w*-]*(?::|%3A)|[\w*-]*[\"'\\]{0,2}\r?\n)",
        r"(?<![\w.:/@-])[\w*][\w.*-]{0,100}:(?:\d{4,5}|"
        r"\*):[A-Za-z_*][\w*-]{0,62}:[A-Za-z_*][\w*-]{0,62}:(?P<secret>(?:[^\s:'\"\\]|\\[:\\]){4,200})"
        r"(?=[\s'\"\\]|\Z)",
        check=entropy.is_made,
        below=r"\d{0,5}:[A-Za-z_*][\w*-]*:[A-Za-z_*][\w*-]*:[^\s:]",
    ),
    kind_of_name(
        "password",
        PASSWORDS,
        _PASSWORDS_SIEVE,
        rf"{VALUE}{{4,400}}",
        "{4,400}",
        _CUT_PHRASES,
        entropy.is_telling,
    ),
    kind_of_name(
        "secret",
        SECRETS,
        _SECRETS_SIEVE,
        rf"{VALUE}{{8,4000}}",
        "{8,4000}",
        _CUT_KEYS,
        entropy.is_secret,
        begins=_SECRETS_BEGIN,
    ),
    kind_of_name(
        "token",
        TOKENS,
        _TOKENS_SIEVE,
        _LONG_VALUE,
        "{12,4000}",
        _CUT_BEARERS,
        entropy.is_key,
        _IS_LONG,
        begins=_TOKENS_BEGIN,
    ),
    kind_of_name(
        "secret",
        r"(?-i:[A-Z0-9_]{2,40}_KEY)",
        r"(?-i:[A-Z0-9]_KEY)",
        rf"{VALUE}{{16,4000}}",
        "{16,4000}",
        "_KEY",
        entropy.is_key,
        below=r"[A-Z0-9_]{0,30}_KEY['\"]?\]?[ \t]?[=:]",
    ),
    kind_of_name(
        "access-pair",
        r"(?<![a-z0-9])(?:[a-z0-9_]{1,40}_)?(?:ak|sk)",
        r"(?:^|[^a-z0-9]|%[2-7][0-9A-F])[as]k",
        r"[A-Za-z0-9+/]{16,64}={0,2}",
        "{16,64}",
        "_ak _sk",
        entropy.is_key,
        _IS_LONG,
    ),
    kind_of_flag(
        "password", PASSWORDS, _PASSWORDS_SIEVE, r"[^\s'\"-][^\s'\"]{3,400}", _CUT_PHRASES, entropy.is_telling
    ),
    kind_of_flag(
        "secret", SECRETS, _SECRETS_SIEVE, r"[^\s'\"-][^\s'\"]{7,4000}", _CUT_KEYS, entropy.is_secret
    ),
    kind_of_flag(
        "token", TOKENS, r"-[a-z0-9_-]*token", _LONG_VALUE, _CUT_BEARERS, entropy.is_drawn, _BEHIND_FLAG
    ),
    kind_of_flag(
        "access-pair",
        r"(?:ak|sk)",
        r"-[as]k",
        r"[A-Za-z0-9+/]{16,64}={0,2}",
        "-ak -sk",
        entropy.is_key,
        _BEHIND_FLAG,
    ),
    SecretKind(
        "email",
        r"[A-Za-z0-9._%+-](?:@|%40|\\{1,8}u0040|&#64;)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z]|"
        r"\.?[\"'\\]{0,2}\r?\n)|[A-Za-z0-9](?:@|%40|\\{1,8}u0040)[\"'\\]{0,2}\r?\n",
        r"\b(?!(?:git|hg|root|ubuntu|ec2-user|noreply|"
        r"no-reply)@)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,5}"
        r"(?:com|org|net|edu|io|ai|cn|de|fr|uk|jp|kr|in|ru|eu|gov|co|dev|cloud|us|ca|au|ch|nl|se|tw|hk|sg|"
        r"info|me|app|xyz|tech|it|es|pl|br|ac|mil|int|top|vip|cc|site|online|biz|link|live|group|team|ltd|"
        r"work|pro|name|mobi|asia|store|cloud|nz|za|il|tr|sa|ae|my|th|vn|id|ph|at|be|dk|fi|no|pt|gr|cz|hu|"
        r"example|local|internal|lan|corp|"
        r"ro|ie|ar|cl|mx)\b(?!:[\w~/])",
        yields=True,
        below=r"[A-Za-z0-9._%+-]{0,40}@[A-Za-z0-9-]{1,63}\.[A-Za-z]",
    ),
)
