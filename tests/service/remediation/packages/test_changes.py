"""From a log to the change of a package: what the job has, what fails, and which version goes with it."""

from __future__ import annotations

from ingest.logs.configs.launch import Setting
from ingest.logs.stacks.stack import Frame
from service.remediation.packages.changes import fitting_changes
from service.remediation.packages.raising import raising_package
from service.remediation.packages.seen import seen_versions
from tests.factories import ReadLog, whole_corpus
from tests.service.factories import failed, report
from tests.tables import each_row

# The caller of a name that came to the other package later.
OLDER = "transformersolder than what is installed"
ENV = "/opt/env/lib/python3.11/site-packages"
HEAD = "Traceback (most recent call last):\n"
VLLM = f"""{HEAD}  File "/job/serve.py", line 1, in <module>
    from vllm import LLM
  File "{ENV}/vllm/_custom_ops.py", line 14, in <module>
    import vllm._C
ImportError: {ENV}/vllm/_C.abi3.so: undefined symbol: _ZN3c106detail14torchCheckFailEPKcS2_jRKSs
"""
TORCHCODEC = f"""{HEAD}  File "{ENV}/torchcodec/_core/ops.py", line 60, in load_shared_libraries
    torch.ops.load_library(path)
OSError: {ENV}/torchcodec/libtorchcodec_core6.so: undefined symbol: _ZNK3c1011StorageImpl4dataEv
"""
TOO_OLD = f"""{HEAD}  File "{ENV}/torch/cuda/__init__.py", line 412, in _lazy_init
    torch._C._cuda_init()
RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update it.
"""
MISSING = f"{HEAD}ModuleNotFoundError: No module named 'torchvision'\n"
NO_KERNEL = f"""{HEAD}  File "/job/train.py", line 9, in <module>
    x = torch.zeros(4, device="cuda") + 1
RuntimeError: CUDA error: no kernel image is available for execution on the device
"""


NMS = f"""{HEAD}  File "{ENV}/transformers/image_utils.py", line 58, in <module>
    from torchvision.transforms import InterpolationMode
  File "{ENV}/torchvision/_meta_registrations.py", line 163, in <module>
    @torch.library.register_fake("torchvision::nms")
RuntimeError: operator torchvision::nms does not exist
"""


def card(name: str, arch: int) -> str:
    """Give PyTorch's warning of a card that a build has no code for."""
    return f"{name} with CUDA capability sm_{arch} is not compatible with the current PyTorch installation.\n"


def needed(wanted: str, found: str) -> str:
    """Give what transformers says of a package that it needs in another version."""
    return (
        f'{HEAD}  File "{ENV}/transformers/utils/versions.py", line 44, in _compare_versions\n'
        f"ImportError: {wanted} is required for a normal functioning of this module, but found {found}.\n"
    )


UNWRAP = "TypeError: Accelerator.unwrap_model() got an unexpected keyword argument 'keep_torch_compile'"


def failing(message: str) -> str:
    """Give the traceback of a call out of transformers."""
    return (
        f'{HEAD}  File "{ENV}/transformers/trainer.py", line 1990, in _wrap_model\n    unwrap()\n{message}\n'
    )


def absent(name: str, module: str) -> str:
    """Give Python's message of a name that a module has not."""
    return f"{HEAD}ImportError: cannot import name '{name}' from '{module}' ({ENV}/{module}/__init__.py)\n"


def unheard_type(name: str) -> str:
    """Give what transformers says of a model type that it does not know."""
    text = f"model type `{name}` but Transformers does not recognize this architecture."
    return f"{HEAD}ValueError: The checkpoint you are trying to load has {text}\n"


def unheard_class(name: str) -> str:
    """Give what transformers says of a checkpoint's tokenizer that it does not know."""
    return f"{HEAD}ValueError: Tokenizer class {name} does not exist or is not currently imported.\n"


def refused(name: str, engine: str) -> str:
    """Give what an engine's registry says of an architecture that it has not."""
    text = f"Model architectures ['{name}'] are not supported for now. Supported architectures: dict_keys([])"
    return f'{HEAD}  File "{ENV}/{engine}/models/registry.py", line 9, in refuse\nValueError: {text}\n'


