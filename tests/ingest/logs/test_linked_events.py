"""An earlier line is the root where a name ties it to the end, and none where its process lived on."""

from tests.factories import ReadLog, prefixed, traceback
from tests.tables import each_row

WARNED = (
    "WARNING 02-28 20:57:36 _core_ext.py:180] Failed to import from vllm._core_C with "
    "ImportError('libtorch_hip.so: cannot open shared object file: No such file or directory')\n"
)
MISSED = "RuntimeError: Tried to instantiate class '_core_C.ScalarType', but it does not exist!"
OTHER = "RuntimeError: the moon_phase is in the wrong house"
TASK = (
    "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False."
)
KILLED = (
    "(raylet) [2024-12-19 19:17:52,141 E 58 58] (raylet) node_manager.cc:3069: {count} Workers (tasks / "
    "actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 08be)\n"
)
FIRST, SECOND = "(inner_loop pid=11) ", "(inner_loop pid=12) "


@each_row(
    "text, is_tied",
    [
        (WARNED + traceback(MISSED), True),
        (WARNED + traceback(OTHER), False),
        (traceback(MISSED) + WARNED, False),
    ],
)
def test_that_a_warning_is_the_root_where_it_names_what_is_missed(
    text: str, is_tied: bool, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert (root.text in WARNED) == is_tied
    assert root.cause is not None or not is_tied


@each_row(
    "text, is_killed",
    [
        (2 * prefixed(FIRST, traceback(TASK)) + KILLED.format(count=9), True),
        (prefixed(FIRST, traceback(TASK)) + KILLED.format(count=9), False),
        (
            prefixed(FIRST, traceback(TASK)) + prefixed(SECOND, traceback(TASK)) + KILLED.format(count=9),
            False,
        ),
        (traceback(TASK) + KILLED.format(count=9), False),
        (KILLED.format(count=2) + 2 * prefixed(FIRST, traceback(TASK)), True),
    ],
)
def test_that_what_a_process_says_again_is_not_what_ended_it(
    text: str, is_killed: bool, read: ReadLog
) -> None:
    root = read(text).root
    assert root is not None
    assert (root.kind == "kill") == is_killed
