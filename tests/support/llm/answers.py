"""Answers by fixed rules: the right format without meaning."""

import json
import re
from hashlib import blake2b


def digest(*parts):
    """A number of 64 bits from anything that can be printed."""
    return int.from_bytes(
        blake2b(repr(parts).encode("utf-8", "replace"), digest_size=8).digest()
    )


# JSON quotes.
_SENTENCE = (
    re.compile(r"Input sentence: (.*)\. Output:", re.DOTALL),  # the papers' prompt
    re.compile(r"^(?:Sentence|Passage|Question): (\".*\")\s*$", re.MULTILINE),
)
_NEGATIVE = re.compile(
    r"antonym|opposite|contradict|negative|misled|does not answer|wrong", re.IGNORECASE
)
_NUMBERED = re.compile(r"^\s*(\d+)[.):]\s*(.*)$", re.MULTILINE)
_LEADS = (
    "In other words,",
    "That is to say,",
    "Put differently,",
    "Said again:",
    "To rephrase,",
)
_NEGATIVE_LEADS = (
    "It is not so that",
    "It is wrong that",
    "Nobody says that",
    "Never did",
    "By no means",
)
_MOST = 100


def text_of(messages):
    """All messages as one string."""
    return "\n".join(str(message.get("content", "")) for message in messages)


def answer(model, messages, schema=None):
    """The answer to a chat: a numbered list, lines of votes, or JSON that fits the schema."""
    prompt = text_of(messages[-1:])
    asked = text_of(messages)
    if "## Negative" in asked:  # distilabel's GenerateSentencePair
        return f"## Positive\n\nIn other words, {prompt}\n\n## Negative\n\nIt is not so that {prompt}"
    if "unrelated" in asked or "\n- related:" in asked:
        items = _votes(prompt)
    else:
        items = _candidates(
            model,
            prompt,
            is_negative=bool(_NEGATIVE.search(asked.replace(_of(prompt), ""))),
        )
    if "search questions" in asked:
        items = [f"Is it so that {item.rstrip('.?')}?" for item in items]
    if isinstance(schema, dict):
        return json.dumps(_fitting(schema, items), ensure_ascii=False)
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


def _of(prompt):
    """The sentence in the prompt."""
    for pattern in _SENTENCE:
        if found := pattern.search(prompt):
            return str(found[1])
    return prompt.strip().rpartition("\n")[2]


def _candidates(model, prompt, *, is_negative):
    quoted = _of(prompt)
    sentence = (
        json.loads(quoted) if quoted.startswith('"') and _is_json(quoted) else quoted
    )
    wanted = re.search(r"\b(\d{1,3})\b", prompt.replace(quoted, ""))
    size = min(_MOST, int(wanted[1])) if wanted else 3
    leads = _NEGATIVE_LEADS if is_negative else _LEADS
    words = str(sentence).split() or [""]
    turn = digest(426, model) % len(leads)  # the usual models agree in part
    found = []
    for index in range(size):
        cut = (index // len(leads) + 1) * len(words) // 2 % len(words)
        times = "" if index < len(leads) else f" {index}"
        rest = " ".join(words[cut:] + words[:cut])
        found.append(f"{leads[(turn + index) % len(leads)]}{times} {rest}")
    return found


def _votes(prompt):
    """A vote for each sentence of a judge's question; sentences of `_candidates` are known by their start."""
    try:
        sentences = [
            str(sentence) for sentence in json.loads(prompt)["sentences"].values()
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        sentences = [text.strip("\"' ") for _, text in _NUMBERED.findall(prompt)]
    return [
        "opposite" if sentence.startswith(_NEGATIVE_LEADS) else "same"
        for sentence in sentences
    ]


def _fitting(schema, items):
    """A value with the types of a JSON schema: lists have all items, each field of an object has one."""
    kind = schema.get("type")
    if kind == "object":
        inner = schema.get("properties", {})
        found = {}
        for name, part in inner.items():
            found[name] = _fitting(part, items)
            # A field with an enum that has no item uses up none of them.
            taken = _is_plain(part) and (
                not part.get("enum") or items[:1] == [found[name]]
            )
            items = items[1:] if taken else items
        return found
    if kind == "array":
        return [_fitting(schema.get("items", {}), [item]) for item in items]
    choices = schema.get("enum")
    first = items[0] if items else ""
    return first if not choices or first in choices else choices[0]


def _is_plain(schema):
    return schema.get("type") not in ("object", "array")


def _is_json(text):
    try:
        return isinstance(json.loads(text), str)
    except json.JSONDecodeError:
        return False
