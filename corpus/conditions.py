"""The one language of conditions and values in the knowledge: its grammar, and how it is evaluated.

Cases, refinements, remedies, telemetry rules and computed values are all written in it:

    SUBJECT:ARGUMENT                    a test by name: `pattern:torch.cuda-oom*`, `framework:vllm>=0.7,<0.8`
    PART.FIELD, NAME                    what is stated, measured or bound
    1.5, 'text', true, false, [a, b]    a text has no escapes, so that expressions stand as they are
    == != < <= > >= ~ in                comparison; `~` searches an expression, `in` asks a list or a reading
    + - * / // %, A if C else B         arithmetic and choice
    and, or, not                        with three answers: what is not known is neither true nor false
    NAME(A, ...)                        a function; any, all, none, one ask the items of a part

A comparison that names a part of which there are several (facts of a kind, GPUs, settings of a name) holds
where it holds of any of them, and all of its fields are those of one and the same item. What names stand for
is the context's affair: a log's report, a telemetry snapshot, or the setting that a rule computes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from corpus.condition_nodes import (
    QUANTIFIERS,
    Arithmetic,
    Call,
    Choice,
    Comparison,
    Constant,
    Junction,
    Known,
    ListNode,
    Name,
    Negation,
    Node,
    Predicate,
    Quantified,
    Scalar,
)

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<subject>[a-z]+):(?P<argument>'[^']*'|"[^"]*"|[^\s()'"]+)
      | (?P<number>\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.]))
      | (?P<text>'[^']*'|"[^"]*")
      | (?P<name>[A-Za-z_]\w*(?:\.\w+)?)
      | (?P<sign>==|!=|<=|>=|//|[-+*/%<>~(),\[\]])
      | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
# Nine of ten conditions of cases are one test by name: they need no tokens.
_ONE_TEST = re.compile(r"([a-z]+):([^\s()'\"]+)\Z")
_WORDS = frozenset(("and", "or", "not", "in", "if", "else"))
_WRITTEN: Mapping[str, Scalar | None] = {"true": True, "false": False, "unknown": None}
_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">=", "~", "in"))


class Token(NamedTuple):
    """A token of a condition: its kind, its text, a test's argument, and where it begins and ends."""

    kind: str
    text: str
    argument: str
    start: int
    end: int


@lru_cache(maxsize=8192)
def parse(text: str) -> Node:
    """Parse a condition or value; raises ValueError with the place of what is wrong."""
    if "\b" in text:  # matches nothing, unseen
        raise ValueError(f"{text!r} holds a backspace: in double quotes YAML wants \\\\b for a word's border")
    if match := _ONE_TEST.match(text):
        return Predicate(match[1], match[2])
    parser = _Parser(text)
    node = parser.choice()
    parser.expect("end", "")
    return node


def _tokens(text: str) -> Iterator[Token]:
    place = 0
    while True:
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"{text!r} is no condition: column {place + 1}: {text[place:].strip()[:20]!r}")
        kind = "subject" if match["subject"] else str(match.lastgroup)
        word = match[kind]
        if kind == "name" and word in _WORDS:
            kind = "sign"
        yield Token(kind, word, match["argument"] or "", match.start(kind), match.end())
        if kind == "end":
            return
        place = match.end()


