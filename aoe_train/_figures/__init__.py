"""The papers' figures of any model: cosine densities by gold score, real against imaginary halves, curves.

Each kind is a module that makes the numbers (`densities`, `halves`, `curves`) and one that draws them
(`draw_…`), so that what is drawn can be written down and drawn again by others.
"""
