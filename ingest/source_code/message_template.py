"""The text that a statement raises, in fixed pieces and expressions, and what a line tells of these.

Whoever wrote the message put the values of a check into it; held against the statement, they say which is
whose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from string import Formatter

# Fixed words and expressions in their order.
Pieces = tuple[str | ast.expr, ...]
MOST_PIECES, LONGEST_VALUE = 40, 200
# Fixed words that say less are found by chance.
LEAST_FIXED = 8
_PERCENT = re.compile(r"%(?:\([^)]*\))?[-+ #0]*\d*(?:\.\d+)?([a-zA-Z%])")


def pieces_of(expression: ast.expr, assigned: Mapping[str, ast.expr], depth: int = 2) -> Pieces:
    """Give the pieces of a text's expression; nothing where it is none that can be read."""
    match expression:
        case ast.Constant(value=str(text)):
            return (text,)
        case ast.JoinedStr(values=values):
            return tuple(
                part.value if isinstance(part, ast.FormattedValue) else str(ast.literal_eval(part))
                for part in values[:MOST_PIECES]
            )
        case ast.BinOp(left=left, op=ast.Add(), right=right) if depth:
            one, other = pieces_of(left, assigned, depth), pieces_of(right, assigned, depth)
            return (*(one or (left,)), *(other or (right,)))[:MOST_PIECES]
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=filled):
            return _percent_pieces(text, filled)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return _format_pieces(text, expression)
        case ast.Name(id=name) if depth and name in assigned:
            return pieces_of(assigned[name], assigned, depth - 1)
        case _:
            return ()


def _percent_pieces(text: str, filled: ast.expr) -> Pieces:
    """Give the pieces of a text that `%` fills."""
    values = list(filled.elts) if isinstance(filled, ast.Tuple) else [filled]
    found: list[str | ast.expr] = []
    end = 0
    for match in _PERCENT.finditer(text):
        found.append(text[end : match.start()])
        end = match.end()
        if match[1] == "%":
            found.append("%")
        elif values:
            found.append(values.pop(0))
    return (*found, text[end:])[:MOST_PIECES]


def _format_pieces(text: str, call: ast.Call) -> Pieces:
    """Give the pieces of a text that `str.format` fills; none where what fills a blank does not show."""
    named = {word.arg: word.value for word in call.keywords if word.arg}
    found: list[str | ast.expr] = []
    try:
        fields = list(Formatter().parse(text))
    except ValueError:
        return ()
    # A blank without a name takes the next argument, whatever named ones stand between.
    unnamed = iter(call.args)
    for fixed, field, _, _ in fields:
        found.append(fixed)
        if field is None:
            continue
        if field.isdecimal():
            value = call.args[int(field)] if int(field) < len(call.args) else None
        else:
            value = named.get(field) if field else next(unnamed, None)
        if value is None or isinstance(value, ast.Starred):
            return ()
        found.append(value)
    return tuple(found)[:MOST_PIECES]


def told_values(pieces: Pieces, text: str) -> dict[str, str]:
    """Give what a line tells of the expressions, by how they are written; nothing where it is another's.

    Fixed words are looked for in their order, so that it takes one way through the line.
    """
    line = " ".join(text.split())
    joined = _joined(pieces)
    if sum(len(piece.strip()) for piece in joined if isinstance(piece, str)) < LEAST_FIXED:
        return {}
    found: dict[str, str] = {}
    end: int | None = None
    waiting: ast.expr | None = None
    for piece in joined:
        if not isinstance(piece, str):
            # Of two values with nothing between, nobody knows where one ends.
            waiting = piece if waiting is None else None
            continue
        place = line.find(piece, end or 0)
        if place < 0:
            return found if end is not None else {}
        if waiting is not None:
            # What stands before the first fixed words begins nobody knows where: its last word counts.
            told = line[end:place] if end is not None else line[:place].rpartition(" ")[2]
            if 0 < len(told) <= LONGEST_VALUE:
                found[ast.unparse(waiting)] = told.strip("'\" ")
        end, waiting = place + len(piece), None
    if waiting is not None and end is not None and (rest := line[end:].strip("'\" ")):
        found[ast.unparse(waiting)] = rest[:LONGEST_VALUE]
    return found


def is_said(pieces: Pieces, text: str) -> bool | None:
    """Tell whether a line can be what these pieces say: it holds their fixed words in their order.

    None where they are too short to tell. Of a text of several rows a line may be the first.
    """
    fixed: list[str] = []
    for piece in (piece for piece in pieces if isinstance(piece, str)):
        first, _, further = piece.partition("\n")
        fixed.append(" ".join(first.split()))
        if further.strip():
            break
    if sum(map(len, fixed)) < LEAST_FIXED:
        return None
    line, end = " ".join(text.split()), 0
    for words in fixed:
        place = line.find(words, end)
        if place < 0:
            # A line that is cut ends within the words.
            return bool(line[end:]) and words.startswith(line[end:].strip())
        end = place + len(words)
    return True


def _joined(pieces: Pieces) -> list[str | ast.expr]:
    """Join neighbouring fixed words, with single blanks as a line has them."""
    found: list[str | ast.expr] = []
    for piece in pieces:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        else:
            found.append(piece)
    plain = [re.sub(r"\s+", " ", piece) if isinstance(piece, str) else piece for piece in found]
    return [piece for piece in plain if piece != ""]
