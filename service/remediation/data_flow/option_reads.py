"""Which expressions of a program read an option: of its parser, its configuration, its environment."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from corpus.keys import canonical
from service.remediation.data_flow.job_program import Function, JobProgram, called

# What holds a program's options, by its usual names.
HOLDER = re.compile(
    r"(?i)_?(?:(?:[a-z0-9]{1,20}_)*(?:args?|cfg|conf|config|configs|configuration|opts?|options?|hparams"
    r"|hyper_?params|params|settings|flags)|hps?|a|h|c)"
)
# Names of one letter hold options only where their definition says so.
LOOSE = re.compile(r"[ahc]|(?i:hps?)")
# Calls that read options. What makes a model's or a tokenizer's own configuration is none of the job's.
_LOADS = re.compile(
    r"(?i)parse_(?:known_)?args|parse_args_into_dataclasses|parse_(?:dict|yaml|json)\w*|(?:safe|full)_load"
    r"|from_?file|from_cli|cli|compose|merge|parse|(?:load|read|get|parse|make|build|create|setup|init)_?\w*"
    r"(?:args?|arguments|conf|config|cfg|opts?|options|hparams|params|yaml|json|flags|settings)\w*"
)
_PLAIN_LOADS = frozenset({"load", "loads", "unsafe_load"})
_FORMATS = frozenset({"yaml", "json", "toml", "tomllib", "OmegaConf", "hjson", "pyjson5", "configparser"})
# Calls that give the same options in another dress.
_WRAPS = frozenset(
    {
        "vars", "dict", "deepcopy", "copy", "create", "EasyDict", "edict", "Namespace", "SimpleNamespace",
        "to_container", "DictConfig", "AttrDict", "Munch", "Dict", "ConfigDict", "Box", "to_dict", "asdict",
        "instantiate", "resolve", "namedtuple",
    }
)  # fmt: skip
_ENTRIES = re.compile(r"hydra\.main|hydra_runner|hydra_task_config|hydra_main|draccus\.wrap|pyrallis\.wrap")
_COMMANDS = re.compile(r"(?:click|app|cli|typer)\.(?:command|option|argument)|^command\b")


@dataclass(frozen=True)
class DefinedOption:
    """An option as the program's parser defines it: how a command gives it, its default, its short names."""

    spelled: str
    default: str | None
    short: tuple[str, ...] = ()


def defined_options(program: JobProgram) -> Mapping[str, DefinedOption]:
    """Give the options that the job's parsers define, by the name that code reads them by."""
    found: dict[str, DefinedOption] = {}
    for module in program.modules:
        for name in ("add_argument", "option", "add", "arg"):
            for call in module.calls.get(name, ()):
                _note(call, found)
        for name, calls in module.calls.items():
            for call in calls if name.startswith("DEFINE_") else ():
                if call.args and (key := text_of(call.args[0])):
                    default = literal(call.args[1]) if len(call.args) > 1 else None
                    found.setdefault(canonical(key), DefinedOption(f"--{key}", default))
    return found


def _note(call: ast.Call, found: dict[str, DefinedOption]) -> None:
    words = [text for arg in call.args if (text := text_of(arg)) is not None]
    flags = [word for word in words if word.startswith("--")] or [word for word in words if word[:1] == "-"]
    named = {word.arg: word.value for word in call.keywords if word.arg}
    dest = text_of(named["dest"]) if "dest" in named else None
    spelled = flags[0] if flags else (words[0] if words and called(call) == "add_argument" else "")
    if spelled:
        default = literal(named["default"]) if "default" in named else None
        short = tuple(word.lstrip("-") for word in words if word != spelled and word.startswith("-"))
        found.setdefault(canonical(dest or spelled), DefinedOption(spelled, default, short))


def is_entry(function: Function) -> bool:
    """Tell whether a function is handed the job's configuration by what decorates it."""
    return any(_ENTRIES.search(ast.unparse(each)) for each in function.decorator_list)


def is_command(function: Function) -> bool:
    """Tell whether a command line fills a function's parameters."""
    return any(_COMMANDS.search(ast.unparse(each)) for each in function.decorator_list)


def loads_options(call: ast.Call) -> bool:
    """Tell whether a call reads options from a command line or a file."""
    name = called(call)
    if name in _PLAIN_LOADS:
        base = call.func.value if isinstance(call.func, ast.Attribute) else None
        return isinstance(base, ast.Name) and base.id in _FORMATS
    return name != "from_pretrained" and _LOADS.fullmatch(name) is not None


def wrapped(call: ast.Call) -> ast.expr | None:
    """Give what a call hands on in another dress: the namespace of `vars(args)`."""
    if called(call) not in _WRAPS:
        return None
    parts = [*call.args, *(word.value for word in call.keywords if word.arg is None)]
    first = parts[0] if parts else None
    if first is None and isinstance(call.func, ast.Attribute):
        return call.func.value
    return first.value if isinstance(first, ast.Starred) else first


def environment_key(node: ast.expr) -> tuple[str, str | None] | None:
    """Give the variable that an expression reads from the environment, with what it falls back to."""
    args: list[ast.expr]
    match node:
        case ast.Subscript(value=ast.Attribute(attr="environ") | ast.Name(id="environ"), slice=place):
            args = [place]
        case (
            ast.Call(
                func=ast.Attribute(
                    attr="get" | "pop", value=ast.Attribute(attr="environ") | ast.Name(id="environ")
                )
            )
            | ast.Call(func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"))
        ):
            args = node.args
        case _:
            return None
    key = text_of(args[0]) if args else None
    return (key, literal(args[1]) if len(args) > 1 else None) if key else None


def level_of(node: ast.expr) -> tuple[ast.expr, str, str | None] | None:
    """Give what an expression reads one level of: the holder, the level's name, and the value otherwise."""
    match node:
        case ast.Attribute(value=holder, attr=name):
            return holder, name, None
        case ast.Subscript(value=holder, slice=ast.Constant(value=str() as name)):
            return holder, name, None
        case ast.Call(
            func=ast.Attribute(value=holder, attr="get" | "pop"),
            args=[ast.Constant(value=str() as name), *rest],
        ):
            return holder, name, literal(rest[0]) if rest else None
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value=str() as name), *rest]):
            return holder, name, literal(rest[0]) if rest else None
    return None


def text_of(node: ast.expr) -> str | None:
    """Give a text that stands there as such."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def literal(node: ast.expr | None) -> str | None:
    """Give a plain value as a configuration shows it; None for what is none."""
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return str(value) if isinstance(value, str | int | float | bool | list | tuple) else None