CHANGES = [
    ("abi-mismatch", f"PyTorch version: 2.7.1+cu126\n{TORCHCODEC}", ["torchcodec==0.5.0"]),
    ("abi-mismatch", f"torch==2.6.0\n{TORCHCODEC}", ["torchcodec==0.2.1"]),
    ("abi-mismatch", f"torch==2.7.1\nvllm==0.8.5\n{VLLM}", ["torch==2.6.0", "vllm==0.10.0"]),
    ("abi-mismatch", f"torch==2.6.0\nvllm==0.8.5\n{VLLM}", []),
    # A name that other versions of the package have.
    ("package-incompatible", absent("AutoModelForVision2Seq", "transformers"), ["transformers<=4.57.6"]),
    ("package-incompatible", absent("load_metric", "datasets"), ["datasets<=2.21.0"]),
    ("package-incompatible", absent("cached_download", "huggingface_hub"), ["huggingface-hub<=0.25.2"]),
    (
        "package-incompatible",
        f"vllm==0.8.5\ntransformers==4.48.0\n{absent('Qwen2_5_VLForConditionalGeneration', 'transformers')}",
        ["transformers>=4.51.1"],
    ),
    ("package-incompatible", f"{HEAD}ModuleNotFoundError: No module named 'trl.core'\n", ["trl<=0.24.0"]),
    ("package-incompatible", failing(UNWRAP), ["accelerate>=1.3.0", OLDER]),
    ("package-incompatible", f"accelerate==1.1.1\n{failing(UNWRAP)}", ["accelerate>=1.3.0", OLDER]),
    ("package-incompatible", f"accelerate==1.7.0\n{failing(UNWRAP)}", []),
    ("package-incompatible", failing(UNWRAP.replace("keep_torch_compile", "no_such_word")), []),
    # The version has the name: it is not the version's fault.
    ("package-incompatible", f"datasets==2.18.0\n{absent('load_metric', 'datasets')}", []),
    ("package-incompatible", absent("NoSuchName", "transformers"), []),
    # A model that other versions know.
    ("model-unsupported", unheard_type("qwen3"), ["transformers>=4.51.0"]),
    ("model-unsupported", f"transformers==4.46.3\n{unheard_type('gpt_oss')}", ["transformers>=4.55.0"]),
    ("model-unsupported", f"transformers==4.57.6\n{unheard_type('qwen3')}", []),
    ("model-unsupported", unheard_type("nobodys_model"), []),
    # A class of a model, which a checkpoint names.
    ("package-incompatible", unheard_class("GemmaTokenizer"), ["transformers>=4.38.2"]),
    ("package-incompatible", f"transformers==4.44.2\n{unheard_class('GemmaTokenizer')}", []),
    ("package-incompatible", unheard_class("NobodysTokenizer"), []),
    ("model-unsupported", refused("Qwen3NextForCausalLM", "vllm"), ["vllm>=0.10.2"]),
    ("model-unsupported", refused("Qwen3NextForCausalLM", "sglang/srt"), ["sglang>=0.5.2"]),
    # Both engines came to know it, and nothing tells which one it was.
    ("model-unsupported", refused("Qwen3NextForCausalLM", "elsewhere"), []),
    # The line names the package: another clash of the environment, whose files are gone through, is not it.
    ("abi-mismatch", f"trl==0.24.0\ntransformers==4.46.2\n{NMS}", []),
    # Nothing is known of the environment: nothing can be said.
    ("abi-mismatch", TORCHCODEC, []),
    ("package-missing", f"torch==2.6.0\n{MISSING}", ["torchvision==0.21.0"]),
    ("package-missing", MISSING, []),
    ("package-missing", f"torch==2.6.0\n{HEAD}ModuleNotFoundError: No module named 'unheard_of'\n", []),
    (
        "package-incompatible",
        needed("tokenizers>=0.21,<0.22", "tokenizers==0.20.3"),
        ["tokenizers<0.22,>=0.21"],
    ),
    (
        "package-incompatible",
        needed("huggingface-hub>=0.30.0,<1.0", "huggingface-hub==1.0.1"),
        ["huggingface-hub<1.0,>=0.30.0"],
    ),
    ("gpu-driver-mismatch", f"PyTorch version: 2.11.0+cu130\n{TOO_OLD}", ["torch==2.10.0"]),
    ("gpu-driver-mismatch", f"PyTorch version: 2.9.1+cu130\n{TOO_OLD}", ["torch==2.9.1"]),
    ("gpu-driver-mismatch", TOO_OLD.replace("12020", "11040"), ["torch==2.0.1"]),
    # A driver of the build's own CUDA is not the reason.
    ("gpu-driver-mismatch", f"PyTorch version: 2.6.0+cu124\n{TOO_OLD}", []),
    (
        "cuda-arch-unsupported",
        f"PyTorch version: 2.6.0+cu124\n{card('NVIDIA GeForce RTX 5090', 120)}{NO_KERNEL}",
        ["torch>=2.8.0"],
    ),
    (
        "cuda-arch-unsupported",
        f"PyTorch version: 2.9.1+cu128\n{card('Tesla V100-SXM2-32GB', 70)}{NO_KERNEL}",
        ["torch==2.7.1"],
    ),
    ("cuda-arch-unsupported", NO_KERNEL, []),
]


