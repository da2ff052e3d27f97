"""The tools for coding assistants, asked by the protocol's own client over the streams of a real process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from tests.factories import OOM, traceback, whole_corpus
from tests.ingest.redaction import planted
from tests.ui.shell import surroundings, whycrash
from tests.waiting import PATIENCE
from tests.warm import INCIDENTS, ROOT, script
from ui.mcp import skill

if TYPE_CHECKING:
    from mcp_types import CallToolResult

NAME = "w-easyr1-offload-host-ram"
LOG = INCIDENTS / NAME / "log.txt"
START = ("-c", "import sys; from ui.cli import mcp; sys.exit(mcp.run())")
Call = Callable[..., Any]


@contextmanager
def talking(home: Path, errors: Path) -> Iterator[Call]:
    """Start a server, and give what calls a method of a client to it."""
    # Imported here: they take a second, which every worker would spend on collecting the tests.
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(command=sys.executable, args=list(START), env=surroundings(home), cwd=ROOT)
    with ExitStack() as stack:
        log = stack.enter_context(errors.open("w", encoding="utf-8"))
        portal = stack.enter_context(start_blocking_portal())
        client = stack.enter_context(
            portal.wrap_async_context_manager(Client(stdio_client(server, errlog=log)))
        )
        yield lambda method, *given: portal.call(getattr(client, method), *given)


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the server writes besides the protocol."""
    return tmp_path_factory.mktemp("mcp") / "errors"


@pytest.fixture(scope="module")
def ask(warm: Path, errors: Path) -> Iterator[Call]:
    """A server that all tests ask."""
    with talking(warm, errors) as asked:
        yield asked


@pytest.fixture
def call(ask: Call) -> Callable[..., CallToolResult]:
    """Call a tool; gives its result."""

    def made(name: str, **arguments: Any) -> CallToolResult:
        result: CallToolResult = ask("call_tool", name, arguments)
        return result

    return made


def data(result: CallToolResult) -> dict[str, Any]:
    """Give a result's data."""
    assert not result.is_error, said(result)
    found: dict[str, Any] = result.structured_content
    return found


def said(result: CallToolResult) -> str:
    """Give a result's text."""
    return "\n".join(getattr(part, "text", "") for part in result.content)


def test_that_the_tools_say_what_they_take_give_and_do(ask: Call) -> None:
    tools = ask("list_tools").tools
    assert [tool.name for tool in tools] == [
        "triage_log",
        "follow_up",
        "search_cases",
        "show_case",
        "look_up_setting",
    ]
    for tool in tools:
        assert tool.annotations.read_only_hint is True
        assert tool.output_schema["type"] == "object"
        assert all(
            "description" in field or name == "count"
            for name, field in tool.input_schema["properties"].items()
        )


def test_that_a_session_triages_and_asks_on(call: Callable[..., CallToolResult], errors: Path) -> None:
    first = call("triage_log", paths=[str(LOG)], config_paths=[str(script(NAME))], lang="en")
    answer = data(first)
    turn = data(
        call(
            "follow_up", triage_id=answer["id"], question="we cannot switch offload_optimizer off, what else?"
        )
    )
    assert answer["cause"] == "cpu-offload-pressure"
    assert answer["evidence"][0]["line"] == 357
    assert answer["patch"].startswith("--- ")
    assert answer["headline"] in said(first)
    assert "from" in answer["changes"][0]
    assert turn["constraints"]
    assert turn["diagnosis"]["id"] == answer["id"]
    assert "offload_optimizer" not in [
        change["key"].rsplit(".", 1)[-1] for change in turn["diagnosis"]["changes"]
    ]
    assert errors.read_text(encoding="utf-8") == ""


def test_that_a_pasted_log_and_script_make_a_patch(call: Callable[..., CallToolResult]) -> None:
    log = f"(TaskRunner pid=7) verl 0.4.1\n{traceback(OOM)}"
    text = "python -m verl.trainer.main_ppo actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8\n"
    answer = data(call("triage_log", text=log, config_text=text, config_name="train.sh"))
    assert "train.sh" in answer["patch"]


def test_that_an_answer_can_be_chinese(call: Callable[..., CallToolResult]) -> None:
    assert any(
        "一" <= char <= "鿿" for char in data(call("triage_log", text=traceback(OOM), lang="zh"))["headline"]
    )


