"""A reference implementation of RAN: loops over numpy with TensorFlow's variable names."""

import numpy as np


def second_moment(x):
    return (x - x.mean()) / np.sqrt((x**2).mean() + 1e-7)


def standard(x):
    return (x - x.mean()) / np.sqrt(((x - x.mean()) ** 2).mean() + 1e-7)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    shifted = np.exp(x - x.max())
    return shifted / shifted.sum()


class Reference:
    """One sequence at a time, one token at a time."""

    def __init__(self, variables, heads, window, shortest, norm, project):
        self.values = {
            name: value.astype(np.float64) for name, value in variables.items()
        }
        self.heads, self.window, self.shortest = heads, window, shortest
        self.norm, self.project = norm, project

    def ln(self, name, x):
        return self.norm(x) * self.values[f"{name}/gamma"] + self.values[f"{name}/beta"]

    def dense(self, name, x):
        return x @ self.values[f"{name}/kernel"] + self.values[f"{name}/bias"]

    def swish(self, name, x):
        y = self.dense(name, x)
        return y * sigmoid(y)

    def glu(self, name, x):
        return self.dense(f"{name}/dense-t", x) * sigmoid(
            self.dense(f"{name}/dense-g", x)
        )

    def windows(self, length):
        starts = list(range(0, length, self.window))
        if len(starts) > 1 and length - starts[-1] < self.shortest:
            starts.pop()
        return list(zip(starts, [*starts[1:], length], strict=True))

    def attend(self, name, z):
        q, k, v = ([self.swish(f"{name}/dense-{part}", x) for x in z] for part in "qkv")
        size = len(q[0]) // self.heads
        outputs = []
        for i in range(len(z)):
            heads = []
            for head in range(self.heads):
                own = slice(head * size, (head + 1) * size)
                scores = [
                    turned(q[i][own], i) @ turned(key[own], j) / np.sqrt(size)
                    for j, key in enumerate(k)
                ]
                heads.append(softmax(np.array(scores)) @ [value[own] for value in v])
            outputs.append(self.swish(f"{name}/dense-o", np.concatenate(heads)))
        return [
            self.ln(f"{name}/layernorm", o + self.glu(f"{name}/glu", x))
            for o, x in zip(outputs, z, strict=True)
        ]

    def review(self, name, o, cells):
        query = self.swish(f"{name}/dense-q", o)
        keys, values = (
            [self.swish(f"{name}/dense-{part}", cell) for cell in cells]
            for part in "kv"
        )
        read = softmax(np.array(keys) @ query / np.sqrt(len(query))) @ values
        return self.ln(
            f"{name}/layernorm",
            self.swish(f"{name}/dense-o", read) + self.glu(f"{name}/glu", query),
        )

    def layer(self, number, x, g):
        name = f"rannet/ran-{number}"
        if number == 0 or self.project:
            start = g @ self.values[f"{name}/cell-initializer/kernel"]
            g = self.ln(f"{name}/cell-initializer-layernorm", start * sigmoid(start))
        cells, outputs = [], []
        for begin, end in self.windows(len(x)):
            z = [self.ln(f"{name}/concat-layernorm", row) for row in [g, *x[begin:end]]]
            a = self.attend(f"{name}/encode-attn", z)
            c = self.norm(a[0])
            outputs += [self.norm(row) for row in a[1:]]
            g = (
                self.ln(
                    f"{name}/cell-residual-layernorm",
                    c + self.glu(f"{name}/cell-glu", cells[-1]),
                )
                if cells
                else c
            )
            cells.append(c)
        return [self.review(f"{name}/output-attn", o, cells) for o in outputs], cells, g

    def encode(self, ids, layers):
        """Reviewed tokens, cells and memory of the last layer."""
        embeddings = self.values["rannet/token-embedding/embeddings"]
        x = [
            self.ln("rannet/embedding-layernorm", embeddings[number]) for number in ids
        ]
        g = np.zeros(embeddings.shape[1])
        for number in range(layers):
            x, cells, g = self.layer(number, x, g)
        return np.array(x), np.array(cells), g

    def logits(self, hidden):
        name, embeddings = "rannet/mlm-hidden", "rannet/token-embedding/embeddings"
        rows = [
            self.ln(f"{name}/layernorm", self.swish(f"{name}/dense", row))
            for row in hidden
        ]
        bias = self.values["rannet/mlm-matching/bias"]
        return np.array(rows) @ self.values[embeddings].T + bias


def turned(x, position):
    """Rotary positions: each pair of adjacent numbers is a complex number, rotated."""
    pairs = x[::2] + 1j * x[1::2]
    angles = position * 10000.0 ** (-2 * np.arange(len(pairs)) / len(x))
    pairs = pairs * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], axis=1).ravel()
