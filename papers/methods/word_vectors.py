"""Word vectors: GloVe (Pennington et al., 2014), word2vec (Mikolov et al., 2013), fastText.

A file has a word and its vector on each line; files of word2vec start with a line of count and dimension.
A text's vector is the mean of its words' vectors (the papers' "avg. GloVe"), or that of a BiLSTM over them
(Conneau et al., EMNLP 2017, arXiv 1705.02364), which is a transformers model.

InferSent's vector of a text is the maximum of the BiLSTM's states over its tokens (pooling `max`). The tokens
are <s>, the words and </s>. An unknown word has a vector of zeros; the authors' code removes it. Importing
this module registers the model with transformers' Auto classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from huggingface_hub.dataclasses import strict
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import (
    AutoConfig,
    AutoModel,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import BaseModelOutput

from pairkit.base.errors import DataError
from pairkit.base.system.files import sha256, whole_folder
from pairkit.base.system.text_lines import read_text_lines

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

_SUFFIXES = ".txt", ".vec"  # optionally followed by .gz
_MAX_DIM = 10_000
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_SIZE = 2048  # of the state in each direction, as in InferSent
_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "bos_token": "<s>",
    "eos_token": "</s>",
}
_WORDS = Regex(r"\w+|(?<=\w)'\w+|[^\w\s]")  # "it's" is two words, as in GloVe's files


def is_word_vectors(name: str) -> bool:
    """Whether a model's name is a file of word vectors."""
    return name.removesuffix(".gz").endswith(_SUFFIXES) and Path(name).is_file()


def read_word_vectors(path: Path) -> tuple[np.ndarray, dict[str, int]]:
    """The vectors, float32 (word, dim), and the row of each word; of a repeated word the first one counts.

    A word may contain spaces, as some in GloVe do: its vector is in the last `dim` fields of the line.
    """
    rows: list[np.ndarray] = []
    row_of_word: dict[str, int] = {}
    dim = 0
    for number, line in read_text_lines(path):
        fields = line.rstrip("\r\n ").split(" ")
        if number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields)):
            _, width = fields  # the header of word2vec
            dim = int(width)
            continue
        dim = dim or len(fields) - 1
        start = len(fields) - dim
        word = " ".join(fields[:start]) if dim and start > 0 else ""
        try:
            vector = np.array(fields[start:], np.float32)
        except ValueError:
            vector = np.empty(0, np.float32)
        if (
            not word
            or dim > _MAX_DIM
            or len(vector) != dim
            or not np.isfinite(vector).all()
        ):
            raise DataError(
                f"expected a word and {dim or 'some'} numbers separated by single spaces, as in GloVe and"
                " word2vec text files",
                path=path,
                row=number,
            )
        if word not in row_of_word:
            row_of_word[word] = len(rows)
            rows.append(vector)
    if not rows:
        raise DataError(
            "no word vectors; expected a word and its vector on each line", path=path
        )
    return np.stack(rows), row_of_word


