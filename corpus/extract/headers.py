"""Settings declared in C and C++ source: macros, and variables read from the environment."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from corpus.extract.declarations import Declaration, Default, Kind

_NCCL_PARAM = re.compile(r'^\s*NCCL_PARAM\(\s*\w+\s*,\s*"(\w+)"\s*,\s*([^;]*?)\)\s*;', re.MULTILINE)
_NCCL_READ = re.compile(r'(?:ncclGetEnv|getenv|ncclLoadParam)\(\s*"(NCCL_\w+)"')
_RAY_CONFIG = re.compile(
    r"^RAY_CONFIG\(\s*([\w:<>, ]+?)\s*,\s*(\w+)\s*,\s*([^;]*?)\)\s*;?[ \t]*(?://[^\n]*)?$", re.MULTILINE
)
_TORCH_NAMES = re.compile(r"std::vector<std::string>\s+(\w+)\s*=\s*\{([^}]*)\}")
_TORCH_READ = re.compile(r"(?:get_env|getCvarBool|getCvarInt|getCvarString|check_env|getenv)\(\s*\"(\w+)\"")
_SLURM_OPTION = re.compile(r"slurm_cli_opt_t\s+\w+\s*=\s*\{(.*?)\n\};", re.DOTALL)
_SLURM_FIELD = re.compile(r'\.(\w+)\s*=\s*("?)([\w-]+)\2')
_TEXT = re.compile(r'"([^"]*)"')
_SUM = re.compile(r"[\d\s.*+()xXa-fA-F<-]+")
_SUFFIX = re.compile(r"(?<=\d)(?:ULL|LL|UL|U|L|f)\b")
_CAST = re.compile(r"\(\s*(?:u?int\d+_t|size_t|int|float|double|unsigned)\s*\)|\b(?:u?int\d+_t|INT64_C)\b")
_C_TYPES: dict[str, Kind] = {"bool": "bool", "float": "float", "double": "float", "std::string": "str"}


def nccl(texts: Mapping[str, str]) -> Iterator[Declaration]:
    """Give the variables of NCCL; its macro names them without their prefix."""
    for text in texts.values():
        for match in _NCCL_PARAM.finditer(text):
            yield Declaration(f"NCCL_{match[1]}", "int", number(match[2]))
        yield from (Declaration(name, "str", declared=False) for name in _NCCL_READ.findall(text))


def ray(texts: Mapping[str, str]) -> Iterator[Declaration]:
    """Give the system settings of Ray, each read from the variable `RAY_` and its name, letter case kept."""
    for text in texts.values():
        for match in _RAY_CONFIG.finditer(text):
            kind = _C_TYPES.get(match[1].replace(" ", ""), "int")
            yield Declaration(f"RAY_{match[2]}", kind, _default(kind, match[3]))


def torch(texts: Mapping[str, str]) -> Iterator[Declaration]:
    """Give the variables of c10d and the allocator; a list of names is one variable, newest name first."""
    for text in texts.values():
        lists = [names for match in _TORCH_NAMES.finditer(text) if (names := _TEXT.findall(match[2]))]
        yield from (Declaration(first, spellings=tuple(others)) for first, *others in lists)
        yield from (Declaration(name, declared=False) for name in _TORCH_READ.findall(text))


def slurm(texts: Mapping[str, str]) -> Iterator[Declaration]:
    """Give the options that sbatch takes, as directives."""
    for match in chain.from_iterable(map(_SLURM_OPTION.finditer, texts.values())):
        fields = {name: word for name, _, word in _SLURM_FIELD.findall(match[1])}
        if "name" in fields and ("set_func" in fields or "set_func_sbatch" in fields):
            bare = fields.get("has_arg") == "no_argument"
            yield Declaration(f"--{fields['name']}", "bool" if bare else "any")


def _default(kind: Kind, text: str) -> Default:
    text = text.strip()
    if kind == "bool":
        return text == "true" if text in ("true", "false") else None
    if kind == "str":
        return found[1] if (found := re.fullmatch(r'"([^"]*)"', text)) else None
    return number(text)


def number(text: str) -> int | float | None:
    """Work out a C constant such as `512 * 1024 * 1024` or `-1`; None where it names other things."""
    plain = _SUFFIX.sub("", _CAST.sub("", text)).strip()
    if not plain or len(plain) > 60 or not _SUM.fullmatch(plain):
        return None
    return _worked_out(plain)


def _worked_out(text: str) -> int | float | None:
    """Multiply and shift constants; brackets only around the whole or a sign."""
    text = re.sub(r"\((-?[\w.]+)\)", r"\1", text).strip()
    text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
    if re.search(r"[()+]|(?<=[\w)])\s*-", text):
        return None
    left, _, right = text.partition("<<")
    shift = int(right) if right.strip().isdigit() and int(right) < 64 else 0
    sign = -1 if left.strip().startswith("-") else 1
    rest = left.strip().lstrip("-") if shift or not right else "?"
    total: int | float = 1
    for part in rest.split("*"):
        found = _literal(part.strip())
        if found is None:
            return None
        total *= found
    return sign * (int(total) << shift if shift else total)


def _literal(text: str) -> int | float | None:
    for kind in _LITERALS:
        try:
            return kind(text)
        except ValueError:
            continue
    return None


_LITERALS: tuple[Callable[[str], int | float], ...] = (lambda text: int(text, 0), float)
