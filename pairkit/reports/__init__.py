"""Reports on pair datasets: an HTML page and its counts."""