class _Parser:
    """Reads one text from left to right, a method for each level of binding."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._place = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _accept(self, *signs: str) -> str:
        """Step over one of these signs and give it, or the empty string."""
        token = self._next
        if token.kind != "sign" or token.text not in signs:
            return ""
        self._place += 1
        return token.text

    def expect(self, kind: str, text: str) -> None:
        """Step over a token; raises ValueError where another stands there."""
        token = self._next
        if (token.kind, token.text) != (kind, text):
            wanted = repr(text) if text else "its end"
            where = f"column {token.start + 1}: {token.text!r} where {wanted} is expected"
            raise ValueError(f"{self._text!r} is no condition: {where}")
        self._place += 1

    def choice(self) -> Node:
        """Read a whole condition or value."""
        then = self._junction("or")
        if not self._accept("if"):
            return then
        test = self._junction("or")
        self.expect("sign", "else")
        return Choice(test, then, self.choice())

    def _junction(self, word: str) -> Node:
        part: Callable[[], Node] = self._negation if word == "and" else lambda: self._junction("and")
        operands = [part()]
        while self._accept(word):
            operands.append(part())
        return operands[0] if len(operands) == 1 else Junction(word == "and", tuple(operands))

    def _negation(self) -> Node:
        return Negation(self._negation()) if self._accept("not") else self._comparison()

    def _comparison(self) -> Node:
        values, signs, start = [self._sum()], [], 0
        while sign := self._accept(*_COMPARISONS):
            signs.append(sign)
            start = self._next.start
            values.append(self._sum())
        if not signs:
            return values[0]
        shown = self._text[start : self._tokens[self._place - 1].end]
        return Comparison(tuple(values), tuple(signs), shown, named_parts(values))

    def _sum(self) -> Node:
        node = self._product()
        while sign := self._accept("+", "-"):
            node = Arithmetic(sign, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._value()
        while sign := self._accept("*", "/", "//", "%"):
            node = Arithmetic(sign, node, self._value())
        return node

    def _value(self) -> Node:
        token = self._next
        if self._accept("-"):
            value = self._value()
            if isinstance(value, Constant) and isinstance(value.value, int | float):
                return Constant(-value.value)
            return Arithmetic("-", Constant(0), value)
        if self._accept("("):
            inner = self.choice()
            self.expect("sign", ")")
            return inner
        if self._accept("["):
            return ListNode(self._listed("]"))
        self._place += 1
        match token.kind:
            case "number":
                return Constant(float(token.text) if re.search(r"[.e]", token.text) else int(token.text))
            case "text":
                return Constant(token.text[1:-1])
            case "subject":
                quoted = token.argument[0] in "'\""
                return Predicate(token.text, token.argument[1:-1] if quoted else token.argument)
            case "name":
                return self._named(token.text)
        raise ValueError(f"{self._text!r} is no condition: column {token.start + 1}: a value is missing")

    def _named(self, name: str) -> Node:
        if name in _WRITTEN:
            return Constant(_WRITTEN[name])
        if "." in name or not self._accept("("):
            return Name(name)
        arguments = self._listed(")")
        if name not in QUANTIFIERS and name != "known":
            return Call(name, arguments)
        if len(arguments) != 1:
            raise ValueError(f"{self._text!r}: {name} takes one argument")
        if name == "known":
            return Known(arguments[0])
        return Quantified(name, arguments[0], named_parts(arguments))

    def _listed(self, end: str) -> tuple[Node, ...]:
        members: list[Node] = []
        while not self._accept(end):
            if members:
                self.expect("sign", ",")
            members.append(self.choice())
        return tuple(members)


def compiled(expression: str) -> re.Pattern[str]:
    """Compile an expression; raises ValueError where it is none."""
    try:
        return re.compile(expression)
    except re.error as error:
        raise ValueError(f"{expression!r} is no expression: {error}") from error


def named_parts(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Give the parts, and the tests with a value, that nodes name outside of functions."""
    found: list[str] = []
    waiting = list(nodes)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Name) and "." in node.name:
            found.append(node.name.partition(".")[0])
        elif isinstance(node, Predicate):
            found.append(f"{node.subject}:{node.argument}")
        elif not isinstance(node, Call):
            waiting += node.parts()
    return tuple(dict.fromkeys(found))


def expression_test(subject: str, expression: str) -> str:
    """Write a test by an expression, in quotes where it needs them."""
    if re.fullmatch(r"[^\s()'\"]+", expression):
        return f"{subject}:{expression}"
    quote = '"' if "'" in expression else "'"
    # A text has no escapes: a quote of its own kind is any character.
    return f"{subject}:{quote}{expression.replace(quote, '.')}{quote}"


def names_of(text: str) -> frozenset[str]:
    """Give the names and functions that a text uses."""
    nodes = list(parse(text).walk())
    return frozenset(
        {node.name for node in nodes if isinstance(node, Name)}
        | {node.function for node in nodes if isinstance(node, Call)}
    )


def subjects_of(text: str) -> frozenset[str]:
    """Give what a condition asks about: the subjects of its tests, and `fact` where it names a fact."""
    asked = {node.subject for node in predicates_of(text)}
    return frozenset(asked | {"fact" for name in names_of(text) if "." in name})


def predicates_of(text: str) -> tuple[Predicate, ...]:
    """Give the tests by name that a text holds."""
    return tuple(node for node in parse(text).walk() if isinstance(node, Predicate))


