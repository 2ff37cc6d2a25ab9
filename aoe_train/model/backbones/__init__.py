"""The models whose token vectors are pooled: loading, adapting and extending them."""
