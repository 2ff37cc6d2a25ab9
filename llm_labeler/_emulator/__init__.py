"""A local server of OpenAI's, Anthropic's and Gemini's protocols, with faults on purpose. It holds no model.

Its answers are made from the sentence in the question by fixed rules, so that equal questions get equal
answers. They show that calls, retries, storage and parsing work; no figure of quality may come from them.

```python
with serve(Options(latency_s=0.2), Faults(share=0.3, seed=1)) as server:
    ask(server.base_url)
    print(server.stats.asked_again)  # questions asked after they had been answered
```

It serves chat completions, the list of models, files and batches, messages and their batches,
`generateContent` and its batches, and its own counts at `/stats`.
"""

from llm_labeler._emulator.options import FAULT_KINDS, PASSING, FaultKind, Faults, Options
from llm_labeler._emulator.server import Server, serve
from llm_labeler._emulator.stats import Stats

__all__ = ["FAULT_KINDS", "PASSING", "FaultKind", "Faults", "Options", "Server", "Stats", "serve"]
