"""An answer says in its own sentences what the failing line names: call, argument, sizes, port."""

from __future__ import annotations

import re

from corpus.message import is_chinese
from corpus.schema import Language, MessageForm
from service.composition.message_forms import LONGEST, formed_message
from service.pipeline.triage import Triage
from tests.factories import whole_corpus
from tests.service.factories import failed, library, real_causes, report, text
from tests.tables import each_row
from tests.warm import explained


def raised(exception: str, *calls: str) -> str:
    """Write a traceback of calls, each `FILE:LINE:FUNCTION:CODE`, from the outermost to the innermost."""
    rows = ["Traceback (most recent call last):"]
    for call in calls or ("/job/run.py:12:main:fit(model)",):
        file, line, function, code = call.split(":", 3)
        rows += [f'  File "{file}", line {line}, in {function}', f"    {code}"]
    return "\n".join([*rows, exception, ""])


SITE = "/opt/env/lib/python3.11/site-packages"


@each_row(
    ("log", "headline"),
    [
        (
            raised("TypeError: fit() missing 1 required positional argument: 'loader'"),
            "`fit()` is called without 'loader' (run.py:12)",
        ),
        (
            raised("TypeError: Net.__init__() takes 3 positional arguments but 4 were given"),
            "`Net.__init__()` takes 3 positional arguments, 4 are given (run.py:12)",
        ),
        (raised("NameError: name 'sampler' is not defined"), "The name `sampler` is not defined (run.py:12)"),
        (raised("KeyError: 'targets'"), "The mapping has no key 'targets' (run.py:12)"),
        # A package looks it up in what the job gave it; the job's own row asks for no key.
        (
            raised(
                "KeyError: 'targets'",
                "/job/run.py:12:main:Trainer(net, rows).train()",
                f"{SITE}/trl/data_utils.py:40:pick:return row['targets']",
                f"{SITE}/datasets/formatting.py:28:__getitem__:return self.data[key]",
            ),
            "What is handed on has no key 'targets' (run.py:12)",
        ),
        (
            raised(
                "KeyError: 'targets'",
                "/job/run.py:12:main:y = frame[column]",
                f"{SITE}/pandas/core/frame.py:28:__getitem__:indexer = self.columns.get_loc(key)",
            ),
            "The mapping has no key 'targets' (run.py:12)",
        ),
        (
            raised(
                "openai.BadRequestError: Error code: 400 - {'error': {'message': \"'max_tokens' or "
                "'max_completion_tokens' is too large: 6000. This model's maximum context length is 8192 "
                'tokens and your request has 4100 input tokens (6000 > 8192 - 4100). None"}}'
            ),
            (
                "A prompt of 4100 tokens leaves 4092 of 8192 for the answer, and the request asks for more "
                "(run.py:12)"
            ),
        ),
        (
            raised("ValueError: Unknown part 'evaluate'. Should be one of ['train', 'evaluation']."),
            "`evaluate` is none of what there is; the nearest is `evaluation` (run.py:12)",
        ),
        (
            raised("ValueError: the score 'rate' is not found among ['loss', 'all_rate', 'all_loss']"),
            "`rate` is none of what there is; the nearest is `all_rate` (run.py:12)",
        ),
        (
            raised("ValueError: Unknown part 'gamma'. Should be one of ['train', 'evaluation']."),
            "Unknown part 'gamma', in `main` (run.py:12)",
        ),
        (
            raised("AttributeError: 'NoneType' object has no attribute 'detach'"),
            "`.detach` is asked of a value that is None (run.py:12)",
        ),
        (
            raised(
                "RuntimeError: shape '[4, 12, 64]' is invalid for input of size 1536",
                "/job/run.py:12:main:fit(model)",
                "/job/net/attention.py:88:forward:q = q.view(4, 12, 64)",
            ),
            "1536 elements do not fit into the shape [4, 12, 64] (attention.py:88)",
        ),
        (
            raised(
                "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x512 and 768x2)",
                "/job/run.py:12:main:fit(model)",
                f"{SITE}/torch/nn/modules/linear.py:116:forward:return F.linear(input, self.weight)",
            ),
            "A layer for 768 features gets 512 (run.py:12)",
        ),
        (
            raised("AssertionError", "/job/run.py:40:check:assert len(names) == width"),
            "The assertion `len(names) == width` does not hold (run.py:40)",
        ),
        (raised("ModuleNotFoundError: No module named 'einops'"), "Package `einops` is missing"),
        (
            "OSError: [Errno 98] cannot bind on address ('127.0.0.1', 7861): address already in use\n",
            "Port 7861 is in use",
        ),
        (
            raised(
                "FileNotFoundError: [Errno 2] No such file or directory: 'apptainer'",
                "/job/boxes.py:31:start:made = subprocess.run(words, check=True)",
                "/usr/lib/python3.11/subprocess.py:1955:_execute_child:"
                "raise child_exception_type(errno_num, err_msg, err_filename)",
            ),
            "The program `apptainer` is not installed, or not on PATH (boxes.py:31)",
        ),
        (
            raised(
                "FileNotFoundError: [Errno 2] No such file or directory: 'nvidia-smi -q'",
                "/job/cards.py:8:cards:told = check_output('nvidia-smi -q')",
                "/usr/lib/python3.11/subprocess.py:1955:_execute_child:"
                "raise child_exception_type(errno_num, err_msg, err_filename)",
            ),
            "`nvidia-smi -q` is taken for the name of one program (cards.py:8)",
        ),
        (
            raised(
                "FileNotFoundError: [Errno 2] No such file or directory",
                "/job/boxes.py:31:start:child = await asyncio.create_subprocess_exec(",
            ),
            "The program that is to be started is not installed, or not on PATH (boxes.py:31)",
        ),
        (
            raised(
                "FileNotFoundError: [Errno 2] No such file or directory: 'vocab.txt'",
                "/job/words.py:3:read:with open(name) as file:",
            ),
            "`vocab.txt` does not exist (words.py:3)",
        ),
        (
            raised("KeyError: '_orig_mod.head.weight'", "/job/zo.py:7:step:held = kept[name]"),
            (
                "`_orig_mod.head.weight` has the prefix `_orig_mod.` of torch.compile, under which nothing "
                "is kept (zo.py:7)"
            ),
        ),
        (
            raised("KeyError: 'module.head.bias'", "/job/zo.py:7:step:held = kept[name]"),
            (
                "`module.head.bias` has the prefix `module.` of DistributedDataParallel, under which nothing "
                "is kept (zo.py:7)"
            ),
        ),
        (
            '/home/u/.cache/torch_extensions/py312_cu124/gated_sum/cuda.cu(19): error: expected a ";"\n'
            "ninja: build stopped: subcommand failed.\n"
            + raised(
                "RuntimeError: Error building extension 'gated_sum'", "/job/net.py:9:build:load_inline("
            ),
            'The job\'s own source of the extension `gated_sum` does not compile: expected a ";"',
        ),
        (raised("KeyError: 'module.name'"), "The mapping has no key 'module.name' (run.py:12)"),
        (
            raised("ValueError: the schedule is empty", "/job/run.py:9:plan:raise ValueError(text)"),
            "`plan` raises ValueError: the schedule is empty (run.py:9)",
        ),
    ],
)
def test_the_headline_names_what_the_message_names(log: str, headline: str, triage: Triage) -> None:
    assert explained(triage, log, language="en").headline == headline


