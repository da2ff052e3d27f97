"""What a file of the job must say afterwards, and what is said where that cannot be done safely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from corpus.schema import ChangeKind, Scalar

# Whose settings are those of the job's own program.
OWN_PROGRAM = "python"


@dataclass(frozen=True, slots=True)
class PatchTarget:
    """One setting with its new value.

    `names` lists the spellings that the framework knows at the job's version, the preferred first; a file
    that uses one of them keeps it. `spelled` is how the framework takes the setting (as in the catalogue:
    hydra, flag, yaml, json, env, directive, package, command, python). `replaces` is a key that the framework
    does not know: where a file sets it, it is renamed in place, and its value stays. `removes` tells that the
    setting is to go from where it stands; `to` is then its value on the command line as the program's own
    message tells it, the empty string where it tells none. `commands` are the programs of the framework that
    take the setting, where not all of them do. `program` is the one whose options are at fault, by the name
    that it gives itself; of several commands with the setting, its own counts. `present` is the value
    that the run had, the empty string where it is not known: a variable that holds another is not where it
    came from. `own` tells that the job's own code defines the option, one with a value or a switch. `run` are
    the settings that the run is known to have had, by their canonical names: of several commands of a
    script, those that say otherwise did not start it. `in_code` tells of an environment variable that the
    program's own first rows may set. `refused_by` names the job's scripts whose own parsers end the program
    at an option of these names: it is nothing to add to their command lines. `keeps` tells of a key that is
    renamed that what stands there stays, whatever it is: `to` only says so in words. `argument` is what own
    code hands to a call of the framework in place of the option (`from_pretrained.attn_implementation`).
    `is_list` tells of an option whose values are all words up to the next one: the new value replaces them.
    `is_word_or_list` tells of a setting that takes a word in place of a list of words.
    """

    framework: str
    kind: ChangeKind
    names: tuple[str, ...]
    to: Scalar
    spelled: str = ""
    replaces: str | None = None
    commands: tuple[str, ...] = ()
    removes: bool = False
    program: str = ""
    present: str = ""
    own: Literal["", "option", "switch"] = ""
    run: tuple[tuple[str, str], ...] = ()
    in_code: bool = False
    refused_by: tuple[str, ...] = ()
    keeps: bool = False
    argument: str = ""
    is_list: bool = False
    is_word_or_list: bool = False

    @property
    def call_argument(self) -> tuple[str, str]:
        """The call of the user's code and its argument (`DataLoader.num_workers`); empty for others."""
        is_code = self.kind == "setting" and self.spelled in ("python", "directive")
        call, _, leaf = self.names[0].rpartition(".") if is_code else ("", "", "")
        return (call.rpartition(".")[2], leaf) if call else ("", "")

    def __str__(self) -> str:
        return f"{self.names[0]}={self.to}"
