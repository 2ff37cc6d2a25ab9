"""The LLMs that can be asked: behind servers of the OpenAI protocol, in this process, or rules."""

from llm_labeler._providers.build import build

__all__ = ["build"]
