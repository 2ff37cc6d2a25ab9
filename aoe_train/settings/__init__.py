"""Settings of training and encoding."""
