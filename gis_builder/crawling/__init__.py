"""Fetching issues from GitHub: plan, crawl, status."""
