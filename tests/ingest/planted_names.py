"""Secrets that only the name beside them gives away, in the ways that jobs print them, and what reads alike and must stay.

Written from how tools print and take secrets, before the rules were looked at; `{}` is the secret. No value is a real one.
"""

from __future__ import annotations

from typing import NamedTuple

# Words, words with digits, signs, letters of all kinds: what people and generators make.
VALUES = ("hunter22", "Tr0ub4dor-three", "wintersturm", "s3cr3tW0rd!", "q8Zx_7LmN2pR", "correct.horse.9", "pa55-4-Bob", "xK9$mQ2vLp")

KINDS: dict[str, tuple[str, ...]] = {
    "flag-password": ("python sync.py --db-password {} --host db", "cli --redis-password={} --port 6379", "tool --admin-passwd {} run"),
    "flag-token": ("python up.py --hf-hub-token {} --repo a/b", "vllm serve m --server-token {}", "cli --token-secret {} --token-id tk1"),
    "flag-key": ("srv --client-api-key {} --port 80", "s3 cp --s3-secret-key {} a b", "run --wandb-api-key {} --project p"),
    "flag-auth": ("curl-like --proxy-auth {} x", "run --auth-token {} x", "mlflow-push --basic-auth {} x"),
    "flag-pass": ("mongo --pass {} --user u", "job --db-pass {} --db x", "sshpass -p {} ssh h"),
    "flag-pwd": ("loader --pwd {} --rows 5", "loader --mysql-pwd={} --rows 5", "loader --root-pwd '{}' --rows 5"),
    "flag-underscore": ("train.py --hub_token {} --push", "train.py --api_key {}", "train.py --db_password {} --x 1"),
    "flag-quoted": ("tool --db-password '{}' x", 'tool --db-password "{}" x', "tool --db-password=\"{}\" x"),
    "flag-single-dash": ("java -Dkeystore.password={} -jar a.jar", "tool -password {} -user me", "tool -Dspring.datasource.password={} x"),
    "flag-credential": ("tool --store-credential {} go", "tool --client-secret {} go", "tool --credentials={} go"),
    "env-pass": ("PASS={} ./run.sh", "export DB_PASS={}", "SMTP_PASS={}"),
    "env-pwd": ("MYSQL_PWD={} mysqldump x", "export ROOT_PWD={}", "REDIS_PWD={}"),
    "env-password": ("PGPASSWORD={} psql -h db", "export ADMIN_PASSWORD={}", "ENV RABBITMQ_DEFAULT_PASSWORD={}"),
    "env-token": ("HF_HUB_TOKEN={} python x.py", "export MY_SERVICE_TOKEN={}", "GRAFANA_TOKEN={}"),
    "env-secret": ("APP_SECRET={} flask run", "export OAUTH_CLIENT_SECRET={}", "DJANGO_SECRET={}"),
    "env-key": ("ACME_API_KEY={} run", "export ENCRYPTION_KEY={}", "STORAGE_ACCESS_KEY={}"),
    "env-auth": ("NPM_AUTH={}", "export REDIS_AUTH={}", "X_AUTH={}"),
    "env-quoted": ("export DB_PASS='{}'", 'APP_TOKEN="{}" x', "set SERVICE_PASSWORD='{}'"),
    "env-blank": ("setenv DB_PASSWORD {}", "ENV API_TOKEN {}", "set -gx GITHUB_TOKEN {}"),
    "docker-e": ("docker run -e DB_PASS={} img", "docker run --env MYSQL_ROOT_PASSWORD={} img", "docker login -u bob -p {} reg.example.com"),
    "yaml": ("pass: {}", "  password: {}", "db_password: '{}'"),
    "yaml-nested": ("    client_secret: {}", "  - auth_token: {}", "smtp: {{user: bob, pass: {}}}"),
    "yaml-env-list": ("- name: DB_PASSWORD value: {}", "{{name: API_TOKEN, value: {}}}", '{{"name": "SMTP_PASS", "value": "{}"}}'),
    "json": ('{{"pass": "{}"}}', '{{"user": "u", "db_password": "{}", "port": 5}}', '{{"privateKey": "{}"}}'),
    "json-camel": ('{{"accessToken": "{}"}}', '{{"clientSecret":"{}"}}', '{{"dbPassword": "{}"}}'),
    "json-escaped": ('"{{\\"pass\\": \\"{}\\"}}"', '"{{\\"api_token\\":\\"{}\\"}}"', 'body="{{\\"password\\": \\"{}\\", \\"u\\": 1}}"'),
    "toml": ('password = "{}"', 'auth-token = "{}"', "db.pass = '{}'"),
    "ini": ("password = {}", "aws_secret = {}", "smtp_pass={}"),
    "python-repr": ("Config(host='h', password='{}', port=5)", "{{'auth_token': '{}', 'n': 2}}", "Namespace(lr=0.1, hub_token='{}', seed=3)"),
    "python-call": ('connect(host, passwd="{}")', "login(token='{}')", "Client(api_secret='{}', x=1)"),
    "sql": ("ALTER USER app WITH PASSWORD '{}';", "CREATE USER 'a'@'%' IDENTIFIED BY '{}';", "SET PASSWORD FOR 'bob' = '{}';"),
    "sql-more": ("CREATE ROLE r LOGIN ENCRYPTED PASSWORD '{}'", "CREATE LOGIN bob WITH PASSWORD = '{}'", "GRANT ALL ON *.* TO u IDENTIFIED BY '{}'"),
    "useradd": ("useradd -p {} bob", "useradd -m -p '{}' bob", "useradd --password {} bob"),
    "chpasswd": ("echo bob:{} | chpasswd", "echo 'root:{}' | chpasswd", 'echo "svc:{}" | sudo chpasswd'),
    "dsn": ("user=bob pass={} host=db", "host=db user=bob password={} dbname=x", "Server=db;Uid=sa;Pwd={};Database=x"),
    "dsn-more": ("User ID=sa;Password={};Encrypt=yes", "postgresql://bob:{}@db/x", "jdbc:mysql://db/x?user=bob&password={}"),
    "prose": ("Password for svc: {}", "Password for user 'bob': {}", "the password is {}"),
    "prose-prompt": ("Password: {}", "Enter passphrase: {}", "bob's password: {}"),
    "query": ("GET /x?access_token={}&b=1", "GET /login?user=b&pass={} HTTP/1.1", "https://h/x?auth={}&y=2"),
    "header": ("X-Auth-Token: {}", "X-Service-Secret: {}", "Proxy-Authorization: Basic {}"),
    "curl": ("curl -u bob:{} https://h/x", "curl --user bob:{} https://h/x", "wget --http-password={} https://h/x"),
    "tool-login": ("redis-cli -h r -a {} ping", "mysql -ubob -p{} db", "rclone config create r s3 secret_access_key {}"),
    "logging": ("[INFO] DB_PASS = {}", "2026-01-02 03:04:05 config.auth_token={}", "(Worker pid=7) api_secret: {}"),
    "arrow": ("password => {}", "'db_pass' => '{}',", "setting smtp_password to '{}'"),
    "xml": ("<password>{}</password>", '<property name="db.password" value="{}"/>', "<apiToken>{}</apiToken>"),
    "hydra": ("python t.py ++wandb.api_key={}", "python t.py +trainer.hub_token={}", "python t.py logger.auth.password={}"),
}

