"""The offered changes in a prompt, and how this job's own places and settings are named in an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from corpus.message import words
from ingest.configfiles import notebook
from ingest.configfiles.settings import Setting
from ingest.logs.stacks.own_calls import is_own
from service.llm.prompt_context import PromptContext
from service.llm.prompt_injection import neutralize, withhold
from service.llm.prompt_lines import PromptRow, own_names
from service.llm.setting_kinds import command_values
from service.schemas.diagnosis import ProposedChange

LONGEST_VALUE = 100
# Files of settings whose keys stand below one another.
_NESTED = (".yaml", ".yml", ".json")


def change_rows(prompt_context: PromptContext) -> Iterator[PromptRow]:
    """Give the offered changes with what the job has now, and an example of each form of its keys."""
    language, ids = prompt_context.language, own_names(prompt_context)
    of_command = command_values(prompt_context.assessment.settings)
    for place, change in enumerate(prompt_context.offered):
        was = _present(change, prompt_context, of_command)
        is_proved = change.proof and change.proof not in change.why
        more = words("prompt.change-proof", language, proof=withhold(change.proof or "")) if is_proved else ""
        more += words("prompt.change-costs", language, costs=change.costs) if change.costs else ""
        more += words("prompt.change-finds-out", language) if change.purpose == "find-out" else ""
        told = f"- {change.framework}, {change.kind}: {change.key} = {change.to}{was}. {change.why}{more}"
        yield PromptRow("changes", 2.2 + place / 10, told, number=place)
    if forms := [withhold(form, ids) for form in _forms(prompt_context)]:
        told = words("prompt.how-named", language, forms="; ".join(forms))
        yield PromptRow("changes", 2.9, told, number=len(prompt_context.offered))


def _present(
    change: ProposedChange, prompt_context: PromptContext, of_command: Callable[[Setting], Setting | None]
) -> str:
    """Say what the job has a setting at; where its command overrides a file, the command's value first."""
    if change.from_ is None:
        return ""
    language, ids = prompt_context.language, own_names(prompt_context)
    held = [
        item
        for item in prompt_context.assessment.settings
        if (item.key, item.value) == (change.key, change.from_)
    ]
    value = withhold(change.from_, ids, LONGEST_VALUE)
    given = next(filter(None, map(of_command, held)), None)
    if given is None:
        return words("prompt.change-now", language, value=value)
    now = withhold(given.value, ids, LONGEST_VALUE)
    return words("prompt.change-now-overridden", language, value=now, held=value)


def _forms(prompt_context: PromptContext) -> Iterator[str]:
    """Yield how a cell of a notebook, an option of the command and a new key of a file are named."""
    language, report = prompt_context.language, prompt_context.report
    frames = [frame for event in report.standing for frame in event.frames if is_own(frame)]
    cells = [frame for frame in frames if "In [" in frame.file or notebook.ENDING in frame.file]
    if cells:
        key = f"{cells[-1].file.replace(chr(92), '/').rpartition('/')[2]}:{cells[-1].line}"
        yield words("prompt.names-cell", language, key=neutralize(key, 80))
    settings = prompt_context.assessment.settings
    if flag := next((item for item in settings if item.spelled == "flag" and len(item.key) > 1), None):
        yield words("prompt.names-flag", language, key=f"--{neutralize(flag.key.lstrip('-'), 60)}")
    nested = (item for item in settings if item.file.endswith(_NESTED) and "." in item.key)
    if held := next(nested, None):
        above = neutralize(held.key.rpartition(".")[0], 80)
        yield words("prompt.names-key", language, file=neutralize(held.file, 80), above=above)
