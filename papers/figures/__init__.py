"""The papers' figures for any model: cosine densities by gold score, halves of vectors, training curves."""
