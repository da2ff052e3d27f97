"""An extension that was built without its GPU part says so to whoever hands it a tensor of a card."""

from __future__ import annotations

from tests.factories import ReadLog, traceback
from tests.tables import each_row


@each_row(
    "said, cause",
    [
        ("Not compiled with GPU support", "abi-mismatch"),
        ("roi_align_rotated is not compiled with GPU support", "abi-mismatch"),
        ("attn_softmax_inplace_forward_ not implemented on CPU", "abi-mismatch"),
        # Here it is the tensor that does not lie on a card.
        ("Not implemented on the CPU", "user-code-error"),
    ],
)
def test_that_an_extension_without_its_gpu_part_is_to_be_built_again(
    said: str, cause: str, read: ReadLog
) -> None:
    root = read(traceback(f"RuntimeError: {said}")).root
    assert root is not None
    assert root.cause == cause
