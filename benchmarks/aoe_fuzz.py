"""Files of others with mutated values, through all of `aoe` that reads them: one line, never a traceback.

    python benchmarks/aoe_fuzz.py [--inputs 100000] [--seed 0] [--processes 2]

Each input is a file as it should be (of a model's folder or a run's, a recipe, digests of texts) in which one
to three values are others, gone, doubled or new, or in which bytes are others. Prints how many inputs there
were and how many of them were refused. The exit code is 1 if one raised what is no error of ours, spoke in
more than a line, or gave another exit code than 2 or 3.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import tomllib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from aoe_train._backbones.ran.convert import _published_config
from aoe_train._encode.partial import Partial
from aoe_train._encode.record import read_finished
from aoe_train._encoder_settings import stored_settings
from aoe_train._evaluate.overlap import read_digests, write_digests
from aoe_train._figures.folder import check_folder
from aoe_train._model_folder import check_files, check_settings
from aoe_train._model_folder.modules import check_modules
from aoe_train._reproduce.plan import Places, plan
from aoe_train._reproduce.recipe import Recipe
from aoe_train._reproduce.stranger import asks
from aoe_train._settings import EncoderSettings
from aoe_train._trainer.checkpoints import Checkpoint
from aoe_train._trainer.resume import STATE_FILE, read_progress
from aoe_train._workplace import begin_or_go_on
from benchmarks.mutated import mutated
from pairkit.config import load_settings
from pairkit.errors import PairkitError
from tests.aoe_train.test_reproduce import RECIPE

_PORTION = 1_000  # inputs of one seed

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"},
    {"idx": 3, "name": "3", "path": "3_Normalize", "type": "sentence_transformers.models.Normalize"},
]
POOLING = {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True, "include_prompt": True}
DENSE = {"in_features": 8, "out_features": 4, "activation_function": "torch.nn.modules.activation.Tanh"}
MODEL = {
    "prompts": {"q": "find: "},
    "default_prompt_name": "q",
    "similarity_fn_name": "cosine",
    "truncate_dim": 4,
}
BERT = {"max_seq_length": 16, "do_lower_case": False, "model_args": {"dtype": "float32"}}
CONFIG = {"model_type": "bert", "hidden_size": 8, "num_hidden_layers": 1, "max_position_embeddings": 32}
TOKENIZER = {
    "normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "b"},
    "model": {"type": "WordPiece", "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0}},
}
ADAPTERS = {"peft_type": "LORA", "r": 4, "target_modules": ["query"], "auto_mapping": None}
STATE = {"global_step": 3, "log_history": [{"loss": 1.0}], "epoch": 1.0}
RUN = {"made_by": "aoe train", "origin": {"a": {"b": 1}}, "result": {"steps": 3}}
MANIFEST = {"made_of": {"input": "x"}, "first": 0, "texts": 3, "of": 3, "dim": 2, "done": 1}
FINISHED = {"made_by": "aoe encode", "made_of": {"input": "x"}, "texts": 3, "dim": 2, "bytes": 0}


def _go_on(folder: Path) -> object:
    return begin_or_go_on(folder, folder / "work", {"a": {"b": 1}}, fresh=False)


def _partial(folder: Path) -> None:
    (folder / "vectors.npy").touch()
    partial = Partial(folder)
    if partial.begun:
        partial.differences({"input": "x"})
        if min(partial.done, partial.texts, partial.dim) < 0:
            raise AssertionError("a count below nothing")


def _finished(folder: Path) -> object:
    (folder / "v.npy").touch()
    return read_finished(folder / "v.npy", {"input": "x"})


def _seconds(folder: Path) -> float:
    return Checkpoint(folder).seconds()


# A file, what stands in it, and what reads it.
READERS: list[tuple[str, Any, Callable[[Path], object]]] = [
    ("aoe.json", {"format": 1, **EncoderSettings(dense=[{"size": 4}]).model_dump()}, stored_settings),
    ("modules.json", MODULES, stored_settings),
    ("modules.json", MODULES, check_modules),
    ("1_Pooling/config.json", POOLING, stored_settings),
    ("2_Dense/config.json", DENSE, stored_settings),
    ("sentence_bert_config.json", BERT, stored_settings),
    ("config_sentence_transformers.json", MODEL, stored_settings),
    ("tokenizer_config.json", {"model_max_length": 16}, stored_settings),
    ("config.json", CONFIG, stored_settings),
    ("config.json", CONFIG, check_settings),
    ("config.json", {"head_num": 12, "window_size": 256}, _published_config),
    ("tokenizer.json", TOKENIZER, check_settings),
    ("adapter_config.json", ADAPTERS, check_settings),
    ("model.safetensors.index.json", {"weight_map": {"a": "x.safetensors"}}, check_files),
    (STATE_FILE, STATE, lambda folder: read_progress(folder / STATE_FILE)),
    ("clock.json", {"seconds": 3.5}, _seconds),
    ("run.json", RUN, _go_on),
    ("manifest.json", MANIFEST, _partial),
    ("v.npy.run.json", FINISHED, _finished),
    ("figures.json", {"files": ["a.png"]}, check_folder),
]


def write_model(folder: Path) -> None:
    """A folder of sentence-transformers, as far as its JSON goes, without weights."""
    (folder / "1_Pooling").mkdir()
    (folder / "2_Dense").mkdir()
    (folder / "work").mkdir()
    for name, content in (
        ("modules.json", MODULES),
        ("1_Pooling/config.json", POOLING),
        ("2_Dense/config.json", DENSE),
        ("2_Dense/model.safetensors", "0" * 64),
        ("sentence_bert_config.json", {}),
        ("trainer_state.json", STATE),
    ):
        (folder / name).write_text(json.dumps(content))


def in_one_line(read: Callable[[], object]) -> bool:
    """Whether it was read; else it was refused as it should be.

    Raises:
        AssertionError: It was refused in several lines, at length, or with a wrong exit code.
    """
    refusal: PairkitError | None = None
    try:
        read()
    except PairkitError as error:
        refusal = error
    if refusal is None:
        return True
    told = str(refusal)
    if "\n" in told or len(told) >= 2000 or refusal.exit_code not in (2, 3):
        raise AssertionError(f"exit code {refusal.exit_code}: {told[:200]!r}")
    return False


def fuzz_json(seed: int) -> bool:
    """One file of one folder is not as it was."""
    choice = random.Random(seed)  # noqa: S311 - no secret
    name, content, read = choice.choice(READERS)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_model(folder)
        text = json.dumps(mutated(content, choice))
        if choice.random() < 0.1:
            text = text[: choice.randint(0, len(text))]
        (folder / name).write_text(text)
        return in_one_line(lambda: read(folder))


def fuzz_recipe(seed: int) -> bool:
    """A recipe's values are not as they were."""
    tree = mutated(tomllib.loads(RECIPE), random.Random(seed))  # noqa: S311 - no secret

    def read() -> None:
        recipe = load_settings(Recipe, below=tree if isinstance(tree, dict) else {"x": tree})
        plan(recipe, "small", Places(Path("data"), Path("work")))
        asks(recipe, "small")

    return in_one_line(read)


