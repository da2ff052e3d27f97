"""What is asked of Loki, held against what is published of it.

Selectors against Grafana's own grammar of LogQL, requests and answers against the types of another project's
client, parameters against the reference of its HTTP API. A Loki that runs is not among them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from service.batches.sources import loki
from service.settings import Settings
from tests import npm
from tests.service.batches.sources.serving import Asked, serving
from tests.service.batches.sources.test_loki import MOST, StandIn, ago, find_in, pod

pytestmark = pytest.mark.long

# https://grafana.com/docs/loki/latest/reference/loki-http-api/
PARAMETERS: Mapping[str, frozenset[str]] = {
    "labels": frozenset({"start", "end", "since", "query"}),
    "series": frozenset({"match[]", "start", "end", "since"}),
    "query_range": frozenset({"query", "limit", "start", "end", "since", "step", "interval", "direction"}),
}
# A timestamp of no more digits is read as one of seconds.
SECONDS = 10
HOSTILE = ('a"b\\c', "tab\tand\nline", "\x1b[31m", "作业 é", "{}|=`x`", "a'b", "\x00")


@pytest.fixture(scope="module")
def types(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the grammar, of the client's types and of TypeScript."""
    return npm.installed(Path(__file__).parent / "loki_types", tmp_path_factory.mktemp("types"))


@pytest.fixture
def server() -> StandIn:
    """Hold streams of hostile labels, and others that have fewer labels."""
    made = StandIn()
    for number, value in enumerate(HOSTILE):
        made.add(pod(f"job{number}-master-0", run=value), (ago(hours=1) + number, f"of {number}"))
        made.add({"namespace": "train", "run": value, "filename": f"/logs/{number}"}, (ago(hours=1), "x"))
    return made


@pytest.fixture
def asked(server: StandIn, tmp_path: Path, make_settings: Callable[..., Settings]) -> Iterator[list[Asked]]:
    """All that is asked for these streams, of any labels and of a selector, and as a watch asks."""
    with serving(server.answer) as url:
        for number, selector in enumerate(("", '{namespace=~"tr.+"}')):
            find_in(url, tmp_path / str(number), make_settings(), selector)
        yield server.asked


def test_that_only_documented_parameters_are_sent_with_values_that_they_take(asked: list[Asked]) -> None:
    """Times are nanoseconds since 1970, an end after its beginning, and no more lines than Loki gives."""
    kinds = {each.path.removeprefix("/loki/api/v1/") for each in asked}
    assert kinds == set(PARAMETERS)
    for each in asked:
        given = each.given
        assert (each.method, each.body) == ("GET", None)
        assert set(given) <= PARAMETERS[each.path.rpartition("/")[2]]
        begin, end = given["start"], given["end"]
        assert (begin.isdecimal(), end.isdecimal(), len(begin) > SECONDS) == (True, True, True)
        assert 0 < int(end) - int(begin) <= loki.LONGEST_JOB.total_seconds() * 10**9 + 10**9
        assert given.get("direction", "forward") in ("forward", "backward")
        assert 0 < int(given.get("limit", 1)) <= MOST


def test_that_grafanas_own_grammar_reads_each_selector(asked: list[Asked], types: Path) -> None:
    """Whatever a label's value holds; the grammar refuses one that is broken."""
    queries = [query for each in asked for name in ("query", "match[]") if (query := each.given.get(name))]
    assert len(set(queries)) > len(HOSTILE)
    broken = ["{", '{a="b}', "{a=b}", '{a="b" c="d"}']
    assert _parsed(types, [*queries, *broken]) == [True] * len(queries) + [False] * len(broken)


def _parsed(types: Path, queries: Sequence[str]) -> list[bool]:
    ended = subprocess.run(
        ["node", "parse.mjs"],
        cwd=types,
        input=json.dumps(queries),
        capture_output=True,
        check=True,
        text=True,
    )
    found: list[bool] = json.loads(ended.stdout)
    return found


def test_that_a_clients_types_take_what_is_asked_and_answered(
    asked: list[Asked], server: StandIn, types: Path
) -> None:
    """The stand-in answers in their shape, so that what is read of it is what a server gives."""
    rows: list[tuple[str, Any]] = []
    kinds = {"labels": "LokiLabelsResponse", "series": "LokiSeriesResponse"}
    for each in list(asked):
        kind = each.path.rpartition("/")[2]
        _, answer = server.answer(each)
        rows.append((kinds.get(kind, "LokiQueryRangeStreamsResponse"), answer))
        if kind == "query_range":
            rows.append(("LokiQueryRangeParams", {**each.given, "limit": int(each.given["limit"])}))
    assert _type_errors(types, rows) == []
    wrong = {"query": "{}", "start": "1", "end": "2", "direction": "sideways"}
    assert len(_type_errors(types, [("LokiQueryRangeParams", wrong)])) == 1


def _type_errors(types: Path, rows: Sequence[tuple[str, Any]]) -> list[str]:
    """Tell what the types find wrong with values, each with the name of its type."""
    model = "./node_modules/@perses-dev/loki-plugin/lib/model"
    lines = [
        f'import type {{ LokiQueryRangeParams }} from "{model}/loki-client.js";',
        f'import type * as answers from "{model}/loki-client-types.js";',
    ]
    for number, (name, value) in enumerate(rows):
        kind = name if name.endswith("Params") else f"answers.{name}"
        lines.append(f"export const value{number}: {kind} = {json.dumps(value)};")
    (types / "values.ts").write_text("\n".join(lines), encoding="utf-8")
    command = ["node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext"]
    ended = subprocess.run([*command, "values.ts"], cwd=types, capture_output=True, check=False, text=True)
    return [line for line in ended.stdout.splitlines() if line.startswith("values.ts")]
