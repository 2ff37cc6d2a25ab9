import torch
from huggingface_hub.errors import StrictDataclassClassValidationError
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import grad
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModel

from aoe_train import ran as network
from tests.aoe_train.tiny import seeded
from tests.support.shorthand import approx, raises, table

WINDOW = 8


def ran(**changes):
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 50,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "head_dim": 4,
        "window_size": WINDOW,
        "min_window_size": 3,
        "initializer_range": 0.3,
    }
    return network.RanModel(network.RanConfig(**sizes | changes)).eval()


MODEL = ran()
EXACT = ran().double()


def text(length, seed=0):
    return torch.randint(1, 50, (length,), generator=seeded(seed))


def packed(model, *texts):
    return model.forward_packed(torch.cat(texts), torch.tensor([*map(len, texts)]))


def padded(texts, width, left=False):
    ids, mask = torch.zeros(2, len(texts), width, dtype=torch.long)
    for row, tokens in enumerate(texts):
        place = slice(width - len(tokens), None) if left else slice(0, len(tokens))
        ids[row, place], mask[row, place] = tokens, 1
    return ids, mask


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
    st.integers(0, 30),
    st.booleans(),
)
def test_vectors_do_not_depend_on_batch_or_padding(lengths, further, left):
    texts = [text(length, seed) for seed, length in enumerate(lengths)]
    ids, mask = padded(texts, max(lengths) + further, left=left)
    with torch.no_grad():
        together = EXACT(ids, mask)
        memory = packed(EXACT, *texts).memory
        for row, tokens in enumerate(texts):
            alone, there = packed(EXACT, tokens), mask[row].bool()
            hidden = together.last_hidden_state[row]
            for found, expected in (
                (together.pooler_output[row], alone.cells[0]),
                (memory[row], alone.memory[0]),
                (hidden[there], alone.hidden),
            ):
                assert_close(found, expected, atol=1e-12, rtol=0)
            assert not hidden[~there].any()


@table(
    """
    changes
    {}
    {'ln_style': 'second-moment'}
    {'memory_start': 'carried'}
    """
)
def test_gradients_flow_through_the_memory(changes):
    model = ran(num_hidden_layers=1, **changes)
    tokens = text(3 * WINDOW)
    inputs = model.embed_tokens(tokens).detach().requires_grad_()
    model.embed_tokens.register_forward_hook(lambda *_: inputs)
    seen = []
    # What the last window's attention gives, before the memory review, which sees all cells anyway.
    model.layers[0].window.register_forward_hook(
        lambda _m, _i, out: seen.append(out[1])
    )
    packed(model, tokens)
    sums = [read.square().mul(torch.arange(16)).sum() for read in seen]
    (gradient,) = grad(sums[-1], inputs, retain_graph=True)
    assert gradient[:WINDOW].abs().sum(1).gt(0).all()
    (gradient,) = grad(sums[0], inputs)
    assert not gradient[WINDOW:].any()


def test_every_parameter_learns_from_a_long_text():
    model = ran()
    found = packed(model, text(40))
    (found.hidden.square() @ torch.arange(16.0)).sum().backward()
    still = {
        name
        for name, p in model.named_parameters()
        if p.grad is None or not p.grad.any()
    }
    # Nothing comes from below the first layer: only the bias of its norm starts the memory.
    assert still == {"layers.0.start.dense.weight", "layers.0.start.norm.weight"}


def work(model, texts):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        packed(model, *texts)
    return counter.get_total_flops()


def test_work_is_linear_in_length_without_padding():
    one, two = (work(MODEL, [text(length)]) for length in (160, 320))
    assert two / one == approx(2, rel=0.05)
    texts = [text(160), *(text(8, n) for n in range(1, 5))]
    # There are 1.2 times as many tokens.
    assert work(MODEL, texts) < 1.25 * work(MODEL, texts[:1])


def test_saved_and_loaded_by_the_auto_classes(tmp_path):
    model = network.RanModel(ran().config).eval()
    model.save_pretrained(tmp_path)
    ids = text(30)[None]
    with torch.no_grad():
        loaded, report = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
        assert torch.equal(loaded(ids).pooler_output, model(ids).pooler_output)
        with torch.autocast("cpu", torch.bfloat16):
            rounded = model(ids).pooler_output.float()
    assert torch.cosine_similarity(model(ids).pooler_output, rounded).item() > 0.99
    assert not report["missing_keys"]
    assert isinstance(loaded, network.RanModel)
    assert AutoConfig.from_pretrained(tmp_path).to_dict()["window_size"] == WINDOW
    with torch.device("meta"):  # the default is the base size
        weights = network.RanModel(network.RanConfig()).parameters()
    assert sum(weight.numel() for weight in weights) == 87_244_800


@table(
    """
    sizes
    {'head_dim': 7}
    {'head_dim': 0}
    {'hidden_size': 0}
    {'num_attention_heads': 0}
    {'num_hidden_layers': 0}
    {'min_window_size': 0}
    {'window_size': 8, 'min_window_size': 9}
    """
)
def test_impossible_sizes_are_refused(sizes):
    with raises(
        StrictDataclassClassValidationError, match=r"odd|expected (1 to|at least 1)"
    ):
        network.RanConfig(**sizes)


@table(
    """
    length, windows
    0 | 1
    1 | 1
    8 | 1
    10 | 1
    11 | 2
    16 | 2
    18 | 2
    19 | 3
    160 | 20
    """,
)
def test_a_short_tail_is_part_of_the_previous_window(length, windows):
    model, read = ran(num_hidden_layers=1), []
    model.layers[0].window.register_forward_hook(lambda *_: read.append(1))
    packed(model, text(length))
    assert len(read) == windows