@dataclass(frozen=True)
class Vocabulary:
    """What conditions over one kind of context may name.

    `subjects` holds, of each test by name, what raises ValueError for an argument that is none; `is_known`
    tells whether a name or a `part.field` exists. `takes_reading` tells that functions take one `part.field`
    alone.
    """

    subjects: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    functions: frozenset[str] = frozenset()
    is_known: Callable[[str], bool] = bool
    takes_reading: bool = False

    def check(self, text: str) -> None:
        """Check that a text is a condition and names only what there is; raises ValueError."""
        for node in parse(text).walk():
            if wrong := self._wrong(node):
                raise ValueError(f"{text!r}: {wrong}")

    def _wrong(self, node: Node) -> str:
        """Say what a part names that there is not; raises ValueError for an argument that is none."""
        match node:
            case Predicate() if node.subject not in self.subjects:
                return f"there is no test {node.subject}: among {sorted(self.subjects)}"
            case Predicate():
                self.subjects[node.subject](node.argument)
            case Call() if node.function not in self.functions:
                return f"there is no function {node.function}"
            case Call() if self.takes_reading and [type(each) for each in node.arguments] != [Name]:
                return f"{node.function} takes one reading"
            case Comparison():
                for expression in node.expressions:
                    compiled(expression)
            case Name() if not self.is_known(node.name):
                return f"there is no {node.name}"
        return ""


_FRAMEWORK = re.compile(r"([a-z0-9][a-z0-9-]*(?:\|[a-z0-9][a-z0-9-]*)*)([<>=!~].*)?\Z")


@lru_cache(maxsize=1024)
def framework_range(argument: str) -> tuple[tuple[str, ...], str]:
    """Read `vllm|sglang>=0.7,<0.8` as names and a version range; raises ValueError where it is none."""
    match = _FRAMEWORK.match(argument)
    if match is None:
        raise ValueError(
            f"framework:{argument} is no framework with a range of versions, such as vllm>=0.7,<0.8"
        )
    SpecifierSet(match[2] or "")
    return tuple(match[1].split("|")), match[2] or ""


# Whose a missing name may be said to be: the job's own code's, that of some releases of a package, that of
# another package than the one whose code asks for it, or of the same; an argument that a package's class does
# not take, a method of one that is called otherwise than it is written, a model that only some releases know
# by name, a name in a text that a package ran as code.
WHOSE = (
    "own", "release", "other-package", "same-package", "package", "argument", "signature", "model",
    "generated", "shadowed",
)  # fmt: skip


def _whose(argument: str) -> None:
    if argument not in WHOSE:
        raise ValueError(f"missing:{argument} is not known; it may be asked of {', '.join(WHOSE)}")


# What the raising statement's own code says of what led there: a choice was none of those that it knows.
CHOICE = "choice"


def _led_by(argument: str) -> None:
    if argument != CHOICE:
        raise ValueError(f"guard:{argument} is not known; a guard may be one of a `{CHOICE}`")


# What a call refuses of the keys that a file of the job's hands on to it.
HANDED = ("unknown", "missing")


def _handed(argument: str) -> None:
    if argument not in HANDED:
        raise ValueError(f"handed:{argument} is not known; a key that is handed on is {' or '.join(HANDED)}")


# Whose program was started: one that a known package brings, and no code of the user's own is seen to run.
PACKAGE = "package"


def _started(argument: str) -> None:
    if argument != PACKAGE:
        raise ValueError(f"started:{argument} is not known; whose program was started is a `{PACKAGE}`'s")


# What a job is seen to have counted before it failed.
STEPS = "steps"
# What was saved.
CHECKPOINT = "checkpoint"


def _counted(argument: str) -> None:
    if argument != STEPS:
        raise ValueError(f"counted:{argument} is not known; what is counted are `{STEPS}`")


def _saved(argument: str) -> None:
    if argument != CHECKPOINT:
        raise ValueError(f"saved:{argument} is not known; what is saved is a `{CHECKPOINT}`")


# What a condition over a log may ask: cases, changes, refinements of patterns, remedies, signs of telemetry.
LOG = Vocabulary(
    subjects={
        # What these name is checked against the whole corpus (`whycrash corpus lint`).
        **dict.fromkeys(("pattern", "root", "cause", "phase", "config", "job"), lambda _argument: None),
        **dict.fromkeys(
            ("frame", "code", "source", "stack", "exception", "launch", "command", "message"), compiled
        ),
        "framework": framework_range,
        "missing": _whose,
        "guard": _led_by,
        "counted": _counted,
        "saved": _saved,
        "handed": _handed,
        "started": _started,
    },
    is_known=lambda name: "." in name,
)
