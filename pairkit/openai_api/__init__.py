"""The one way to servers of OpenAI's protocol: which key goes where, one exchange, and what refusals mean.

```
channel  ► masking, refusals ► waits      (needs httpx2: imported by those who call)
credentials, patience
```
"""
