"""What leads a reader away: ways to reach somebody, sums to pay, commands; and what only looks like one."""

from __future__ import annotations

from service.llm.contacts import lead
from tests.tables import each_row


@each_row(
    ("text", "leads"),
    [
        # Numbers to call, accounts and wallets, sums, messengers, persons.
        ("The path of the folder that holds dataset.zarr or model.pth, in full.", False),
        ("Read dataset.zip there.", True),
        ("The line is 0900-1122.", True),
        ("It is DE89 3704 0044 0532 0130 00.", True),
        ("It goes to 0xdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef.", True),
        ("It goes to TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE.", True),
        ("A fee of 300 EUR opens the card.", True),
        ("It takes $500.", True),
        ("The price is 20 元.", True),
        ("They are on Viber.", True),
        ("加V信", True),
        ("The key is with him.", True),
        ("It was s e n d i t that failed.", True),
        # Commands, however many words stand before their options.
        ("git push --force origin main", True),
        ("kubectl delete ns --all", True),
        # Sizes, shapes, signals, times and ranks.
        ("It asked for 17179869184 bytes.", False),
        ("The shape is 32 x 4096 x 2.", False),
        ("The process got kill -9 from the kernel.", False),
        ("Ranks 0 - 7 failed at 2026-01-01 08:00.", False),
        ("The learning rate is 0.0005, the loss 0.5.", False),
        ("The script passes $1 on.", False),
        # What a configuration fills in itself.
        ("${hydra:runtime.cwd}/data", False),
        ("${hydra:evil.example}/data", True),
    ],
)
def test_what_leads_a_reader_away_is_known(text: str, leads: bool) -> None:
    """By its form alone, whatever the words around it."""
    assert bool(lead(text)) is leads
