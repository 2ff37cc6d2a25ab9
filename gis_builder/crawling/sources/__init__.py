"""Where issues come from besides a server: saved trackers, and GH Archive's hours."""
