"""Prompts: built-in templates, templates from files, and few-shot examples."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from llm_labeler.records import (
    CHANGES,
    POLARITIES,
    ChangeKind,
    Message,
    Polarity,
    content_hash,
)
from llm_labeler.settings import TASKS, PromptSettings
from pairkit.base.errors import ConfigError
from pairkit.dataset.reading.reader import read_pairs
from pairkit.dataset.records import label_scale

PAPER_NAME = "paper"
_BUILT_IN_NAMES = (PAPER_NAME, "hardened")
# Changing a template changes the keys of stored answers.
_BUILT_IN = Path(__file__).with_name("templates")

# Examples are sent with every question and cost tokens.
_MAX_EXAMPLES = 32  # texts
_MAX_CHARACTERS = 100_000  # of texts and sentences

# Placeholders are replaced in one pass, so braces in a text are kept.
_PLACEHOLDER = re.compile(r"\{(size|text|json_text|polarity)\}")
_ADJECTIVES = {"positive": "synonymous", "negative": "antonym"}
_CHANGE_WORDS: Mapping[ChangeKind, str] = {
    "negation": "negation (deny it, or leave a denial out)",
    "antonym": "antonym (a word's opposite)",
    "entity": "entity (another thing of the same kind)",
    "number": "number (another amount)",
    "role": "role (swap who does what to whom)",
    "tense": "tense (another time)",
    "modality": "modality (what may be made what must be, or the like)",
}

# By polarity: texts with their sentences.
Examples = dict[Polarity, tuple[tuple[str, tuple[str, ...]], ...]]


@dataclass(frozen=True, slots=True)
class Template:
    """A question for each polarity, a system message (empty: none), and few-shot examples."""

    name: str
    user: Mapping[Polarity, str]
    system: str = ""
    examples: Examples = field(default_factory=dict)

    def opening(self, polarity: Polarity) -> tuple[Message, ...]:
        """The messages before the question: system message and examples."""
        turns = [Message("system", self.system)] if self.system else []
        # The answers have the form that the prompt requests.
        as_json = '"sentences"' in self.system + self.user[polarity]
        for text, sentences in self.examples.get(polarity, ()):
            if as_json:
                answer = json.dumps({"sentences": sentences}, ensure_ascii=False)
            else:
                answer = "\n".join(
                    f"{number}. {sentence}"
                    for number, sentence in enumerate(sentences, 1)
                )
            question = self.question(text, len(sentences), polarity)
            turns += [question, Message("assistant", answer)]
        return tuple(turns)

    def question(self, text: str, size: int, polarity: Polarity) -> Message:
        """The last message, which requests `size` sentences for the text."""
        values = {
            "size": str(size),
            "text": text,
            "json_text": json.dumps(text, ensure_ascii=False),
            "polarity": _ADJECTIVES[polarity],
        }
        template = self.user[polarity]
        return Message(
            "user", _PLACEHOLDER.sub(lambda match: values[match[1]], template)
        )

    def prompt_hash(self, size: int, polarity: Polarity, sample: int = 0) -> str:
        """Hash of everything in the chat but the text."""
        examples = _hashed_texts(self.examples.get(polarity, ()))
        sampling = ["sample", str(sample)] if sample else []
        return content_hash(
            self.system, self.user[polarity], str(size), *examples, *sampling
        )

    @property
    def examples_summary(self) -> str:
        """Number of example texts and their hash, for run.json."""
        examples = [*chain(*self.examples.values())]
        number = len(dict(examples))
        return f"of {number} texts, digest {content_hash(*_hashed_texts(examples))}"


def _hashed_texts(examples: Iterable[tuple[str, tuple[str, ...]]]) -> list[str]:
    """The texts, each after an empty string and before its sentences."""
    return [part for text, sentences in examples for part in ("", text, *sentences)]


def load_template(settings: PromptSettings, task: str) -> Template:
    """Load the template and the examples that the settings name."""
    name = settings.template
    prompt = TASKS[task].prompt
    if name == task and prompt:
        questions = {polarity: prompt[polarity] for polarity in POLARITIES}
        template = Template(name, questions, prompt["system"])
    elif name in _BUILT_IN_NAMES:
        template = _from_file(_BUILT_IN / f"{name}.toml", POLARITIES)
    else:
        template = _from_file(Path(name), settings.polarities)
    changes = "; ".join(_CHANGE_WORDS[kind] for kind in settings.changes)
    user = {
        polarity: question.replace("{changes}", changes)
        for polarity, question in template.user.items()
    }
    examples = _read_examples(settings.examples, task) if settings.examples else {}
    return replace(template, name=name, user=user, examples=examples)


def _read_examples(path: Path, task: str) -> Examples:
    """Read few-shot examples in the file's order; hard negatives begin with their kind."""
    with_kinds = TASKS[task].has_hard_negatives
    rows = read_pairs(path).rows
    half = label_scale(rows["label"]) / 2
    # A dict of sentences keeps their order, and each once.
    by_polarity: dict[Polarity, dict[str, dict[str, None]]] = {
        "positive": {},
        "negative": {},
    }
    for row in rows.iter_rows(named=True):
        polarity: Polarity = "positive" if row["label"] > half else "negative"
        sentence = " ".join(row["text2"].split())
        kind = row.get("negative_kind")
        if with_kinds and polarity == "negative" and kind in CHANGES:
            sentence = f"{kind}: {sentence}"
        by_polarity[polarity].setdefault(row["text1"], {})[sentence] = None
    examples = {}
    for polarity, by_text in by_polarity.items():
        examples[polarity] = tuple((text, tuple(by_text[text])) for text in by_text)
    _check_number(path, examples)
    return examples


