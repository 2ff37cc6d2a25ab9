"""A command a module; each is found by its place here, and registers with `papers.app`."""
