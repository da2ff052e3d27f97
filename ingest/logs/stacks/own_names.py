"""Whose is what a message of Python's misses: of the job's own code, or of an installed package's.

Names alone do not tell: people call their classes `Trainer`, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from packaging.utils import canonicalize_name

from corpus.frameworks import known_frameworks
from corpus.package_classes import everybodys_modules, modules_with
from corpus.releases import known_packages
from corpus.symbols import MODELS, packages_told, packages_with
from ingest.logs.stacks.own_calls import is_own, own_call, raised_for
from ingest.logs.stacks.stack import Frame

# CPython, Objects/object.c and typeobject.c.
_ATTRIBUTE = re.compile(
    r"(?:AttributeError: |^)(?P<itself>type object )?'(?P<owner>[\w.]+)' (?:object )?"
    r"has no attribute '(?P<name>\w+)'"
)
_COMPOUND = re.compile(r"[A-Z]\w*[a-z0-9_][A-Z]")
# CPython, Python/ceval.c; `<locals>` stands behind a function that made the called one as it ran.
_CALLEE = re.compile(r"TypeError: ([\w.<>]+)\.<locals>\.[\w.<>]+\(\) (?:got|missing|takes|argument)\b")
# CPython, Python/ceval.c, from 3.10 on with the class before the method.
_ARGUMENT = re.compile(
    r"(?P<callee>[\w.<>]{1,200})\(\) got an unexpected keyword argument '(?P<argument>\w{0,80})"
)
_SIGNATURE = re.compile(r"\b(?P<owner>[A-Z]\w{2,60})\.\w{1,60}\(\) (?:missing \d|takes (?:\w{1,8} )?\d)")
# msgspec, of whose classes vLLM's parameters are: no class is named.
_UNNAMED = re.compile(r"TypeError: Unexpected keyword argument '(?P<argument>\w{1,80})'")
# A function that a statement calls as its module's, or whose name is of several words.
_WORDS = re.compile(r"[a-z]+(?:_[a-z0-9]+){2,}")
# A class that a statement or a sentence makes an object of, as its module's or by its name alone.
_MADE = re.compile(r"(?<![\w.])(?P<module>[a-z_]\w{0,40}\.)?(?P<owner>[A-Z]\w{2,60})\(")
_CAPITAL = re.compile("[A-Z]")
_KEY = re.compile(r"KeyError: ['\"](?P<key>[\w.-]{2,60})['\"]")
_MODEL = re.compile(r"\w{5}|\w*[\d_-]")
# CPython, Python/ceval.c, import_from: the file that a module was loaded from.
_SHADOWING = re.compile(
    r"cannot import name '\w{1,80}' from '(?P<module>[A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,8})' "
    r"\((?P<file>[^()\n]{1,400}\.py)\)"
)
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib(?:64)?[/\\]python3\.\d+[/\\]")
# What Python calls a text that ran as code.
_TEXT = "<string>"


def misses_own(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether the job's own code has to give what the message says is missing.

    An attribute that a method of the job's own asks of `self` is one of its class. A function that another
    made as it ran is the other's, which is in the job's code where that is seen to run.
    """
    attribute, callee = _ATTRIBUTE.search(message), _CALLEE.search(message)
    if attribute is not None:
        calls = raised_for(frames)
        asked = rf"\b(?:self|cls)\.{attribute['name']}\b"
        return bool(calls) and is_own(calls[-1]) and re.search(asked, calls[-1].code) is not None
    if callee is not None:
        makers = {part.rpartition(".")[2] for part in callee[1].split(".<locals>.")}
        return any(frame.function in makers and is_own(frame) for frame in frames)
    return False


