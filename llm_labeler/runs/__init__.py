"""One run of a command, from its arguments to its result."""
