"""Make datasets: split, merge, write and export."""
