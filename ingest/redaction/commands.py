"""Secrets as commands, network devices and calls of Python take them: by their place, without a name."""

from __future__ import annotations

from collections.abc import Callable

from ingest.redaction import entropy
from ingest.redaction.kinds import SecretKind
from ingest.redaction.named import WORD, decode_named

_QUOTE = r"(?:\\?['\"])"
_STRING = rf"{_QUOTE}[^'\"\n\\]{{0,100}}{_QUOTE},\s?"
_FLAG_VALUE = rf"['\"]?,?[ =]?['\"]?(?P<secret>[^\s'\"\\-]{WORD}{{3,200}})"
# What reads a password where its input is a pipe, and how `printf` may be told to write one.
_ASKS = (
    r"(?:kinit|passwd|cryptsetup|gpg|keyctl|openconnect|vpnc|veracrypt|vncpasswd|ssh-add|htpasswd|ldappasswd|"
    r"(?:docker|podman|helm|oras|skopeo|wandb|hf|huggingface-cli|az|argocd)\s[^\n|]{0,80}?login)"
)
_FORMAT = r"(?:['\"]?%s(?:\\+n)?['\"]?\s+)?"
# Blanks as they are, and as a URL or JSON writes them.
_EITHER = r"(?:\s|%20)?(?:/|:|%2F|%3A|\\{1,8}(?:/|u002f|u003a))(?:\s|%20)?"
_BLANK = r"(?:\s|%20|\\|['\"])"


def _command(
    prefilter: str, expression: str, check: Callable[[bytes], bool] | None = entropy.is_telling
) -> SecretKind:
    return SecretKind(
        "command-password", rf"(?i){prefilter}", rf"(?i){expression}", check=check, far=True, shaped=False
    )


def _call(name: str, prefilter: str, expression: str) -> SecretKind:
    return SecretKind(name, rf"{prefilter}(?:\(|%28|\\)", expression, check=entropy.is_key, shaped=False)


