"""What several packages' tests share: servers to test with, builders, measures."""