def fuzz_digests(seed: int) -> bool:
    """Bytes of a file of numpy's are not as they were."""
    choice = random.Random(seed)  # noqa: S311 - no secret
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_digests(folder, ["a", "b", "c"])
        path = folder / "training_texts.npy"
        content = bytearray(path.read_bytes())
        for _ in range(choice.randint(1, 4)):
            content[choice.randrange(len(content))] = choice.randrange(256)
        path.write_bytes(content[: choice.randint(0, len(content))] if choice.random() < 0.2 else content)
        return in_one_line(lambda: read_digests(folder))


FUZZES = {"json": fuzz_json, "recipe": fuzz_recipe, "digests": fuzz_digests}


class Outcome(NamedTuple):
    """Of one process."""

    inputs: int
    refused: int
    faults: list[str]


def fuzz(inputs: int, seed: int) -> Outcome:
    """Read so many inputs, of every kind in turn."""
    refused, faults = 0, []
    for number in range(inputs):
        name = list(FUZZES)[number % len(FUZZES)]
        chosen = seed * inputs + number
        try:
            refused += not FUZZES[name](chosen)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            faults.append(f"{name} {chosen}: {type(error).__name__}: {error}"[:500])
    return Outcome(inputs, refused, faults)


def main() -> None:
    """Fuzz in several processes and tell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    parts = -(-given.inputs // _PORTION)
    done, refused = 0, 0
    faults: list[str] = []
    with ProcessPoolExecutor(given.processes) as pool:
        for outcome in pool.map(fuzz, [_PORTION] * parts, range(given.seed, given.seed + parts)):
            done, refused = done + outcome.inputs, refused + outcome.refused
            faults += outcome.faults
            print(f"{done:,} inputs, {refused:,} refused, {len(faults)} faults", flush=True)
    print("\n".join(faults[:20]))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
