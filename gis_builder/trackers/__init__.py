"""Readers of trackers saved on disk."""
