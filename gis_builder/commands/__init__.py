"""The commands of `gis`, by what they work on; `cli` puts them together."""
