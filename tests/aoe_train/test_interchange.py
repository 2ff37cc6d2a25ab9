"""Model folders that sentence-transformers reads and writes: vectors, poolings and prompts."""

import json
import shutil

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from tests.aoe_train.test_model_folder import write_modules
from tests.aoe_train.tiny import (
    POOLINGS,
    around,
    difference,
    edit,
    load,
    probes,
    read_json,
    save_ran,
    sentence_transformer,
)
from tests.support.shorthand import config_error, data_error, parametrize, raises, table

PROMPT = "the {text} in one word:"
# Which sentence-transformers can't run: words after the text, and another prompt.
TWO_PROMPTS = {
    "prompts": {"a": "the {text} or", "b": "a "},
    "default_prompt_name": "a",
}


def agrees(folder, encoder, **options):
    """sentence-transformers gives our vectors, in batches of mixed length."""
    more = ["bread", "a large blue car is on the road . " * 3]
    texts = [*probes(encoder.settings.max_length or 1), *more]
    found = sentence_transformer(folder, **options).encode(texts, batch_size=3)
    assert difference(found, encoder.encode(texts)) < 1e-5
    if encoder.settings.normalize:
        assert abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-5


@parametrize(
    "backbone, pooling",
    [("bert", pooling) for pooling in POOLINGS]
    + [("llama", "last"), ("llama", "cls-avg")],
)
def test_every_pooling(request, out, backbone, pooling):
    llama = {"bidirectional": True, **around(PROMPT)}
    more = llama if backbone == "llama" else {"normalize": pooling == "avg"}
    encoder = load(
        request.getfixturevalue(backbone), pooling=pooling, max_length=48, **more
    )
    encoder.save(out)
    agrees(out, encoder)
    assert load(out).settings == encoder.settings
    if backbone == "llama":  # a long text loses its own end, not the prompt's
        theirs = sentence_transformer(out)
        ids = theirs.preprocess(["x" * 500])["input_ids"][0]
        assert len(ids) == 48
        assert theirs.tokenizer.decode(ids).endswith(" in one word:")


@parametrize("pooling", ["cells", "avg"])
def test_ran_uses_our_module_also_after_resaving(tmp_path, out, pooling):
    ran = save_ran(tmp_path / "ran")
    encoder = load(ran, pooling=pooling, max_length=200, normalize=True)
    encoder.save(out)
    agrees(out, encoder, trust_remote_code=True)
    with raises(ValueError, match="trust_remote_code"):
        sentence_transformer(out)
    theirs = sentence_transformer(out, trust_remote_code=True)
    theirs.save(str(tmp_path / "theirs"))
    agrees(tmp_path / "theirs", encoder, trust_remote_code=True)


def test_requirements_of_readers(bert, llama, out, tmp_path):
    def requirements(folder, **settings):
        load(folder, **settings).save(out)
        saved = read_json(out / "config_sentence_transformers.json")
        return {*saved["requirements"]}

    assert requirements(bert) == set()
    assert requirements(bert, **TWO_PROMPTS) == {"aoe-toolkit"}
    assert requirements(llama, bidirectional=True) == {"transformers"}
    assert requirements(save_ran(tmp_path / "ran")) == {"aoe-toolkit"}


def test_lower_casing_survives_saving(bert, out, tmp_path):
    source = shutil.copytree(bert, tmp_path / "source")
    normalizer = read_json(source / "tokenizer.json")["normalizer"]
    edit(source / "tokenizer.json", normalizer=normalizer | {"lowercase": False})
    texts = ["A Cat on the ROAD", "a cat on the road"]
    plain = load(source, pooling="cls", max_length=40).encode(texts)
    assert abs(plain[0] - plain[1]).max() > 1e-2  # the tokenizer alone tells them apart
    cls = {"pooling_mode_cls_token": True}
    write_modules(source, "Transformer", "Pooling", pooling=cls)
    edit(source / "sentence_bert_config.json", max_seq_length=40, do_lower_case=True)

    lowered = load(source)
    expected = lowered.encode(texts)
    np.testing.assert_allclose(expected[0], expected[1], atol=1e-6)
    lowered.save(out)
    assert difference(load(out).encode(texts), expected) < 1e-6
    assert difference(sentence_transformer(out).encode(texts), expected) < 1e-5


NAMED = {"query": "the man: ", "document": "a road, ", "title": "is a cat on the road"}
LONG = "the man: is not in the city " * 9
TEXTS = ["a cat", " {text} or {0}", "", "bread.", LONG, "{", "a{text}b"]


def theirs(source, folder, pooling="mean", include_prompt=True, **model):
    """A folder as written by sentence-transformers."""
    transformer = Transformer(str(source), max_seq_length=32)
    tokenizer = transformer.tokenizer
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    parts = [transformer, Pooling(32, pooling, include_prompt=include_prompt)]
    SentenceTransformer(modules=parts, **model).save(str(folder))
    return sentence_transformer(folder)


def agree(ours, model, texts=TEXTS):
    """Both give the same vectors for each prompt, in batches of mixed length."""
    assert ours.prompts == model.prompts
    assert ours.settings.default_prompt_name == model.default_prompt_name
    names = [{"prompt_name": name} for name in (None, *model.prompts)]
    for how in (*names, *({"prompt": prompt} for prompt in ("", "a dog. ", "is"))):
        expected = model.encode(texts, **how, batch_size=3)
        assert difference(ours.encode(texts, **how), expected) < 1e-6
    for how in ({}, names[-1]):
        expected = model.encode_query(texts, **how)
        assert difference(ours.encode_query(texts, **how), expected) < 1e-6
    assert difference(ours.encode_document(texts), model.encode_document(texts)) < 1e-6


