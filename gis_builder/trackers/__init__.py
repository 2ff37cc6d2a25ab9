"""Trackers saved on disk, in the forms that other tools write."""
