"""Which part of an answer is the answer: thoughts, echoed prompts and made-up turns stand around it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from llm_labeler._parse import wording
from llm_labeler._parse.source import Source, tidy

_THOUGHT = re.compile(
    r"<(?P<slash>/?)(?:think(?:ing)?|thoughts?|reasoning)>|\[(?P<slash2>/?)THINK\]|◁(?P<slash3>/?)think▷",
    re.IGNORECASE,
)
# Channels of gpt-oss whose marks were lost: "analysisThe user wants … assistantfinal1. …".
_LOST_MARKS = re.compile(r"\s{0,20}(?:analysis|commentary)(?=[A-Z])")
_LOST_FINAL = re.compile(r"(?<=[.!?。)\"”\s])assistant(?:commentary|analysis)?final")


def _of_role(role: str) -> str:
    """How families of models mark that a role speaks: Llama, ChatML, Gemma, Cohere, Granite and EXAONE."""
    return (
        rf"<\|(?:im_)?(?:start\|>)?{role}(?:_token)?\|>|<\|im_start\|>{role}|<\|start\|>{role}|<start_of_turn>{role}"
        rf"|<\|(?:start_header_id|header_start)\|>{role}<\|(?:end_header_id|header_end)\|>"
        rf"|<\|start_of_role\|>{role}<\|end_of_role\|>|\[\|{role}\|\]"
    )


# Full-width signs, as DeepSeek's marks have them, are narrow here.
_CHAT = re.compile(
    r"(?P<thought><\|channel\|>(?:analysis|commentary)<\|message\|>)"
    rf"|(?P<prompt>\[INST\]|{_of_role('(?:user|human|system|developer|observation)')})"
    r"|(?P<answer>\[/INST\]|(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>"
    rf"|{_of_role('(?:assistant|model|chatbot|bot)')})"
    r"|(?P<end></s>|<\|(?:im_end|eot(?:_id)?|eom_id|endoftext|end_of_text|end|return|eos|end_of_turn(?:_token)?"
    r"|end▁of▁sentence)\|>|<(?:end_of_turn|eos|eop)>|\[\|endofturn\|\])"
    r"|(?P<none><s>|<</?SYS>>|<\|(?:begin_of_text|message|pad|im_middle|start_of_turn_token|begin▁of▁sentence)\|>"
    r"|<(?:bos|pad|unk|sop)>|\[g?MASK\])",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"(?:please |can you |could you |now )?(?:write|generate|give|rewrite|paraphrase|rephrase|produce|create"
    r"|provide|list|negate|your (?:job|task)|you are)\b|请|生成|改写",
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
    if _LOST_MARKS.match(raw) and (final := _LOST_FINAL.search(raw)):
        return raw[final.end() :], [raw[: final.start()]]
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
