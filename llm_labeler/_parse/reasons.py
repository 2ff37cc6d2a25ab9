"""Why a piece of an answer is no candidate, as far as the answer's shape tells."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "empty_answer": "the answer has no text",
        "unparsable": "it can't be read as a sentence: a page of HTML, JSON without text, bare signs, words"
        " without order",
        "unread": "it stands beyond the first million characters of the answer",
        "thinking": "the model's reasoning and its drafts, between <think> marks or before its final answer",
        "echo": "the prompt, or the sentence asked about, said again",
        "runaway": "another turn that the model made up after its answer",
        "preamble": "it introduces the sentences, or is a heading above them",
        "closing_note": "a remark about the sentences: a note, an explanation, an offer of help",
        "remark": "a remark that stands with a sentence in its line: a bracket, what follows a dash, a tag",
        "other_polarity": "it stands under a heading or a name of the polarity that was not asked for",
        "refusal": "the model declines, asks for something else, or answers a question and doesn't"
        " rewrite it",
        "outside_list": "it stands before or after a list, a table or JSON and is none of the above",
        "sub_item": "a point below an item of the list",
        "side_field": "a field of a JSON object, or a column of a table, beside the sentence",
        "not_text": "JSON has a number, a truth value or nothing where a sentence should be",
        "cut_off": "the last of an answer that ended at the token limit; raise max_tokens if there are many",
        "limit_spent": "the token limit was used up, as a rule by reasoning, before the answer began; raise"
        " max_tokens of the LLM, or turn its reasoning off in its `extra`",
        "filtered": "a content filter ended the answer: its last sentence, or all of an empty one",
        "failed": "the server says that the model failed: the answer's last sentence",
        "unknown_end": "the last of an answer that the server doesn't say, in a known word, is whole",
        "beyond_size": "more sentences than were asked for",
    }
)
