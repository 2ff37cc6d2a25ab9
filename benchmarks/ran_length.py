"""Time and memory of a training step (forward and backward) against the length of a text: RAN and BERT.

    python benchmarks/ran_length.py --figure out.svg                    # the base sizes, 512 … 16,384 tokens
    python benchmarks/ran_length.py --dim 128 --layers 2 --lengths 512,1024,2048 --figure out.png

One text at a time, equal width and about equal parameters (BERT of three times as many layers). Each figure
is a process of its own, so that its peak of memory is its own; the peak is what the step adds to the loaded
model. BERT is tried until it takes more than `--memory` GiB. The last columns are time and memory a token,
against that of the shortest text: 1.0 throughout is linear.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODELS = ("RAN", "RAN, recomputing", "BERT")


def measure(name: str, length: int, dim: int, layers: int, repeats: int) -> dict[str, float]:
    """Median seconds and peak MiB of a step."""
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = build(name, length, dim, layers).to(device).train()
    ids = torch.randint(5, 1000, (1, length), device=device)
    before = peak_mib(device)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        model(ids).last_hidden_state.square().mean().backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        model.zero_grad()
    return {"seconds": statistics.median(seconds), "mib": peak_mib(device) - before}


def build(name: str, length: int, dim: int, layers: int) -> Any:
    """The encoder of that name, with a small vocabulary: embeddings are not what is compared."""
    if name == "BERT":
        from transformers import BertConfig, BertModel

        config = BertConfig(
            vocab_size=1000,
            hidden_size=dim,
            num_hidden_layers=3 * layers,
            num_attention_heads=max(1, dim // 64),
            intermediate_size=4 * dim,
            max_position_embeddings=length,
        )
        return BertModel(config, add_pooling_layer=False)
    from aoe_train.model.backbones.ran import RanConfig, RanModel

    heads = max(1, dim // 64)
    model = RanModel(
        RanConfig(vocab_size=1000, hidden_size=dim, num_hidden_layers=layers, num_attention_heads=heads)
    )
    if name == "RAN, recomputing":
        model.activation_checkpointing_enable()
    return model


def peak_mib(device: Any) -> float:
    """Peak of the process so far."""
    if device.type == "cuda":
        import torch

        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_apart(name: str, length: int, options: argparse.Namespace) -> dict[str, float] | None:
    """`measure` in a process of its own; None if it ran out of memory."""
    one = [f"--one={name}", f"--lengths={length}", f"--dim={options.dim}", f"--layers={options.layers}"]
    command = [sys.executable, __file__, *one, f"--repeats={options.repeats}", f"--memory={options.memory}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(f"{name} at {length}: {done.stderr.strip().splitlines()[-1:]}\n")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def sweep(options: argparse.Namespace) -> dict[str, dict[int, dict[str, float]]]:
    """Each model over the lengths, up to the first that is too much for it."""
    found: dict[str, dict[int, dict[str, float]]] = {}
    for name in MODELS:
        found[name] = {}
        for length in options.lengths:
            result = measure_apart(name, length, options)
            if result is None:
                break
            found[name][length] = result
            first_length, first = next(iter(found[name].items()))
            ratios = [result[key] / length / (first[key] / first_length) for key in ("seconds", "mib")]
            print(
                f"| {name} | {length:,} | {result['seconds']:.3f} | {result['mib']:,.0f} | "
                f"{ratios[0]:.2f} | {ratios[1]:.2f} |",
                flush=True,
            )
    return found


def draw(found: dict[str, dict[int, dict[str, float]]], path: str) -> None:
    """Both measures against length, on logarithmic axes, where linear growth is a straight diagonal."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, key, label in zip(axes, ("seconds", "mib"), ("seconds a step", "MiB a step"), strict=True):
        for name, results in found.items():
            axis.loglog(list(results), [result[key] for result in results.values()], marker="o", label=name)
        axis.set(xlabel="tokens", ylabel=label)
        axis.grid(visible=True, which="both", alpha=0.25)
    axes[0].legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    """Measure one, or all of them in processes of their own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lengths", default="512,1024,2048,4096,8192,16384")
    parser.add_argument("--dim", type=int, default=768)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", type=float, default=12, help="GiB that a process may take (on a CPU)")
    parser.add_argument("--figure")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lengths = [int(length) for length in options.lengths.split(",")]
    if options.one:
        if not Path("/dev/nvidia0").exists():  # drivers reserve far more addresses than they use
            resource.setrlimit(resource.RLIMIT_AS, (int(options.memory * 2**30),) * 2)
        print(
            json.dumps(measure(options.one, options.lengths[0], options.dim, options.layers, options.repeats))
        )
        return
    print("| model | tokens | seconds | MiB | time a token | memory a token |\n|---|---|---|---|---|---|")
    found = sweep(options)
    if options.figure:
        draw(found, options.figure)


if __name__ == "__main__":
    main()