LOOKALIKES: tuple[str, ...] = (
    "max_tokens 4096", "--max-tokens 4096", "max_new_tokens: 512", "max_tokens=16384", "--tokenizer-path /models/llama", "--tokenizer /x/y",
    "tokenizer: Qwen/Qwen2.5-7B", "num_key_value_heads: 8", '"num_key_value_heads": 8,', "num_key_value_heads=8", "balance_dp_token: True",
    "balance_dp_token=False", "trainer.balance_dp_token=True", "pad_token_id: 151643", "pad_token_id=0", "eos_token_id: [151645, 151643]",
    "bos_token='<s>'", "pad_token: <|endoftext|>", '"eos_token": "<|im_end|>"', "unk_token=None", "--pass-through", "--pass-through yes",
    "pass: 12, fail: 3", "tests passed", "12 passed, 3 failed in 4.2s", "pass: 3", "passes: 4", 'os.environ["HF_TOKEN"]',
    "os.environ['WANDB_API_KEY'] is not set", 'token = os.environ["HF_TOKEN"]', "password = os.getenv('DB_PASSWORD')",
    "api_key=os.environ.get('OPENAI_API_KEY')", "KeyError: 'HF_TOKEN'", "wandb: commit 3f786850e387550fdaab7a2dc5c3e9e6a1f4b0c7",
    "git sha 89e6c98d92887913cadf06b2adb97f26cde4849b", "run id: 3kx9w2ab", "wandb: Run page https://wandb.ai/t/p/runs/3kx9w2ab",
    "loss=0.123 lr=1e-5 step=12", "tokens_per_second=1234.5", "tokens/s: 4521", "prompt_tokens=12 completion_tokens=40",
    "total_tokens: 1234567", "token usage: 0.91", "#token: 1024, #queue-req: 3", "num_tokens=4096", "max_num_batched_tokens=8192",
    "--max-num-batched-tokens 8192", "per_token_loss: 0.5", "token_level_scores: tensor([0.1])", "loss_agg_mode: token-mean",
    "loss_agg_mode=token-mean", "key: actor.lr", "key=loss value=0.2", "key_padding_mask=None", "sort_key=name", "primary_key: id",
    "foreign_key: user_id", "key_layer: 12", "cache_key=abc123", "KeyError: 'key'", "secret: null", "password: null", "password=None",
    "token=None", "hub_token=None", "use_auth_token=True", "use_auth_token: false", "auth: none", "auth=False", "password: ''",
    'password=""', "PASSWORD=", "api_key: ${API_KEY}", "password: $DB_PASSWORD", "--token $HF_TOKEN", "--api-key ${KEY}",
    "password: [redacted]", "password: ********", "token: <your token>", "api_key=EMPTY", "--api-key EMPTY", "author: Jane Doe",
    "authors=3", "authority=db", "authenticated as bob", "authorization failed for user bob", "auth failed: permission denied",
    "Password authentication failed for user bob", "password is required", "password is not set", "the password is wrong",
    "Invalid token at line 3", "invalid token '}' in JSON", "SyntaxError: unexpected token ':'", "unexpected token: end of file",
    "token 17 of 4096", "token expired", "secret not found", "secrets: []", "secretName: hf-token", "secretKeyRef:",
    "passwordless ssh is set up", "pass 1 of 3", "pass_rate=0.93", "pass@1: 0.42", "pass@k=8", "pass_through: true", "first pass: 12 ms",
    "forward pass: 120 ms", "backward pass=0.33s", "bypass: True", "compass: north", "passenger: 3", "PWD=/home/bob/job",
    "OLDPWD=/home/bob", "pwd: /workspace", "cwd=/x pwd=/y", "key_file=/etc/ssl/k.pem", "--ssl-keyfile /etc/k.pem", "token_file: /run/t",
    "--token-file /run/secrets/t", "password_file=/run/p", "pass_manager: inductor", "PassManager::run", "monkey: 1", "turnkey=yes",
    "hotkey: ctrl", "dispatch_key=CUDA", "DispatchKey: CPU", "key=value", "x_key: 12", "group_key=rank0", "shuffle_key: 7",
    "rng_key=[0, 42]", "prng_key: 3", "image_token_id=32000", "num_image_tokens: 576", "special_tokens_map.json", "add_bos_token: false",
    "token_embedding: (50257, 768)", "cls_token: [1, 1, 768]", "mask_token='[MASK]'", "stop_token_ids: []", "ignore_pad_token_for_loss=True",
    "credential helper: store", "credentials not found", "Permission denied (publickey,password).", "useradd bob", "mkdir -p /data/x",
    "docker run -p 8080:80 img", "rsync -a src dst", "tar -p -xf a.tar", "ssh -p 22 host", "python -u train.py", "nvcc -keep -Xptxas -v",
    "auth_type=basic", "auth_method: token", "token_type=bearer", "secret_name: hf", "--auth-method oidc", "password_encryption = scram-sha-256",
)


class Named(NamedTuple):
    """A planted secret: the row that holds it, the secret itself, and its kind."""

    kind: str
    text: str
    secret: str


def secrets() -> list[Named]:
    """Fill each row in with one of the values, in turn."""
    rows = [(kind, row) for kind, rows in KINDS.items() for row in rows]
    return [Named(kind, row.format(VALUES[at % len(VALUES)]), VALUES[at % len(VALUES)]) for at, (kind, row) in enumerate(rows)]
