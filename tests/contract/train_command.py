"""The command `aoe train` with a tiny backbone, run in the folder that `fill` makes."""

from safetensors.torch import load_file

from tests import forked
from tests.aoe_train.tiny import save_bert, write_pairs, write_triplets
from tests.contract.conftest import environment, run_here
from tests.support.shorthand import module_fixture

FLAGS = [
    "--preset",
    "angle-paper",
    "--lr",
    "1e-4",
    "--batch-size",
    "8",
    "--epochs",
    "3",
    "--seed",
    "5",
]
DEV = ("--dev-data", "dev.tsv")
# In addition to train.tsv; sbert has weights that batches of the other dataset don't use.
MIXTURE = ("--data", "other=triplets.jsonl", "--set", "datasets.other.preset=sbert")


def fill(folder):
    """Make a backbone without dropout, and pairs."""
    save_bert(folder / "bert", dropout=0.0)
    write_pairs(folder / "train.tsv", 96, 1)
    write_pairs(folder / "dev.tsv", 30, 2)
    write_triplets(folder / "triplets.jsonl", 40, 3)
    return folder


def environ():
    return environment(HF_HUB_OFFLINE="1", AOE_CACHE="cache")


def command(*arguments, out, data="train.tsv", backbone="bert"):
    given = ["--data", data, "--backbone", backbone, "--out", out]
    return ["aoe_train", "train", *given, *FLAGS, *arguments]


def run(folder, *arguments, **given):
    return run_here(*command(*arguments, **given), cwd=folder, environ=environ())


def begin_ranks(folder, *arguments, out, err):
    return forked.begin_ranks(
        *command(*arguments, out=out), cwd=folder, err=err, environ=environ()
    )


def difference(folder, one, other):
    found = [load_file(folder / name / "model.safetensors") for name in (one, other)]
    assert found[0].keys() == found[1].keys()
    return max(
        float((found[0][name] - found[1][name]).abs().max()) for name in found[0]
    )


@module_fixture
def folder(tmp_path_factory):
    """A folder with a backbone without dropout, and pairs."""
    return fill(tmp_path_factory.mktemp("aoe"))


@module_fixture
def trained(folder):
    done = run(folder, *DEV, "--json", out="model")
    assert done.code == 0, done.err
    return done
