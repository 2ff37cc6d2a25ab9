"""The tasks that make triplets."""

import json

import llm_labeler
import pairkit
from tests.support.llm import serve
from tests.support.shorthand import config_error, data_error, parametrize, table

from .llm_server import entry
from .stored_answers import text_of

SENTENCES = [
    "Stress can often cause insomnia in children.",
    "The doctor should often see the patients with asthma.",
    "Most of these lumps are usually benign.",
    "Swelling of the knee",  # the writer has nothing for it
]


def writer(prompt):
    """Sentences with other kinds of hard negatives for each text; the last has no kind."""
    text = text_of(prompt)
    if text not in SENTENCES[:3]:
        return ""
    if "misled" not in prompt:
        return (
            f"1. {text.replace('often', 'frequently').replace('usually', 'commonly')}"
        )
    negation = f"negation: {text.replace('often', 'never').replace('usually', 'never')}"
    other = f"{text.replace('Stress', 'Noise').replace('.', ' today.')}"
    return f"1. {negation}\n2. {other}"


def generate(out, **changes):
    return llm_labeler.generate(SENTENCES, **{"out": out, "llm": writer} | changes)


def test_triplets_for_training(out):
    only_train = {"split.validation": 0.0, "split.test": 0.0}
    result = generate(out, task="triplet", settings=only_train)
    rows = result.pairs.splits["train"]
    provenance = {"text_id", "llms", "prompt_hashes", "aggregation"}
    assert provenance <= {*rows.columns}
    assert {*rows["text1"]} == {*SENTENCES[:3]}
    assert {*rows["negative_kind"]} == {"negation", None}
    statistics = json.loads((out / "statistics.json").read_text())
    train = statistics["splits"]["train"]
    assert sum(statistics["negative_kinds"].values()) == train["triplets"]
    assert train["texts"] == 3
    assert result.statistics == statistics
    assert "hard negative" in (out / "README.md").read_text()
    assert [path.name for path in out.iterdir() if path.is_dir()] == ["triplet"]


def test_texts_without_both_polarities_are_counted(out):
    def answer(prompt):
        return "" if "misled" in prompt else writer(prompt)

    with data_error("no_negative 1"):
        generate(out, llm=answer, task="triplet", limit=1)


def test_only_requested_kinds_are_asked_for(out):
    prompts = []

    def answer(prompt):
        prompts.append(prompt)
        return writer(prompt)

    chosen = {"prompt.changes": "negation,role"}
    generate(out, llm=answer, task="triplet", settings=chosen)
    kinds = [prompt.partition("kinds: ")[2] for prompt in prompts if "misled" in prompt]
    (changes,) = {text.partition(". Begin")[0] for text in kinds}
    assert "negation" in changes
    assert "role" in changes
    assert "tense" not in changes


def test_queries_become_triplets(out):
    positive = "What can stress cause in children?"
    negative = "Which children have no stress?"

    def answer(prompt):
        return f"1. {negative if 'does not answer' in prompt else positive}"

    generate(out, llm=answer, task="query", limit=1)
    rows = pairkit.read(out).splits["train"].select("text1", "text2", "label").rows()
    assert sorted(rows) == [(SENTENCES[0], positive, 1), (SENTENCES[0], negative, 0)]


@table(r"""
    changes, message
    {'task': 'triplet', 'llm': 'wordnet'} | wordnet is a set of rules, which has only the task paraphrase
    {'task': 'triplet', 'polarity': 'positive'} | makes triplets, which need both
    {'task': 'triplet', 'prompt': 'paper'} | belongs to the task paraphrase; leave it out
    {'task': 'query', 'llm': 'chatgpt', 'aggregation': 'vote'} | pairs texts of different meaning
    {'llm': 'gpt-4o'} | give llm='chatgpt' settings='llm.chatgpt.model=gpt-4o'
    {'llm': 'claude-x'} | 'claude-x'; .*, wordnet or ensemble, or .*llm.claude.kind=anthropic
    {'judges': 'ensemble'} | no LLM is named 'ensemble'; expected .* wordnet or writer, or add
    {'llm': 'ensemble', 'settings': {'ensemble.members': 'a,b'}} | no LLM is named 'a'
    {'llm': 'meta/llama3.1:8b'} | give llm='llama' settings='llm.llama.model=meta/llama3.1:8b'
    {'llm': 'mistral:7b'} | or add \[llm.mistral\] to a file for config=
    {'task': 'triple'} | expected 'paraphrase', 'triplet' or 'query'
    {'task': 'triplet', 'settings': {'prompt.changes': 'mood'}} | negation
""")
def test_impossible_settings_of_tasks_give_one_line(out, changes, message):
    with config_error(message) as error:
        generate(out, **changes)
    assert "\n" not in str(error.value)


@parametrize("task", ["triplet", "query"])
def test_answers_with_a_schema_are_read(out, task):
    with serve() as server:
        result = generate(out, llm={"mine": entry(server.base_url)}, task=task, limit=2)
    assert result.statistics["splits"]["train"]["triplets"] == 6
    assert result.statistics["negative_kinds"] == {
        "negation" if task == "triplet" else "unknown": 6
    }
    assert result.dropped == {}
