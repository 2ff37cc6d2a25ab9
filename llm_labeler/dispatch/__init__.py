"""Asking: many calls at a time, within limits, each answer kept as it comes."""
