"""Names of flags, which are the keywords of functions too, to the settings that they set."""

FLAGS = {
    "seed": "seed",
    "strategy": "crawl.strategy",
    "api_url": "crawl.api_url",
    "split": "split.sizes",
    "relations": "pair.relations",
    "negatives": "pair.negatives",
    "match": "pair.match",
    "ratio": "pair.ratio",
    "all_within_cluster": "pair.all_within_cluster",
}

# Those of `gis archive`, whose other settings have no flag.
ARCHIVE = {"seed": "seed"}