COMMANDS = (
    # Devices of a network.
    _command(
        r"(?:snmp-server|r[ow]community6?)\W",
        rf"\b(?:snmp-server[ ]+community|r[ow]community6?)[ ]+['\"]?(?P<secret>{WORD}{{4,64}})",
        entropy.is_given,
    ),
    _command(
        r"snmp(?:walk|bulkwalk|get|getnext|bulkget|set|table|status|inform|trap|df)\W",
        rf"\bsnmp\w{{2,8}}\b[^\n]{{0,200}}?\s-[cAX]{_FLAG_VALUE}",
        None,
    ),
    # Of several the last one, too.
    _command(
        r"snmp(?:walk|bulkwalk|get|getnext|bulkget|set|table|status|inform|trap|df)\W",
        rf"\bsnmp\w{{2,8}}\b[^\n]{{0,300}}\s-[cAX]{_FLAG_VALUE}",
        None,
    ),
    _command(
        r"snmp-server\W",
        rf"\bsnmp-server[ ]+user\b[^\n]{{0,100}}?\sauth[ ]+\w{{2,10}}[ ]+(?P<secret>{WORD}{{4,64}})",
    ),
    _command(
        r"snmp-server\W",
        rf"\bsnmp-server[ ]+user\b[^\n]{{0,200}}?\spriv[ ]+\w{{2,10}}(?:[ ]+\d{{3}})?[ "
        rf"]+(?P<secret>{WORD}{{4,64}})",
    ),
    _command(
        rf"(?:radius|tacacs|enable|neighbor){_BLANK}?[^\n]{{0,80}}?(?:key|secret|password){_BLANK}|"
        rf"(?:radius|tacacs)-server\W",
        rf"(?:\b(?:radius|tacacs)(?:-server)?\b[^\n]{{0,80}}?\bkey|\benable[ "
        rf"]+(?:secret|password)|\bneighbor[ ]+\S+[ ]+password)[ ]+(?:\d[ ]+)?(?P<secret>{WORD}{{4,120}})",
        entropy.is_key,
    ),
    # Windows: the password stands before or behind the user.
    _command(
        rf"net{_BLANK}+use\W",
        rf"\bnet[ ]+use\b[^\n]{{0,200}}?/user:\S+[ ]+['\"]?(?P<secret>[^\s'\"/]{WORD}{{2,120}})",
    ),
    _command(
        rf"net{_BLANK}+use\W",
        rf"\bnet[ ]+use[ ]+(?:[a-z]:|\*)?[ ]*(?:\\\\|//)\S+[ ]+['\"]?(?P<secret>[^\s'\"/]{WORD}{{2,120}})",
    ),
    _command(
        rf"net{_BLANK}+user\W",
        rf"\bnet[ ]+user[ ]+[^\s/]\S*[ ]+['\"]?(?P<secret>[^\s'\"/]{WORD}{{3,120}})[ ]+/add",
    ),
    _command(
        r"(?:/|%2F|u002f)(?:pass|rp|p)(?::|%3A|\\)",
        rf"\s/(?:pass|rp|p):['\"]?(?P<secret>{WORD}{{4,120}})",
        entropy.is_key,
    ),
    # Programs.
    _command(
        r"ssh-keygen\W",
        rf"\bssh-keygen\b[^\n]{{0,200}}?\s-[NP][ "
        rf"]?(?:'(?P<quoted>[^'\n]{{3,200}})'|['\"]?(?P<secret>[^\s'\"-]{WORD}{{2,200}}))",
    ),
    _command(
        rf"-(?:creds?|auth|user|credentials?)(?:=|{_BLANK}|%3D)",
        rf"(?:(?<=\s)|^)--(?:[a-z]{{1,10}}-)?(?:creds?|auth|basic-auth|user|credentials?)[= "
        rf"]['\"]?[^\s:'\"/]{{1,100}}:(?P<secret>{WORD}{{4,200}})",
        entropy.is_key,
    ),
    _command(
        r"(?:ctr|crictl|nerdctl|https?|xh)(?:\s|%20)[^\n]{0,200}(?:\s|%20)-[ua](?:[ =]|%20|%3D)",
        rf"(?<![\w./-])(?:ctr|crictl|nerdctl|https?|xh)[ ][^\n]{{0,200}}?\s-[ua][ "
        rf"=]['\"]?[^\s:'\"/]{{1,100}}:(?P<secret>{WORD}{{4,200}})",
        entropy.is_key,
    ),
    _command(
        r"curl\W",
        r"\bcurl\b[^\n]{0,500}?[\s'\"](?:-\w{0,6}u|--user)['\"]?,?[ "
        r"=]{0,2}['\"]?(?P<secret>[^\s:'\"]{16,200}):",
        entropy.is_key,
    ),
    _command(
        r"(?:certutil|twine|sqlcmd|veracrypt|bcp|racadm|psexec|cqlsh|cypher-shell|"
        r"mosquitto_[a-z]{3}|mysqladmin|devpi|"
        r"rabbitmqadmin|sqoop)\W",
        rf"\b(?:certutil|twine|sqlcmd|veracrypt|bcp|racadm|psexec|cqlsh|cypher-shell|"
        rf"mosquitto_\w{{3}}|devpi|rabbitmqadmin|"
        rf"sqoop)\b[^\n]{{0,300}}?\s-p{_FLAG_VALUE}",
        entropy.is_made,
    ),
    _command(
        r"b2\W[^\n]{0,40}authorize",
        rf"\bb2[ ](?:account[ ])?authorize(?:-account)?[ ]\S{{8,40}}[ ](?P<secret>{WORD}{{20,80}})",
    ),
    _command(r"http-basic\.", rf"\bhttp-basic\.\S+[ ]+\S+[ ]+['\"]?(?P<secret>{WORD}{{4,400}})"),
    _command(
        r"(?:sqlplus|sqlldr|impdp|expdp|oracle(?::|%3A|\\)(?:thin|oci))\W",
        r"(?:\boracle:(?:thin|oci):|\b(?:sqlplus|sqlldr|impdp|expdp)[ ]+(?:-\w[ "
        r"]+){0,2}['\"]?)[\w$#]{1,60}/(?P<secret>[^\s@'\"]{3,100})@",
        None,
    ),
    _command(r"openssl\W", rf"\bopenssl\b[^\n]{{0,200}}?\s-k{_FLAG_VALUE}"),
    _command(
        r"(?:echo|printf)\W[^\n]*\|[ "
        rf"]?(?:sudo\W[^\n]*-\w*S|smbpasswd|{_ASKS}|su\s)|(?:echo|printf)\W[^\n|"
        r"]*\|?[ \t]{0,3}\w{0,5}\r?\n|(?:echo|printf)(?:%20|\\)[^\n]*(?:%7C|\|)",
        rf"\b(?:echo|printf)\s+(?:-\w\s+)?{_FORMAT}['\"]?"
        rf"(?P<secret>(?!\$)[^\s'\"|\\\x80-\xff]{{4,200}})(?:\\+n|"
        rf"\s)?['\"]?\s*\|\s*(?:sudo\s+(?:-\w+\s+){{0,4}}-\w*S|(?:sudo\s+)?(?:smbpasswd|{_ASKS}|su\s))",
        None,
    ),
    _command(
        r"sudo\W[^\n]*(?:<<<|%3C%3C%3C|u003c)",
        rf"\bsudo\b[^\n]{{0,80}}?\s-\w*S\b[^\n]{{0,200}}?<<<\s*['\"]?(?P<secret>(?!\$){WORD}{{4,200}})",
    ),
    _command(
        r"send(?:line)?(?:(?:[ \t(]|%20|\\)+(?:--(?:[ \t]|%20)+)?(?:[\"'\\&]|%22|%5C)|[ \t]*\r?\n)",
        r"(?:\bsend\s+(?:--\s+)?\\?\"(?P<secret>[^\s\"\\]{4,200})(?:\\+[rn]|[\r\n]){1,2}\\?\"|"
        r"\.sendline\(b?['\"](?P<sent>[^\s'\"\\/.(]{6,200})['\"]\))",
        entropy.is_made,
    ),
    # Into a file that is called a secret's: echo 'X' > .vault_pass
    _command(
        r"(?:echo|printf)\W[^\n]*>[^\n]*(?:pass|secret|token|cred|_key)",
        r"\b(?:echo|printf)\s+(?:-\w\s+|%s\s+)?['\"]?(?P<secret>(?!\$)[^\s'\"|>\\\x80-\xff]{6,400})['\"]?"
        r"\s*>{1,2}\s*['\"]?[\w./~$-]{0,200}"
        r"(?:pass|passwd|password|secret|token|cred|credentials|_key)(?![\w-]*\.(?:log|py))",
        entropy.is_key,
    ),
    # PowerShell's way to hide one.
    _command(
        r"convertto-securestring\W",
        rf"\bconvertto-securestring[ ]+(?:-string[ ]+)?['\"]?(?P<secret>[^\s'\"$(-]{WORD}{{3,200}})",
    ),
    _command(
        r"rabbitmqctl\W",
        rf"\brabbitmqctl\b[^\n]{{0,80}}?\b(?:add_user|change_password)[ ]+\S{{1,80}}[ ]+['\"]?"
        rf"(?P<secret>{WORD}{{4,200}})",
    ),
    _command(
        r"influx\W[^\n]*-t\W",
        rf"\binflux\b[^\n]{{0,200}}?\s(?:-t|--token)[ =]['\"]?(?P<secret>{WORD}{{20,200}})",
    ),
    _command(
        r"qshell\W",
        r"\bqshell\s+account\s+\S{20,80}\s+['\"]?(?P<secret>[A-Za-z0-9_-]{20,80})",
        entropy.is_key,
    ),
    # login: a / b, "the shared login is a / b"
    SecretKind(
        "password",
        r"(?i)(?:user|login|account|auth|creds|credentials)(?:\s|%20)?(?:[:=]|%3A|%3D|\\|is|are|was|->)"
        r"[^\n]{0,80}(?:\s|%20)(?:/|%2F|\\)",
        r"(?i)(?<![\w-])(?:user|login|account|auth|creds|credentials)(?:\s?[:=]|\s(?:is|are|was|->))\s?"
        r"[\w.@-]{1,60}\s{1,3}/\s{1,3}['\"]?"
        r"(?P<secret>[^\s'\",;/]{6,200})",
        check=entropy.is_made,
        shaped=False,
    ),
    # "the login is a:b", "login a:b"
    SecretKind(
        "password",
        r"(?i)(?:login|creds|credentials)(?:\s|%20)(?:[^\n]{0,12}(?:\s|%20))?[\w.@-]{1,60}(?::|%3A)",
        r"(?i)(?<![\w-])(?:login|creds|credentials)\s(?:(?:is|are|was|with|as)\s)?[\w.@-]{1,60}:"
        r"(?P<secret>[^\s'\",;/]{8,200})",
        check=entropy.is_made,
        shaped=False,
    ),
    # user/pass: a/b
    SecretKind(
        "password",
        rf"(?i)(?:user(?:name|id)?|login|account|{decode_named('账号|帐号|账户|用户名|用户')}){_EITHER}(?:pass|pwd|"
        rf"{decode_named('密码|口令')})",
        r"(?i)(?:user(?:name|id)?|login|account|账号|帐号|账户|用户名|用户)\s?[/:]\s?(?:passw(?:or)?d|pass|pwd|密码|"
        r"口令)\s?(?:=|:|：|is|为|是)\s?['\"]?[^\s/:,'\"]{1,60}\s?[/:,]\s?(?P<secret>[^\s'\",;]{4,200})",
        check=entropy.is_telling,
        shaped=False,
    ),
    # A tool of a store that is set up with an id and a key: `config -i X -k Y`
    _command(
        r"config(?:ure)?(?:\s|%20)[^\n]*-(?:k|s|sk)(?:[ =]|%20|%3D)",
        r"\bconfig(?:ure)?\s[^\n]{0,300}?\s--?(?:k|s|sk)[ =]['\"]?(?P<secret>[A-Za-z0-9+/_-]{20,200}={0,2})",
        entropy.is_chance,
    ),
    # Behind a user's flag `-p` is a password, whatever the program; a port has no letters, a folder a slash.
    _command(
        r"\s(?:-[un]|--user(?:name)?)(?:[ =]|%20|\\)[^\n]*\s-p",
        r"(?<=\s)(?:-[un]|--user(?:name)?)[ =][^\s|;&]{1,80}[ ](?:[^\s|;&]{1,80}[ ]){0,6}?"
        r"(?<!mkdir[ ])-p[ =]?['\"]?"
        r"(?P<secret>[^\s'\"/:=,|;&\x80-\xff-][^\s'\"/:=,|;&\x80-\xff]{5,100})(?=['\"]?(?:\s|\Z))",
        entropy.is_made,
    ),
    # A user and a password behind one flag, whatever the program: -u bob:X; a group is a word.
    _command(
        r"\s-u(?:[ =]|%20)[^\s:]{1,60}(?::|%3A)",
        r"(?<=\s)-u[ =]['\"]?[\w@-]{1,60}:(?P<secret>[^\s'\"/:,|;&\x80-\xff]{6,200})(?=['\"]?(?:\s|\Z))",
        entropy.is_made,
    ),
    # The last word of a program's login, and of what makes a password's hash: `x login bucket bob X`
    _command(
        r"(?:login|mkpasswd|addauth)[ ]",
        r"(?m:^)(?:[^\n]{0,80}[$#>+][ ])?(?:[a-z][\w.-]{0,20}[ ]login(?:[ ][\w.@-]{1,60}){1,3}|"
        r"mkpasswd(?:[ ]-\w[ ][\w-]{1,20}){0,3}|addauth[ ]digest(?=[ ]))[ ](?:[\w.-]{1,40}:)?"
        r"(?P<secret>[^\s'\"/:=.]{6,60})[ \t]*\r?(?=\n|\Z)",
        entropy.is_typed,
    ),
    # A call that is given an address of mail, and behind it what goes with it.
    _command(
        r"@[a-z0-9.-]{1,60}(?:['\"],|[ ]|\\|%)[^\n]{0,4}[^\n]",
        r"(?:\([ ]?['\"][\w.+-]{1,60}@[\w.-]{1,80}['\"],[ ]?['\"](?P<quoted>[^\n'\"]{6,100})['\"]|"
        r"\bLOGIN[ ][\w.+-]{1,60}@[\w.-]{1,80}[ ]['\"]?(?P<secret>[^\s'\"]{6,100}))",
        entropy.is_typed,
    ),
    # Samba's way to write a user and a password: -U bob%X
    _command(
        r"-U(?:[ =]|%20)?[^\s%]{1,80}%",
        r"(?<=\s)(?-i:-U)[ =]?['\"]?[\w.\\@-]{1,60}%(?P<secret>[^\s'\"%]{4,100})(?=['\"]?(?:\s|\Z))",
        entropy.is_made,
    ),
    _command(r"wpa_passphrase\W", r"\bwpa_passphrase[ ]+\S{1,60}[ ]+['\"]?(?P<secret>[^\s'\"]{8,63})"),
    # Redis: AUTH X, as it is typed, traced and monitored.
    SecretKind(
        "command-password",
        r"(?i)(?:[\"'>]|n|%22)[ ]?AUTH(?:[ ]|[\"\\]|%20|%22)",
        r"(?:[\"'>]|\\n)[ ]?(?:AUTH|auth)(?:[ ]|\\{0,3}\"[ ]\\{0,3}\"|\\+r\\+n\$\d{1,4}\\+r\\+n)"
        r"(?!(?i:plain|login|xoauth2?|oauthbearer|cram|digest|scram|ntlm|gssapi|external)[\s\"\\-])"
        r"(?:[\w-]{1,40}(?:[ ]|\"[ ]\"))?(?P<secret>[^\s'\"\\]{6,200})(?=[\s'\"\\]|\Z)",
        check=entropy.is_made,
        wraps=False,
        shaped=False,
    ),
    # The key of a cluster's own login, and of a Ceph client.
    SecretKind(
        "secret",
        r"(?i)munge",
        r"(?i)\bmunge(?:\.key|[ _-]key)?['\"]?[ ]?(?:[:=]|is)?[ "
        r"]?['\"]?(?P<secret>[A-Za-z0-9+/]{32,1400}={0,2})",
        check=entropy.is_key,
        shaped=False,
    ),
    SecretKind(
        "secret",
        r"(?:[kK]ey|KEY|[sS]ecret|SECRET)[^\n]{0,20}?AQ[A-Za-z0-9+/%\\]{20}",
        r"(?i:key|secret)['\"]?[ \t]*[:=]?[ \t]*['\"]?(?P<secret>AQ[A-Za-z0-9+/]{36}==)",
    ),
    # An id and its key, as the files of mounted buckets have them.
    SecretKind(
        "access-pair",
        r"(?:LTAI|AKI[AD]|AKLT)[A-Za-z0-9]{8,60}(?::|%3A|,|\\)",
        r"(?<![A-Za-z0-9])(?:LTAI|AKIA|AKID|"
        r"AKLT)[A-Za-z0-9]{8,60}[:,](?P<secret>[A-Za-z0-9+/]{28,64}={0,2})(?![A-Za-z0-9+/])",
        check=entropy.is_key,
    ),
    # Calls whose last words are an id and a key, and calls of a key alone.
    _call(
        "secret",
        r"(?:Auth\w{0,4}|Credentials?|Minio|Session)",
        rf"(?:Auth\w{{0,4}}|Credentials?|Minio|"
        rf"Session)\(\s?(?:{_STRING}){{1,2}}{_QUOTE}(?P<secret>[A-Za-z0-9._~+/=-]{{16,200}}){_QUOTE}",
    ),
    _call(
        "secret",
        r"(?:login|Experiment|Key|KeyCredential|OpenAI|ZhipuAI|InferenceClient|"
        r"BearerAuth|Fernet|AESGCM|set_api_key)",
        rf"(?:\blogin|\.login|Experiment|(?:Api|API|Access)Key|KeyCredential|OpenAI|ZhipuAI|InferenceClient|"
        rf"BearerAuth|Fernet|AESGCM|set_api_key)\(\s?b?{_QUOTE}"
        rf"(?P<secret>[A-Za-z0-9._~+/=-]{{16,400}}){_QUOTE}",
    ),
)