def test_that_a_search_finds_cases_that_can_be_shown(call: Callable[..., CallToolResult]) -> None:
    found = data(call("search_cases", words="NCCL watchdog timeout", count=3))["cases"]
    case = data(call("show_case", case_id=found[0]["id"]))
    assert len(found) == 3
    assert case["id"] == found[0]["id"]
    assert case["text"]
    assert case["sources"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"framework": "vllm", "key": "gpu_memory_utilization"}, {"exists": True, "type": "float"}),
        (
            {"framework": "vllm", "key": "--gpu-memory-utilization", "version": "0.8.2"},
            {"exists": True, "type": "float"},
        ),
        ({"framework": "vllm", "key": "gpu_memory_utilisation"}, {"exists": False, "type": ""}),
    ],
)
def test_that_a_setting_is_looked_up(
    call: Callable[..., CallToolResult], arguments: dict[str, str], expected: dict[str, Any]
) -> None:
    found = data(call("look_up_setting", **arguments))
    assert {name: found[name] for name in expected} == expected
    assert any(
        "gpu_memory_utilization" in name.replace("-", "_") for name in (*found["near"], *found["names"])
    )


def test_that_a_setting_of_other_versions_is_said_to_be_so(call: Callable[..., CallToolResult]) -> None:
    loaded = whole_corpus()
    spec = next(
        spec
        for spec in loaded.specs.values()
        if spec.versions.startswith("<") and not spec.aliases and not spec.read_by
    )
    found = data(call("look_up_setting", framework=spec.framework, key=spec.key, version="999.0"))
    assert (found["exists"], found["versions"]) == (False, spec.versions)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("triage_log", {}, "one of the two"),
        ("triage_log", {"text": "x", "paths": ["y"]}, "one of the two"),
        ("triage_log", {"paths": ["/nowhere/train.log"]}, "There is no file"),
        ("triage_log", {"text": "x", "config_paths": ["/nowhere/run.sh"]}, "There is no file"),
        ("triage_log", {"paths": ["/dev/zero"]}, "no job's output"),
        ("triage_log", {"paths": ["/dev/stdin"]}, "no job's output"),
        ("triage_log", {"paths": ["/proc/self/environ"]}, "no job's output"),
        ("triage_log", {"paths": ["/"]}, "no job's output"),
        ("triage_log", {"paths": ["~no-such-user-here/train.log"]}, "There is no file"),
        ("triage_log", {"text": "x", "config_paths": ["/proc/self/environ"]}, "no job's output"),
        ("triage_log", {"text": "x", "lang": "de"}, "lang"),
        (
            "follow_up",
            {"triage_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "question": "why?"},
            "call triage_log first",
        ),
        ("search_cases", {"words": " "}, "what to look for"),
        ("search_cases", {"words": "x", "count": 1000}, "count"),
        ("show_case", {"case_id": "verl/no-such"}, "No case"),
        ("look_up_setting", {"framework": "vlm", "key": "x"}, "did you mean"),
    ],
)
def test_that_an_error_says_what_to_do(
    call: Callable[..., CallToolResult], name: str, arguments: dict[str, Any], words: str
) -> None:
    result = call(name, **arguments)
    assert result.is_error
    assert words in said(result)
    assert "Traceback" not in said(result)


@pytest.mark.parametrize(
    ("name", "arguments", "meant"),
    [
        ("triage_log", {"path": "train.log"}, "did you mean `paths`?"),
        ("triage_log", {"log_text": "x"}, "did you mean `text`?"),
        ("triage_log", {"text": "x", "config_path": "run.sh"}, "did you mean `config_paths`?"),
        ("search_cases", {"query": "x"}, "It takes: words, count, lang."),
        ("look_up_setting", {"framework": "vllm", "key": "x", "versions": "1"}, "did you mean `version`?"),
    ],
)
def test_that_an_argument_that_no_tool_has_is_refused_with_the_right_name(
    call: Callable[..., CallToolResult], name: str, arguments: dict[str, Any], meant: str
) -> None:
    """It would be dropped in silence otherwise, and the answer would be to another question."""
    result = call(name, **arguments)
    assert result.is_error
    assert meant in said(result)


def test_that_the_schemas_say_that_there_are_no_other_arguments(ask: Call) -> None:
    assert all(tool.input_schema["additionalProperties"] is False for tool in ask("list_tools").tools)


