"""Asking through the Batch APIs of OpenAI, Anthropic and Gemini, across sessions.

```
run ► openai, anthropic, gemini ► server ► lines
 └──► results ► lines
```
"""

from llm_labeler._batch.run import run_batch

__all__ = ["run_batch"]
