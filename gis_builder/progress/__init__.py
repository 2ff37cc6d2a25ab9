"""Progress of a run: its events, and how they are shown."""