@each_row("cause, log, expected", CHANGES)
def test_that_the_version_follows_from_what_the_log_shows(
    cause: str, log: str, expected: list[str], read: ReadLog
) -> None:
    """The metadata decides; where the log does not show what is installed, nothing is proposed."""
    changes = fitting_changes(cause, read(log), whole_corpus())
    assert [f"{item.change.key}{item.change.to}" for item in changes] == expected


def test_that_a_cause_which_no_version_decides_asks_for_none(read: ReadLog) -> None:
    """The row of the cause says whether versions matter."""
    assert fitting_changes("disk-full", read(f"torch==2.7.1\n{TORCHCODEC}"), whole_corpus()) == []


@each_row(
    "log, settings, expected",
    [
        ("torch==2.6.0+cu124\n", [], {"torch": "2.6.0+cu124"}),
        ("", [Setting("transformers", "==4.51.3", 0, "package")], {"transformers": "4.51.3"}),
        ("", [Setting("transformers", ">=4.51.3", 0, "package")], {}),
        ("torch==2.6.0\n", [Setting("torch", "==2.7.1", 0, "package")], {"torch": "2.6.0"}),
        (
            "transformers 4.51.3 requires torch==2.6.0, but you have torch 2.7.1 which is incompatible.\n",
            [],
            {"torch": "2.7.1", "transformers": "4.51.3"},
        ),
        # What a message asks for is not what the job has.
        ("please run `pip install torch==2.8.0`\n", [], {}),
    ],
)
def test_that_installed_versions_are_told_from_asked_ones(
    log: str, settings: list[Setting], expected: dict[str, str], read: ReadLog
) -> None:
    """The log's own version counts before that of the job's files; a range is no version."""
    seen = seen_versions(read(f"{log}{NO_KERNEL}"), settings)
    assert {
        name: str(version) for name, version in seen.items() if name in ("torch", "transformers")
    } == expected


@each_row(
    ("code", "file", "offered"),
    [
        ("return Ratio(a, b, _exact=False)", "/env/lib/python3.12/site-packages/nltk/score.py", ["nltk"]),
        # What the job's own call hands on stands in no code of the package.
        ("return Ratio(a, b, **options)", "/env/lib/python3.12/site-packages/nltk/score.py", []),
        ("return Ratio(a, b, _exact=False)", "/job/score.py", []),
    ],
)
def test_that_a_package_which_passes_what_is_not_taken_is_to_be_newer(
    code: str, file: str, offered: list[str]
) -> None:
    """The two packages are of different times, and the job's own call is not at fault."""
    said = "TypeError: Ratio.__new__() got an unexpected keyword argument '_exact'"
    root = failed(text=said, body=said, frames=(Frame(file, 3, "score", code),))
    made = fitting_changes("package-incompatible", report(root), whole_corpus())
    assert [item.change.key for item in made] == offered


@each_row(("callee", "offered"), [("WidgetReward.score_batch", []), ("Trainer.score_batch", ["trl"])])
def test_that_the_job_s_own_method_is_no_reason_for_a_newer_caller(callee: str, offered: list[str]) -> None:
    """It overrides one that the caller, which is newer than the job's code, gives more arguments."""
    said = f"TypeError: {callee}() got an unexpected keyword argument 'step_ids'"
    call = Frame("/env/lib/python3.12/site-packages/trl/x.py", 3, "step", "self.f(x, step_ids=step_ids)")
    root = failed(text=said, body=said, frames=(call,))
    made = fitting_changes("package-incompatible", report(root), whole_corpus())
    assert [item.change.key for item in made] == offered


def test_that_the_job_s_own_list_names_the_release_of_a_name_which_no_history_has(read: ReadLog) -> None:
    """The run had other releases than the list asks for; one that the list allows is not at fault."""
    log = f"{HEAD}AttributeError: module 'torch.backends' has no attribute 'unheard_of'\n"
    listed = Setting("torch", "~=2.0.0", 0, "package", file="requirements.txt")
    for text, settings, expected in (
        (log, [listed], ["torch~=2.0.0"]),
        (f"torch==1.11.0\n{log}", [listed], ["torch~=2.0.0"]),
        (f"torch==2.0.1\n{log}", [listed], []),
        (log, [], []),
    ):
        changes = fitting_changes("package-incompatible", read(text), whole_corpus(), settings)
        assert [f"{item.change.key}{item.change.to}" for item in changes] == expected


