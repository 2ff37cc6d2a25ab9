"""What the LLMs are asked: templates, and the questions made from them."""

from llm_labeler._prompts.ask import generation_asks
from llm_labeler._prompts.template import Template, load_template

__all__ = ["Template", "generation_asks", "load_template"]
