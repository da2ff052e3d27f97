"""Secrets and harmless texts as logs of training jobs show them: hubs, dumps of settings, commands,
addresses, people.

Beside `planted`, whose forms they are written in, too. `§` stands for the secret, and words in braces for
what is drawn.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from tests.ingest.redaction import planted
from tests.ingest.redaction.planted import ALNUM, BASE64, DIGITS, HEX, LOWER, WEB, Chance, Make, Planted

_DRAWN = re.compile(r"\{(n|uuid|hex|low|alnum|b)(\d*)\}")


class Shown(NamedTuple):
    """A text with `§` where a secret is, and how one is made."""

    text: str
    make: Make


def _after(prefix: str, letters: str, size: int, end: str = "") -> Make:
    return lambda chance: prefix + chance.text(letters, size) + end


def _any(letters: str, size: int, end: str = "") -> Make:
    return _after("", letters, size, end)


def _drawn(size: int) -> Make:
    return _any(ALNUM, size)


def _uuid(chance: Chance) -> str:
    return "-".join(chance.text(HEX, size) for size in (8, 4, 4, 4, 12))


def _jwt(chance: Chance) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    return f"{head}.{chance.text(WEB, 60)}.{chance.text(WEB, 43)}"


def _mobile(chance: Chance) -> str:
    return "1" + "3456789"[chance.number(7)] + chance.text(DIGITS, 9)


def _identity(chance: Chance) -> str:
    """Make a number with the check digit of GB 11643."""
    area, year = f"11010{1 + chance.number(8)}", f"19{50 + chance.number(49)}"
    digits = f"{area}{year}{1 + chance.number(12):02}{1 + chance.number(28):02}{chance.text(DIGITS, 3)}"
    return (
        digits + "10X98765432"[sum(int(digit) * 2 ** (17 - place) for place, digit in enumerate(digits)) % 11]
    )


def _pem(chance: Chance) -> str:
    rows = [
        "MIIEvQ" + chance.text(BASE64, 58),
        *(chance.text(BASE64, 64) for _ in range(6)),
        chance.text(BASE64, 22) + "==",
    ]
    return "\\n".join(["-----BEGIN PRIVATE" + " KEY-----", *rows, "-----END PRIVATE" + " KEY-----", ""])


SECRETS: tuple[Shown, ...] = (
    # devices of a network, and logins of clusters
    Shown("snmp-server community § RO", _drawn(14)),
    Shown("snmpwalk -v2c -c § 10.0.0.1 sysDescr", _drawn(14)),
    Shown("snmpget -v 2c -c § switch-7 1.3.6.1", _drawn(14)),
    Shown("snmp-server user admin grp v3 auth sha § priv aes 128 x", _drawn(16)),
    Shown("snmp-server user admin grp v3 auth sha x priv aes 128 §", _drawn(16)),
    Shown("cmdkey /add:srv /user:job /pass:§", _drawn(14)),
    Shown("rocommunity § 10.0.0.0/8", _drawn(14)),
    Shown("snmpwalk -v3 -u admin -A § -X otherthing switch-7", _drawn(14)),
    Shown("net use Z: \\\\srv\\data /user:corp\\job §", _drawn(14)),
    Shown("net use Z: \\\\srv\\data § /user:job", _drawn(14)),
    Shown("net user job § /add", _drawn(14)),
    Shown("ssh-keygen -t ed25519 -N § -f /root/.ssh/id", _drawn(14)),
    Shown("ssh-keygen -p -P § -N '' -f id", _drawn(14)),
    Shown("ssh-keygen -q -N '§' -f id", _drawn(14)),
    Shown("user/pass: job/§", _drawn(14)),
    Shown("login/password = admin/§", _drawn(14)),
    Shown("用户名/密码：admin/§", _drawn(14)),
    Shown("credentials: job/§ (rotate weekly)", _drawn(14)),
    Shown("munge key: §", _any(HEX, 64)),
    Shown("slurm munge.key §", _any(BASE64, 86, "==")),
    Shown("HF_TOKEN=\x00§", _drawn(34)),
    Shown("HF_TOKEN=x\x08§", _drawn(34)),
    Shown("PATH=/usr/bin\x00DB_PASSWORD=§\x00HOME=/root", _drawn(14)),
    Shown("code_verifier=§", _drawn(43)),
    Shown("client_assertion=§", _drawn(40)),
    Shown('"private_key_id": "§",', _any(HEX, 40)),
    Shown('hf_token: Some(\n        "§",\n    ),', _drawn(34)),
    Shown("radius-server key §", _drawn(14)),
    Shown("enable secret 5 §", _drawn(22)),
    Shown("tacacs-server host 10.0.0.1 key §", _drawn(14)),
    Shown("wpa_passphrase=§", _drawn(14)),
    Shown("psk=§", _drawn(20)),
    Shown("ipmitool -H bmc7 -U admin -a -P'§' sol activate", _drawn(14)),
    # hubs and models
    Shown("wandb login local-§", _any(HEX, 40)),
    Shown('ark = Ark(api_key="§")', _uuid),
    Shown("ARK_API_KEY=§", _uuid),
    Shown("auth = oss2.Auth('LTAI5tExample', '§')", _drawn(30)),
    Shown("CosConfig(Region='ap-guangzhou', SecretId=sid, SecretKey='§')", _drawn(32)),
    Shown('cred = credential.Credential("AKIDz8", "§")', _drawn(32)),
    Shown("VOLC_SECRETKEY=§", _any(BASE64, 58, "==")),
    Shown("mox.file.set_auth(ak='abc', sk='§')", _drawn(40)),
    Shown("obs_client = ObsClient(access_key_id='A', secret_access_key='§', server=s)", _drawn(40)),
    Shown("QIANFAN_AK=§", _drawn(24)),
    Shown("AISTUDIO_ACCESS_TOKEN=§", _any(HEX, 40)),
    Shown("MODELSCOPE_SDK_TOKEN=§", _uuid),
    Shown("HubApi().login('§')", _uuid),
    Shown("mybucket:LTAI5tExampleId:§", _drawn(30)),
    Shown("experiment = comet_ml.Experiment(\"§\", project_name='x')", _drawn(25)),
    Shown('swanlab.login("§")', _drawn(21)),
    Shown('neptune.init_run(api_token="§")', _drawn(120)),
    Shown("    wandb_key ............................ §", _any(HEX, 40)),
    Shown("  api_key ......................................... §", _drawn(32)),
    Shown("Namespace(lr=1e-5, wandb_key='§', hf_key=None)", _drawn(32)),
    Shown("TrainingArguments(hub_token='§', lr=1e-5)", _drawn(37)),
    Shown("--wandb_key §", _drawn(40)),
    Shown("--openai_key=§", _drawn(40)),
    Shown("wandb:\n  key: §\n  project: grpo", _any(HEX, 40)),
    Shown("wandb: {'key': '§'}", _drawn(40)),
    Shown("judge:\n  api_keys:\n    - §\n    - EMPTY", _drawn(32)),
    Shown("api_keys=['EMPTY', '§']", _drawn(32)),
    Shown('"keys": ["§"], "provider": "moonshot"', _after("s" + "k-", ALNUM, 48)),
    Shown("openai.api_key = '§'", _drawn(48)),
    Shown("MISTRAL_API_KEY=§", _drawn(32)),
    Shown('client = OpenAI(api_key = "§")', _drawn(32)),
    Shown("x-api-key: §", _drawn(40)),
    Shown("api-key: §", _any(HEX, 32)),
    Shown('"Authorization": "Bearer §"', _drawn(40)),
    Shown("Authorization: GenieKey §", _uuid),
    Shown("litellm master_key: §", _after("s" + "k-", ALNUM, 20)),
    Shown("Using LLM judge with key=§", _after("s" + "k-", ALNUM, 48)),
    Shown("dashscope.api_key=§", _after("s" + "k-", HEX, 32)),
    Shown("zhipuai.api_key = '§'", lambda chance: chance.text(HEX, 32) + "." + chance.text(ALNUM, 16)),
    Shown("minimax group_id=1 key §", _jwt),
    Shown("HUGGING_FACE_HUB_TOKEN='§'", _drawn(34)),
    # dumps
    Shown('"Env": ["PATH=/bin", "TRACKER_SECRET=§"]', _drawn(24)),
    Shown("      DB_PASS:  §", _drawn(14)),
    Shown("env vars: {'WANDB_KEY': '§', 'NCCL_DEBUG': 'INFO'}", _drawn(40)),
    Shown("runtime_env={'env_vars': {'DASHSCOPE_API_KEY': '§'}}", _drawn(32)),
    Shown('{\\"env_vars\\": {\\"S3_SECRET\\": \\"§\\"}}', _drawn(32)),
    Shown("kubectl set env deploy/x MINIO_ROOT_PASSWORD=§", _drawn(14)),
    Shown("docker build --build-arg HF_TOKEN=§ .", _drawn(34)),
    Shown("Config(db_password='§', db_user='x')", _drawn(14)),
    Shown("smtp_pass='§'", _drawn(14)),
    Shown("ServerArgs(api_key='§', port=1)", _drawn(32)),
    Shown("password=SecretStr('§')", _drawn(14)),
    Shown("{'password': Secret('§')}", _drawn(14)),
    Shown("dsn: host=db user=job password='§' port=5432", _drawn(14)),
    Shown("export PASSWORD=$'§'", _drawn(14)),
    Shown('export API_TOKEN="§" # rotate', _drawn(30)),
    Shown("I1120 10:00:00 flags.py:12] --redis_password=§", _drawn(14)),
    Shown("│ api_key    │ §  │", _drawn(32)),
    Shown("| password | § |", _drawn(14)),
    Shown("password     §", _drawn(14)),
    Shown("api_key                §", _drawn(32)),
    Shown("(api_key: str = '§')", _drawn(32)),
    # curl and friends
    Shown("curl -H 'X-Token: §' https://x.example.com", _drawn(32)),
    Shown("curl --oauth2-bearer § https://x.example.com", _drawn(40)),
    Shown('curl -H "token: §" https://x.example.com', _drawn(32)),
    Shown("http --auth job:§ GET x.example.com", _drawn(14)),
    Shown("wget --header='Authorization: Bearer §' https://x.example.com", _drawn(40)),
    Shown('curl -d \'{"username":"a","password":"§"}\' https://x.example.com', _drawn(14)),
    Shown("curl -F 'apikey=§' https://x.example.com", _drawn(32)),
    Shown("curl -u :§ https://x.example.com", _drawn(32)),
    Shown("curl -u §: https://x.example.com", _drawn(32)),
    # signed URLs
    Shown(
        "https://b.oss-cn-beijing.aliyuncs.com/k?x-oss-signature-version=OSS4&x-oss-signature=§&x-oss-date=1",
        _any(HEX, 64),
    ),
    Shown("https://b.cos.ap-x.myqcloud.com/k?q-sign-algorithm=sha1&q-ak=A&q-signature=§", _any(HEX, 40)),
    Shown(
        "https://cdn-lfs.huggingface.co/repos/a?Expires=1&Policy=x&Signature=§&Key-Pair-Id=K1",
        _any(ALNUM + "~-_", 120),
    ),
    Shown(
        "https://b.bj.bcebos.com/k?authorization=bce-auth-v1%2Fabc%2F2026-01-01T00%3A00%3A00Z%2F1800%2Fhost%2F§",
        _any(HEX, 64),
    ),
    Shown("https://b.obs.cn-north-4.myhuaweicloud.com/k?AccessKeyId=A&Expires=1&Signature=§", _drawn(27)),
    Shown("https://x.s3.amazonaws.com/k?AWSAccessKeyId=A&Signature=§%3D&Expires=1", _drawn(27)),
    Shown("https://api.example.com/v1/files?apikey=§", _drawn(32)),
    Shown("wss://x.example.com/ws?access_token=§", _drawn(40)),
    Shown("https://oapi.dingtalk.com/robot/send?access_token=x&timestamp=1&sign=§%3D", _drawn(43)),
    Shown("?x-cos-security-token=§", _drawn(80)),
    # git and pip
    Shown("origin\thttps://job:§@git.example.com/x.git (fetch)", _drawn(20)),
    Shown("git -c http.extraHeader='PRIVATE-TOKEN: §' fetch", _drawn(20)),
    Shown("Looking in indexes: https://__token__:§@pypi.example.com/simple", _drawn(30)),
    Shown("UV_INDEX_CORP_PASSWORD=§", _drawn(14)),
    Shown("poetry config http-basic.corp job §", _drawn(16)),
    Shown("twine upload -u job -p § dist/*", _drawn(16)),
    Shown("https://org:§@dev.azure.com/org/_git/x", _drawn(52)),
    # kube and docker
    Shown(
        ".dockerconfigjson: §",
        lambda chance: base64.b64encode(
            json.dumps({"auths": {"r": {"auth": chance.text(ALNUM, 30)}}}).encode()
        ).decode(),
    ),
    Shown('"identitytoken": "§"', _drawn(40)),
    Shown("kubectl config set-credentials job --token=§", _drawn(40)),
    Shown("    token: §", _jwt),
    Shown("crictl pull --creds job:§ r.example.com/x", _drawn(14)),
    Shown("skopeo copy --src-creds=job:§ docker://a dir:b", _drawn(14)),
    Shown("ctr image pull -u job:§ r.example.com/x", _drawn(14)),
    Shown("echo § | base64 -d | docker login --password-stdin", _drawn(20)),
    Shown(
        "bootstrapToken: §",
        lambda chance: chance.text(LOWER + DIGITS, 6) + "." + chance.text(LOWER + DIGITS, 16),
    ),
    # databases
    Shown("jdbc:oracle:thin:scott/§@//db:1521/orcl", _drawn(14)),
    Shown("sqlplus job/§@orcl", _drawn(14)),
    Shown("redis://10.0.0.4:6379/0?password=§", _drawn(14)),
    Shown("mongodb://job:§@m1:27017,m2:27017/runs?replicaSet=r", _drawn(14)),
    Shown('sasl.jaas.config=PlainLoginModule required username="job" password="§";', _drawn(14)),
    Shown("MilvusClient(uri='http://m', token='root:§')", _drawn(14)),
    Shown("Minio('m:9000', 'minioadmin', '§')", _drawn(20)),
    Shown("amqps://job:§@mq/%2f", _drawn(14)),
    Shown("client = weaviate.Client(auth=AuthApiKey('§'))", _drawn(36)),
    Shown("nats://§@nats:4222", _drawn(32)),
    Shown('psql "dbname=x password=§"', _drawn(14)),
    Shown("mount -t ceph m:/ /mnt -o name=job,secret=§", _after("A" + "Q", BASE64, 36, "==")),
    Shown("\tkey = §", _after("A" + "Q", BASE64, 36, "==")),
    # notebooks and tools
    Shown("jupyter lab --NotebookApp.token=§", _drawn(20)),
    Shown("--IdentityProvider.token='§'", _drawn(20)),
    Shown("c.ServerApp.token = '§'", _drawn(20)),
    Shown("code-server --password §", _drawn(14)),
    Shown(
        "ngrok config add-authtoken §", lambda chance: chance.text(ALNUM, 27) + "_" + chance.text(ALNUM, 21)
    ),
    Shown("demo.launch(auth=('admin', '§'))", _drawn(14)),
    Shown("code tunnel --connection-token §", _drawn(36)),
    Shown("printf '§\\n' | sudo -S apt install x", _drawn(14)),
    Shown("sudo -S true <<< §", _drawn(14)),
    Shown("echo '§' | kinit job@EXAMPLE.ORG", _drawn(14)),
    Shown("openssl enc -aes-256-cbc -k § -in x", _drawn(14)),
    Shown("rclone config create r s3 secret_access_key=§", _drawn(40)),
    Shown('expect: send "§\\r" after password prompt', _drawn(14)),
    Shown("ansible-playbook -e ansible_become_password=§ x.yml", _drawn(14)),
    # keys
    Shown('{"private_key": "§"}', _pem),
    Shown("SSH_PRIVATE_KEY='§'", _pem),
    Shown("deploy key: §", _pem),
    # cookies and hooks
    Shown("Cookie: _xsrf=2|a|b; username-localhost-8888=§", _drawn(60)),
    Shown("grafana_session=§", _any(HEX, 32)),
    Shown("<Cookie session=§ for x.example.com/>", _drawn(32)),
    Shown(
        "https://api.telegram.org/bot§/sendMessage",
        lambda chance: chance.text("123456789", 10) + ":AA" + chance.text(WEB, 33),
    ),
    Shown("http://www.pushplus.plus/send?token=§", _any(HEX, 32)),
    Shown("https://api.day.app/§/job+died", _drawn(22)),
    Shown("https://hooks.zapier.com/hooks/catch/123456/§/", _drawn(7)),
    Shown("https://mm.example.com/hooks/§", _any(LOWER + DIGITS, 26)),
    Shown("https://hc-ping.com/§", _uuid),
    Shown("DINGTALK_SECRET=§", _after("SE" + "C", HEX, 64)),
    Shown("secret: §", _after("SE" + "C", HEX, 64)),
    Shown("https://maker.ifttt.com/trigger/x/with/key/§", _drawn(22)),
    Shown("routing_key: §", _any(HEX, 32)),
    Shown(
        "https://prod-12.westus.logic.azure.com/workflows/a/triggers/manual/paths/invoke?sp=x&sv=1.0&sig=§",
        _drawn(43),
    ),
    # people
    Shown("联系电话：§", _mobile),
    Shown("手机号 §", _mobile),
    Shown("phone: +86 §", _mobile),
    Shown('"mobile": "§"', _mobile),
    Shown("运维值班 张三 +86-§", _mobile),
    Shown("身份证号：§", _identity),
    Shown("id_card=§", _identity),
    Shown("user 张三 §", _identity),
    Shown("#SBATCH --mail-user=§@pku.edu.cn", _any(LOWER, 9)),
    Shown("Author: Zhang San <§@qq.com>", _any(DIGITS, 10)),
    Shown("负责人邮箱 §@corp.top", _any(LOWER, 9)),
    # Chinese names
    Shown("密码: §", _drawn(14)),
    Shown("令牌=§", _drawn(32)),
    Shown("密钥：§", _drawn(32)),
    Shown("访问密钥为 §", _drawn(32)),
    Shown("授权码：§", _drawn(16)),
    Shown('接口密钥 = "§"', _drawn(32)),
    Shown("初始口令 §", _drawn(14)),
    Shown("【密码】§", _drawn(14)),
    Shown("密码是：§", _drawn(14)),
    Shown("新密码已重置为 §", _drawn(14)),
    Shown("私钥：§", _drawn(40)),
    Shown("凭证：§", _drawn(32)),
    Shown("账号：admin 密码：§ 请及时修改", _drawn(14)),
    Shown("密码（初始）：§", _drawn(14)),
    Shown("验证码：§", _any(DIGITS, 6)),
    Shown("鉴权 token：§", _drawn(32)),
    Shown("パスワード: §", _drawn(14)),
    Shown("пароль: §", _drawn(14)),
    Shown("비밀번호: §", _drawn(14)),
    Shown("Passwort: §", _drawn(14)),
)
HARMLESS: tuple[str, ...] = (
    # git, ids, digests
    "HEAD detached at {hex7}",
    "Merge commit '{hex40}' into main",
    "{hex40} refs/heads/main",
    "submodule path 'third_party/cutlass': checked out '{hex40}'",
    "Cloning into '/root/verl'... {hex12}",
    "git_commit={hex40} dirty=False",
    "raysubmit_{alnum16} succeeded",
    "ActorHandle(WorkerDict, {hex32})",
    "task_id={hex56} attempt=0",
    "ObjectRef({hex56}) is lost",
    "lease_id={hex56} worker_id={hex56}",
    "raylet session_2026-03-01_10-00-00_123456_{n}",
    "job_id={hex8} namespace={uuid}",
    "PlacementGroupID({hex36})",
    "MLFLOW_RUN_ID={hex32}",
    "mlflow run {hex32} finished",
    "wandb run path team/proj/{low8}",
    "WANDB_RUN_ID={low8}",
    "swanlab run id {low21}",
    "clearml task id={hex32}",
    "ClearML Task: created new task id={hex32}",
    "comet experiment https://www.comet.com/team/proj/{hex32}",
    "neptune run PROJ-{n}",
    "trace_id={hex32} span_id={hex16}",
    "traceparent: 00-{hex32}-{hex16}-01",
    "sha256:{hex64}: digest mismatch",
    "blob sha256:{hex64} pulled",
    "md5sum {hex32}  shard-00001.parquet",
    "etag: {hex32}-{n}",
    "X-Amz-Cf-Id: {b43}",
    "x-amz-request-id: 7VG3ZK{n}",
    "x-oss-request-id: 66B{hex16}",
    "checksum crc32c=0x{hex8}",
    "xxh64:{hex16}",
    "image id {hex12}",
    "--discovery-token-ca-cert-hash sha256:{hex64}",
    "ncclUniqueId 0x{hex16}",
    "NCCL INFO init.cc:1655 commId 0x{hex16} rank 3 nranks 8",
    "NCCL INFO comm 0x{hex12} rank 0",
    "NET/IB : GID fe80:0000:0000:0000:{hex4}:{hex4}",
    "GPU-{uuid} Xid 79",
    "UUID: GPU-{uuid}",
    "nvlink 0x{hex8} {n}",
    "mlx5_0 guid 0x{hex16}",
    # tokens of models
    "max_tokens={n} min_tokens=0",
    "max_completion_tokens: {n}",
    "prompt_tokens={n} completion_tokens={n} total_tokens={n}",
    "'usage': {'prompt_tokens': {n}, 'completion_tokens': {n}}",
    "num_input_tokens_seen={n}",
    "tokens/s: {n}.{n}",
    "tok/s {n}",
    "throughput_tokens_per_sec_per_gpu: {n}.5",
    "pad_token_id={n} eos_token_id=[{n}, {n}]",
    "stop_token_ids=[{n}, {n}]",
    "bad_words_token_ids=None",
    "image_token_index={n}",
    "image_token_id: {n}",
    "video_token_id: {n}",
    "vision_start_token_id={n}",
    "forced_bos_token_id=None",
    "suppress_tokens=[1, 2, 7, 8, 9]",
    "additional_special_tokens=['<|image_pad|>', '<|video_pad|>', '<|object_ref_start|>']",
    "tokenizer.pad_token='<|endoftext|>'",
    "eos_token='<|im_end|>' pad_token='<|endoftext|>' unk_token='<unk>'",
    "bos_token: <|begin_of_text|>",
    "Setting pad_token to eos_token: </s>",
    "chat_template.jinja uses eos_token",
    "tokenizer_config.json: tokenizer_class=LlamaTokenizerFast",
    "token_type_ids shape torch.Size([8, {n}])",
    "token_classification_head",
    "TokenizersBackend Qwen2TokenizerFast(name_or_path='/models/qwen', vocab_size={n})",
    "special token ids: {n}-{n}",
    "added_tokens_decoder={{n}: AddedToken('<|im_start|>')}",
    "max_num_batched_tokens: {n}",
    "num_tokens_pre_allocated={n}",
    "spec_token_num=4",
    "token_budget={n}",
    "per_token_kl: 0.{n}",
    "token-level loss: 0.{n}",
    "tokens_per_second_per_gpu ........ {n}.25",
    "  total_tokens    {n}",
    "| avg_tokens | {n}.5 |",
    "image_tokens .................. {n}",
    "token_dispatcher_type ................ alltoall",
    "moe_token_dispatcher_type ....................... allgather_v2",
    "  tokenizer_type .................................. HuggingFaceTokenizer2",
    "  moe_token_drop_policy ........................... probs_v1",
    "  vocab_size_with_padding ......................... {n}",
    # keys of state dicts and data
    'Missing key(s) in state_dict: "model.layers.{n}.self_attn.q_proj.weight"',
    'Unexpected key(s) in state_dict: "lm_head.weight_{n}"',
    "size mismatch for key model.embed_tokens.weight: torch.Size([{n}, 4096])",
    "KeyError: 'actor_rollout_ref.rollout.n'",
    "key=global_step_{n}/actor/optim_world_size_8_rank_0.pt",
    "reward_fn_key=data_source",
    "prompt_key: prompt",
    "'image_key': 'images', 'video_key': 'videos'",
    "apply_query_key_layer_scaling ................... False",
    "  query_key_layer_scaling        disabled_v2",
    "key_value_heads=8 num_key_value_heads={n}",
    "primary_key: sample_{n}",
    "sort_keys=True keyfunc=len",
    "s3_key=checkpoints/step_{n}/model.safetensors",
    "object key: datasets/train-{n}-of-00128.parquet",
    "cache_key={hex64}",
    "lookup key {hex32} hit",
    "kv key hash {hex16}",
    "hash_key = '{hex16}'",
    "keys: ['input_ids', 'attention_mask', 'position_ids']",
    "dict_keys(['pixel_values', 'image_grid_thw'])",
    'batch_keys=["input_ids", "responses", "old_log_probs"]',
    "non_tensor_batch_keys=['raw_prompt_ids', 'tools_kwargs']",
    "keyed by uid {uuid}",
    "partition_key=2026-03-0{n}",
    # words of secrets without any
    "Enter passphrase (empty for no passphrase):",
    "Password:",
    "password for job@EXAMPLE.ORG:",
    'password authentication failed for user "job"',
    "Permission denied (publickey,password).",
    "Please enter your API key:",
    "api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
    "wandb: Appending key for api.wandb.ai to your netrc file: /root/.netrc",
    "HF_TOKEN environment variable is set; it will be used",
    "Invalid user token. The token from HF_TOKEN environment variable is invalid.",
    "401 Client Error: Unauthorized for url: https://huggingface.co/api/whoami-v2",
    "token expired at 2026-03-01T10:00:00Z",
    "token bucket refilled: {n}",
    "ray token auth mode k8s",
    "secret 'regcred' not found in namespace ml-team",
    "imagePullSecrets:\n- name: regcred-v2",
    "secretName: wandb-secret-{n}",
    "valueFrom:\n  secretKeyRef:\n    name: hf-token\n    key: token",
    "envFrom:\n- secretRef:\n    name: train-env-{n}",
    "volumeMounts:\n- name: ssh-key\n  mountPath: /root/.ssh",
    "serviceAccountToken:\n  expirationSeconds: {n}",
    "automountServiceAccountToken: false",
    "--api-key $VLLM_API_KEY",
    "api_key: ${oc.env:OPENAI_API_KEY}",
    "api_key='EMPTY'",
    "api_keys=['EMPTY']",
    "api_key=['None']",
    "OPENAI_API_KEY=EMPTY",
    "hub_token=<HUB_TOKEN>",
    "push_to_hub_token=<PUSH_TO_HUB_TOKEN>",
    "Looking in indexes: https://pypi.org/simple, https://job:****@pypi.example.com/simple",
    "redis://:****@10.0.0.4:6379/0",
    "password=********",
    "SecretStr('**********') is set",
    "password_file: /run/secrets/db_{n}",
    "ssh-keygen -t ed25519 -f /root/.ssh/id_ed25519 -N ''",
    "Generating public/private ed25519 key pair.",
    "The key fingerprint is: SHA256:{b43} root@gpu-{n}",
    "ssh-rsa fingerprint SHA256:{b43}",
    "Host key verification failed.",
    'munge: Munge encode failed: Failed to access "/run/munge/munge.socket.2"',
    "snmpwalk timed out after 30s",
    "net use failed with exit code {n}",
    "sudo: a password is required",
    "echo ready | tee /tmp/flag_{n}",
    "passwd: files systemd",
    "login: timed out after 60 seconds",
    "user/pass: prompt",
    "docker run --user 1000:1000 image",
    "docker run -u 1000:1000 -it image",
    "curl -u $USER: https://x.example.com",
    # numbers that look like people's
    "number of parameters: 14770033664",
    "total memory 17179869184 bytes",
    "elapsed 15234567890 ns",
    "timestamp=1772359200123",
    "step_time_ns: 13812345678",
    "phone home disabled",
    "mobilenet_v2 top1 0.{n}",
    "telemetry: {n}",
    "telemetry=disabled id={n}",
    "id=110101190001010000",
    "run_id: 202603011000001234",
    "ns=177235920012345678",
    "card 0: NVIDIA H100 80GB",
    "card_no=3",
    "exitcode: {n}",
    "error code: {n}",
    "Exit Code: 137",
    "status_code=503",
    "verification code path: src/verify_{n}.py",
    # mails and addresses that are none
    "model@actor=qwen2",
    "user@10.0.0.{n}: Permission denied",
    "root@gpu-{n}:/workspace# nvidia-smi",
    "optimizer@adamw.v2",
    "pkg @ file:///tmp/wheels/flash_attn-2.7.4-cp311.whl",
    "vllm @ git+https://github.com/vllm-project/vllm.git@{hex40}",
    "npm WARN deprecated rimraf@3.0.2",
    "config@dataclass.field",
    "pass@8=0.512 maj@8=0.433 best@8/mean=0.6",
    # base64 and data
    "data:image/png;base64,{b64}",
    '"image_url": {"url": "data:image/jpeg;base64,{b64}"}',
    "b64 shard {b64}",
    "serialized plan {b64}",
    '"data": "{b64}"',
    "pickle hex 80049595{hex40}",
    # Chinese
    "训练总 token 数：{n}",
    "生成令牌数 = {n}",
    "最大令牌长度: {n}",
    "密码错误，请重试",
    "请输入密码：",
    "未设置密钥，使用默认配置",
    "密钥文件路径：/etc/keys/{n}.pem",
    "令牌已过期",
    "凭证无效，拒绝访问",
    "验证码错误",
    "手机端推理延迟 {n} ms",
    "参数量：14770033664",
    "显存占用：17179869184 字节",
    "电话会议模型 v{n}",
    "联系方式见内部文档",
    "私钥权限 0600 正确",
    "密码学库 openssl 3.0.{n}",
    "授权码模式 oauth2 已启用",
    "卡号 3 温度 {n}",
    "提交 {hex40} 已合并",
    "会话 {uuid} 已结束",
    "数据集键 train_{n} 缺失",
)


@cache
def secrets() -> list[Planted]:
    """Give each secret in each form that a row of a log may have."""
    forms: dict[str, Callable[[str], str]] = {
        **planted.FORMS_OF_ROWS,
        "english": lambda text: planted.english(text, 3),
        "chinese": lambda text: planted.chinese(text, 3),
        "coloured": lambda text: planted.colored(text, 3),
    }
    return [
        Planted("", form, written(shown.text.replace("§", secret)), _told(secret))
        for shown in SECRETS
        for form, written in forms.items()
        for secret in (shown.make(Chance(f"{shown.text} {form}")),)
    ]


def _told(secret: str) -> str:
    """Give what of a secret must not be seen: of a private key its rows, which an escaped line's end
    parts.
    """
    return "\n".join(secret.split("\\n")[1:-2]) if "BEGIN" in secret else secret


@cache
def lookalikes() -> list[str]:
    """Give the harmless texts, with what is drawn."""
    return [_DRAWN.sub(partial(_fill, Chance(f"job {number}")), text) for number, text in enumerate(HARMLESS)]


def _fill(chance: Chance, match: re.Match[str]) -> str:
    kind, size = match[1], int(match[2] or 0)
    if kind == "n":
        return str(1 + chance.number(99999))
    if kind == "uuid":
        return _uuid(chance)
    letters = {"hex": HEX, "low": LOWER + DIGITS, "alnum": ALNUM, "b": BASE64}[kind]
    return chance.text(letters, 118) + "==" if (kind, size) == ("b", 64) else chance.text(letters, size)
