"""Texts with more tokens than a model takes: which of them it sees, and in how many pieces."""

from __future__ import annotations

from typing import Literal

from pairkit.errors import ConfigError

LongText = Literal["truncate", "head-tail", "chunks"]


def pieces(ids: list[int], room: int, mode: LongText = "truncate", overlap: int = 0) -> list[list[int]]:
    """Cut a text's own token ids into pieces of at most `room`; a text that fits is one piece.

    Args:
        ids: Without special tokens and prompt.
        room: At least 1.
        mode: `truncate` keeps the head; `head-tail` keeps head and tail, see `head_tail`; `chunks` keeps
            everything, see `windows`.
        overlap: Tokens that neighbouring chunks share at least; half of `room` at most.

    Raises:
        ConfigError: `overlap` without chunks, or out of range.
    """
    check_overlap(room, mode, overlap)
    if len(ids) <= room:
        return [ids]
    if mode == "truncate":
        return [ids[:room]]
    if mode == "head-tail":
        head, tail = head_tail(room)
        return [ids[:head] + ids[len(ids) - tail :]]
    return [ids[start:stop] for start, stop in windows(len(ids), room, overlap)]


def check_overlap(room: int, mode: LongText, overlap: int) -> None:
    """Refuse an overlap that means nothing, or by which a text would be many times as much work.

    Half a chunk encodes each token twice at most; a chunk less one token would encode it `room` times, and a
    model's folder, which may be a stranger's, says how large the overlap is.

    Raises:
        ConfigError: See `pieces`.
    """
    if overlap and mode != "chunks":
        raise ConfigError(
            f"overlap {overlap} with long_text {mode!r}: only chunks overlap; use long_text chunks"
        )
    if not 0 <= overlap <= room // 2:
        raise ConfigError(
            f"overlap {overlap}: expected 0 to {room // 2}, at most half of a chunk's own {room} tokens"
        )


def head_tail(room: int) -> tuple[int, int]:
    """A quarter for the head, the rest for the tail: 128 + 382 of 510, as in Sun et al. (2019)."""
    head = (room + 2) // 4
    return head, room - head


def windows(length: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """The fewest windows (start, stop) of at most `room` tokens over `length`, sharing `overlap` each.

    All are equally long, give or take one token: a short last window would weigh as much in a text's mean as
    a full one, and windows of one length are attended to together.
    """
    count = max(1, -(-(length - overlap) // (room - overlap)))
    size, longer = divmod(length + (count - 1) * overlap, count)
    spans, start = [], 0
    for number in range(count):
        stop = start + size + (number < longer)
        spans.append((start, stop))
        start = stop - overlap
    return spans