def refused(callee: str, argument: str, code: str, pinned: str = "") -> str:
    """Give a call of the job's own that refuses a keyword."""
    said = f"TypeError: {callee}() got an unexpected keyword argument '{argument}'"
    return f'{pinned}{HEAD}  File "/job/train.py", line 9, in <module>\n    {code}\n{said}\n'


PREPARE = "prepare_model_for_kbit_training"


@each_row(
    ("log", "cause", "expected"),
    [
        # A function of a package, by its name; Python before 3.10 names the method alone.
        (refused(PREPARE, "gradient_checkpointing_kwargs", f"{PREPARE}(m, **options)"),
         "package-incompatible", ["peft>=0.6.2"]),
        (refused("__init__", "vllm_mode", "args = GRPOConfig(vllm_mode='colocate')", "trl==0.15.2\n"),
         "config-key-invalid", ["trl>=0.18.2"]),
        # What the job has takes it, and a name of one or two words may be anybody's.
        (refused("GRPOConfig.__init__", "vllm_mode", "GRPOConfig(vllm_mode='x')", "trl==0.19.1\n"),
         "config-key-invalid", []),
        (refused("get_model", "gradient_checkpointing_kwargs", "get_model(1)"), "user-code-error", []),
    ],
)  # fmt: skip
def test_that_a_refused_argument_leads_to_the_releases_that_take_it(
    log: str, cause: str, expected: list[str], read: ReadLog
) -> None:
    """Whatever the cause is called: what took it once, or takes it by now, is no setting to correct."""
    made = fitting_changes(cause, read(log), whole_corpus())
    assert [f"{item.change.key}{item.change.to}" for item in made] == expected


def test_that_an_architecture_is_sought_in_the_engine_that_runs(read: ReadLog) -> None:
    """Two engines know models by the same names."""
    said = "ValueError: Model architectures ['Qwen3ForCausalLM'] are not supported for now. Supported: []"
    log = f"INFO vLLM API server version 0.6.3\n{HEAD}{said}\n"
    made = fitting_changes("model-unsupported", read(log), whole_corpus())
    assert [item.change.key for item in made] == ["vllm"]


DEEP = "/env/lib/python3.10/site-packages/deepspeed/runtime/zero/coordinator.py"
TORCH = "/env/lib/python3.10/site-packages/torch/_tensor.py"


@each_row(
    ("cause", "files", "offered"),
    [
        ("framework-bug", (DEEP,), ["deepspeed newer than what is installed"]),
        # What others call as a tool did what it was called for.
        ("framework-bug", (DEEP, TORCH), ["deepspeed newer than what is installed"]),
        ("framework-bug", ("/job/train.py", TORCH), ["torch newer than what is installed"]),
        (
            "package-incompatible",
            ("/job/train.py", DEEP),
            ["deepspeed the release the script was written for"],
        ),
        (
            "package-incompatible",
            ("/env/lib/python3.10/site-packages/trl/trainer.py", DEEP),
            ["deepspeed the release that belongs to the package which calls it there"],
        ),
        ("package-incompatible", (DEEP, "/job/train.py"), []),
        ("user-code-error", (DEEP,), []),
    ],
)
def test_that_the_package_whose_code_failed_is_offered_in_another_release(
    cause: str, files: tuple[str, ...], offered: list[str]
) -> None:
    """For causes whose row says so; a package that its own job's code calls last is not at fault."""
    root = failed(text="boom", body="boom", frames=tuple(Frame(file, 3, "step", "go()") for file in files))
    made = raising_package(cause, report(root), whole_corpus())
    assert [f"{item.change.key} {item.change.to}" for item in made] == offered


@each_row(
    ("said", "offered"),
    [
        ("MyTrainer.compute_loss() takes 3 positional arguments but 4 were given", []),
        ("<lambda>() takes 1 positional argument but 2 were given", []),
        ("collate() got multiple values for argument 'rows'", []),
        # A class that a package has, and what is no call with other arguments.
        ("Trainer.compute_loss() takes 3 positional arguments but 4 were given", ["transformers"]),
        ("unhashable type: 'slice'", ["transformers"]),
    ],
)
def test_that_what_the_job_may_have_written_itself_is_called_wrongly_by_no_release(
    said: str, offered: list[str], read: ReadLog
) -> None:
    """The package only calls it: a function, or a method of a class that no package has."""
    file = "/env/lib/python3.10/site-packages/transformers/trainer.py"
    called = f'  File "{file}", line 90, in training_step\n    loss = call(model, rows, 3)\n'
    log = f"{HEAD}{called}TypeError: {said}\n"
    made = raising_package("package-incompatible", read(log), whole_corpus())
    assert [item.change.key for item in made] == offered
