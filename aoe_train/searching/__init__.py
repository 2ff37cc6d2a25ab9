"""Texts that can be searched: an index as a folder, what is near in it, which of its texts say the same."""
