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
