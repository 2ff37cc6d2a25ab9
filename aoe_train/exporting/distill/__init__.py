"""Distilling a model into a static one: a vector for each token, and a text's vector is their mean."""
