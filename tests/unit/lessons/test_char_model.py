"""The character-level model: its output, its mask, and that a seed determines everything."""

import math
import threading
from itertools import pairwise

import numpy as np
import pytest
import torch

from mha_viz.errors import ShapeError, TextError
from mha_viz.lessons.char_model import (
    MAX_VOCABULARY,
    MIN_CHARACTERS,
    CharModel,
    Progress,
    Settings,
    batches,
    encode,
    one_thread,
    read_corpus,
    side_by_side,
    train,
    validation_loss,
)

V = 65
SHORT = Settings(n_heads=4, steps=120)
PERIODIC = "the cat sat. " * 300


def model_of(**changes: object) -> CharModel:
    return CharModel(Settings(**changes), V)  # type: ignore[arg-type]


def ids_of(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def losses(reports: list[Progress]) -> list[float]:
    return [number for r in reports for number in (r.train_loss, r.validation_loss)]


def by_hand(model: CharModel, ids: np.ndarray) -> np.ndarray:
    """Logits [T, V] in NumPy, head by head and query by query (Vaswani et al. 2017, 3.2.2)."""
    w = {name: p.detach().double().numpy() for name, p in model.named_parameters()}
    x = w["embedding.weight"][ids] + w["position.weight"][: len(ids)]
    C, H = x.shape[1], model.attn.n_heads
    q, k, v = np.split(x @ w["attn.W_QKV.weight"].T, 3, axis=1)
    z = np.zeros_like(x)
    for head in range(H):
        part = slice(head * C // H, (head + 1) * C // H)
        for i in range(len(ids)):
            scores = k[: i + 1, part] @ q[i, part] / math.sqrt(C // H)
            weights = np.exp(scores - scores.max())
            z[i, part] = weights / weights.sum() @ v[: i + 1, part]
    return z @ w["attn.W_O.weight"].T @ w["W_U.weight"].T + w["W_U.bias"]


@pytest.mark.parametrize("n_heads", [1, 4, 32])
@pytest.mark.parametrize("projection", [False, True])
def test_logits_are_those_of_the_formula(n_heads: int, projection: bool) -> None:
    model = model_of(n_heads=n_heads, projection=projection, seed=3)
    ids = ids_of(1, 8)
    with torch.no_grad():
        found = model(ids)[0].double().numpy()
    np.testing.assert_allclose(found, by_hand(model, ids[0].numpy()), rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_heads", [1, 4, 32])
def test_the_future_does_not_leak(n_heads: int) -> None:
    model, ids = model_of(n_heads=n_heads), ids_of(1, 8)
    changed = ids.clone()
    changed[0, 5:] = (changed[0, 5:] + 1) % V
    with torch.no_grad():
        before, after = model(ids)[0], model(changed)[0]
    torch.testing.assert_close(before[:5], after[:5], rtol=0, atol=1e-6)
    assert (before[5:] - after[5:]).abs().max() > 0.1


@pytest.mark.parametrize("n_heads", [1, 2, 4, 8, 16, 32])
def test_the_number_of_heads_does_not_change_the_number_of_parameters(n_heads: int) -> None:
    embeddings, qkv, unembedding = (V + 8) * 32, 3 * 32 * 32, 33 * V
    expected = embeddings + qkv + unembedding
    assert model_of(n_heads=n_heads).n_parameters == expected == 7_553
    assert model_of(n_heads=n_heads, projection=True).n_parameters == expected + 32 * 32


@pytest.mark.parametrize("n_heads", [1, 4])
def test_a_pattern_is_a_triangle_of_rows_that_add_up_to_one(n_heads: int) -> None:
    pattern = model_of(n_heads=n_heads).pattern(ids_of(8))
    assert pattern.shape == (n_heads, 8, 8)
    np.testing.assert_allclose(pattern.sum(axis=-1), 1, rtol=0, atol=1e-6)
    assert (pattern[:, *np.triu_indices(8, 1)] == 0).all()


def test_the_same_seed_gives_the_same_curve_and_another_one_another() -> None:
    one, again = (list(train(SHORT, PERIODIC)) for _ in range(2))
    np.testing.assert_array_equal(losses(one), losses(again))
    other = list(train(Settings(n_heads=4, steps=120, seed=1), PERIODIC))
    assert other[0].validation_loss != one[0].validation_loss  # other weights at the start
    assert other[1].train_loss != one[1].train_loss


def test_trainings_that_take_turns_do_not_disturb_each_other() -> None:
    settings = [SHORT, Settings(steps=120, seed=5)]
    alone = [list(train(s, PERIODIC)) for s in settings]
    torch.manual_seed(99)
    turns = list(side_by_side(settings, PERIODIC))
    assert [which for which, _ in turns[:4]] == [0, 1, 0, 1]
    for which in range(2):
        found = [report for i, report in turns if i == which]
        np.testing.assert_array_equal(losses(found), losses(alone[which]))


def test_a_model_starts_near_uniform_guessing_and_learns_the_text() -> None:
    first, *_, last = train(Settings(n_heads=4, steps=600, learning_rate=1e-2), PERIODIC)
    uniform = math.log(len(set(PERIODIC)))
    assert first.step == 0
    assert math.isnan(first.train_loss)
    assert abs(first.validation_loss - uniform) < 0.6
    assert last.step == 600
    # Only the first characters of a window are ambiguous: is "at" part of "cat" or of "sat"?
    assert last.validation_loss < 0.35
    assert last.pattern.shape == (4, 8, 8)


@pytest.mark.parametrize("projection", [False, True])
def test_the_projection_is_the_identity_unless_it_is_learnt(projection: bool) -> None:
    settings = Settings(n_heads=4, steps=20, projection=projection)
    model = CharModel(settings, V)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    start = model.attn.W_O.weight.detach().clone()
    torch.nn.functional.cross_entropy(model(ids_of(4, 8))[:, -1], ids_of(4)).backward()
    optimizer.step()
    assert bool((start == torch.eye(32)).all()) is not projection
    assert bool((model.attn.W_O.weight == start).all()) is not projection


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_heads": 5}, "2 or 4"), ({"n_heads": 0}, "n_heads = 0"), ({"context": 0}, "context"),
        ({"batch": 0}, "batch"), ({"steps": 0}, "steps = 0"), ({"steps": -5}, "at least 1"),
        ({"learning_rate": 0.0}, "0.001"), ({"learning_rate": math.nan}, "learning_rate"),
        ({"seed": -1}, "seed"), ({"width": 0}, "d_model"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_trained_are_rejected(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        Settings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", [1, 7, 50, 120, 999, 5_000, 50_000])
def test_reports_begin_at_zero_and_end_with_the_last_step(steps: int) -> None:
    reports = Settings(steps=steps).report_steps
    assert (reports[0], reports[-1]) == (0, steps)
    strides = [b - a for a, b in pairwise(reports)]
    assert min(strides) > 0
    assert max(strides) <= 250


def test_a_text_is_split_without_losing_a_character() -> None:
    text = "".join(chr(97 + i % 26) for i in range(2_000)) + "é\n🙂"
    corpus = read_corpus(text)
    ids = torch.cat([corpus.train, corpus.validation])
    assert "".join(corpus.vocabulary[i] for i in ids) == text
    assert len(corpus.validation) == 200
    assert corpus.sample in text[-200:]
    assert len(corpus.sample) == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0 characters"),
        ("a" * (MIN_CHARACTERS - 1), "at least 1,000"),
        ("".join(map(chr, range(0x4E00, 0x4E01 + MAX_VOCABULARY))), "4,097 different"),
    ],
)
def test_a_text_that_cannot_be_trained_on_is_rejected(text: str, said: str) -> None:
    with pytest.raises(TextError, match=said):
        read_corpus(text)


def test_a_longer_context_needs_a_longer_text() -> None:
    with pytest.raises(TextError, match="at least 6,500"):
        read_corpus("a b " * 500, context=649)


def test_a_character_outside_of_the_vocabulary_is_named() -> None:
    with pytest.raises(TextError, match="'z' is not among the 3"):
        encode("abz", "abc")


def test_windows_are_parts_of_the_text_with_the_next_character() -> None:
    ids = torch.arange(500)
    found = batches(ids, Settings(), 6, torch.Generator().manual_seed(0))
    assert found.shape == (6, 32, 9)
    assert (found.diff(dim=-1) == 1).all()
    assert found.min() >= 0
    assert found.max() <= 499


def test_the_validation_loss_is_the_mean_over_all_windows_of_a_short_text() -> None:
    model, ids = model_of(n_heads=2), ids_of(700)
    windows = ids.unfold(0, 9, 1)
    with torch.no_grad():
        logp = model(windows[:, :-1]).log_softmax(-1)
    expected = -logp.gather(-1, windows[:, 1:, None]).mean().item()
    assert validation_loss(model, ids, 8) == pytest.approx(expected, abs=1e-5)
    long = ids_of(50_000)
    assert validation_loss(model, long, 8) == validation_loss(model, long, 8)


def test_one_thread_affects_only_the_calling_thread() -> None:
    seen: dict[str, int] = {}

    def look(name: str) -> None:
        seen[name] = torch.get_num_threads()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            look("inside")
            other = threading.Thread(target=look, args=("other",))
            other.start()
            other.join()
        look("after")
    finally:
        torch.set_num_threads(before)
    assert seen == {"inside": 1, "other": 2, "after": 2}
