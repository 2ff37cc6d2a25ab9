"""Exports: adapters merged, half precision, mixing with the backbone and cards."""

import json
import re

import torch
from huggingface_hub import metadata_load
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

import aoe_train
from aoe_train.exporting.usage_card import exported_card_head, graph_usage
from aoe_train.settings.train_settings import EncoderSettings
from tests.aoe_train.shorthand import aoe_json
from tests.aoe_train.test_dense_layers import fit
from tests.aoe_train.tiny import (
    around,
    card_of,
    difference,
    load,
    probes,
    read_json,
    save_bert,
    sentence_transformer,
)
from tests.support.shorthand import config_error, data_error, parametrize, table, values


def export(model, out, **options):
    return aoe_train.export(model, out=out, **options)


def adapted(llama, folder):
    """A model folder with adapters that change the vectors."""
    settings = {"encoder.bidirectional": True, "encoder.pooling": "last"}
    settings["lora.rank"] = 4
    options = {"prompts": "the {text} in one word:", "lora": True, "epochs": 1}
    fit(llama, folder, settings=settings, **options)
    weights = load_file(folder / "adapter_model.safetensors")
    torch.manual_seed(0)
    noisy = {name: torch.randn_like(weight) / 10 for name, weight in weights.items()}
    save_file(noisy, folder / "adapter_model.safetensors", {"format": "pt"})
    return load(folder)


def test_adapters_are_merged_into_a_self_contained_folder(llama, tmp_path):
    encoder, texts, out = adapted(llama, tmp_path / "m"), probes(64), tmp_path / "x"
    expected = encoder.encode(texts)
    plain = load(llama, pooling="last", bidirectional=True)
    assert difference(plain.encode(texts), expected) > 0.1
    result = aoe_json(f"export --model {tmp_path}/m --out {out} --json")
    said = (result["out"], result["merged"], result["dim"], result["needs_toolkit"])
    assert said == (str(out), True, 32, None)
    assert max(result["difference"], result["rounding"]) < 1e-5
    assert not list(out.glob("adapter*"))
    assert not any("lora" in name for name in load_file(out / "model.safetensors"))
    assert difference(sentence_transformer(out).encode(texts), expected) < 1e-5
    assert difference(load(out).encode(texts), expected) < 1e-5


@table(
    """
    dtype, within
    bf16 | 0.1
    fp16 | 0.01
    """,
)
def test_half_precision_weights(bert, tmp_path, dtype, within):
    model = tmp_path / "m"
    load(bert, **around("the {text}")).save(model)
    done = export(model, tmp_path / "x", dtype=dtype)
    assert done.difference < 1e-5
    assert 1e-5 < done.rounding < within
    assert {
        weight.dtype for weight in load_file(tmp_path / "x/model.safetensors").values()
    } == {{"bf16": torch.bfloat16, "fp16": torch.float16}[dtype]}


def test_card_and_run_record(bert, tmp_path):
    model = tmp_path / "m"
    prompts = {"a": "the {text} or", "b": "a "}
    load(bert, prompts=prompts, default_prompt_name="a").save(model)
    done = export(model, tmp_path / "x")
    card = card_of(tmp_path / "x")
    assert card.startswith("---\nlibrary_name: sentence-transformers\n")
    for words in (
        'SentenceTransformer("x", trust_remote_code=True)',
        "install aoe-toolkit",
        "`the {text} or`",
    ):
        assert words in card
    record = read_json(tmp_path / "x/run.json")
    assert record["export"]["needs_toolkit"] == done.needs_toolkit
    assert str(tmp_path) not in json.dumps(record["export"] | {"made_of": None})
    (model / "README.md").write_text("# The card\n")  # as of a trained model
    (model / "run.json").write_text('{"seed": 7}')
    export(model, tmp_path / "y")
    assert card_of(tmp_path / "y") == "# The card\n"
    record = read_json(tmp_path / "y/run.json")
    assert (record["seed"], record["export"]["format"]) == (7, "sentence-transformers")


