"""Secrets that are nobody's, made by their issuers' formats, and harmless texts that look like some.

Everything is put together here at run time from chance that is always the same, so that no scanner of
repositories finds a key in this file. `remains` tells whether a text still shows a part of a secret.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import string
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import NamedTuple
from urllib.parse import quote

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = UPPER + LOWER + DIGITS
HEX = DIGITS + "abcdef"
BASE64 = ALNUM + "+/"
WEB = ALNUM + "-_"
SHOWN = 8
NARROW = 24
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_BEFORE_ROW = re.compile(r"\n(?:\(WorkerDict pid=4242\) |[ \t]*\"?)")


class Planted(NamedTuple):
    """A text with a secret in it: of which kind, in which form, and what must not be seen any more."""

    kind: str
    form: str
    text: str
    secret: str


class Chance:
    """Characters drawn from a name; the same name gives the same ones."""

    def __init__(self, name: str) -> None:
        self._name, self._drawn = name, 0

    def number(self, below: int) -> int:
        """Draw a number from zero on."""
        self._drawn += 1
        return (
            int.from_bytes(hashlib.sha256(f"{self._name}/{self._drawn}".encode()).digest()[:8], "big") % below
        )

    def text(self, letters: str, size: int) -> str:
        """Draw characters, one of each class that the letters have among the first ones."""
        firsts = [group for group in (DIGITS, UPPER, LOWER) if set(group) & set(letters)]
        groups = [[char for char in letters if char in group] for group in firsts[: max(0, size - 1)]]
        drawn = [group[self.number(len(group))] for group in groups]
        drawn += [letters[self.number(len(letters))] for _ in range(size - len(drawn))]
        for place in range(len(drawn) - 1, 0, -1):
            other = self.number(place + 1)
            drawn[place], drawn[other] = drawn[other], drawn[place]
        return "".join(drawn)


Make = Callable[[Chance], str]


class Sample(NamedTuple):
    """How a kind of secret is shown (`{}` stands for it), and how one is made."""

    kind: str
    shown: str
    make: Make


def _after(prefix: str, letters: str, size: int, end: str = "") -> Make:
    return lambda chance: prefix + chance.text(letters, size) + end


def _any(letters: str, size: int, end: str = "") -> Make:
    return _after("", letters, size, end)


def _word(size: int) -> Make:
    return _any(ALNUM + "_!", size)


def _uuid(chance: Chance) -> str:
    return "-".join(chance.text(HEX, size) for size in (8, 4, 4, 4, 12))


def _jwt(chance: Chance) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    return f"{head}.{chance.text(WEB, 60)}.{chance.text(WEB, 43)}"


def _pair(chance: Chance) -> str:
    return base64.b64encode(f"svc:{chance.text(ALNUM, 16)}".encode()).decode()


def _rows(chance: Chance, first: str, count: int, width: int) -> list[str]:
    return [
        first + chance.text(BASE64, width - len(first)),
        *(chance.text(BASE64, width) for _ in range(count)),
        chance.text(BASE64, 22) + "==",
    ]


_PEM = (
    ("RSA ", "MIIEow" + "IBAAK", 64),
    ("EC ", "MHcCAQEE", 64),
    ("", "MIIEvQ" + "IBADAN", 64),
    ("ENCRYPTED ", "MIIFHD", 64),
    ("DSA ", "MIIBuwIB", 64),
    ("OPENSSH ", "b3BlbnNzaC1r" + "ZXktdjE", 70),
)

SAMPLES: tuple[Sample, ...] = (
    Sample("aws-key", "boto3 signs with {} in us-east-1", _after("AK" + "IA", UPPER + "234567", 16)),
    Sample("aws-key", "assumed role, id {} until 12:00", _after("AS" + "IA", UPPER + "234567", 16)),
    Sample(
        "aws-signature", "GET https://b.s3.amazonaws.com/k?X-Amz-Signature={}&x-id=GetObject", _any(HEX, 64)
    ),
    Sample("url-signature", "GET https://storage.googleapis.com/b/k?X-Goog-Signature={}&x=1", _any(HEX, 128)),
    Sample(
        "url-signature",
        "GET https://b.oss-cn-hangzhou.aliyuncs.com/k?Expires=1&Signature={}&x=1",
        _any(ALNUM, 27),
    ),
    Sample(
        "azure-key",
        "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=core.windows.net",
        _any(BASE64, 86, "=="),
    ),
    Sample("azure-sas", "azcopy https://x.blob.core.windows.net/c?sv=2022&sig={}&se=2", _any(ALNUM, 40)),
    Sample(
        "azure-secret",
        "az login with {} failed",
        lambda chance: chance.text(ALNUM, 3) + "8Q~" + chance.text(ALNUM + "_.-", 33) + "x",
    ),
    Sample("google-key", "maps key {} has no quota", _after("AI" + "za", WEB, 34, "x")),
    Sample("google-key", "gcloud access {} expires", _after("ya" + "29.", WEB, 60)),
    Sample("google-key", "oauth client {} refused", _after("GOC" + "SPX-", WEB, 28)),
    Sample("alibaba-key", "oss2 uses {} now", _after("LT" + "AI", ALNUM, 20)),
    Sample("tencent-key", "cos uses {} now", _after("AK" + "ID", ALNUM, 32)),
    Sample("volcengine-key", "tos uses {} now", _after("AK" + "LT", ALNUM, 43)),
    Sample(
        "baidu-key",
        "qianfan uses {} now",
        lambda chance: f"bce-v3/AL{'TAK'}-{chance.text(ALNUM, 21)}/{chance.text(HEX, 40)}",
    ),
    Sample("access-pair", "export HUAWEICLOUD_SDK_SK={}", _any(ALNUM, 40)),
    Sample("access-pair", "volc configure set --sk {} --region cn-beijing", _any(ALNUM, 40)),
    Sample(
        "access-pair", "obsutil config -i={} -e=obs.cn-north-4.myhuaweicloud.com", _any(UPPER + DIGITS, 20)
    ),
    Sample("github-token", "clone with {} done", _after("gh" + "p_", ALNUM, 36)),
    Sample("github-token", "clone with {} done", _after("github" + "_pat_", ALNUM, 82)),
    Sample("gitlab-token", "runner has {} set", _after("gl" + "pat-", WEB, 20)),
    Sample("huggingface-token", "hub login {} ok", _after("h" + "f_", UPPER + LOWER, 34)),
    Sample("wandb-key", "wandb login {} done", _any(HEX, 40)),
    Sample("wandb-key", "wandb: using {} of netrc", _after("wandb" + "_v1_", ALNUM, 77)),
    Sample(
        "neptune-token", "neptune.init with {} failed", _after("eyJhcGlfYWRk" + "cmVzcyI6", ALNUM, 120, "==")
    ),
    Sample("modelscope-token", "modelscope login {} ok", lambda chance: "ms" + "-" + _uuid(chance)),
    Sample("openai-key", "client key {} is wrong", _after("sk" + "-proj-", ALNUM, 60)),
    Sample("openai-key", "deepseek key {} is wrong", _after("s" + "k-", HEX, 32)),
    Sample("anthropic-key", "client key {} is wrong", _after("sk" + "-ant-api03-", WEB, 90, "AA")),
    Sample("groq-key", "client key {} is wrong", _after("gs" + "k_", ALNUM, 52)),
    Sample("nvidia-key", "ngc pulls with {} now", _after("nv" + "api-", WEB, 63, "x")),
    Sample("replicate-token", "client key {} is wrong", _after("r" + "8_", ALNUM, 37)),
    Sample(
        "zhipu-key",
        "glm client {} is wrong",
        lambda chance: f"{chance.text(HEX, 32)}.{chance.text(ALNUM, 16)}",
    ),
    Sample(
        "langsmith-key",
        "tracing with {} on",
        lambda chance: f"lsv2{'_pt_'}{chance.text(HEX, 32)}_{chance.text(HEX, 10)}",
    ),
    Sample("issuer-token", "client key {} is wrong", _after("pp" + "lx-", ALNUM, 48)),
    Sample("issuer-token", "client key {} is wrong", _after("xa" + "i-", ALNUM, 80)),
    Sample("issuer-token", "pinecone has {} set", _after("pc" + "sk_", ALNUM, 60)),
    Sample("issuer-token", "runpod has {} set", _after("rp" + "a_", UPPER + DIGITS, 44)),
    Sample("issuer-token", "doctl has {} set", _after("do" + "p_v1_", HEX, 64)),
    Sample("issuer-token", "tailscale up with {} now", _after("ts" + "key-auth-", ALNUM, 30)),
    Sample(
        "slack-token",
        "bot says {} twice",
        lambda chance: (
            f"xox{'b-'}{chance.text(DIGITS, 12)}-{chance.text(DIGITS, 12)}-{chance.text(ALNUM, 24)}"
        ),
    ),
    Sample("slack-token", "bot says {} twice", _after("xap" + "p-1-A0-", ALNUM, 40)),
    Sample("webhook", "post https://hooks.slack.com/services/T00000000/B00000000/{} failed", _any(ALNUM, 24)),
    Sample("webhook", "post https://open.feishu.cn/open-apis/bot/v2/hook/{} failed", _uuid),
    Sample("webhook", "post https://oapi.dingtalk.com/robot/send?access_token={} failed", _any(HEX, 64)),
    Sample("webhook", "post https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={} failed", _uuid),
    Sample(
        "webhook", "post https://discord.com/api/webhooks/123456789012345678/{} failed", _any(WEB, 67, "x")
    ),
    Sample(
        "webhook",
        "post https://x.webhook.office.com/webhookb2/{} failed",
        lambda chance: (
            f"{_uuid(chance)}@{_uuid(chance)}/IncomingWebhook/{chance.text(HEX, 32)}/{_uuid(chance)}"
        ),
    ),
    Sample("webhook", "post https://sctapi.ftqq.com/{}.send failed", _after("SC" + "T12345T", ALNUM, 26)),
    Sample(
        "telegram-token",
        "bot {} is up",
        lambda chance: f"{chance.text('123456789', 10)}:AA{chance.text(WEB, 32)}x",
    ),
    Sample("stripe-key", "billing with {} on", _after("sk" + "_live_", ALNUM, 24)),
    Sample(
        "sendgrid-key",
        "mail with {} on",
        lambda chance: f"S{'G.'}{chance.text(ALNUM, 22)}.{chance.text(ALNUM, 43)}",
    ),
    Sample("npm-token", "npm publishes with {} now", _after("np" + "m_", ALNUM, 36)),
    Sample("npm-token", "//registry.npmjs.org/:_authToken={}", _uuid),
    Sample("pypi-token", "twine has {} set", _after("py" + "pi-AgEIcHlwaS5vcmc", WEB, 120)),
    Sample("docker-auth", "docker has {} set", _after("dckr" + "_pat_", WEB, 26, "x")),
    Sample("docker-auth", '{{"auths": {{"registry.example.com": {{"auth": "{}"}}}}}}', _pair),
    Sample("databricks-token", "mlflow has {} set", _after("da" + "pi", HEX, 32)),
    Sample("vault-token", "vault has {} set", _after("hv" + "s.", ALNUM, 90)),
    Sample(
        "grafana-token",
        "grafana has {} set",
        lambda chance: f"gl{'sa_'}{chance.text(ALNUM, 32)}_{chance.text(HEX, 8)}",
    ),
    Sample(
        "age-key", "sops has {} set", _after("AGE-SECRET" + "-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)
    ),
    Sample("jwt", "kubelet got {} from the api", _jwt),
    Sample(
        "kubernetes-token",
        "kubeadm join 10.0.0.1:6443 --token {} --v=5",
        lambda chance: f"{chance.text(LOWER + DIGITS, 6)}.{chance.text(LOWER + DIGITS, 16)}",
    ),
    Sample("kubernetes-key", "client-key-data: {}", _after("LS0tLS1CRUdJTi", BASE64, 300, "==")),
    Sample("sentry-dsn", "sentry_sdk.init https://{}@o4501.ingest.sentry.io/4501", _any(HEX, 32)),
    Sample("url-credentials", "pip --index-url https://alice:{}@pypi.example.com/simple", _any(ALNUM, 14)),
    Sample("url-credentials", "git remote add o ssh://deploy:{}@git.example.com:2222/x.git", _any(ALNUM, 14)),
    Sample("url-credentials", "redis://:{}@10.0.0.4:6379/0 refused", _any(ALNUM, 14)),
    Sample("url-credentials", "mongodb+srv://job:{}@cluster0.example.net/runs refused", _any(ALNUM, 14)),
    Sample("url-credentials", "clone https://{}@git.example.com/org/repo.git", _any(ALNUM, 40)),
    Sample("url-token", "open http://127.0.0.1:8888/lab?token={} in a browser", _any(HEX, 48)),
    Sample("url-token", "GET /v1/geocode?q=x&key={}&n=1", _any(ALNUM, 32)),
    Sample("authorization", "Authorization: Basic {}", _pair),
    Sample("authorization", "headers={{'authorization': '{}'}}", _any(ALNUM, 32)),
    Sample("bearer", "curl -H 'Accept: x' sent Bearer {} to it", _any(ALNUM, 40)),
    Sample("cookie", "Set-Cookie: session={}; Path=/; HttpOnly", _any(ALNUM, 32)),
    Sample("cookie", "GET /login with JSESSIONID={} again", _any(UPPER + DIGITS, 32)),
    Sample("api-header", "X-Api-Key: {}", _any(ALNUM, 32)),
    Sample("password", "password={}", _word(14)),
    Sample("password", "数据库密码：{}，请勿外传", _any(ALNUM, 14)),
    Sample("password", "export DB_PASSWORD='{}'", _word(14)),
    Sample("password", "mysql -h db -u root --password {} runs", _word(14)),
    Sample("password", "Server=tcp:db,1433;User Id=job;Pwd={};Encrypt=yes", _any(ALNUM, 14)),
    Sample("password", "jdbc:postgresql://db/runs?user=job&password={}", _any(ALNUM, 14)),
    Sample("secret", "'aws_secret_access_key': '{}'", _any(BASE64, 40)),
    Sample("secret", "WANDB_API_KEY={}", _any(ALNUM, 40)),
    Sample("secret", "environ({{'COMET_API_KEY': '{}', 'HOME': '/root'}})", _any(ALNUM, 25)),
    Sample("secret", "docker run -e AZURE_OPENAI_KEY={} image", _any(HEX, 32)),
    Sample(
        "secret", "python -m vllm.entrypoints.openai.api_server --api-key {} --port 8000", _any(ALNUM, 32)
    ),
    Sample("secret", "clientSecret: {}", _any(ALNUM + "~.", 34)),
    Sample("token", "HF_TOKEN={}", _any(ALNUM, 34)),
    Sample("token", "access_token: '{}'", _any(ALNUM, 40)),
    Sample("token", "serve --auth-token {} --port 1", _any(ALNUM, 34)),
    Sample("command-password", "mysql -u root -p{} runs", _any(ALNUM, 14)),
    Sample("command-password", "sshpass -p {} ssh job@10.0.0.3", _any(ALNUM, 14)),
    Sample("command-password", "curl -s -u job:{} https://example.com/x", _any(ALNUM, 14)),
    Sample("command-password", "redis-cli -h 10.0.0.4 -a {} ping", _any(ALNUM, 14)),
    Sample("command-password", "docker login -u job -p {} registry.example.com", _any(ALNUM, 14)),
    Sample("command-password", "mongodump --host db -u job -p {} --out /data", _any(ALNUM, 14)),
    Sample("command-password", "unzip -P {} weights.zip", _any(ALNUM, 14)),
    Sample("command-password", "htpasswd -bc /etc/nginx/.htpasswd job {} done", _any(ALNUM, 14)),
    Sample("command-password", "echo {} | sudo -S nvidia-smi -pm 1", _any(ALNUM, 14)),
    Sample(
        "command-password", "subprocess.run(['sshpass', '-p', '{}', 'ssh', 'job@10.0.0.3'])", _any(ALNUM, 14)
    ),
    Sample("command-password", "openssl rsa -in k.pem -passin pass:{} -out k", _any(ALNUM, 14)),
    Sample(
        "password-hash", "job:{}", lambda chance: f"$apr1${chance.text(ALNUM, 8)}${chance.text(ALNUM, 22)}"
    ),
    Sample(
        "password-hash",
        "job:{}:19000:0:99999:7:::",
        lambda chance: f"$6${chance.text(ALNUM, 16)}${chance.text(ALNUM, 86)}",
    ),
    Sample("netrc", "machine api.example.com login job password {}", _any(ALNUM, 20)),
    Sample("pgpass", "db.example.com:5432:runs:job:{}", _any(ALNUM, 16)),
    Sample(
        "email",
        "mail {}@example.com please",
        lambda chance: f"{chance.text(LOWER, 6)}.{chance.text(LOWER, 7)}",
    ),
    Sample("email", "联系 {}@mail.example.edu.cn 处理", _any(LOWER + DIGITS, 10)),
)
# What has its name beside it, or its shape from several rows; not in the forms of one row that a terminal
# cuts.
BESIDE: tuple[Sample, ...] = (
    Sample("whycrash-key", "the server got why" + "crash_{} from a client", _any(WEB, 42, "x")),
    Sample("password", "the password is {} for the database", _any(ALNUM, 14)),
    Sample("password", "Password for user 'svc' is {}.", _any(ALNUM, 14)),
    Sample("password", "数据库的密码是 {} 请保密", _any(ALNUM, 20)),
    Sample("password", "账号 root 密码 {}", _any(ALNUM, 20)),
    Sample("password", "密码：“{}”", _any(ALNUM, 20)),
    Sample("token", "Your token is {}", _any(ALNUM, 24)),
    Sample("secret", "Error code: 401 - Incorrect API key provided: {}. You can", _any(ALNUM, 32)),
    Sample("secret", "using API key {} for the judge", _any(ALNUM, 32)),
    Sample("secret", "AWS Secret Access Key [None]: {}", _any(BASE64, 39, "x")),
    Sample("secret", "aws configure set aws_secret_access_key {}", _any(BASE64, 39, "x")),
    Sample("secret", "--conf spark.hadoop.fs.s3a.secret.key={}", _any(ALNUM, 40)),
    Sample("secret", "Ocp-Apim-Subscription-Key: {}", _any(HEX, 32)),
    Sample("secret", "--certificate-key {}", _any(HEX, 64)),
    Sample("password", "<password>{}</password>", _any(ALNUM, 14)),
    Sample("password", '<db:adminPassword encrypted="no">{}</db:adminPassword>', _any(ALNUM, 14)),
    Sample("secret", "<apiToken>{}</apiToken>", _any(ALNUM, 24)),
    Sample(
        "secret",
        "<property>\n  <name>fs.s3a.secret.key</name>\n  <value>{}</value>\n</property>",
        _any(ALNUM, 40),
    ),
    Sample("secret", "env:\n  - name: AWS_SECRET_ACCESS_KEY\n    value: {}\n", _any(BASE64, 39, "x")),
    Sample("secret", '  - name: PGPASSWORD\n    value: "{}"\n', _any(ALNUM, 14)),
    Sample(
        "secret", '"env": [\n  {{\n    "name": "WANDB_API_KEY",\n    "value": "{}"\n  }}\n]', _any(ALNUM, 40)
    ),
    Sample("secret", "ENV HF_TOKEN {}", _any(ALNUM, 34)),
    Sample("secret", "setenv WANDB_API_KEY {}", _any(ALNUM, 40)),
    Sample("secret", "HF_TOKEN\t{}", _any(ALNUM, 34)),
    Sample("secret", "| WANDB_API_KEY | {} |", _any(ALNUM, 40)),
    Sample("secret", "('WANDB_API_KEY', '{}')", _any(ALNUM, 40)),
    Sample("secret", 'os.environ.setdefault("HF_TOKEN", "{}")', _any(ALNUM, 34)),
    Sample("secret", "[('Authorization', 'Token {}'), ('Accept', '*/*')]", _any(ALNUM, 32)),
    Sample("secret", "(b'authorization', b'{}')", _any(ALNUM, 32)),
    Sample("secret", "OpenAIConfig(key=SecretStr('{}'))", _any(ALNUM, 32)),
    Sample("secret", "args: Namespace(api_key=['{}'], host=None)", _any(ALNUM, 32)),
    Sample("secret", 'Args {{ model_id: "x", api_key: Some("{}") }}', _any(ALNUM, 32)),
    Sample("password", 'password = """{}"""', _any(ALNUM, 32)),
    Sample("token", "HF_TOKEN:\u00a0{}", _any(ALNUM, 34)),
    Sample("password", "smtp.login('bot', '{}')", _any(ALNUM, 20)),
    Sample("password", "requests.get(url, auth=('bot', '{}'))", _any(ALNUM, 20)),
    Sample("password", "+ note=smtp.login(bot, {})", _any(ALNUM, 20)),
    Sample("password", "SSHPASS={} sshpass -e ssh node7", _any(ALNUM, 14)),
    Sample("password", "export REDISCLI_AUTH={}", _any(ALNUM, 14)),
    Sample("cookie", "cookies={{'session': '{}'}}", _any(ALNUM, 32)),
    Sample("cookie", "curl -b 'session={}' https://x.example.com", _any(ALNUM, 32)),
    Sample("cookie", "curl --cookie sid={} https://x.example.com", _any(ALNUM, 32)),
    Sample("cookie", 'curl -b "sid={}" https://x.example.com', _any(ALNUM, 32)),
    Sample("secret", '{{"username":"job","key":"{}"}}', _any(HEX, 32)),
    Sample(
        "aws-signature", "with AWS4-HMAC-SHA256 SignedHeaders=host;x-amz-date, Signature={}", _any(HEX, 64)
    ),
    Sample("url-credentials", "postgresql://job:{}@db.example.com:5432/runs", _after("p@ss/", ALNUM, 12)),
    Sample("url-token", "https://conda.example.com/t/jo-{}/channel", _any(ALNUM, 40)),
    Sample("npm-token", "_auth={}", _any(BASE64, 22, "==")),
    Sample(
        "wandb-key",
        "wandb: Paste an API key from your profile and hit enter, or press ctrl+c to quit: {}",
        _any(HEX, 40),
    ),
    Sample("access-pair", "ossutil config -e oss.example.com -k {}", _any(ALNUM, 30)),
    Sample("command-password", "vault login {}", _any(ALNUM, 20)),
    Sample("command-password", "mc alias set minio http://10.0.0.4:9000 minioadmin {}", _any(ALNUM, 40)),
    Sample("command-password", "lftp -u job,{} ftp.example.com", _any(ALNUM, 16)),
    Sample("command-password", "smbclient //srv/share -U job%{}", _any(ALNUM, 16)),
    Sample(
        "command-password", "ipmitool -I lanplus -H 10.0.0.1 -U admin -P {} power status", _any(ALNUM, 16)
    ),
    Sample("command-password", "gh auth login --with-token <<< {}", _any(ALNUM, 40)),
    Sample(
        "command-password",
        "echo {} | docker login -u job --password-stdin registry.example.com",
        _any(ALNUM, 14),
    ),
    Sample("command-password", "echo root:{} | chpasswd", _any(ALNUM, 14)),
    Sample(
        "secret",
        "kubectl create secret generic hf --from-literal=user=job --from-literal=key1={}",
        _any(ALNUM, 16),
    ),
    Sample(
        "kubernetes-secret",
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  conn: {}\n",
        _any(BASE64, 26, "=="),
    ),
    Sample(
        "kubernetes-secret",
        "apiVersion: v1\ndata:\n  conn: {}\nimmutable: true\nkind: Secret\nmetadata:\n  name: db\n",
        _any(BASE64, 26, "=="),
    ),
    Sample(
        "kubernetes-secret",
        '{{"apiVersion": "v1", "data": {{"conn": "{}"}}, "kind": "Secret"}}',
        _any(BASE64, 26, "=="),
    ),
    Sample(
        "kubernetes-secret",
        '{{"kind": "Secret", "metadata": {{"labels": {{"a": "b"}}}}, "data": {{"conn": "{}"}}}}',
        _any(BASE64, 26, "=="),
    ),
)
# Where a row is the whole of the format, nothing may stand before it.
ALONE = {"pgpass", "password-hash", "npm-token", "kubernetes-key"}


def english(shown: str, number: int) -> str:
    """Write a line of a trainer's log."""
    return (
        f"2026-03-0{number % 9 + 1} 10:00:00,123 INFO trainer.py:{number + 10} rank 0 step {number} {shown}"
    )


