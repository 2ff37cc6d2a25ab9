"""Write `ran.ckpt.*` with TensorFlow: a tiny random RAN under the published checkpoints' variable names.

Needs `pip install tensorflow-cpu` in an environment of its own: python make_ran_checkpoint.py OUT/ran.ckpt
`ran.ckpt.npy` holds what TensorFlow reads back: all values, one variable after the other, sorted by name.
"""

import sys

import numpy as np
import tensorflow as tf

VOCABULARY, DIM, INNER, LAYERS = 20, 8, 12, 2


def shapes():
    def norm(name):
        return {f"{name}/beta": (DIM,), f"{name}/gamma": (DIM,)}

    def dense(name, inputs, outputs):
        return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}

    def glu(name):
        return dense(f"{name}/dense-t", DIM, DIM) | dense(f"{name}/dense-g", DIM, DIM)

    found = {"token-embedding/embeddings": (VOCABULARY, DIM)}
    found |= norm("embedding-layernorm")
    for number in range(LAYERS):
        layer = f"ran-{number}"
        found[f"{layer}/cell-initializer/kernel"] = (DIM, DIM)
        for name in ("cell-initializer", "cell-residual", "concat"):
            found |= norm(f"{layer}/{name}-layernorm")
        found |= glu(f"{layer}/cell-glu")
        for name, inner in (("encode-attn", INNER), ("output-attn", DIM)):
            for part in "qkv":
                found |= dense(f"{layer}/{name}/dense-{part}", DIM, inner)
            found |= dense(f"{layer}/{name}/dense-o", inner, DIM)
            found |= glu(f"{layer}/{name}/glu") | norm(f"{layer}/{name}/layernorm")
    found |= dense("mlm-hidden/dense", DIM, DIM) | norm("mlm-hidden/layernorm")
    return found | {"mlm-matching/bias": (VOCABULARY,)}


def main(prefix):
    tf.random.set_seed(0)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = [
            tf.compat.v1.Variable(
                tf.random.normal(shape, stddev=0.5, seed=number), name=f"rannet/{name}"
            )
            for number, (name, shape) in enumerate(shapes().items())
        ]
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(variables)
        saver.save(session, prefix, write_meta_graph=False, write_state=False)
    reader = tf.train.load_checkpoint(prefix)
    names = sorted(reader.get_variable_to_shape_map())
    np.save(f"{prefix}.npy", np.concatenate([reader.get_tensor(name).ravel() for name in names]))


if __name__ == "__main__":
    main(sys.argv[1])
