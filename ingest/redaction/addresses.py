"""Secrets in addresses: of webhooks, of logins, of signed downloads."""

from __future__ import annotations

from ingest.redaction import entropy
from ingest.redaction.kinds import SecretKind, going_on_as

_IN_URL = r"[/=?&]"
# A scheme as it is, or as JSON and URLs write it, and then an `@` or the end of the row.
_URL = r"(?:://|%2[fF]%2[fF]|\\/\\{1,8}/|u002[fF]\\{1,4}u002[fF])[^\s/]*(?:@|%40|u0040|\n)"
# A login that a row's end has cut goes on to its `@`; most addresses just end their row.
_login_below = going_on_as(r"[^\s/]{0,300}(?:@|%40|u0040|[\"'\\]?\r?\n)")
_HOOK = r"(?P<secret>[A-Za-z0-9/_+.-]{20,200})"
ADDRESSED = (
    SecretKind(
        "webhook",
        r"(?i)hooks\W",
        rf"(?i)hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/{_HOOK}",
        starts=("hooks.slack.com/services", "hooks.slack.com/workflows", "hooks.slack.com/triggers"),
        after=_IN_URL,
    ),
    SecretKind(
        "webhook",
        r"(?i)v2\W.{0,8}?hook",
        rf"(?i)open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/{_HOOK}",
        starts=("open.feishu.cn/open-apis/bot/v2/hook", "open.larksuite.com/open-apis/bot/v2/hook"),
        after=_IN_URL,
    ),
    SecretKind(
        "webhook",
        r"(?i)robot\W.{0,8}?send",
        r"(?i)oapi\.dingtalk\.com/robot/send\?access_token=(?P<secret>[0-9a-f]{32,64})",
        starts=("oapi.dingtalk.com/robot/send?access_token",),
        after=_IN_URL,
    ),
    SecretKind(
        "webhook",
        r"(?i)webhook\W.{0,8}?send",
        r"(?i)qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=(?P<secret>[0-9a-f-]{32,40})",
        starts=("qyapi.weixin.qq.com/cgi-bin/webhook/send?key",),
        after=_IN_URL,
    ),
    SecretKind(
        "webhook",
        r"(?i)api\W.{0,8}?webhooks",
        r"(?i)discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{12,22}/(?P<secret>[\w-]{40,100})",
        starts=("discord.com/api/webhooks", "discordapp.com/api/webhooks"),
        after=_IN_URL,
    ),
    SecretKind(
        "webhook",
        r"(?i)webhookb2",
        r"(?i)webhook\.office\.com/webhookb2/(?P<secret>[^\s'\"<>]{36,300})",
        starts=("webhook.office.com/webhookb2",),
        after=_IN_URL,
    ),
    SecretKind(
        "webhook",
        r"(?i)(?:api\W{1,3}day|hooks\W{1,3}zapier|hc-ping|maker\W{1,3}ifttt)\W",
        r"(?i)(?:api\.day\.app/|hooks\.zapier\.com/hooks/catch/\d+/|hc-ping\.com/|"
        r"maker\.ifttt\.com/trigger/[^\s/]{1,80}/(?:json/)?with/key/)(?P<secret>[A-Za-z0-9_-]{6,80})",
    ),
    SecretKind(
        "webhook", r"hooks(?:/|%2F|\\)", r"://[^\s/]{1,200}/hooks/(?P<secret>[a-z0-9]{26})(?![A-Za-z0-9])"
    ),
    SecretKind(
        "webhook",
        r"(?i)timestamp\W[^\n]{0,40}?sign\W",
        r"(?i)[?&]timestamp=\d{1,16}&sign=(?P<secret>[A-Za-z0-9%+/=_-]{16,200})",
    ),
    SecretKind(
        "webhook", r"SCT(?:\d|[\"'\\]{0,2}\r?\n)", r"\bSCT\d{1,9}T[A-Za-z0-9]{16,40}", ("SCT",), r"\d"
    ),
    SecretKind(
        "sentry-dsn", r"(?i)sentry", r"(?i)://(?P<secret>[0-9a-f]{32}(?::[0-9a-f]{32})?)@[\w.-]*sentry"
    ),
    SecretKind(
        "url-credentials",
        _URL,
        r"(?<=://)(?P<secret>[^\s/:@\"']{0,100}:(?!\*{2,}@)[^\s/@\"']{1,300})@",
        starts=("://",),
        after=r"[^\s/]*(?:@|$)",
        probe=_login_below,
    ),
    SecretKind(
        "url-credentials",
        _URL,
        r"(?<=://)(?P<secret>[A-Za-z0-9_~.+-]{20,300}={0,2})@",
        check=entropy.is_mixed,
        starts=("://",),
        after=r"[^\s/]*(?:@|$)",
        probe=_login_below,
    ),
    SecretKind(
        "azure-key",
        r"(?i)(?:AccountKey|SharedAccessKey)\W",
        r"(?i)\b(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{20,120}={0,2})",
        starts=("AccountKey", "SharedAccessKey"),
        after=_IN_URL,
    ),
    SecretKind(
        "azure-sas",
        r"(?i)(?:[?&]|%3F|%26|u003F|u0026)sig\W",
        r"(?i)[?&]sig=(?P<secret>[A-Za-z0-9%+/=]{20,200})",
        starts=("?sig", "&sig"),
        after=_IN_URL,
    ),
    SecretKind(
        "aws-signature",
        r"(?i)X-Amz-(?:Sig|Sec|Cred)",
        r"(?i)X-Amz-(?:Signature|Security-Token|Credential)=(?P<secret>[^&\s'\"\\]{16,4000})",
        starts=("X-Amz-Signature", "X-Amz-Security-Token", "X-Amz-Credential"),
        after=_IN_URL,
    ),
    SecretKind(
        "url-signature",
        r"(?i)(?:X-(?:Goog|Tos|Obs|Oss|Cos)-(?:Sig|Sec|Cred)|q-sign|[?&6D](?:Signature|Policy)\W|"
        r"AccessKeyId\W)",
        r"(?i)(?:X-(?:Goog|Tos|Obs|Oss|Cos)-(?:Signature|Security-Token|Credential)|q-signature|"
        r"[?&](?:Signature|Policy)|(?:OSS|AWS|Google)AccessKeyId)=(?P<secret>[^&\s'\"\\]{16,4000})",
        starts=(
            "X-Goog-Signature",
            "X-Goog-Credential",
            "X-Tos-Signature",
            "X-Obs-Signature",
            "X-Oss-Signature",
            "X-Cos-Security-Token",
            "q-signature",
            "?Signature",
            "&Signature",
            "AccessKeyId",
        ),
        after=_IN_URL,
    ),
    SecretKind(
        "url-token",
        r"(?i)(?:[?&]|%3F|%26|u003F|u0026)(?:access_|auth_|api_?|session_?|client_)?(?:token|auth|key|"
        r"ticket|sid|jwt|code)(?:=|%3D|\\|\r?\n)",
        r"(?i)[?&](?:access_|auth_|api_?|session_?|client_)?(?:token|auth|key|ticket|sid|jwt|"
        r"code)=(?P<secret>[^&\s'\"#\\]{8,4000})",
        check=entropy.is_drawn,
        starts=(
            "?token",
            "&token",
            "access_token",
            "?key",
            "&key",
            "?sid",
            "&sid",
            "?code",
            "&code",
            "?auth",
            "&auth",
            "ticket",
            "jwt",
        ),
        after=_IN_URL,
    ),
)