def test_that_resources_tell_the_guide_the_causes_the_schema_and_cases(ask: Call) -> None:
    """What an assistant reads before it calls anything, and whose text is the skill's."""

    def text(uri: str) -> str:
        found: str = ask("read_resource", uri).contents[0].text
        return found

    assert {str(item.uri) for item in ask("list_resources").resources} == {
        "whycrash://guide",
        "whycrash://causes",
        "whycrash://schema/diagnosis",
    }
    assert text("whycrash://guide").startswith("# ")
    assert {cause["id"] for cause in json.loads(text("whycrash://causes"))} == set(whole_corpus().causes)
    assert json.loads(text("whycrash://schema/diagnosis"))["properties"]["verdict"]
    assert "http" in text("whycrash://case/verl/train-batch-not-divisible")
    with pytest.raises(Exception, match="No case"):
        text("whycrash://case/verl/no-such")


def test_that_prompts_lead_to_the_tools(ask: Call) -> None:
    assert {prompt.name for prompt in ask("list_prompts").prompts} == {"explain_crash", "fix_crash"}
    told = ask("get_prompt", "fix_crash", {"log": "logs/", "config": "run.sh", "keep": "the batch size"})
    (message,) = told.messages
    for words in ("triage_log", "logs/", "run.sh", "the batch size", "follow_up", "look_up_setting"):
        assert words in message.content.text, words


def test_that_the_skill_names_every_tool_and_nothing_else(ask: Call) -> None:
    """The guide goes with the tools: a tool that comes, goes or is renamed is told there too."""
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", skill.guide()))
    tools = {tool.name: set(tool.input_schema["properties"]) for tool in ask("list_tools").tools}
    arguments = set[str]().union(*tools.values())
    assert set(tools) <= named <= {*tools, *arguments}


def test_that_the_skill_is_in_the_form_that_assistants_load(tmp_path: Path, warm: Path) -> None:
    """A folder of its name, and a front matter with name and description within their limits."""
    ended = whycrash(warm, "mcp", "--skill", "skills", folder=tmp_path)
    assert ended.code == 0, ended.err
    head = (tmp_path / "skills" / "whycrash" / "SKILL.md").read_text().split("---\n")[1]
    front = yaml.safe_load(head)
    assert front["name"] == "whycrash"
    assert 100 < len(front["description"]) <= 1024
    assert len(skill.guide().splitlines()) < 200


def test_that_no_planted_secret_comes_back(
    call: Callable[..., CallToolResult], errors: Path, tmp_path: Path
) -> None:
    secrets = planted.secrets()
    log = tmp_path / "train.log"
    log.write_text("\n".join(item.text for item in secrets) + "\n" + traceback(OOM), encoding="utf-8")
    config = "\n".join(f"# {item.text}" for item in secrets)
    told = call("triage_log", paths=[str(log)], config_text=config).model_dump_json() + errors.read_text(
        encoding="utf-8"
    )
    assert [item for item in secrets if planted.remains(item, told)] == []


def messages(warm: Path, given: str) -> Iterator[dict[str, Any]]:
    """Speak the protocol by hand, and give what comes back on standard output."""
    ended = subprocess.run(
        [sys.executable, *START],
        cwd=ROOT,
        input=given.encode(),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        env=surroundings(warm),
    )
    assert ended.returncode == 0, ended.stderr
    yield from (json.loads(line) for line in ended.stdout.splitlines())


def test_that_standard_output_carries_the_protocol_alone(warm: Path) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }
    given = (
        f"{json.dumps(hello)}\nno json\n"
        f"{json.dumps({'jsonrpc': '2.0', 'method': 'notifications/initialized'})}\n"
    )
    told = list(messages(warm, given))
    assert [item["result"]["serverInfo"]["name"] for item in told if item.get("id") == 1] == ["whycrash"]
    assert all(item["jsonrpc"] == "2.0" for item in told)


def test_that_a_pipe_that_nobody_writes_to_keeps_no_call_waiting(
    call: Callable[..., CallToolResult], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "train.log")
    for paths in ([str(tmp_path / "train.log")], [str(tmp_path / "train.log"), str(ROOT / "README.md")]):
        assert "no job's output" in said(call("triage_log", paths=paths))