def misses_of_release(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether the attribute that a class lacks came or went with the releases of its package."""
    attribute = _ATTRIBUTE.search(message)
    if attribute is None or misses_own(message, frames):
        return False
    return bool(packages_with(attribute["owner"].rpartition(".")[2], attribute["name"]))


def misses_of_other_package(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a package asks in vain for an attribute of another package's class, or the job of a class.

    Where the job's code asks the class itself it has imported it by that name.
    """
    attribute = _ATTRIBUTE.search(message)
    modules = modules_with(attribute["owner"]) if attribute is not None else frozenset()
    if attribute is None or not modules or misses_own(message, frames):
        return False
    calls = raised_for(frames)
    if not calls or is_own(calls[-1]):
        return attribute["itself"] is not None
    return not _is_of(calls[-1], modules)


def misses_of_same_package(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a package asks in vain for an attribute of a class of its own."""
    attribute = _ATTRIBUTE.search(message)
    modules = modules_with(attribute["owner"]) if attribute is not None else frozenset()
    calls = raised_for(frames)
    return bool(modules and calls) and not is_own(calls[-1]) and _is_of(calls[-1], modules)


def misses_of_package(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a class of one package lacks an attribute, where nobody's calls are shown.

    Names of one word stand for much, and what a tool's class is asked for its caller asks.
    """
    attribute = _ATTRIBUTE.search(message)
    if attribute is None or frames or not _COMPOUND.match(attribute["owner"].rpartition(".")[2]):
        return False
    modules = modules_with(attribute["owner"])
    return bool(modules) and not modules & everybodys_modules()


def misses_argument(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a package's class, which the job makes an object of, does not take an argument.

    Before Python 3.10 the message names the method alone; who made the object stands in the job's own call,
    or before the message in the same sentence. Names of one word stand for much, but as a module's.
    """
    if frames and not is_own(frames[-1]):
        return False
    if not frames and naming_package(message):
        return True
    if any(packages_with(owner, argument) for owner, argument in refused_arguments(message, frames)):
        return True
    return any(
        bool(modules_with(owner)) and (is_qualified or len(_CAPITAL.findall(owner)) > 1)
        for owner, is_qualified in refusing_classes(message, frames).items()
    )


def misses_signature(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a method of a package's class is called otherwise than it is written, by nobody shown.

    Where calls are shown, they tell whose the caller is.
    """
    match = _SIGNATURE.search(message) if not frames else None
    owner = match["owner"] if match is not None else ""
    modules = modules_with(owner) if len(_CAPITAL.findall(owner)) > 1 else frozenset()
    return bool(modules) and not modules & everybodys_modules()


def naming_package(message: str) -> str:
    """Name the package after whose module the refusing function is called: `flash_attn_func` of `flash_attn`.

    A module of one word is no name of its own (`ray_`, `torch_`). Empty where there is none.
    """
    match = _ARGUMENT.search(message)
    name = match["callee"].rpartition(".")[2] if match is not None else ""
    modules = {each.replace("-", "_") for each in (*known_packages(), *known_frameworks().modules)}
    fitting = (each for each in modules if "_" in each and name.startswith(f"{each}_"))
    module = max(fitting, key=len, default="")
    return canonicalize_name(known_frameworks().modules.get(module, module))


def refusing_classes(message: str, frames: Sequence[Frame]) -> Mapping[str, bool]:
    """Name the classes that may have refused an argument, and whether each is asked for as its module's."""
    match = _ARGUMENT.search(message)
    if match is None:
        return {}
    own = own_call(frames)
    code = own.code if own is not None else "" if frames else message[: match.start()]
    made = {found["owner"]: bool(found["module"]) for found in _MADE.finditer(code)}
    told = match["callee"].rpartition(".")[0].rpartition(".")[2]
    return {told: made.get(told, False)} if told else made


def refused_arguments(message: str, frames: Sequence[Frame]) -> list[tuple[str, str]]:
    """Give what may have refused an argument, and that argument, as tables of names by release keep them.

    A function's name of fewer than three words may be anybody's, unless the job calls it as a module's.
    """
    match = _ARGUMENT.search(message) or _UNNAMED.search(message)
    if match is None or not match["argument"]:
        return []
    argument, own = f"({match['argument']}", own_call(frames)
    callee = match.groupdict().get("callee") or "__init__"
    above, _, name = callee.rpartition(".")
    if above:
        return [(f"{above.rpartition('.')[2]}.{name}", argument)]
    code = own.code if own is not None else "" if frames else message[: match.start()]
    if name == "__init__":
        return [(f"{found['owner']}.__init__", argument) for found in _MADE.finditer(code)]
    is_qualified = re.search(rf"\b[a-zA-Z]\w*\.{re.escape(name)}\(", code) is not None
    return [(f"{name}()", argument)] if is_qualified or _WORDS.fullmatch(name) else []


def misses_model(message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a key that nobody has is the name of a model which came with a later release.

    Any other code that looks it up has a mapping of its own. Alone, a short word may be anything (`phi`).
    """
    match = _KEY.search(message)
    packages = frozenset(packages_with(MODELS, match["key"])) if match is not None else frozenset()
    if match is None or not packages:
        return False
    return _is_of(frames[-1], packages) if frames else _MODEL.match(match["key"]) is not None


def misses_in_generated_code(_message: str, frames: Sequence[Frame]) -> bool:
    """Tell whether a name is missed in a text that an installed package ran as code."""
    above = [frame for frame in frames if frame.file != _TEXT]
    return bool(above) and frames[-1].file == _TEXT and not is_own(above[-1])


def misses_shadowed(message: str, _frames: Sequence[Frame]) -> bool:
    """Tell whether a file of the job's own is imported in the place of a known package, which lacks a name.

    What Ray unpacks of the job's folder is its own. A clone of the package's repository is the package.
    """
    match = _SHADOWING.search(message)
    if match is None or _INSTALLED.search(match["file"]):
        return False
    top = match["module"].partition(".")[0]
    is_known = top in known_frameworks().modules or canonicalize_name(top) in packages_told()
    above = match["file"].replace("\\", "/").rpartition(f"/{top}/")[0].rpartition("/")[2]
    is_clone = above == "src" or top.replace("_", "-") in above.lower().replace("_", "-")
    return is_known and not is_clone


def _is_of(frame: Frame, modules: frozenset[str]) -> bool:
    """Tell whether a call is in a file of one of the packages, by their top modules."""
    steps = frame.file.replace("\\", "/").split("/")
    return not modules.isdisjoint(steps)


# What `missing:` may ask: whose is what the failing line misses.
WHOSE: Mapping[str, Callable[[str, Sequence[Frame]], bool]] = {
    "own": misses_own,
    "release": misses_of_release,
    "other-package": misses_of_other_package,
    "same-package": misses_of_same_package,
    "package": misses_of_package,
    "argument": misses_argument,
    "signature": misses_signature,
    "model": misses_model,
    "generated": misses_in_generated_code,
    "shadowed": misses_shadowed,
}