NAMED = {"query": "the man: ", "passage": "a road "}


@table(
    """
    default, of_queries
    None | ''
    passage | 'a road '
    """,
)
def test_plain_encode_of_an_export_uses_the_chosen_prompt(
    bert, out, tmp_path, default, of_queries
):
    """Without a choice it uses none, since plain `encode` of queries would get the documents' prompt."""
    load(bert, pooling="avg", prompts=NAMED).save(out)
    (tmp_path / "m/README.md").write_text("# Its card\n")
    export(out, tmp_path / "x", default_prompt=default)
    theirs = sentence_transformer(tmp_path / "x")
    assert theirs.default_prompt_name == default
    texts = ["a cat", "the road"]
    plain = theirs.encode(texts)
    by_name = theirs.encode(texts, prompt_name="query")
    for one, other in (
        (plain, theirs.encode(texts, prompt=of_queries)),
        (plain, load(tmp_path / "x").encode(texts)),
        (by_name, theirs.encode(texts, prompt="the man: ")),
    ):
        assert difference(one, other) < 1e-6
    card = card_of(tmp_path / "x")
    assert ("The default is `passage`." in card) == (default is not None)
    known = "no prompt 'title'; this model has 'query', 'document', 'passage'"
    with config_error(known):
        export(out, tmp_path / "y", default_prompt="title")


@table(
    """
    prompts, default, query, document
    NAMED | None | 'the man: ' | 'a road '
    NAMED | passage | 'the man: ' | 'a road '
    {'query': 'the man: '} | None | 'the man: ' | ''
    {'document': 'a road '} | None | '' | 'a road '
    {'default': 'is '} | default | 'is ' | 'is '
    """,
    NAMED=NAMED,
)
def test_the_card_has_the_lines_for_langchain_and_llamaindex(
    bert, tmp_path, prompts, default, query, document
):
    """Run with stand-ins that hand the arguments to sentence-transformers as both libraries do."""
    folder = tmp_path / "m"
    load(bert, pooling="avg", prompts=prompts, default_prompt_name=default).save(folder)
    export(folder, tmp_path / "x")
    card = card_of(tmp_path / "x")
    (code,) = re.findall(r"```python\n(HuggingFaceEmb.*?)```", card, re.DOTALL)
    found = []
    stand_in = {"HuggingFaceEmbeddings": lambda **given: found.append(given)}
    stand_in["HuggingFaceEmbedding"] = lambda *given, **named: found.append(named)
    exec(code.replace("path/to/this/folder", str(tmp_path / "x")), stand_in)
    chain, index = found
    theirs, text = sentence_transformer(chain["model_name"]), ["a cat"]
    for kwargs, words in (
        (chain["encode_kwargs"], document),
        (chain["query_encode_kwargs"], query),
    ):
        expected = theirs.encode(text, prompt=words)
        assert difference(theirs.encode(text, **kwargs), expected) < 1e-6
    assert index == {"query_instruction": query, "text_instruction": document}


@table(
    r"""
    header, expected
    'license: mit\nbase_model: a/b' | {'license': 'mit', 'base_model': 'a/b', 'language': None}
    # lists, as the Hub writes them
    'license: [mit, gpl]\nlanguage: [en]' | {'license': ['mit', 'gpl'], 'language': ['en']}
    'license: other\nlicense_name: own\nlicense_link: LICENSE' | {'license_name': 'own', 'license_link': 'LICENSE'}
    # invalid YAML
    'license: [' | {'license': 'unknown', 'license_name': None}
    """,
)
def test_a_new_card_has_the_metadata_of_the_source(tmp_path, header, expected):
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\n# m\n")
    head = exported_card_head("x", 32, tags=[], source=tmp_path / "README.md")
    (tmp_path / "x.md").write_text(head)
    found = metadata_load(tmp_path / "x.md")
    assert {name: found.get(name) for name in expected} == expected