def chinese(shown: str, number: int) -> str:
    """Write a line of a log in Chinese."""
    return f"[2026-03-0{number % 9 + 1} 10:00:00] 第{number}步训练失败，请检查：{shown}"


def colored(shown: str, _: int) -> str:
    """Write a line as Ray colours it."""
    return f"\x1b[36m(WorkerDict pid=4242)\x1b[0m \x1b[1;33mWARNING\x1b[0m {shown}\x1b[0m"


def _escaped(text: str) -> str:
    """Write a JSON string as a writer does that escapes whatever a page could take for markup."""
    dumped = json.dumps(text)
    for char in "@&<>'+/":
        dumped = dumped.replace(char, f"\\u{ord(char):04x}")
    return dumped


def _beside_forms(sample: Sample, number: int) -> Iterator[tuple[str, str, str]]:
    for form, written in FORMS_OF_ROWS.items():
        secret = sample.make(Chance(f"{sample.kind} {sample.shown} {form} {number}"))
        yield form, written(sample.shown.format(secret)), secret


FORMS_OF_ROWS: dict[str, Callable[[str], str]] = {
    "beside": lambda shown: shown,
    "beside, in JSON": lambda shown: json.dumps({"message": shown}),
    "beside, in JSON twice": lambda shown: json.dumps({"log": json.dumps({"log": shown})}),
    "beside, escaped": lambda shown: f'{{"message": {_escaped(shown)}}}',
    "beside, in a URL": lambda shown: f"GET /log?message={quote(shown, safe='')}",
    "beside, unseen signs": lambda shown: "\u200b".join((shown[: len(shown) // 2], shown[len(shown) // 2 :])),
}


def _wrapped(sample: Sample, secret: str, number: int, mark: str) -> str:
    """Cut a line as a terminal does: at its width, which falls inside the secret."""
    lead, _, tail = sample.shown.replace("{{", "{").replace("}}", "}").partition("{}")
    before = ("" if sample.kind in ALONE else english("", number)) + lead
    line = f"{before}{secret}{tail}"
    inside = 2 + Chance(f"cut {sample.kind} {sample.shown} {number}").number(max(1, len(secret) - 4))
    width = max(len(before) + inside, NARROW)
    return "\n".join(mark + line[place : place + width] for place in range(0, len(line), width))


def _forms(sample: Sample, number: int) -> Iterator[tuple[str, str, str]]:
    def fresh(form: str) -> tuple[str, str]:
        secret = sample.make(Chance(f"{sample.kind} {sample.shown} {form} {number}"))
        return secret, sample.shown.format(secret)

    line = (lambda shown, _: shown) if sample.kind in ALONE else english
    secret, shown = fresh("whole")
    yield "whole", line(shown, number), secret
    secret, shown = fresh("chinese")
    yield "chinese", shown if sample.kind in ALONE else chinese(shown, number), secret
    secret, shown = fresh("json")
    yield "json", json.dumps({"level": "info", "message": line(shown, number)}), secret
    secret, shown = fresh("json-in-json")
    yield "json-in-json", json.dumps({"log": json.dumps({"log": shown + "\n", "stream": "stderr"})}), secret
    secret, shown = fresh("escaped")
    yield "escaped", f'{{"message": {_escaped(shown)}}}', secret
    secret, _ = fresh("ansi")
    half = len(secret) // 2
    torn = f"\x1b[31m{secret[:half]}\x1b[0m\x1b[1;31m{secret[half:]}\x1b[0m"
    yield (
        "ansi",
        colored(sample.shown.format(torn), number) if sample.kind not in ALONE else sample.shown.format(torn),
        secret,
    )
    secret, shown = fresh("url-encoded")
    yield "url-encoded", f"GET /log?level=info&message={quote(shown, safe='')}", secret
    secret, _ = fresh("wrapped")
    yield "wrapped", _wrapped(sample, secret, number, ""), secret
    secret, _ = fresh("wrapped-by-rank")
    yield "wrapped-by-rank", _wrapped(sample, secret, number, "(WorkerDict pid=4242) "), secret


def _private_keys() -> Iterator[Planted]:
    for label, first, width in _PEM:
        name = f"{label}PRIVATE" + " KEY"
        for form in (
            "rows",
            "json",
            "json-in-json",
            "rows-by-rank",
            "cut",
            "without-begin",
            "indented",
            "one-row",
            "ansi",
        ):
            rows = _rows(Chance(f"{label} {form}"), first, 6, width)
            key = [f"-----BEGIN {name}-----", *rows, f"-----END {name}-----"]
            yield Planted("private-key", form, _shown_key(form, key), "\n".join(rows))
    for label in ("PGP PRIVATE" + " KEY BLOCK",):
        rows = _rows(Chance(label), "lQOYBF", 6, 64)
        yield Planted(
            "private-key",
            "pgp",
            "\n".join([f"-----BEGIN {label}-----", "", *rows, "=aB3d", f"-----END {label}-----"]),
            "\n".join(rows),
        )
    rows = _rows(Chance("putty"), "AAAAgQ", 5, 64)
    yield Planted(
        "private-key",
        "putty",
        "\n".join(["PuTTY-User-Key-File-3: ssh-rsa", f"Private-Lines: {len(rows)}", *rows, "Private-MAC: 0"]),
        "\n".join(rows),
    )
    rows = _rows(Chance("service account"), "MIIEvQ", 20, 64)
    account = {
        "type": "service_account",
        "project_id": "x",
        "private_key": "\n".join(
            ["-----BEGIN PRIVATE" + " KEY-----", *rows, "-----END PRIVATE KEY-----", ""]
        ),
    }
    yield Planted("private-key", "service-account", json.dumps(account, indent=2), "\n".join(rows))
    yield Planted(
        "private-key",
        "service-account-in-environ",
        f"environ({{'GCP_SA': {json.dumps(account)!r}}})",
        "\n".join(rows),
    )


def _shown_key(form: str, key: list[str]) -> str:
    whole = "\n".join(key)
    marked = "\n".join(f"(WorkerDict pid=4242) {row}" for row in key)
    return {
        "rows": whole,
        "json": json.dumps({"key": whole + "\n"}),
        "json-in-json": json.dumps({"log": json.dumps({"key": whole})}),
        "rows-by-rank": marked,
        "cut": "\n".join(key[:4]) + "\nValueError: bad key",
        "without-begin": "\n".join(key[2:]),
        "indented": "  tls.key: |\n" + "\n".join(f"    {row}" for row in key),
        "one-row": "key " + " ".join(key),
        "ansi": "\n".join(f"\x1b[32m{row}\x1b[0m" for row in key),
    }[form]


@cache
def secrets() -> list[Planted]:
    """Give the planted set: each sample in each form, and private keys in theirs."""
    found = [
        Planted(sample.kind, form, text, secret)
        for number, sample in enumerate(SAMPLES)
        for form, text, secret in _forms(sample, number)
    ]
    found += [
        Planted(sample.kind, form, text, secret)
        for number, sample in enumerate(BESIDE)
        for form, text, secret in _beside_forms(sample, number)
    ]
    return found + list(_private_keys())


@lru_cache(maxsize=16)
def _runs(shown: str) -> frozenset[str]:
    """Give all runs of SHOWN characters of a text as it is, without colours, and with its rows joined.

    To search a page for each part of a thousand secrets takes half a minute.
    """
    plain = _ESCAPE.sub("", shown)
    views = {shown, plain, _BEFORE_ROW.sub("", plain)}
    return frozenset(view[place : place + SHOWN] for view in views for place in range(len(view) - SHOWN + 1))


def remains(planted: Planted, shown: str) -> str:
    """Give the first run of the secret's characters that a text still shows, or nothing.

    A text is looked at as it is, and as a person would put it together: without colours, line by line, and
    with its rows joined.
    """
    runs = _runs(shown)
    for piece in planted.secret.split("\n"):
        for place in range(len(piece) - SHOWN + 1):
            if (run := piece[place : place + SHOWN]) in runs:
                return run
    return ""


_HARMLESS: tuple[str, ...] = (
    "HEAD is now at {hex40}",
    "commit {hex40} (HEAD -> main)",
    "git checkout {hex7} && pip install -e .",
    "sha256:{hex64}  model.safetensors",
    "sha256sum {hex64}",
    "digest md5 {hex32}",
    "run id {uuid}",
    "request_id={uuid} finished",
    "job_id: {uuid}",
    "trace {hex32}",
    "ObjectRef({hex56})",
    "ActorID({hex32}) died",
    "node_id={hex56} ip=10.0.0.3",
    "worker_id={hex56}",
    "placement group {hex36} removed",
    "triage 01J{ulid23} done",
    "image registry.example.com/train@sha256:{hex64}",
    "docker container {hex64} exited (137)",
    "layer {hex12}: Pull complete",
    "/root/.cache/huggingface/hub/models--Qwen--Qwen2.5-7B/snapshots/{hex40}/config.json",
    "/scratch/torchinductor_root/{low2}/c{low50}.py",
    "/scratch/ray/session_2026-03-01_10-00-00_123456_{n}/logs",
    "blob /data/blobs/sha256/{hex64}",
    "at 0x7f{hex10} in libtorch_cuda.so",
    "<torch.nn.Linear object at 0x7f{hex10}>",
    "tensor data b64 {b64}",
    "chunk: {b64}",
    "num_tokens={n} max_tokens=4096",
    "pad_token=<|endoftext|> eos_token_id={n}",
    "pad_token_id={n}, bos_token_id: {n}",
    "max_new_tokens={n}",
    "tokens_per_second: {n}.{n}",
    "tokenizer=Qwen/Qwen2.5-7B-Instruct vocab {n}",
    "tokenizer_class: Qwen2TokenizerFast",
    "special_tokens_map_file=/models/special_tokens_map.json",
    "eos_token='<|im_end|>' ({n})",
    "--max-num-batched-tokens {n} --max-model-len 8192",
    "image_token=<image_placeholder_{n}>",
    "mask_token: '[MASK]' unk_token: '[UNK]'",
    "decoder_start_token_id={n}",
    "token_level_scores=tensor([0.{n}])",
    "the secretary wrote page {n}",
    "loss=0.{n} grad_norm=1.{n} lr=1e-06",
    "kv_cache_dtype=fp8_e4m3 kv_cache_usage=0.{n}",
    "key_cache.layers.{n}.shape=(2, 16, 128)",
    "model.layers.{n}.self_attn.k_proj.weight",
    "missing key: model.layers.{n}.mlp.gate_proj.weight",
    "KeyError: 'layers.{n}.attention_mask'",
    "attention_mask=torch.ones(1, {n})",
    "key_padding_mask=None query_len={n}",
    "primary_key=sample_id sort_key=timestamp_{n}",
    "torch==2.{n}.0+cu124",
    "vllm@0.8.{n}",
    "package lodash@4.17.{n} has a fix",
    "@ray.remote(num_gpus={n})",
    "@torch.compile(mode='max-autotune')  # {n}",
    "git@github.com:org/repo-{n}.git",
    "git clone git@gitlab.com:group/sub/project{n}.git",
    "pass@{n}: 0.4512",
    "hydra: model@actor=qwen{n}",
    "forward pass: {n}.123 ms, backward pass: 234.567 ms",
    "bypass=enabled_{n}",
    "passed: {n} failed: 0",
    "/data/runs/model@step_{n}/pytorch_model.bin",
    "ray://10.0.0.{n}:10001",
    "tcp://10.0.0.{n}:29500",
    "http://10.0.0.{n}:8265/api/jobs/raysubmit_{alnum16}",
    "http://[::1]:8000/v1/models?n={n}",
    "s3://bucket/checkpoints/step_{n}/model.pt",
    "https://github.com/org/repo/commit/{hex40}",
    "https://wandb.ai/team/project/runs/{low8}",
    "wandb: Run data is saved locally in /job/wandb/run-20260301_100000-{low8}",
    "wandb: Tracking run with wandb version 0.19.{n}",
    "HF_TOKEN=None WANDB_API_KEY=$WANDB_API_KEY rank {n}",
    "HF_TOKEN=${{HF_TOKEN}} step {n}",
    "api_key=null timeout={n}",
    "password: None attempt {n}",
    "export OPENAI_API_KEY=EMPTY  # try {n}",
    "PWD=/workspace/run{n}",
    "OLDPWD=/root/job{n}",
    "GOOGLE_APPLICATION_CREDENTIALS=/etc/gcp/sa-{n}.json",
    "ssh_key_path=/root/.ssh/id_rsa_{n}",
    "private_key=/etc/ssl/private/server{n}.pem",
    "NCCL INFO comm 0x{hex12} rank 0 nranks {n} busId 1000 commId 0x{hex16} - Init START",
    "worker-0:{n}:5678 [0] NCCL INFO NET/Plugin: none",
    "10.0.0.{n}:29500 connection refused",
    "ask-me-anything-about-the-run-{n}",
    "disk-usage-monitor-agent-{n}",
    "task-runner-scheduler-worker-{n}",
    "hf_model_config_for_the_actor_{n}",
    "sk-learn-pipeline-step-{n}",
    "GET /v1/models?limit={n}&order=desc",
    "GET /api?key=value&page={n}",
    "monkey=banana_split_{n}",
    "author={low8} keyword=gradient",
    "key=actor_rollout_ref.model.path value={n}",
    "cookiecutter template v{n}",
    "the bearer of bad news came {n} times",
    "authorization failed for rank {n}",
    "invalid token at position {n}",
    "Unexpected token '<' at line {n}",
    "next token prediction loss {n}",
    "per_token_logps=tensor([-0.{n}])",
    "nvidia-smi GPU-{uuid}",
    "MIG-{uuid}",
    "NVIDIA_VISIBLE_DEVICES=GPU-{uuid}",
    "CUDA_VISIBLE_DEVICES=0,1,2,{n}",
    "slurm job {n} on node-[001-016]",
    'etag "{hex32}"',
    "x-request-id: {uuid}",
    "checkpoint_{n}_{hex8}.pt",
    "cudnn handle 0x{hex12} key {n}",
    "safetensors key=lm_head.weight shape=[{n}, 4096]",
    "cache key {hex64} hit",
    "compile cache key: {hex40}",
    "fingerprint={hex16}",
    "ssh-ed25519 SHA256:{b43}",
    "seed={n} salt=0",
    "user=root uid={n} gid=0",
)
# What has the words of a secret and is none.
_NEAR: tuple[str, ...] = (
    "The password is required to log in",
    "Password is not set; skipping login on node7",
    "the token is valid (permission: read).",
    "Your token has been saved in your configured git credential helpers (store).",
    (
        "Token is valid (permission: fineGrained). The token `train-h100-2` has been saved to "
        "/root/.cache/huggingface/stored_tokens"
    ),
    "ValueError: token is not in vocab: 151665",
    "the next token is sampled from top_k=50",
    "AssertionError: eos token is 151645 but tokenizer has 151643",
    "padding token is <|endoftext|>",
    "the unk token was None",
    "token is EOS at position 512",
    "API key is missing; set OPENAI_API_KEY",
    "No API key provided. You can set your API key in code using 'openai.api_key = <API-KEY>'",
    (
        "wandb: Currently logged in as: team-research (team-research-lab). Use `wandb login --relogin` to "
        "force relogin"
    ),
    "wandb: ⭐️ View project at https://wandb.ai/team/verl-grpo-7b",
    "wandb: Find logs at: ./wandb/run-20261101_120000-{hex8}/logs",
    "wandb: Synced 5 W&B file(s), run {hex8}",
    "wandb: WARNING The `run_name` is currently set to the same value as `TrainingArguments.output_dir`",
    "client_key = os.environ['OPENAI_API_KEY']  # train.py line 12",
    "KeyError: 'HF_TOKEN'",
    "HF_TOKEN is not set, downloads of gated models fail",
    "HF_TOKEN  unset",
    "| HF_TOKEN | not set |",
    "EOS_TOKEN 151645",
    "PAD_TOKEN   <|endoftext|>",
    "NUM_TOKENS 4096",
    "IMAGE_TOKEN 151655",
    "<key>model.layers.0.self_attn.q_proj.weight</key>",
    "<token>hello</token>",
    "<name>fs.s3a.impl</name>\n<value>org.apache.hadoop.fs.s3a.S3AFileSystem</value>",
    '- name: CUDA_VISIBLE_DEVICES\n  value: "0,1,2,3"',
    '- name: TOKENIZERS_PARALLELISM\n  value: "false"',
    '- name: MAX_TOKENS\n  value: "131072"',
    "- name: HF_TOKEN\n  valueFrom:\n    secretKeyRef:\n      name: hf\n      key: token",
    "- name: NCCL_IB_HCA\n  value: mlx5_0,mlx5_1",
    '{{"name": "key_states", "value": "float32[8,4096,128]"}}',
    '["query_key_value", "dense_h_to_4h", "dense_4h_to_h"]',
    "['q_proj', 'k_proj', 'v_proj', 'o_proj']",
    "('attention_key', 'decoder.layers.11')",
    "special_tokens=['<|im_start|>', '<|im_end|>']",
    "('eos_token', '<|im_end|>')",
    "('bos_token', '<|begin_of_text|>')",
    "auth=(None, None)",
    "logging.login('x')",
    "cookies={{}}",
    "kind: ConfigMap\ndata:\n  train.sh: torchrun --nproc 8 train.py",
    "kind: Pod\nmetadata:\n  name: worker-{hex10}",
    'Error from server (NotFound): secrets "hf-secret" not found',
    'MountVolume.SetUp failed for volume "hf-secret" : secret "hf-secret" not found',
    "secret/hf created",
    "--master_addr=10.0.0.5 --master_port=29500 --rdzv_id={hex8}",
    "--certificate /etc/ssl/server3.pem",
    "vault login timed out after 30s",
    "echo $HF_TOKEN | huggingface-cli login",
    "echo done | tee /out/log",
    "mc alias list",
    "curl -b cookies.txt https://x",
    "curl -s -u svc https://x",
    "postgresql://db.example:5432/runs",
    "mysql+pymysql://db/runs?charset=utf8mb4",
    "redis://10.0.0.4:6379/0 refused; see ops@step12",
    "dataset s3://bucket/a@b/part-0001.parquet",
    "The key is layers.12.mlp.gate_proj.weight_scale_inv",
    "missing key is model.embed_tokens.weight",
    "the access key id is in the profile",
    "密码是必填项",
    "密码为空，跳过登录",
    "令牌是无效的",
    "密钥文件为 /etc/keys/a.pem",
    "secret_name=hf-secret-v2",
    "image: nvcr.io/nvidia/pytorch:24.05-py3@sha256:{hex64}",
    "rank0: token_ids hash is {hex16}",
    "cache key is {hex64}",
    "commit is {hex40}",
    "compile key {hex40}",
    "session_id is {uuid}",
    "Namespace(lr=1e-05, api_key=None, tokenizer='Qwen/Qwen2.5-7B')",
    "SecretStr('**********')",
    "access_key=None secret_key=None",
    "KV cache key shape is torch.Size([8, 128, 4096])",
    "secret_key: !vault |",
    "author is {alnum16}",
    "token usage: 0.83, #queue-req: 12",
    "generation token throughput: 1532.4 tokens/s",
    "ray token mode is disabled; cluster auth: RAY_AUTH_MODE=token",
    "RAY_AUTH_MODE=disabled",
    "HADOOP_TOKEN_FILE_LOCATION=/var/run/tokens/tok3",
    "AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/secrets/eks.amazonaws.com/serviceaccount/token",
    "KUBERNETES_SERVICE_ACCOUNT_TOKEN_PATH /var/run/secrets/token",
    "basic_auth(user)",
    "tokenizer.add_special_tokens({{'pad_token': '[PAD]'}})",
    "NCCL_SOCKET_IFNAME  eth0",
    "+---+ TOKEN_COUNT | 123456789 |",
    "TOTAL_TOKEN | 123456789012 |",
    "GLOBAL_TOKEN 1234567.89e10",
    "HASH_KEY {hex32}",
    "API_KEY  [redacted:secret]",
    "using API key authentication with oauth2_provider_v1",
    "uses secret key rotation v2alpha1",
    "private key file id_ed25519_2024 loaded",
    "account key vault-prod-eu-west-1 not reachable",
    "Invalid API key format: expected 32+ characters",
    "access token expires_in=3600",
    "access token https://10.0.0.4:8443/oauth2/v1/token refused",
    "license key server lic-01.corp.example:27000 is down",
    "bearer token auth_mode=k8s_serviceaccount_v1",
)
_HARMLESS_CHINESE = "[2026-03-01 10:00:00] 训练日志：{}，继续运行"


def _filled(template: str, chance: Chance) -> str:
    drawn = {
        "n": lambda: str(1 + chance.number(99999)),
        "uuid": lambda: _uuid(chance),
        "ulid23": lambda: chance.text(DIGITS + "ABCDEFGHJKMNPQRSTVWXYZ", 23),
        "alnum16": lambda: chance.text(ALNUM, 16),
        "b64": lambda: chance.text(BASE64, 118) + "==",
        "b43": lambda: chance.text(BASE64, 43),
        **{f"hex{size}": partial(chance.text, HEX, size) for size in (7, 8, 10, 12, 16, 32, 36, 40, 56, 64)},
        **{f"low{size}": partial(chance.text, LOWER + DIGITS, size) for size in (2, 8, 50)},
    }
    return (
        re.sub(r"(?<!\{)\{(\w+)\}(?!\})", lambda match: drawn[match[1]](), template)
        .replace("{{", "{")
        .replace("}}", "}")
    )


@cache
def lookalikes() -> list[str]:
    """Give harmless texts: each template four times and more, the second time in a Chinese line."""
    rounds = -(-500 // len(_HARMLESS))
    return [_filled(template, Chance(f"near {number}")) for number, template in enumerate(_NEAR)] + [
        text if turn % 2 == 0 else _HARMLESS_CHINESE.format(text)
        for turn in range(rounds)
        for number, template in enumerate(_HARMLESS)
        for text in (_filled(template, Chance(f"harmless {number} {turn}")),)
    ]
