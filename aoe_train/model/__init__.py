"""The model: backbone, packing, pooling, encoder, and its folder."""
