"""The one way to servers of OpenAI's protocol: which key goes where, one exchange, and what refusals mean.

`channel` exchanges, by `request_guard` (OpenAI's SDK and its HTTP client, imported by the first call);
`credentials` finds keys and masks them in answers; `refusals` sorts what servers say instead of an answer.
"""
