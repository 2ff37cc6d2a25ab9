"""Static models, as `aoe distill` makes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aoe_train.api.parameters import Data, Model
from pairkit.app.flag import OUTPUT, Flag
from pairkit.dataset.flags import Out

if TYPE_CHECKING:
    from aoe_train.exporting.distill.static import Distilled
    from aoe_train.model.encoder import Encoder
    from pairkit.app.progress import Listener
    from pairkit.dataset.in_memory import Source


def distill(
    model: Annotated[str | Path | Encoder, Model],
    texts: Annotated[Source, Data],
    *,
    out: Annotated[str | Path, Out],
    dim: Annotated[int | None, Flag(metavar="N", panel=OUTPUT, main=True)] = None,
    progress: bool | Listener = True,
) -> Distilled:
    """Distil a model into a static one, which has a vector for each token and runs no network.

    A text's vector is the mean of its tokens', so it is made hundreds of times faster, and order of words is
    lost. The tokens' vectors are those whose means come nearest to the model's vectors of the texts, by least
    squares; what begins it is Model2Vec's way (each token alone, weighted by how rare it is). No labels are
    needed, and no accelerator. sentence-transformers loads the folder, and so does `evaluate`. The model's
    vectors are kept below `$AOE_CACHE/vectors`, so that a killed call continues.

    Args:
        model: A folder, a Hub id, minilm or smollm2. In Python also an `Encoder`.
        texts: Texts without labels: a file, a folder or a Hub id. In Python also rows in memory. They should
            be of the kind that the static model is for; of rows with several texts, all are used. Some 20,000
            make a good model; more make a better one.
        out: A folder that doesn't exist yet.
        dim: Size of a vector. Fewer numbers are the principal axes. Default: the model's.
        progress: Whether to show progress on stderr, or a function to be told of it.

    Returns:
        What it was made from, and how near it comes to the model on texts that were held out.

    Raises:
        ConfigError: `out` exists, or the model can't be distilled, or has fewer numbers than `dim`.
        DataError: Too few texts.
        RemoteError: The Hub could not be reached.
    """
    from aoe_train.data.examples import read_examples
    from aoe_train.evaluation.embedders.cached import CachedEmbedder, VectorStore
    from aoe_train.evaluation.embedders.embedder import LocalEmbedder
    from aoe_train.exporting.distill.static import distil, write
    from aoe_train.model.cache_dir import cache_dir
    from aoe_train.model.encoder import Encoder
    from pairkit.app.errors import ConfigError
    from pairkit.app.progress import Display, stage
    from pairkit.app.settings import argument

    folder = argument("out", out, Path)
    if folder.exists():
        raise ConfigError(f"{folder}: already exists; give another folder to --out, or remove it")
    rows = read_examples(texts).texts
    with Display(progress) as show:
        if isinstance(model, str | Path):
            from aoe_train.model.backbones.load import find_folder

            source, named = Path(find_folder(str(model))), str(model)
            with stage(f"load {model}", show):
                encoder = Encoder.load(source, precision="fp32", inference_only=True)
        else:
            encoder, source, named = model, Path(), "encoder"
        wide = encoder.dim
        if dim is not None and not 1 <= dim <= wide:
            raise ConfigError(f"--dim {dim}: the model's vectors have {wide} numbers")
        embedder = LocalEmbedder(encoder, named)
        store = VectorStore(cache_dir("vectors"), embedder.identity)
        cached = CachedEmbedder(embedder, store, progress=show)
        static, done = distil(encoder, cached.encode, rows, folder, dim or wide, show)
        write(static, done, model=embedder.name, source=source, wide=wide, texts=rows)
    return done
