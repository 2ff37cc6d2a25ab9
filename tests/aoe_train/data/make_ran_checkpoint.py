"""Write `ran.ckpt.*` with TensorFlow: a tiny random RAN under the published checkpoints' variable names.

Needs `pip install tensorflow-cpu`: python make_ran_checkpoint.py OUT/ran.ckpt, from the repository's root.
Names and shapes are those of the checkpoint beside this file. `ran.ckpt.npy` holds what TensorFlow reads back:
all values, one variable after the other, sorted by name.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from papers.ran.tensor_bundle import read_bundle


def main(prefix):
    known = read_bundle(Path(__file__).with_name("ran.ckpt"))
    tf.random.set_seed(0)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = [
            tf.compat.v1.Variable(
                tf.random.normal(value.shape, stddev=0.5, seed=seed), name=name
            )
            for seed, (name, value) in enumerate(known.items())
        ]
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(variables)
        saver.save(session, prefix, write_meta_graph=False, write_state=False)
    reader = tf.train.load_checkpoint(prefix)
    values = [reader.get_tensor(name).ravel() for name in sorted(known)]
    np.save(f"{prefix}.npy", np.concatenate(values))


if __name__ == "__main__":
    main(sys.argv[1])
