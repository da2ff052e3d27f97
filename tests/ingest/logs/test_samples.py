"""Text that a job prints as data is no report of its own failure, nor of its end."""

from ingest.logs.samples import is_prose, without_samples
from tests.factories import OOM, STRANGE, ReadLog, prefixed, traceback
from tests.tables import each_row

FILLER = "INFO one more batch\n"
START = "INFO loading the tokenizer\nINFO starting the rollout\n"
FULL = "OSError: [Errno 28] No space left on device: '/scratch/run-7/state.pt'"
CHAT = "<|im_start|>user\nWhy this:\n{said}\n?<|im_end|>\n<|im_start|>assistant\nToo little.<|im_end|>\n"
VERL = "[prompt] user\nWhat is wrong?\n{said}\n[response] It is full.\n[ground_truth] 42\n[score] 1.0\n"
APEX = "ModuleNotFoundError: No module named 'apex'"

DATA = {
    "quoted prompt": f'sample 17: prompt="why does it say {OOM!r} here?"',
    "prompt with quotes inside": f'sample 17: prompt="why does it say {FULL!r} here?"',
    "vllm's request": f"INFO Received request cmpl-8: prompt: 'what is {OOM}?', params: SamplingParams(n=1)",
    "record of a data set": f'{{"prompt": "explain", "completion": "It says: {OOM}"}}',
    "messages": f'{{"messages": [{{"role": "user", "content": "it died: {OOM}"}}]}}',
    "list of completions": f"completions: ['fine', 'Then comes {OOM}', 'done']",
    "escaped lines": f'{{"question": "Traceback (most recent call last):\\n  x\\n{APEX}"}}',
    "between verl's headings": VERL.format(said=OOM),
    "a traceback between headings": VERL.format(said=traceback(APEX)),
    "behind Ray's prefix": prefixed("(RewardLoopWorker pid=77) ", VERL.format(said=FULL)),
    "a turn of a chat template": CHAT.format(said=OOM),
    "Chinese headings": f"问题：\n为什么\n{OOM}\n回答：\n看文档。\n",
    "marks of begin and end": f"== [DEBUG] RESPONSE_BEGIN ==\n</think>\n{OOM}\n== [DEBUG] RESPONSE_END ==\n",
    "people's prose": "任务失败之后，我们讨论了案件，提到了重要的事情。"
    + 3 * "他们提出了新的思路，也分享了经验。",
    "a story": "In that year he was refused a place and had failed to open the door, so that she gave up and"
    " could not find him until it was killed by the hunters of the old king in the wood.",
    "an article in one record": "Label: During the qualifying on Saturday his car crashed at the corner as it"
    " had lost its wing on the lap before, and the session was stopped at once.",
    "alpaca's headings": f"### Instruction:\nExplain\n{FULL}\n### Response:\nThe disk is full.\n",
}


@each_row("text", DATA.values(), ids=list(DATA))
def test_that_an_error_in_a_printed_sample_is_no_failure(text: str, read: ReadLog) -> None:
    assert read(f"{START}{text}\nINFO next batch\n").root is None
    # Nor does it stand before the job's own, which comes of something else.
    report = read(f"{START}{text}\nINFO next batch\n{traceback(STRANGE)}")
    assert report.root is not None
    assert report.root.body == STRANGE


REAL = {
    "behind the last heading": "[prompt] user\nHow?\n[response] 42\n[ground_truth] 42\n[score] 1.0\n{said}\n",
    "in the answer's place, where nothing follows": "[prompt] user\nHow?\n[response] 4\n{said}\n",
    "between two samples": "[prompt] one\n[response] 4\n{said}\n[prompt] two\n",
    "of another process": "(A pid=1) [prompt] one\n(B pid=2) {said}\n(A pid=1) [score] 1\n",
    "far from the headings": f"[prompt] one\n{400 * FILLER}{{said}}\n{400 * FILLER}[score] 1\n",
    "behind a quoted prompt": 'failed on prompt="How many?": {said}\n',
    "in the answer of a server": '{{"object": "error", "message": "{said}"}}\n',
    "as an exception's value": "reply of the worker: error='{said}'\n",
    "behind an open turn": "<|im_start|>user\nHow many?<|im_end|>\n<|im_start|>assistant\n{said}\n",
    "behind a mark of the end": "== RESPONSE_BEGIN ==\nwell\n== RESPONSE_END ==\n{said}\n",
    "a logger's record": '{{"time": "2025-03-02T10:00:00Z", "level": "error", "message": "{said}"}}\n',
    "a name without quotes": "prompt: {said}\n",
}


@each_row("text", REAL.values(), ids=list(REAL))
def test_that_the_jobs_own_words_beside_a_sample_are_its_own(text: str, read: ReadLog) -> None:
    report = read(START + text.format(said=OOM))
    assert report.root is not None
    assert report.root.cause is not None
    assert OOM[:40] in report.root.text


def test_that_a_samples_praise_is_no_good_end(read: ReadLog) -> None:
    said = "[prompt] Say that you are done.\n[response]\nTraining completed.\n[score] 1.0\n"
    assert read(START + said).finished == 0
    assert read(f"{START}Training completed.\n").finished == 3


@each_row(
    "text, left",
    [
        ("a = 'b'", "a = 'b'"),
        ("text='only one of the lesser names'", "text='only one of the lesser names'"),
        ("mm_per_prompt={'image': 0}, a=B(c='d'), e='f'", "mm_per_prompt={'image': 0}, a=B(c='d'), e='f'"),
        ('messages=[{"role": "user", "content": "left out"}]', 'messages=[{"role": , "content": }]'),
        ("prompt='left out', n=1", "prompt=, n=1"),
        ("prompt='without an end", "prompt='without an end"),
        ('{"input": "left out", "output": "as well"}', '{"input": , "output": }'),
        ("prompts=['one', 'two'], n=1", "prompts=], n=1"),
        ('{"answer": "it\'s \\"so\\"", "error": "kept"}', '{"answer": , "error": "kept"}'),
    ],
)
def test_that_only_values_under_the_names_of_samples_are_left_out(text: str, left: str) -> None:
    assert without_samples(text) == left


@each_row(
    ("text", "expected"),
    [
        (
            "He had gone to the wood with his brother, and there it was killed by those who lived near it.",
            True,
        ),
        (
            "The training job was killed because it had used more than it was allowed to have on that day.",
            False,
        ),
        (
            "ERROR: it could not be found there, and so we have to give up on this one for now and go on.",
            False,
        ),
        ("failed to open the door of the house", False),
    ],
)
def test_what_prose_is(text: str, expected: bool) -> None:
    assert is_prose(text) == expected
