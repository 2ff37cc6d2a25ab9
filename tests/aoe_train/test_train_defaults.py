"""Defaults by rows and backbone, settings that override them, and refused ones."""

from aoe_train import Encoder, plan, train
from tests.aoe_train.shorthand import python, stderr
from tests.aoe_train.tiny import WORDS, save_bert, write_pairs, write_triplets
from tests.support.shorthand import approx, module_fixture, pair, table

TEXTS = [" ".join(WORDS[n : n + 5]) for n in range(40)]
BINARY = [pair(text, f"a {text[:9]}", n % 2) for n, text in enumerate(TEXTS)]


@module_fixture
def sources(tmp_path_factory):
    """Forty rows of each kind."""
    folder = tmp_path_factory.mktemp("kinds")
    graded = write_pairs(folder / "graded.tsv", 40, 1)
    requests = [
        {"anchor": f"my {text}", "positive": text, "negative": f"not {text}"}
        for text in TEXTS
    ]
    return {
        "binary": BINARY,
        "graded": graded,
        "graded of a wide model": graded,
        "triplet": write_triplets(folder / "triplets.jsonl", 40, 1),
        "positive": [{"anchor": text, "positive": f"a {text}"} for text in TEXTS],
        "single": TEXTS,
        "requests": requests,
    }


# Learning rate, epochs and rows a batch are expected.
@table(
    """
    kind, settings, parts, lr, epochs, batch_size
    binary | seed=1 | cosent in_batch angle | 5e-5 | 3 | 16
    graded | seed=1 | cosent in_batch angle | 5e-5 | 3 | 16
    graded | preset=aoe | angle contrastive | 5e-5 | 3 | 16
    triplet | seed=1 | angle contrastive | 5e-5 | 3 | 16
    positive | seed=1 | contrastive | 2e-5 | 8 | 16
    single | seed=1 | contrastive | 1e-5 | 1 | 16
    graded | lora={} | cosent in_batch angle | 3e-4 | 3 | 16
    graded of a wide model | seed=1 | cosent in_batch angle | 2e-5 | 3 | 16
    single | teacher.model=TEACHER | embed_distill | 3e-4 | 8 | 16
    triplet | teacher.model=TEACHER | angle contrastive embed_distill | 5e-5 | 3 | 16
    triplet | teacher.model=TEACHER; objective.weights.score_distill=1 | angle contrastive score_distill | 5e-5 | 3 | 16
    triplet | preset=domain | angle contrastive | 1e-4 | 1 | 32
    positive | preset=domain | contrastive | 1e-4 | 1 | 32
    triplet | preset=domain; data.author=people | angle contrastive | 1e-4 | 2 | 32
    requests | preset=domain; data.author=rules; optim.epochs=3 | angle contrastive | 1e-4 | 3 | 32
    graded | preset=cosent-paper | cosent | 5e-5 | 1 | 32
    binary | optim.lr=1e-6; optim.epochs=2; optim.batch_size=8 | cosent in_batch angle | 1e-6 | 2 | 8
    """,
)
def test_defaults(
    kind, settings, parts, lr, epochs, batch_size, sources, bert, tmp_path, monkeypatch
):
    # No test of the time of steps.
    monkeypatch.setattr("aoe_train.training.train_plan._PROBES", 1)
    backbone = (
        save_bert(tmp_path / "wide", dim=768, layers=1) if "wide" in kind else bert
    )
    teacher = save_bert(tmp_path / "teacher", layers=1, seed=7)
    settings = settings.replace("TEACHER", str(teacher)).split("; ")
    planned = plan(sources[kind], backbone=backbone, settings=settings).record
    assert {*planned["datasets"].popitem()[1]["objective"]} == {*parts.split()}
    assert planned["optim"] == {
        "lr": approx(lr),
        "epochs": epochs,
        "batch_size": batch_size,
    }


def test_rules_negatives_of_requests_are_reported(sources, bert, out, capsys):
    given = {"preset": "domain", "settings": ["data.author=rules"]}
    run = train(sources["requests"], backbone=bert, out=out, **given)
    told = stderr(capsys)
    assert "warning: rules wrote the negatives of these first-person texts" in told
    unchanged = Encoder.load(bert).encode(TEXTS)
    assert run.encoder.encode(TEXTS) == approx(unchanged, abs=1e-6)


@table(
    """
    given, rank, prompt, told
    {} | 32 | PROMPT | rank 32 are trained (lora=False trains all weights), and texts get the prompt
    {'lora': False, 'prompts': '{text}'} | None | {text} | ''
    {'settings': ['lora.rank=4']} | 4 | PROMPT | the backbone is a decoder: texts get the prompt
    {'top_layers': 1} | None | PROMPT | the backbone is a decoder: texts get the prompt
    # the prompt is for the last token
    {'pooling': 'avg'} | 32 | None | decoder: only adapters
    {'preset': 'angle-paper'} | None | None | ''
    """,
    PROMPT="Summarize sentence {text} in one word:",
)
def test_decoders(given, rank, prompt, told, sources, llama, out, capsys):
    run = train(sources["graded"], backbone=llama, out=out, **{"epochs": 0.3, **given})
    found = run.record["origin"]["settings"]
    assert (found["lora"] and found["lora"]["rank"]) == rank
    assert found["prompts"] == prompt
    said = stderr(capsys)
    assert told in said
    assert ("the backbone is a decoder" in said) == bool(told)


WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from aoe_train.__main__ import main
main()
"""


def test_missing_torch_is_reported(bert, tmp_path):
    (tmp_path / "t.txt").write_text("a\n")
    arguments = f"encode {tmp_path}/t.txt -m {bert} -o {tmp_path}/v.npy".split()
    found = python(WITHOUT_TORCH, *arguments)
    assert found.returncode == 2
    assert "pip install 'aoe-toolkit[train]'" in found.stderr
    assert "Traceback" not in found.stderr
