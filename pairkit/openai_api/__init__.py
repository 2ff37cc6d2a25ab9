"""The one way to servers of OpenAI's protocol: which key goes where, one exchange, and what refusals mean.

What speaks another protocol of JSON over HTTP, as Anthropic's and Gemini's servers do, goes the same way.

```
channel ► sdk ► door ► masking, refusals ► waits      (sdk, door: imported by the first call)
credentials, patience
```
"""
