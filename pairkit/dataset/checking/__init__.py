"""Check datasets: leaks, and single pairs side by side."""