def test_that_every_example_reads_in_both_languages_without_a_blank() -> None:
    """Each form's example, raised in the job's own code, is read by that form or by a more exact one."""
    corpus, wrong = whole_corpus(), []
    seen: set[str] = set()
    for form in corpus.message_forms:
        for example in form.examples:
            cause = real_causes()[next(iter(form.causes), "framework-bug")]
            type_name, _, body = example.partition(": ")
            root = failed(cause=cause.id, exception=type_name, body=body or example)
            found = formed_message(report(root), cause, corpus)
            if found is None:
                continue
            seen.add(found.form.id)
            languages: tuple[Language, Language] = ("en", "zh")
            for language in languages:
                told = [found.headline(language), found.means(language), found.look(language)]
                wrong += [text for text in told if re.search(r"[{}]", text)]
                wrong += [text for text in told if text and is_chinese(text) != (language == "zh")]
    assert wrong == []
    # The others need a traceback's call, or a fact of the log.
    assert len(seen) > 0.8 * len(corpus.message_forms)


def form(**fields: object) -> MessageForm:
    """Make a form of a message that names a door."""
    made = {
        "id": "door",
        "cue": "door",
        "expression": r"the door (?P<door>\S+) is shut",
        "examples": ["the door A is shut"],
        "headline": text("Door `{door}`"),
        "means": text("It is shut"),
    }
    return MessageForm.model_validate({**made, **fields})


