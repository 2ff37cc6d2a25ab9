"""The models whose token vectors are pooled: how they are loaded, adapted and extended."""
