"""Which part of an answer is the answer: thoughts, echoed prompts and made-up turns stand around it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from llm_labeler.parse import wording
from llm_labeler.parse.source import Source, tidy

_THOUGHT = re.compile(
    r"<(?P<slash>/?)(?:think(?:ing)?|thoughts?|reasoning)>|\[(?P<slash2>/?)THINK\]|◁(?P<slash3>/?)think▷",
    re.IGNORECASE,
)
_CHAT = re.compile(
    r"(?P<thought><\|channel\|>(?:analysis|commentary)<\|message\|>)"
    r"|(?P<prompt>\[INST\]|<\|(?:user|system|observation)\|>|<\|im_start\|>(?:user|system)"
    r"|<\|start_header_id\|>(?:user|system)<\|end_header_id\|>|<start_of_turn>user"
    r"|<\|start\|>(?:user|system|developer))"
    r"|(?P<answer>\[/INST\]|<\|assistant\|>|<\|im_start\|>assistant"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model"
    r"|(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>|<\|start\|>assistant)"
    r"|(?P<end></s>|<\|(?:im_end|eot_id|eom_id|endoftext|end_of_text|end|return|eos)\|>"
    r"|<｜end▁of▁sentence｜>|<(?:end_of_turn|eos|eop)>)"
    r"|(?P<none><s>|<</?SYS>>|<\|(?:begin_of_text|message|pad)\|>|<｜begin▁of▁sentence｜>"
    r"|<(?:bos|pad|unk|sop)>|\[g?MASK\])"
)
_REQUEST = re.compile(
    r"(?:please |can you |could you |now )?(?:write|generate|give|rewrite|paraphrase|rephrase|produce"
    r"|create|provide|list"
    r"|negate|your (?:job|task)|you are)\b|请|生成|改写",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Parts:
    """An answer's text and, in order, what stands around it, each with the reason it is turned down for."""

    text: str
    before: list[tuple[str, str]] = field(default_factory=list)
    after: list[tuple[str, str]] = field(default_factory=list)


def answer_of(raw: str, source: Source) -> Parts:
    """Find the answer proper."""
    said, thoughts = _without_thoughts(raw)
    turns = _turns(said, source)
    place = _first_answer(turns)
    before = [(_reason(kind, "echo"), text) for kind, text in turns[:place]]
    after = [(_reason(kind, "runaway"), text) for kind, text in turns[place + 1 :]]
    around = [("thinking", thought) for thought in thoughts]
    return Parts(
        turns[place][1] if place < len(turns) else "",
        [(reason, text) for reason, text in (*around, *before) if text.strip()],
        [(reason, text) for reason, text in after if text.strip()],
    )


def _without_thoughts(raw: str) -> tuple[str, list[str]]:
    """What is said and what is thought; an end without a beginning ends a thought that began at once."""
    said: list[str] = []
    thoughts: list[str] = []
    place, thinking = 0, False
    for match in _THOUGHT.finditer(raw):
        chunk, place = raw[place : match.start()], match.end()
        if match["slash"] or match["slash2"] or match["slash3"]:
            thoughts.append(chunk if thinking else "".join((*said, chunk)))
            said, thinking = (said if thinking else []), False
        elif thinking:
            thoughts.append(chunk)
        else:
            said.append(chunk)
            thinking = True
    (thoughts if thinking else said).append(raw[place:])
    return "".join(said), thoughts


def _turns(said: str, source: Source) -> list[tuple[str, str]]:
    """Stretches between chat marks, each with what its mark makes of it."""
    turns = [("start", "")]
    place = 0
    pending: list[str] = []
    for match in _CHAT.finditer(said):
        pending.append(said[place : match.start()])
        place = match.end()
        if match.lastgroup != "none":
            turns[-1] = (turns[-1][0], "".join(pending))
            turns.append((match.lastgroup or "none", ""))
            pending = []
    turns[-1] = (turns[-1][0], "".join((*pending, said[place:])))
    # Before the first mark of an answer stands the prompt, or the answer of a model that goes on.
    if len(turns) > 1 and turns[1][0] == "answer" and turns[1][1].strip() and _asks(turns[0][1], source):
        turns[0] = ("prompt", turns[0][1])
    return turns


def _asks(text: str, source: Source) -> bool:
    said = tidy(text[:2000])
    return wording.echoes(said, source) or _REQUEST.match(said) is not None


def _first_answer(turns: list[tuple[str, str]]) -> int:
    """The place of the answer among the turns; their number if there is none."""
    for kinds in (("start", "answer"), ("end",)):
        for place, (kind, text) in enumerate(turns):
            if kind in kinds and text.strip():
                return place
    return len(turns)


def _reason(kind: str, otherwise: str) -> str:
    return "thinking" if kind == "thought" else otherwise