def test_that_a_form_is_told_only_of_the_cause_that_its_line_speaks_for() -> None:
    corpus, causes = library(), real_causes()
    rows = [
        ({}, "disk-full", True),
        ({}, "port-in-use", False),
        ({"causes": ["port-in-use"]}, "port-in-use", True),
        ({"causes": ["port-in-use"]}, "disk-full", False),
    ]
    told = report(failed(cause="disk-full", body="the door A is shut"))
    for fields, cause, expected in rows:
        known = corpus.__class__(corpus.causes, {}, {}, message_forms=(form(**fields),))
        assert (formed_message(told, causes[cause], known) is not None) is expected, (fields, cause)


def test_that_what_a_log_puts_into_a_sentence_is_short_and_no_markup() -> None:
    """A name with a backtick cannot end the code span that it stands in, and a long one is not told."""
    corpus, cause = library(), real_causes()["disk-full"]
    known = corpus.__class__(corpus.causes, {}, {}, message_forms=(form(),))
    rows = [
        ("A`**b**`", "Door `A'**b**'`"),
        ("A" * LONGEST, f"Door `{'A' * LONGEST}`"),
        ("A" * (LONGEST + 1), None),
    ]
    for name, headline in rows:
        told = report(failed(cause="disk-full", body=f"the door {name} is shut"))
        found = formed_message(told, cause, known)
        assert (found and found.headline("en")) == headline, name


@each_row(
    ("log", "headline", "said"),
    [
        (
            raised(
                "TypeError: Card.make() got an unexpected keyword argument 'private'",
                "/job/run.py:12:main:trainer.push(private=True)",
                f"{SITE}/lark/trainer.py:7:push:self.card.make(**kwargs)",
            ),
            "`Card.make()` has no argument `private`, which the job's own call passes (run.py:12)",
            "`trainer.push(private=True)`, gives `private`",
        ),
        (
            raised(
                "RuntimeError: Error(s) in loading state_dict for Net:\n"
                '\tMissing key(s) in state_dict: "stem.weight". \n'
                '\tUnexpected key(s) in state_dict: "_orig_mod.stem.weight". ',
                "/job/run.py:12:main:net.load_state_dict(state)",
            ),
            "The keys differ by the prefix `_orig_mod.` of torch.compile (run.py:12)",
            "No weight is missing.",
        ),
        (
            raised(
                "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
                "/job/run.py:12:main:loss.backward()",
            ),
            "The loss has no graph to go back through (run.py:12)",
            "What `loss.backward()` at `run.py:12` differentiates",
        ),
        (
            raised(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.50 GiB. GPU 0 has a total "
                "capacity of 23.64 GiB of which 2.25 GiB is free.",
                "/job/run.py:12:main:order = scores.argsort()",
            ),
            (
                "GPU out of memory in the program's own computation, outside training: "
                "6.50 GiB asked, 2.25 GiB free of 23.64 GiB (run.py:12)"
            ),
            "`order = scores.argsort()` at `run.py:12` asks for 6.50 GiB at once.",
        ),
        (
            raised(
                "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
                "/job/run.py:12:main:rows = json.load(stream)",
                "/usr/lib/python3.11/json/decoder.py:355:raw_decode:raise JSONDecodeError(text, s)",
            ),
            "What is read as JSON is empty or no JSON (run.py:12)",
            "The text that is parsed at `run.py:12` fails at its very first character",
        ),
        (
            "train.py: error: argument --epochs: invalid int value: '1e3'\n",
            "--epochs is '1e3', which is no int",
            "The option --epochs is read as int",
        ),
    ],
)
def test_the_statement_and_the_rows_below_are_read_too(
    log: str, headline: str, said: str, triage: Triage
) -> None:
    answer = explained(triage, log, language="en")
    assert answer.headline == headline
    assert said in answer.explanation


def test_that_what_any_program_says_is_not_traced_to_a_source(triage: Triage) -> None:
    """The interpreter's own words stand in C++ argument parsers too; the call of a script is none of them."""
    log = raised("TypeError: fit() missing 1 required positional argument: 'loader'")
    assert explained(triage, log, language="en").sources == ()


def test_that_a_phase_is_told_only_by_the_calls_of_the_failure_itself(triage: Triage) -> None:
    """A line that some other process prints of its loading says nothing of a failure elsewhere."""
    log = (
        "Loading checkpoint shards: 100%|#| 4/4 [00:10<00:00]\nOSError: [Errno 28] No space left on device\n"
    )
    assert "loading" not in explained(triage, log, language="en").headline
