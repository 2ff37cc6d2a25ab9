"""The one way to servers of OpenAI's protocol: which key goes where, one exchange, and what refusals mean.

```
channel ► sdk ► door ► masking, refusals ► waits      (sdk, door: imported by the first call)
credentials, patience
```
"""
