"""Plans, crawls and imports issues, and reports the status of a crawl."""