@table(
    """
    settings, libraries, has_length_1
    {'pooling': 'avg', 'normalize': True} | True | True
    {'pooling': 'cls'} | True | False
    # they would pool the padding of right-padded texts
    {'pooling': 'last', 'normalize': True} | False | True
    {'pooling': 'max'} | False | False
    {'pooling': 'avg', 'normalize': True, 'dim': 8} | False | False
    """,
)
def test_a_graph_card_names_only_libraries_that_pool_alike(
    settings, libraries, has_length_1
):
    chosen = EncoderSettings(max_length=40, prompts={"query": "q: "}, **settings)
    card = graph_usage("x", chosen, "onnx/model.onnx", None)
    assert ("With transformers.js" in card) == libraries
    assert ("add_custom_model" in card) == libraries
    assert ("of length 1" in card) == has_length_1
    assert "onnxruntime add no prompt" in card


@parametrize("wrong", ["vectors", "prompts"])
def test_a_failed_verification_leaves_no_files(bert, out, tmp_path, monkeypatch, wrong):
    prompts = {"query": "the man: ", "document": "a road "}
    load(bert, pooling="avg", prompts=prompts, default_prompt_name="query").save(out)
    encode = SentenceTransformer.encode

    def other(self, texts, prompt_name=None, **more):
        return encode(self, texts, **more) * (1 if wrong == "prompts" else 0.99)

    monkeypatch.setattr(SentenceTransformer, "encode", other)
    with data_error(r"the export's vectors differ.*nothing was written"):
        export(out, tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@parametrize("adapters", [False, True])
def test_weights_are_averaged_with_the_backbones(adapters, llama, out, tmp_path):
    if adapters:
        backbone, trained = llama, tmp_path / "merged"
        adapted(llama, out)
        export(out, trained)
    else:
        backbone, trained = save_bert(tmp_path / "one"), save_bert(out, seed=1)
        (trained / "README.md").write_text("# The card of the trained model\n")
    (out / "run.json").write_text(json.dumps({"sources": {"backbone": str(backbone)}}))
    done = export(out, tmp_path / "mixed", interpolate=0.25)
    assert (done.interpolate, done.merged) == (0.25, adapters)
    assert read_json(tmp_path / "mixed/run.json")["export"]["interpolate"] == 0.25
    card = card_of(tmp_path / "mixed")
    assert "Weights: 0.25 x trained + 0.75 x backbone" in card
    assert "The card of the trained model" not in card
    first, last, mixed = (
        load_file(at / "model.safetensors")
        for at in (backbone, trained, tmp_path / "mixed")
    )
    for name, weight in mixed.items():
        torch.testing.assert_close(weight, 0.75 * first[name] + 0.25 * last[name])


def test_export_errors(tmp_path, monkeypatch):
    save_bert(tmp_path / "one", layers=1)
    save_bert(tmp_path / "wide")
    monkeypatch.chdir(tmp_path)
    for given, words in values(r"""
            {'interpolate': 0.5} | its run.json doesn't name its backbone; give backbone=
            {'interpolate': 0.5, 'backbone': 'wide'} | different names or shapes
            {'interpolate': 1.5, 'backbone': 'one'} | interpolate = 1\.5: expected at most 1
            {'backbone': 'one'} | backbone= without interpolate= has no effect
            {'format': 'pickle'} | format = 'pickle': expected 'sentence-transformers', 'onnx'
            {'dtype': 'int8'} | dtype = 'int8': expected 'fp32', 'bf16' or 'fp16'
            {'out': 'one'} | already exists
            {'format': 'onnx', 'dtype': 'bf16'} | dtype='bf16': a graph is always in fp32
            {'data': 'pairs.tsv'} | data= measures the loss by int8
            """):
        with config_error(words):
            export("one", **{"out": "out", **given})
    assert not (tmp_path / "out").exists()
