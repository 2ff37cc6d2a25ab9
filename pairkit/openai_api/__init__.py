"""One exchange with servers of OpenAI's protocol; keys and masking; what refusals mean."""
