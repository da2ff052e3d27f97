"""The catalogue of messages: every id has both languages with equal values, is used, and none is in code."""

from __future__ import annotations

import ast
import pickle
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Formatter

import pytest

from corpus import message
from corpus.message import Message, edited, in_both, in_language, is_chinese, message_id, words
from service.schemas.diagnosis import Dropped
from tests.syntax import modules
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
FOLDERS = ("corpus", "ingest", "service", "eval", "ui")
# Where Chinese stands in code because it reads what others wrote, or writes what is no sentence of ours.
READERS: Mapping[str, str] = {
    "corpus/message.py": "the range of Chinese characters",
    "eval/bench/": "logs that are made to be slow to read",
    "eval/fuzz/": "text that is damaged",
    "eval/drafting.py": "headings of a case's file, which is Markdown in two languages",
    "eval/lab/": "jobs as their users write them",
    "ingest/embedder.py": "a text with which a model is tried",
    "ingest/logs/last_rows.py": "recognises words of a log",
    "ingest/logs/wording.py": "recognises words of a log",
    "ingest/redaction/": "recognises names and numbers of people",
    "service/remediation/chinese_advice.py": "recognises what a message advises",
    "ingest/word_index.py": "words that are too frequent to search by",
    "ingest/writeups.py": "recognises what surrounds an article",
    "service/composition/fitting_prose.py": "recognises how a sentence begins that follows another",
    "service/llm/claim_verifier.py": "recognises claims in a model's words",
    "service/llm/comfort.py": "recognises words that make little of a failure",
    "service/llm/contacts.py": "recognises what leads a reader away",
    "service/llm/directives.py": "recognises whom a model's words blame, and where its clauses end",
    "service/llm/prompt_injection.py": "recognises text that is written to a model",
    "service/llm/line_questions.py": "recognises which line a question names",
    "service/llm/replies.py": "recognises what a question asks for",
    "service/llm/prompts/chinese.py": "what a model is told, a text as long as a page",
    "service/llm/steering.py": "recognises what a person points at or says",
    "service/llm/sums.py": "recognises a question whether a value is enough",
    "service/remediation/constraints.py": "recognises what a person rules out",
    "ui/slack/bot.py": "words of a command that people type",
}


def ids() -> Iterator[str]:
    for file in sorted(message.files()):
        yield from (f"{file}.{row}" for row in message.rows(file))


def fields(template: str) -> set[str]:
    """Name the values that a template takes."""
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def test_that_every_id_has_both_languages_with_equal_values() -> None:
    wrong = []
    for file in sorted(message.files()):
        for row, both in message.rows(file).items():
            if (
                set(both) != {"en", "zh"}
                or fields(both["en"]) != fields(both["zh"])
                or is_chinese(both["en"])
                or bool(both["en"]) != bool(both["zh"])
            ):
                wrong.append(f"{file}.{row}")
    # The switch of the page's language names the other one.
    assert wrong == ["chat.language", "chat.language-short"]


def test_that_every_sentence_has_its_chinese() -> None:
    assert [
        f"{file}.{row}"
        for file in message.files()
        for row, both in message.rows(file).items()
        if re.search(r"[a-z]{3} [a-z]{2}", both["en"]) and not is_chinese(both["zh"])
    ] == []


def named() -> tuple[set[str], set[str], set[str]]:
    """Give all strings of the code, and the beginnings and the ends of those that are composed."""
    whole: set[str] = set()
    begun: set[str] = set()
    ended: set[str] = set()
    for module in modules(*FOLDERS):
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                begun |= {str(part.value) for part in node.values[:1] if isinstance(part, ast.Constant)}
                ended |= {str(part.value) for part in node.values[-1:] if isinstance(part, ast.Constant)}
    begun = {text for text in begun if re.fullmatch(r"[a-z0-9.]+[a-z0-9-]*[-.]", text)}
    return whole, begun, {text for text in ended if re.fullmatch(r"-[a-z-]+", text)}