def _check_number(path: Path, examples: Examples) -> None:
    """Refuse no examples, and more than a question should have."""
    all_examples = [*chain(*examples.values())]
    number = len(dict(all_examples))
    characters = sum(map(len, _hashed_texts(all_examples)))
    if not 0 < number <= _MAX_EXAMPLES or characters > _MAX_CHARACTERS:
        raise ConfigError(
            f"{path}: {number:,} example texts with {characters:,} characters would be sent with the questions;"
            f" give 1 to {_MAX_EXAMPLES} texts with at most {_MAX_CHARACTERS:,} in --examples"
        )


def _from_file(path: Path, polarities: tuple[Polarity, ...]) -> Template:
    is_toml = path.suffix.lower() == ".toml"
    try:
        content = path.read_text(encoding="utf-8-sig")
        table = tomllib.loads(content) if is_toml else {}
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: no such template; expected paper, hardened or a file"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: can't be read as a template ({error})") from error
    if not is_toml:
        table = dict.fromkeys(polarities, content.strip())
        if len(polarities) > 1 and "{polarity}" not in content:
            raise ConfigError(
                f"{path}: has no {{polarity}}, so both polarities would get the same prompt; add it, or write a"
                " .toml file with positive and negative"
            )
    are_texts = all(isinstance(value, str) for value in table.values())
    if not are_texts or table.keys() - {"system", *POLARITIES}:
        raise ConfigError(
            f"{path}: expected strings positive, negative and system; found {sorted(table)}"
        )
    for polarity in polarities:
        if polarity not in table:
            raise ConfigError(
                f"{path}: has no {polarity} prompt; add it, or set prompt.polarities"
            )
        _check_placeholders(path, table[polarity])
    user = {polarity: table[polarity] for polarity in polarities}
    return Template(str(path), user, table.get("system", ""))


def _check_placeholders(path: Path, template: str) -> None:
    placeholders = _PLACEHOLDER.findall(template)
    missing = {"text", "size"} - {name.removeprefix("json_") for name in placeholders}
    if missing:
        names = " and ".join(f"{{{name}}}" for name in sorted(missing))
        raise ConfigError(
            f"{path}: has no {names}; add it: {{text}} is replaced by the sentence, {{size}} by the number of"
            " sentences"
        )
