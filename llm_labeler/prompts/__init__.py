"""Prompts: templates, their words and few-shot examples."""
