"""A client asks where the job's own server listens, and a server that the job starts is not to be started."""

from __future__ import annotations

from service.patching.patches import ConfigFile
from service.pipeline.triage import Triage
from tests.tables import each_row
from tests.warm import explained

LOG = """Traceback (most recent call last):
  File "/w/grpo.py", line 30, in <module>
    trainer = GRPOTrainer(
  File "/usr/lib/python3.10/site-packages/trl/trainer/grpo_trainer.py", line 635, in __init__
    self.vllm_client = VLLMClient(base_url=base_url, connection_timeout=args.vllm_server_timeout)
  File "/usr/lib/python3.10/site-packages/trl/extras/vllm_client.py", line 151, in check_server
    raise ConnectionError(
requests.exceptions.ConnectionError: HTTPConnectionPool(host='127.0.0.1', port={asked}): Max retries exceeded
ConnectionError: The vLLM server can't be reached at http://127.0.0.1:{asked} after 240 seconds. Make sure \
the server is running by running `trl vllm-serve`.
"""
SERVE = "trl vllm-serve --model /m --port {served} &\naccelerate launch grpo.py --config grpo.yaml\n"
FILE = "model_name_or_path: /m\nuse_vllm: true\nvllm_mode: server\nnum_generations: 4\nbeta: 0.1\n"


@each_row(
    ("asked", "served", "file", "row"),
    [
        (8000, 9100, FILE, "+vllm_server_port: 9100"),
        (7777, 9100, FILE + "vllm_server_port: 7777\n", "+vllm_server_port: 9100"),
        # It listens where it is asked, or the port that was asked is from elsewhere.
        (8000, 8000, FILE, ""),
        (7777, 9100, FILE, ""),
    ],
)
def test_that_the_client_s_port_is_the_server_s(
    triage: Triage, asked: int, served: int, file: str, row: str
) -> None:
    given = ConfigFile("run.sh", SERVE.format(served=served)), ConfigFile("grpo.yaml", file)
    made = explained(triage, LOG.format(asked=asked), *given)
    rows = [each for each in (made.patch or "").split("\n") if each.startswith("+") and "+++" not in each]
    assert rows == ([row] if row else [])
    assert not any(change.key.startswith("trl vllm-serve") for change in made.changes)


def test_that_a_server_which_nobody_starts_is_to_be_started(triage: Triage) -> None:
    made = explained(triage, LOG.format(asked=8000), ConfigFile("grpo.yaml", FILE))
    assert any(change.key.startswith("trl vllm-serve") for change in made.changes)
