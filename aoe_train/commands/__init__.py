"""The commands of `aoe`, by what they do; `cli` puts them together."""
