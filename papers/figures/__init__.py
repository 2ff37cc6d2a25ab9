"""The papers' figures of any model: cosine densities by gold score, real against imaginary halves, curves."""
