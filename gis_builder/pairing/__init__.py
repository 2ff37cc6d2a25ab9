"""From verdicts to a dataset: clusters, texts, positives, splits and negatives."""
