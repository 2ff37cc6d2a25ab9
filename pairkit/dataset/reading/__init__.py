"""Read pairs, labels and texts from tables of any format."""
