"""A model behind HTTP: OpenAI's `/v1/embeddings`, and search in an index.

```
run ► slow (who takes too long) ► door (who may ask, and how much) ► app (routes) ► batching ► the model
                                                                      └► wire (requests, answers), metrics, openapi
```
"""  # noqa: E501 - a drawing
