"""The commands of `label`: one module for asking, one for what works on stored answers."""
