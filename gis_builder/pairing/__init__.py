"""From clusters and issues to pairs: rendering, positives, near-identical texts, negatives."""
