"""Command lines, settings, the terminal, and errors: what every package starts with."""
