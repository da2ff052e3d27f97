"""A real server that nobody here wrote (`transformers serve`), with a tiny model of random weights made
here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from service.llm.chain import explain_with_model
from service.llm.conversation import Conversation, Turn
from service.llm.models import ChatMessage, open_model, open_models
from service.llm.stages import FinalStage, TextStage
from service.llm.triage_context import TriageContext
from service.pipeline.triage import Triage
from service.settings import Settings
from tests.ports import free_port
from tests.service.llm.answering import OFFLOAD, asked
from tests.waiting import PATIENCE

NEEDED = ("transformers", "torch", "accelerate", "fastapi", "uvicorn", "openai", "langchain_openai")
MISSING = [name for name in NEEDED if find_spec(name) is None]
STARTED_WITHIN = PATIENCE
# The tiny model reads so many tokens at most; one token in so many ends its answer.
CONTEXT, ENDS = 65_536, 40

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(MISSING), reason=f"transformers' server needs {', '.join(MISSING)}"),
]

_MAKE = f"""
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
import torch
torch.manual_seed(7)
raw = Tokenizer(models.BPE())
raw.pre_tokenizer, raw.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
raw.train_from_iterator(
    [open(sys.argv[2]).read()],
    trainers.BpeTrainer(vocab_size=600, special_tokens=["<s>", "</s>"], show_progress=False,
                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token="<s>", eos_token="</s>")
tokenizer.chat_template = (
    "{{% for message in messages %}}{{{{ message['role'] }}}}: {{{{ message['content'] }}}}\\n{{% endfor %}}"
    "assistant: ")
config = LlamaConfig(vocab_size=raw.get_vocab_size(), hidden_size=16, intermediate_size=32,
                     num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                     max_position_embeddings={CONTEXT}, bos_token_id=0, eos_token_id=1)
model = LlamaForCausalLM(config)
# The server lets a model write a thousand tokens; one that has many ends stops sooner.
model.generation_config.eos_token_id = list(range(1, raw.get_vocab_size(), {ENDS}))
model.generation_config.do_sample = True
model.save_pretrained(sys.argv[1])
tokenizer.save_pretrained(sys.argv[1])
"""


def _surroundings(folder: Path) -> dict[str, str]:
    """Give an environment in which nothing is looked up on a network."""
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HOME": str(folder / "hub"),
        "CUDA_VISIBLE_DEVICES": "",
    }


def _awaited(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < until:
        if server.poll() is not None:
            pytest.fail(f"the server ended: {log.read_text(errors='replace')[-1500:]}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2) as answer:  # noqa: S310 - the address is our own
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    pytest.fail(f"the server did not start: {log.read_text(errors='replace')[-1500:]}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Make the model, serve it, and give the settings that reach it."""
    folder = tmp_path_factory.mktemp("tiny")
    model, log, port = folder / "model", folder / "server.log", free_port()
    subprocess.run(
        [sys.executable, "-c", _MAKE, str(model), __file__],
        check=True,
        env=_surroundings(folder),
        capture_output=True,
        timeout=PATIENCE,
    )
    command = [
        str(Path(sys.executable).with_name("transformers")),
        "serve",
        str(model),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--device",
        "cpu",
    ]
    with log.open("wb") as stream:
        server = subprocess.Popen(command, env=_surroundings(folder), stdout=stream, stderr=stream)
    try:
        _awaited(f"http://127.0.0.1:{port}", server, log)
        yield Settings(
            model=f"openai:{model}",
            model_base_url=f"http://127.0.0.1:{port}/v1",
            model_deadline=60.0,
            model_tokens=2500,
        )
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE)


@pytest.fixture(scope="module")
def triage_context(triage: Triage) -> TriageContext:
    """Open a labelled incident."""
    return asked(triage, OFFLOAD)


def test_the_server_answers_the_seam(served: Settings) -> None:
    """The same client that speaks to the scripted server streams from this one, with and without a schema."""
    model = open_model(served)
    assert model is not None
    pieces = list(model.stream([ChatMessage("user", "hello")], None))
    assert "".join(piece.text for piece in pieces)


def test_nonsense_never_reaches_the_user_as_fact(
    served: Settings, triage: Triage, triage_context: TriageContext
) -> None:
    """Random weights write random letters: the first answer stands whole, and the engine says why."""
    model = open_model(served)
    assert model is not None
    stages = list(explain_with_model(triage_context, model, served.model_deadline, served.model_tokens))
    final = stages[-1]
    assert isinstance(final, FinalStage)
    assert [stage for stage in stages if isinstance(stage, TextStage)] == []
    plain: dict[str, Any] = {"engine": None, "timings_ms": {}}
    assert final.diagnosis.model_copy(update=plain) == triage_context.first.model_copy(update=plain)
    assert final.diagnosis.engine.name == "composer"
    assert (
        "form that was asked for" in final.diagnosis.engine.note
        or "empty answer" in final.diagnosis.engine.note
    )
    assert final.diagnosis.engine.tokens is not None
    assert final.diagnosis.engine.tokens.received > 0


def test_a_question_to_it_is_answered_without_it(
    served: Settings, triage: Triage, triage_context: TriageContext
) -> None:
    """A conversation too falls back to what is known."""
    talk = Conversation(
        triage_context, lambda _words: [], open_models(served), served.model_deadline, served.model_tokens
    )
    *_, turn = talk.ask("What does this cost in speed?")
    assert isinstance(turn, Turn)
    assert turn.engine.name == "composer"
    assert turn.engine.note
    assert json.dumps(turn.text)