class WordVectors:
    """Maps texts to the means of their words' vectors.

    A word is looked up as written, then in lower case. If a word with an apostrophe is unknown, its parts are
    looked up ("it", "'s"). Unknown words are skipped; a text without known words becomes zeros.
    """

    def __init__(self, path: Path) -> None:
        self._vectors, self._row_of_word = read_word_vectors(path)

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Vectors, float32 (text, dim)."""
        means = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        for index, text in enumerate(texts):
            rows = [row for row in self._rows(text) if row is not None]
            if rows:
                means[index] = self._vectors[rows].mean(axis=0)
        return means

    def _rows(self, text: str) -> Iterator[int | None]:
        for word in _WORD.findall(text):
            row = self._row(word)
            stem, mark, rest = word.replace("’", "'").partition("'")
            if row is None and mark:
                yield self._row(stem)
                yield self._row(mark + rest)
            else:
                yield row

    def _row(self, word: str) -> int | None:
        return self._row_of_word.get(word, self._row_of_word.get(word.lower()))


@strict
class BiLstmConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """Sizes of the model; `hidden_size` counts both directions."""

    model_type = "bilstm"

    vocab_size: int = 8
    embedding_size: int = 300
    hidden_size: int = 2 * _SIZE
    pad_token_id: int | None = 0


class BiLstmModel(PreTrainedModel):  # type: ignore[no-untyped-call]
    """Word vectors and an LSTM in both directions."""

    config: BiLstmConfig
    config_class = BiLstmConfig
    base_model_prefix = "bilstm"

    def __init__(self, config: BiLstmConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size)
        self.lstm = nn.LSTM(
            config.embedding_size,
            config.hidden_size // 2,
            batch_first=True,
            bidirectional=True,
        )
        self.post_init()  # type: ignore[no-untyped-call]

    def _init_weights(self, module: nn.Module) -> None:
        """Keep torch's own initialisation."""

    def get_input_embeddings(self) -> nn.Module:
        """The word vectors."""
        return self.embeddings

    def forward(
        self,
        input_ids: Int[Tensor, "row column"],
        attention_mask: Int[Tensor, "row column"] | None = None,
        *,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """The state of each token. Texts are padded on the right; padding does not change the states."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        lengths = mask.sum(1).cpu()
        words = self.embeddings(input_ids)
        packed = pack_padded_sequence(
            words, lengths, batch_first=True, enforce_sorted=False
        )
        output, _ = self.lstm(packed)
        states, _ = pad_packed_sequence(
            output, batch_first=True, total_length=input_ids.shape[1]
        )
        return BaseModelOutput(
            states, (words, states) if output_hidden_states else None
        )


AutoConfig.register("bilstm", BiLstmConfig)
AutoModel.register(BiLstmConfig, BiLstmModel)


def bilstm_folder(path: Path, parent: Path) -> Path:
    """The folder of an untrained model over a file of word vectors; written to `parent` if it is absent."""
    folder = parent / f"bilstm-{sha256(path)[:16]}"
    if not folder.exists():
        with whole_folder(folder) as partial:
            write_bilstm(path, partial)
    return folder


def write_bilstm(path: Path, folder: Path, size: int = _SIZE) -> None:
    """Write a model folder, with weights drawn from a fixed seed."""
    vectors, row_of_word = read_word_vectors(path)
    tokens = dict.fromkeys([*_SPECIAL.values(), *row_of_word])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    table = np.zeros((len(vocabulary), vectors.shape[1]), np.float32)
    for word, row in row_of_word.items():
        table[vocabulary[word]] = vectors[row]
    config = BiLstmConfig(
        vocab_size=len(vocabulary),
        embedding_size=vectors.shape[1],
        hidden_size=2 * size,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: Any = BiLstmModel(config)
    model.embeddings.weight.data = torch.from_numpy(table)
    model.save_pretrained(folder)
    lower = all(word == word.lower() for word in row_of_word)
    _tokenizer(vocabulary, lower=lower).save_pretrained(folder)


def _tokenizer(vocabulary: dict[str, int], *, lower: bool) -> PreTrainedTokenizerFast:
    """Split texts into words; `lower` is set if all words of the file are lower-case."""
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token=_SPECIAL["unk_token"]))
    steps: list[Any] = [normalizers.Replace("\u2019", "'")]
    if lower:
        steps.append(normalizers.Lowercase())
    raw.normalizer = normalizers.Sequence(steps)
    raw.pre_tokenizer = pre_tokenizers.Split(_WORDS, "removed", invert=True)
    ends = [
        (name, vocabulary[name])
        for name in (_SPECIAL["bos_token"], _SPECIAL["eos_token"])
    ]
    raw.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=ends
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        model_input_names=["input_ids", "attention_mask"],
        **_SPECIAL,
    )