@table(
    """
    which, pooling, include_prompt
    bert | mean | False
    bert | max | True
    llama | cls | False
    llama | lasttoken | True
    llama | weightedmean | False
    """,
)
def test_named_prompts_equal_sentence_transformers(
    which, pooling, include_prompt, tmp_path, request
):
    source = request.getfixturevalue(which)
    named = {"default_prompt_name": "title", "similarity_fn_name": "dot"}
    options = {"pooling": pooling, "include_prompt": include_prompt}
    model = theirs(source, tmp_path / "theirs", prompts=NAMED, **named, **options)
    texts = TEXTS
    if which == "llama" and not include_prompt:
        # Of an empty text some of their poolings of no token at all make infinity.
        texts = [text for text in TEXTS if len(text) > 1]
    ours = load(tmp_path / "theirs")
    agree(ours, model, texts)
    ours.save(tmp_path / "ours")
    again = sentence_transformer(tmp_path / "ours")
    agree(load(tmp_path / "ours"), again, texts)
    assert (again.prompts, again.default_prompt_name) == (model.prompts, "title")
    assert again.similarity_fn_name == ours.settings.similarity_fn_name == "dot"
    assert again[1].include_prompt is include_prompt


def test_encode_document_uses_the_prompt_passage(bert, out):
    model = theirs(bert, out, prompts={"query": "the man: ", "passage": "a road "})
    network = out / "0_Transformer"  # as before release 2.0
    network.mkdir()
    for name in ("config", "tokenizer", "tokenizer_config"):
        (out / f"{name}.json").rename(network / f"{name}.json")
    (out / "model.safetensors").rename(network / "model.safetensors")
    modules = (out / "modules.json").read_text()
    (out / "modules.json").write_text(
        modules.replace('"path": ""', '"path": "0_Transformer"')
    )
    ours = load(out)
    # Their encode_document overlooks it.
    expected = model.encode(["a cat"], prompt_name="passage")
    assert difference(ours.encode_document(["a cat"]), expected) < 1e-6
    one, (same,) = map(ours.encode_document, ("a cat", ["a cat"]))
    assert_array_equal(one, same)
    (out / "1_Pooling/config.json").unlink()
    with data_error(r"1_Pooling/config\.json: .* No such file"):
        load(out)


@parametrize("which", ["bert", "llama"])
def test_a_prompt_around_the_text_is_in_the_tokenizer(which, out, tmp_path, request):
    source = request.getfixturevalue(which)
    encoder = load(source, max_length=40, **around(PROMPT))
    encoder.save(out)
    assert len({path.stat().st_mode for path in out.iterdir() if path.is_file()}) == 1
    ours = load(out)
    model = sentence_transformer(out)
    for name in (None, "default", "query", "document"):
        expected = encoder.encode(TEXTS, prompt_name=name)
        assert difference(ours.encode(TEXTS, prompt_name=name), expected) < 1e-6
        assert difference(model.encode(TEXTS, prompt_name=name), expected) < 1e-6
    plain = load(source, max_length=40)
    assert_array_equal(ours.encode(TEXTS, prompt=""), plain.encode(TEXTS))
    model.save(str(tmp_path / "again"))  # without our settings
    again = load(tmp_path / "again")
    assert difference(again.encode(TEXTS), encoder.encode(TEXTS)) < 1e-6


def test_prompts_around_the_text_with_others_use_our_module(bert, out):
    prompts = {"default": PROMPT, "title": "is a cat on the road"}
    encoder = load(bert, max_length=32, prompts=prompts, default_prompt_name="default")
    encoder.save(out)
    model = sentence_transformer(out, trust_remote_code=True)
    agree(load(out), model)
    assert difference(model.encode(TEXTS, prompt=PROMPT), encoder.encode(TEXTS)) < 1e-6


def test_prompt_errors(bert, tmp_path):
    encoder = load(bert, max_length=16, prompts={"query": "the man: "})
    for prompt in ("the " * 14, "the {text}" + " man" * 13):
        with config_error("max_length 16 leaves no room for text: prompt and special"):
            encoder.encode("a cat", prompt=prompt)
    with pytest.warns(UserWarning, match="prompt_name 'query' is ignored"):
        encoder.encode("a cat", prompt="the ", prompt_name="query")
    with config_error(r"include_prompt is false, but the prompt .* has words after"):
        load(bert, include_prompt=False).encode("a cat", prompt=PROMPT)


@table(
    """
    more, error, told
    {'prompts': {'q': 'query {text}'}} | ConfigError | 'q' contains {text}, which sentence-transformers
    {'truncate_dim': 33} | ConfigError | dim 33: this model's vectors have 32 dimensions
    {'default_prompt_name': 'q'} | ConfigError | no prompt 'q'; this model has 'query', 'document'
    {'similarity_fn_name': 'hamming'} | DataError | similarity_fn_name = 'hamming'
    """,
)
def test_unsupported_model_settings(bert, out, more, error, told):
    load(bert).save(out)
    (out / "aoe.json").unlink()
    (out / "config_sentence_transformers.json").write_text(json.dumps(more))
    with raises(error) as refused:
        load(out)
    assert told in str(refused.value)
