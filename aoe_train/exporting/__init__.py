"""Taking a model elsewhere: sentence-transformers folders, ONNX graphs, the Hub."""
