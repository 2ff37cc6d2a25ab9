"""Why an answer ended, in the words of any server: only what is known to mean a whole answer counts as one.

Servers of OpenAI's protocol pass on the words of whatever model is behind them, so those of Anthropic,
Gemini, Cohere, Mistral, GLM, DeepSeek, Bedrock, watsonx, vLLM, SGLang and TGI are here as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

# `cut`: it ended in the middle. `filtered`: a filter ended it. `failed`: the model or its server gave up.
# `unknown`: the server said nothing, or something else, such as a call of a tool.
Ending = Literal["complete", "cut", "refused", "filtered", "failed", "unknown"]

_WORDS: Mapping[Ending, str] = {
    "complete": "stop end_turn stop_sequence eos eos_token endoftext complete completed end finished done",
    "cut": "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length max_len"
    " token_limit model_length model_context_window_exceeded context_length context_length_exceeded"
    " continuation not_finished incomplete time_limit timeout error_limit insufficient_system_resource",
    "refused": "refusal refused",
    "filtered": "content_filter content_filtered guardrail_intervened sensitive safety image_safety"
    " recitation blocklist prohibited_content escalation model_armor spii language error_toxic moderation",
    "failed": "error failed network_error abort aborted cancelled canceled user_cancel"
    " malformed_function_call malformed_model_output malformed_response",
}
_ENDINGS: Mapping[str, Ending] = {word: ending for ending, words in _WORDS.items() for word in words.split()}
_PREFIX = re.compile(r"\A(?:finish_?)?reason_")


def ending_of(finish: str) -> Ending:
    """What a server's `finish_reason` means, in any spelling (`MAX_TOKENS`, `maxTokens`, `end-turn`)."""
    # `maxTokens` is `max_tokens`; a word all in capitals has no inner beginnings of words.
    word = finish if finish.isupper() else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", finish[:60])
    word = re.sub(r"[\s-]+", "_", word[:80].strip().lower())
    return _ENDINGS.get(_PREFIX.sub("", word), "unknown")