@pytest.mark.long
def test_that_no_id_is_unused() -> None:
    whole, begun, ended = named()
    page = "".join(
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "ui" / "chat").iterdir())
        if path.suffix in (".js", ".html")
    )
    classes = {
        node.name for module in modules(*FOLDERS) for node in module.nodes if isinstance(node, ast.ClassDef)
    }
    # A part of the program that says its file once names the rows alone.
    short = {
        "answer": "",
        "diagnosis": "",
        "chat": "",
        "slack": "",
        "report": "",
        "replies": "setting-",
        "cli": "summary-",
    }
    unused = []
    for name in ids():
        file, _, row = name.partition(".")
        plain = row.removeprefix(short.get(file) or "\0").removesuffix("-one")
        if not (
            name in whole
            or any(name.startswith(text) and "." in text and text != f"{file}." for text in begun)
            or (file == "kinds" and f"{row}Error" in classes)
            or (
                file in short
                and (
                    {row, plain, plain.replace("-", "_")} & whole
                    or any(row.startswith(text) for text in begun if "." not in text)
                    or any(row.endswith(text) and row.removesuffix(text) in whole for text in ended)
                )
            )
            or (file == "chat" and re.search(rf"[\"'`]{re.escape(row)}[\"'`]", page))
        ):
            unused.append(name)
    assert unused == []


def test_that_every_message_of_the_code_is_in_the_catalogue_with_its_values() -> None:
    wrong = []
    for module in modules(*FOLDERS):
        for node in module.nodes:
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            first = node.args[0]
            if node.func.id not in ("Message", "words", "in_both") or not isinstance(first, ast.Constant):
                continue
            given = {keyword.arg for keyword in node.keywords}
            if None in given or not isinstance(first.value, str):
                continue
            if not message.is_message(first.value):
                wrong.append(f"{module.name}:{node.lineno}: {first.value} is not in the catalogue")
                continue
            file, _, row = first.value.partition(".")
            if fields(message.rows(file)[row]["en"]) != given:
                wrong.append(f"{module.name}:{node.lineno}: {first.value} takes other values")
    assert wrong == []


def test_that_no_chinese_stands_in_code() -> None:
    found = {module.name for module in modules(*FOLDERS) for _, text in module.texts if is_chinese(text)}
    assert [place for place in sorted(found) if not any(map(place.startswith, READERS))] == []
    assert [name for name in READERS if not any(place.startswith(name) for place in found)] == []


def test_that_a_message_is_told_in_either_language_with_what_it_names() -> None:
    inner = Message("files.pickle")
    told = Message("errors.not-text-log", name="a.bin", what=inner)
    assert told == str(told) == f"{told}" == "a.bin is a pickle, not a text log."
    assert in_language(told, "zh") == "a.bin 是 pickle 文件，不是文本日志。"
    assert (in_language("New.", "zh"), message_id(told), message_id("New.")) == (
        "New.",
        "errors.not-text-log",
        "",
    )
    assert in_both("changes.above", now=3).zh == words("changes.above", "zh", now=3) == "大于 3 的值"


@each_row(
    "carried",
    [
        lambda told: pickle.loads(pickle.dumps(told)),  # noqa: S301 - our own
        lambda told: str(ValueError(told)),
        lambda told: Message.from_reference(told.reference()),
        lambda told: Dropped(what=told, why="").what,
        lambda told: edited(told, str),
    ],
)
def test_that_a_message_stays_one_on_its_way(carried: object) -> None:
    """Across processes, through an error and a record, and out of the database."""
    told = Message("errors.not-text-log", name="a.bin", what=Message("files.pickle"))
    after = carried(told)  # type: ignore[operator]
    assert after == told
    assert in_language(after, "zh") == in_language(told, "zh")


def test_that_a_message_that_another_version_wrote_is_told_apart() -> None:
    assert Message.from_reference({"message": "errors.of-tomorrow", "values": {}}) is None
    assert Message.from_reference({"message": "errors.not-text-log", "values": {}}) is None


def test_that_redaction_changes_the_values_alone() -> None:
    told = Message("errors.no-file", path="/home/ann/log.txt")
    masked = edited(told, lambda text: text.replace("ann", "***"))
    assert in_language(masked, "zh") == "没有文件 /home/***/log.txt。"


def test_that_no_message_is_written_twice() -> None:
    """Of two rows of one name YAML would keep the latter, and what the former says would be lost."""
    for file in sorted((ROOT / "corpus" / "messages").glob("*.yaml")):
        names = Counter(re.findall(r"(?m)^([\w-]+):", file.read_text(encoding="utf-8")))
        assert [name for name, count in names.items() if count > 1] == [], file.name
