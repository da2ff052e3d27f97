"""What a file says to its readers alone shows nothing that runs."""

from __future__ import annotations

from ingest.configfiles.remarks import without_remarks
from tests.tables import each_row


@each_row(
    ("text", "left"),
    [
        ("# trl/trainer\nx = 1\ntrain.py", "\nx = 1\ntrain.py"),
        (
            'def f():\n    """Like trl/trainer.\n\n    More.\n    """\n    return 1\na.py',
            "def f():\n\n\n\n\n    return 1\na.py",
        ),
        ('text = """\n# kept? a row of the text\n"""\na.py', 'text = """\n\n"""\na.py'),
        ("#!/bin/bash\n#SBATCH -t 5\n  # salloc\nrun\nrun.sh", "#!/bin/bash\n#SBATCH -t 5\n\nrun\nrun.sh"),
    ],
)
def test_that_remarks_go_and_rows_keep_their_numbers(text: str, left: str) -> None:
    assert without_remarks(text) == left
