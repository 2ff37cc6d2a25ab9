"""What the LLMs are asked: templates with a place for the sentence."""

from llm_labeler._prompts.template import Template, load_template

__all__ = ["Template", "load_template"]
