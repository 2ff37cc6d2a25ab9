"""Names of flags, which are the keywords of functions too, to the settings that they set."""

FLAGS = {
    "seed": "seed",
    "api": "api",
    "strategy": "crawl.strategy",
    "api_url": "crawl.api_url",
    "split": "split.sizes",
    "relations": "pair.relations",
    "negatives": "pair.negatives",
    "match": "pair.match",
    "ratio": "pair.ratio",
    "all_within_cluster": "pair.all_within_cluster",
}

# Those of `gis archive`: its limits, and how pairs are made.
ARCHIVE = {
    "min_closed": "limits.min_closed",
    "language": "limits.languages",
    "per_repo_max": "limits.per_repo_max",
    **{name: key for name, key in FLAGS.items() if key == "seed" or key.startswith(("split.", "pair."))},
}
