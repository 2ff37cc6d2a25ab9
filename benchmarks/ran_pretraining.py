"""Does pre-training help a RAN? Does reading a long text whole pay? Duplicates of rust-lang/rust, by length.

    python benchmarks/ran_pretraining.py --out FOLDER [--parts transfer,long-text] [--seeds 0,1,2] [--test]
        [--pretrain "ARGUMENTS OF papers"] [--ran "ARGUMENTS OF aoe train"] [--minilm "..."] [--pairs N]

`transfer`: a small RAN is pre-trained on MedQuAD and the training split's issues, with words masked; shown
is the loss on held-out texts of both, before and after. Then `aoe train` on the pairs, from those weights and
from random ones (drawn anew with each seed), all else alike, keeping the evaluation that is best on
validation. `long-text`: all-MiniLM-L6-v2 reading a text's head, its head and tail, or all of it in chunks,
without training and after training; ask for both parts to see RAN beside it.

Shown are the area under the ROC curve (AUC) of the pairs' cosines, for all pairs and by the tokens of the
longer text, and Spearman, all x 100. Every run is a line of OUT/results.jsonl, and a run that has its line is
not repeated: stop at any time and start again. Test is scored in each run, but shown only with --test: choose
on validation first.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev

from peers_aoe.environments import DATA
from ran_runs import Ledger, Result, aoe
from ran_scores import BUCKETS, masked_loss, pair_scores
from ran_texts import Texts, lay_out

SEQUENCE = 256  # tokens that are masked together: one window of the RAN
PRETRAIN = (
    "--steps 450 --batch-size 32 --lr 2e-3 --set warmup=50 --set sizes.dim=128 --set sizes.layers=2 "
    "--set sizes.heads=2 --set sizes.head_dim=64 --set sizes.dropout=0"
)
RAN = "--epochs 1 --lr 2e-3 --preset cosent-paper --pooling avg --set optim.evaluations=1"
MINILM = "--epochs 1 --lr 2e-5 --set objective.tau.angle=0.05"


@dataclass(frozen=True)
class Arm:
    """A model and how it reads; `start` is `pre-trained` or `random` (RAN), or `minilm`."""

    part: str
    name: str
    start: str
    trained: bool = True
    reads: dict = field(default_factory=dict)

    @property
    def varies(self) -> bool:
        """Whether its figures depend on the seed."""
        return self.trained or self.start == "random"


READS = {
    "first 128": {"max_length": 128},
    "first 256": {"max_length": 256},
    "head and tail, 256": {"max_length": 256, "long_text": "head-tail"},
    "chunks of 256": {"max_length": 256, "long_text": "chunks"},
}
ARMS = (
    Arm("transfer", "RAN, random, untrained", "random", trained=False),
    Arm("transfer", "RAN, pre-trained, untrained", "pre-trained", trained=False),
    Arm("transfer", "RAN, random", "random"),
    Arm("transfer", "RAN, pre-trained", "pre-trained"),
    *(
        Arm("long-text", f"MiniLM, {name}, untrained", "minilm", trained=False, reads=reads)
        for name, reads in READS.items()
    ),
    *(Arm("long-text", f"MiniLM, {name}", "minilm", reads=reads) for name, reads in READS.items()),
)


def main() -> None:
    """Read the flags, do the runs that have no result yet, print the tables."""
    options = flags()
    from papers.ran.tokenizer import load_tokenizer

    options.out.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(options.out)
    tokenizer = load_tokenizer(options.vocabulary)
    texts = lay_out(
        options.data,
        options.out,
        tokenizer,
        tokens=options.tokens,
        sentences=options.sentences,
        pairs=options.pairs,
    )
    pretrained = ledger.once(
        {
            "name": "pre-training",
            "seed": 42,
            "arguments": options.pretrain,
            "sentences": options.sentences,
            "pairs": options.pairs,
            "tokens": options.tokens,
        },
        lambda place: pretrain(texts, place, options),
    )
    report_loss(pretrained)
    wanted = [arm for arm in ARMS if options.arms in arm.name and arm.part in options.parts.split(",")]
    found: dict[str, list[Result]] = {arm.name: [] for arm in wanted}
    seeds = [int(seed) for seed in options.seeds.split(",")]
    for seed in seeds:
        for arm in wanted:
            if arm.varies or seed == seeds[0]:
                run = identity(arm, seed if arm.varies else 0, options, Path(pretrained["out"]))
                found[arm.name].append(
                    ledger.once(run, lambda place, run=run: compare(run, texts, place, ledger))
                )
    if wanted:
        for split in ["validation", *(["test"] if options.test else [])]:
            report(found, split)


def flags() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=DATA, help="a folder laid out as ../shared/data")
    parser.add_argument("--vocabulary", type=Path, help="a WordPiece vocab.txt [bert-base-uncased's in data]")
    parser.add_argument("--parts", default="transfer", help="transfer, long-text or both, with a comma")
    parser.add_argument("--arms", default="", help="only arms whose names hold these words")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--pretrain", default=PRETRAIN)
    parser.add_argument("--ran", default=RAN, help="arguments of `aoe train` for the RAN")
    parser.add_argument("--minilm", default=MINILM, help="arguments of `aoe train` for MiniLM")
    parser.add_argument("--pairs", type=int, default=1500, help="most pairs to train on")
    parser.add_argument("--sentences", type=int, default=5_000, help="of MedQuAD to pre-train on")
    parser.add_argument("--tokens", type=int, default=1024, help="of a text that any model gets to see")
    parser.add_argument("--test", action="store_true", help="show the test split too")
    options = parser.parse_args()
    if unknown := set(options.parts.split(",")) - {arm.part for arm in ARMS}:
        parser.error(f"--parts {', '.join(sorted(unknown))}: expected transfer, long-text")
    options.out = options.out.resolve()
    vocabulary = options.data / "pretrained" / "bert-base-uncased.vocab.txt"
    options.vocabulary = (options.vocabulary or vocabulary).resolve()
    return options


def pretrain(texts: Texts, place: Path, options: argparse.Namespace) -> Result:
    """Pre-train, and take the loss on held-out texts of both sources before and after."""
    corpus = [word for path in texts.corpus for word in ("--texts", str(path))]
    lengths = ["--set", f"length={SEQUENCE}", "--set", f"text_length={options.tokens}"]
    fixed = ["--tokenizer", str(options.vocabulary), "--out", str(place), *corpus, *lengths]
    shutil.rmtree(place, ignore_errors=True)
    trained = aoe("pretrain", *fixed, *shlex.split(options.pretrain), package="papers")
    start = random_ran(place, 0, place.with_name(f"{place.name}-before"))
    losses = {
        name: {
            "before": masked_loss(start, path, length=SEQUENCE, text_length=options.tokens),
            "after": masked_loss(place, path, length=SEQUENCE, text_length=options.tokens),
        }
        for name, path in texts.held_out.items()
    }
    return {**trained, "losses": losses}


def random_ran(like: Path, seed: int, out: Path) -> Path:
    """A folder with a RAN of the same sizes and tokenizer, and weights as they are before any training."""
    import torch
    from transformers import AutoConfig, AutoTokenizer

    from aoe_train.model.backbones.quiet import quietly
    from papers.ran.masked_lm import RanForMaskedLM

    torch.manual_seed(seed)
    with quietly():
        RanForMaskedLM(AutoConfig.from_pretrained(like)).save_pretrained(out)
    AutoTokenizer.from_pretrained(like).save_pretrained(out)
    return out


def identity(arm: Arm, seed: int, options: argparse.Namespace, pretrained: Path) -> Result:
    """What makes a run the same run; the pre-trained folder is named after its own settings."""
    ran = arm.start != "minilm"
    return {
        "name": arm.name,
        "seed": seed,
        "start": arm.start,
        "trained": arm.trained,
        "reads": {"max_length": options.tokens} if ran else arm.reads,
        "arguments": options.ran if ran else options.minilm,
        "pretrained": str(pretrained) if ran else None,
        "pairs": options.pairs,
        "tokens": options.tokens,
    }


def compare(run: Result, texts: Texts, place: Path, ledger: Ledger) -> Result:
    """Train, where that is asked for, and score validation and test."""
    from aoe_train import Encoder

    starts = {"minilm": "minilm", "pre-trained": run["pretrained"]}
    if run["start"] == "random":
        folder = ledger.folder / "models" / f"random-{run['seed']}"
        starts["random"] = str(random_ran(Path(run["pretrained"]), run["seed"], folder))
    start, measured = starts[run["start"]], {}
    if run["trained"]:
        reads = [f"encoder.{name}={value}" for name, value in run["reads"].items()]
        measured = aoe(
            "train",
            *("--data", str(texts.pairs["train"]), "--dev-data", str(texts.pairs["validation"])),
            *("--backbone", start, "--seed", str(run["seed"]), "--out", str(place), "--fresh"),
            *(word for read in reads for word in ("--set", read)),
            *shlex.split(run["arguments"]),
        )
        encoder = Encoder.load(place)
        shutil.rmtree(place)
    else:
        words = shlex.split(run["arguments"])
        pooling = words[words.index("--pooling") + 1] if "--pooling" in words else None
        encoder = Encoder.load(start, pooling=pooling, **run["reads"])
    scores = {}
    for split in ("validation", "test"):
        rows = [json.loads(line) for line in texts.pairs[split].read_text("utf-8").splitlines()]
        scores[split] = pair_scores(lambda batch: encoder.encode(batch, normalize=True), rows)
    return {**measured, "scores": scores}


def report_loss(pretrained: Result) -> None:
    """The table of the loss of masked words."""
    print(
        f"{pretrained['steps']} steps, {pretrained['tokens']:,} tokens, {pretrained['cpu_s']:.0f} s of CPU\n"
    )
    print("| held-out texts | masked | word frequencies | before | after |\n" + "|---" * 5 + "|")
    for name, loss in pretrained["losses"].items():
        before, after = loss["before"], loss["after"]
        print(
            f"| {name} | {after['labels']:,} | {after['frequencies']:.2f} | {before['loss']:.2f} "
            f"| {after['loss']:.2f} |"
        )


def report(found: dict[str, list[Result]], split: str) -> None:
    """A row for each arm: mean and deviation over the seeds."""
    titles = [split, "seeds", "Spearman", *(f"AUC, {name}" for name in BUCKETS), "CPU s"]
    print(f"\n| {' | '.join(titles)} |\n" + "|---" * len(titles) + "|")
    for name, runs in found.items():
        if runs:
            scores = [run["scores"][split] for run in runs]
            cells = [spread([score["all"]["spearman"] for score in scores])]
            cells += [spread([score[bucket]["auc"] for score in scores]) for bucket in BUCKETS]
            seconds = f"{mean(run.get('cpu_s', 0) for run in runs):.0f}"
            print(f"| {name} | {len(runs)} | {' | '.join(cells)} | {seconds} |")
    counts = next(runs[0]["scores"][split] for runs in found.values() if runs)
    pairs = " | ".join(str(counts[bucket]["pairs"]) for bucket in BUCKETS)
    print(f"| pairs | | | {pairs} | |", flush=True)


def spread(values: list[float]) -> str:
    """Mean ± standard deviation over seeds."""
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


if __name__ == "__main__":
    main()
