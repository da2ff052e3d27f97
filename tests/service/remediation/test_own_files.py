"""What the job's own files have in place of a module, a script or an application that a message misses."""

from __future__ import annotations

from collections.abc import Mapping

from ingest.configfiles.settings import Setting
from ingest.logs.stacks.stack import Frame
from service.remediation.own_files import own_files
from tests.service.factories import failed, report, setting
from tests.tables import each_row

RUN = "#!/bin/bash\n{command}\n"
OWN = Frame("/job/train.py", 3, "<module>", "from parts import model")
PACKAGE = Frame("/env/lib/python3.11/site-packages/torch/_utils.py", 9, "<module>", "logging.getLogger()")


def told(message: str, files: Mapping[str, str], frame: Frame = OWN, **fields: str) -> list[tuple[str, str]]:
    """Give the key and the value of the change for a message, with the files of the job."""
    job = report(
        failed(text=message, body=message, frames=(frame,)),
        launches=tuple(f"{text}\n{name}" for name, text in files.items()),
        settings=[setting(key, value) for key, value in fields.items()],
    )
    return [(found.change.key, str(found.change.to)) for found in own_files(job, job.settings)]


@each_row(
    ("message", "files", "change"),
    [
        ("No module named 'parts'", {"src/parts/__init__.py": ""}, ("PYTHONPATH", "src")),
        ("No module named 'parts.model'", {"lib/parts.py": ""}, ("PYTHONPATH", "lib")),
        ("No module named 'parts'", {"parts/model.py": ""}, ("PYTHONPATH", ".")),
        # What lies beside the script that is run is looked for there: it was not copied.
        ("No module named 'parts'", {"src/parts.py": "", "src/train.py": ""}, ("cp parts.py", "/job/")),
        # Two folders may be meant; a package of others is none of the job's.
        ("No module named 'parts'", {"a/parts/x.py": "", "b/parts/x.py": ""}, None),
        ("No module named 'numpy'", {"src/parts/__init__.py": ""}, None),
        # A folder outside of the job's is not known on the machine that runs it.
        ("No module named 'parts'", {"../parts/x.py": ""}, None),
        (
            "Error while finding module specification for 'tools.evaluat' (ModuleNotFoundError: x)",
            {"run.sh": RUN.format(command="python -m tools.evaluat --n 1"), "tools/evaluate.py": ""},
            ("python", "tools.evaluate"),
        ),
        (
            "run.sh: line 2: ./prepar.sh: No such file or directory",
            {"run.sh": RUN.format(command="bash ./prepar.sh"), "prepare.sh": ""},
            ("bash", "prepare.sh"),
        ),
        # Nothing near, and a file that is there.
        (
            "python: can't open file '/job/other.py': [Errno 2] No such file or directory",
            {"run.sh": RUN.format(command="python other.py"), "train.py": ""},
            None,
        ),
        (
            'Error loading ASGI app. Attribute "server" not found in module "api".',
            {"run.sh": RUN.format(command="uvicorn api:server"), "api.py": "one = Flask()\ntwo = Flask()\n"},
            None,
        ),
    ],
)
def test_that_what_is_missed_is_found_in_the_files(
    message: str, files: dict[str, str], change: tuple[str, str] | None
) -> None:
    assert told(message, files) == ([change] if change else [])


@each_row(
    ("missing", "files", "path"),
    [
        ("src", ("/job/src/train.py",), "/job"),
        ("src.models", ("/job/src/tools/train.py",), "/job"),
        ("verl", ("/root/verl/verl/trainer/main.py",), "/root/verl"),
        ("src", ("src/train.py",), "."),
        # A checkout's own folder has a package's name, and is none.
        ("verl", ("/root/verl/scripts/convert.py",), None),
        ("datasets", ("/job/datasets/prepare.py",), None),
        # Named as the file that imports it, which lies elsewhere than the script.
        ("effnet_configs", ("/job/test/test.py", "/job/models/effnet_model.py"), "/job/models"),
        ("effnet_configs", ("/job/models/test.py", "/job/models/effnet_model.py"), None),
        ("einops", ("/job/test/test.py", "/job/models/effnet_model.py"), None),
        # A file that is named for the package which it works with.
        ("ray", ("/job/main.py", "/job/trainer/ray_trainer.py"), None),
        ("torch_xla", ("/job/main.py", "/job/lib/torch_utils.py"), None),
        ("flash_attn", ("/job/main.py", "/job/lib/flash_utils.py"), None),
        # What an installed package misses is none of the job's.
        ("src", ("/job/src/train.py", PACKAGE.file), None),
    ],
)
def test_that_a_module_is_found_by_the_files_that_run(
    missing: str, files: tuple[str, ...], path: str | None
) -> None:
    text = f"No module named '{missing}'"
    frames = tuple(Frame(file, 3, "<module>", f"import {missing}") for file in files)
    job = report(failed(text=text, body=text, frames=frames))
    found = [(each.change.key, each.change.to) for each in own_files(job, ())]
    assert found == ([("PYTHONPATH", path)] if path else [])


def test_that_the_path_keeps_what_the_job_has_on_it() -> None:
    files = {"src/parts/__init__.py": ""}
    assert told("No module named 'parts'", files, PYTHONPATH="libs") == [("PYTHONPATH", "src:libs")]
    assert told("No module named 'parts'", files, PYTHONPATH="libs:src") == []
    kept = told("No module named 'parts'", files, PYTHONPATH="libs:$PYTHONPATH")
    assert kept == [("PYTHONPATH", "src:libs:$PYTHONPATH")]


def test_that_a_file_in_the_place_of_a_module_is_to_be_renamed() -> None:
    """Only where another one asks for that module: the job's own lack of a name is its own mistake."""
    message = "module 'logging' has no attribute 'getLogger'"
    assert told(message, {"logging.py": ""}, PACKAGE) == [("mv logging.py", "own_logging.py")]
    assert told("module 'parts' has no attribute 'x'", {"parts.py": ""}) == []


def test_that_no_command_has_what_a_log_holds_in_place_of_a_path() -> None:
    """A folder of a traceback is written into a command only as one writes a path."""
    files = {"src/parts.py": "", "src/train.py": ""}
    hostile = Frame("/job; reboot #/train.py", 3, "<module>", "import parts")
    assert told("No module named 'parts'", files, hostile) == [("PYTHONPATH", "src")]


def test_that_the_path_extends_the_row_that_has_all_that_is_above_it() -> None:
    """A script adds folder by folder; the last of its rows is the one that the job has."""
    missed = failed(text="No module named 'parts'", body="No module named 'parts'", frames=(OWN,))
    job = report(missed, launches=("\nsrc/parts/__init__.py",))
    rows = ["/a:$PYTHONPATH", "/b:$PYTHONPATH"]
    given = [Setting("PYTHONPATH", value, 0, "env") for value in rows]
    assert [each.change.to for each in own_files(job, given)] == ["src:/b:$PYTHONPATH"]
    given = [Setting("PYTHONPATH", value, 0, "env") for value in [*rows, "/c"]]
    assert [each.change.to for each in own_files(job, given)] == ["src:/a:$PYTHONPATH"]
    given = [Setting("PYTHONPATH", value, 0, "env") for value in ["src:$PYTHONPATH", "/c:$PYTHONPATH"]]
    assert list(own_files(job, given)) == []
