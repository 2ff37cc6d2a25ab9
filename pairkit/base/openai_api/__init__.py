"""Requests to servers of OpenAI's protocol, with masked keys and classified errors."""
