"""The LLMs that can be asked: behind servers, functions, or rules."""
