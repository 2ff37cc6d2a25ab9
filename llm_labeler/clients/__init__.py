"""The LLMs that can be asked: behind servers, in this process, functions, or rules."""
