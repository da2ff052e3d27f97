"""What the numbers of two shapes say: which entry is wrong, and which axis lacks."""

from __future__ import annotations

from ingest.logs.stacks.stack import Frame
from service.composition.message_forms import raising_call
from service.composition.shape_arithmetic import missing_axes
from tests.tables import each_row


@each_row(
    ("target", "sizes", "told"),
    [
        ("16, 8, 32, 64", "16, 1, 64", {"fits": "[16, 1, 1, 64]", "axis": "1"}),
        ("16, 8, 32, 32", "16, 1, 32", {"fits": "[16, 1, 1, 32] / [16, 1, 32, 1]", "axis": "1"}),
        ("4, 7, 9", "4, 9", {"fits": "[4, 1, 9]", "axis": "1"}),
        ("4, 7, 9", "4", {"fits": "[4, 1, 1]", "axis": "1"}),
        # As it is, or by no axis at all; as many axes are there as are wanted.
        ("4, 7, 9", "7, 9", {}),
        ("4, 7, 9", "5, 9", {}),
        ("4, 514", "1, 512", {}),
        ("2, 2, 2, 2, 2, 2, 2, 2, 2, 2", "2, 3", {}),
        ("", "", {}),
    ],
)
def test_an_axis_that_lacks_amid_a_shape_is_told(target: str, sizes: str, told: dict[str, str]) -> None:
    """Of a few that would do, all are; in front a tensor gets axes by itself."""
    assert missing_axes(target, sizes) == told


@each_row(
    ("codes", "found"),
    [
        (("client.save()", "return func(*args, **kwargs)"), "client.save()"),
        (
            ("client.save()", "return self._call(name, *args, **kwargs)"),
            "return self._call(name, *args, **kwargs)",
        ),
        (("client.save()", "return func(*a, **kw)", "return func(*args, **kwargs)"), "client.save()"),
        (("return func(*args, **kwargs)",), None),
        ((), None),
    ],
)
def test_what_only_hands_on_is_not_the_call_that_raised(codes: tuple[str, ...], found: str | None) -> None:
    """A decorator's wrapper gives what it got: who called it passed too little."""
    frames = [Frame(f"/job/{place}.py", place + 1, "f", code) for place, code in enumerate(codes)]
    call = raising_call(frames)
    assert (call.code if call else None) == found
