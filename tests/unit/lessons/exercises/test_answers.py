"""Exercises have one right choice on every model and text, and torch agrees with the answers."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from mha_viz.app.widgets.path import STOPS
from mha_viz.attention import MultiHeadAttention
from mha_viz.errors import ExerciseError
from mha_viz.lessons.exercises import answers
from mha_viz.lessons.exercises.answers import Shown, load, on_layer, parse
from mha_viz.lessons.exercises.layer import Layer, layer_of, random_layer
from mha_viz.lessons.exercises.texts import Exercise
from mha_viz.lessons.walkthrough import random_layer as random_attention
from mha_viz.model import Model

NAMES = sorted(path.stem for path in answers.FOLDER.glob("*.md") if path.stem != "README")
EXERCISES = [exercise for name in NAMES for exercise in load(name)]
TEXT = "The king gave the princess a golden ring"


def named(exercise: Exercise) -> str:
    return f"{exercise.file}:{exercise.line}"


def layer_with(d_model: int, n_heads: int, T: int, **options: object) -> Layer:
    attention, x = random_attention(d_model, n_heads, 1, T)
    if options:
        attention = MultiHeadAttention(d_model, n_heads, **options)  # type: ignore[arg-type]
        attention.requires_grad_(False)
    return Layer(attention, x, L=2, V=40)


@pytest.fixture(scope="module")
def of_text(bundled: Model) -> Layer:
    return layer_of(bundled.network, torch.tensor([bundled.trace(TEXT).token_ids]), 3)


@pytest.fixture(scope="module")
def layers(bundled: Model, of_text: Layer) -> list[Layer]:
    """Texts of several lengths, and layers with one head, shared keys, pruned heads and scales."""
    long, one = (
        layer_of(bundled.network, torch.tensor([ids]), 0) for ids in (list(range(90)), [7])
    )
    sizes = [(36, 6, 6), (8, 8, 2), (16, 1, 5), (12, 3, 3), (16, 2, 1), (24, 4, 6)]
    odd = [{"n_kv_heads": 2}, {"d_head": 3}, {"scale": 0.3}, {"causal": False}]
    return [
        of_text,
        long,
        one,
        *(layer_with(*size) for size in sizes),
        *(layer_with(16, 4, 5, **options) for options in odd),
    ]


def test_every_part_of_the_lessons_has_exercises() -> None:
    assert len(EXERCISES) >= 26
    assert {stop.exercises for stop in STOPS} == set(NAMES)
    for word in ("predict a shape", "strides", "view or reshape", "which mask", "find the bug"):
        assert any(word in exercise.kind for exercise in EXERCISES), word
    for word in ("which line makes this tensor", "cache"):
        assert any(word in exercise.kind + exercise.question for exercise in EXERCISES), word


@pytest.mark.parametrize("exercise", EXERCISES, ids=named)
def test_one_choice_is_right_on_every_model_and_text(
    exercise: Exercise, layers: list[Layer]
) -> None:
    usual = on_layer(exercise, None)
    assert usual.elsewhere == random_layer().sizes
    for layer in layers:
        shown = on_layer(exercise, layer)
        assert shown.right == usual.right
        assert len(set(shown.choices)) == len(shown.choices) == len(shown.explanations)
        assert not re.search(r"[{}]", shown.question + "".join(shown.choices + shown.explanations))
        if shown.elsewhere:
            continue
        solution = answers._Solution(exercise, layer)
        right = [solution.is_right(choice) for choice in exercise.choices]
        assert right == [n == shown.right for n in range(len(right))]


def test_most_exercises_have_the_sizes_of_the_chosen_text(of_text: Layer) -> None:
    shown = [on_layer(exercise, of_text) for exercise in EXERCISES]
    assert sum(not each.elsewhere for each in shown) >= 0.9 * len(shown)


def test_the_right_choice_has_no_place_of_its_own() -> None:
    places = [on_layer(exercise, None).right for exercise in EXERCISES]
    assert max(places.count(place) for place in set(places)) < 0.5 * len(places)


def test_with_one_token_choices_are_equal_and_a_random_layer_is_used(layers: list[Layer]) -> None:
    strides = load("walkthrough")[1]
    assert on_layer(strides, layers[2]).elsewhere


def test_a_layer_that_is_not_as_described_is_not_used() -> None:
    for options in ({"n_kv_heads": 2}, {"d_head": 3}, {"scale": 0.3}, {"causal": False}):
        assert not layer_with(16, 4, 5, **options).plain


def by_hand(layer: Layer) -> dict[str, Tensor]:
    """The layer in torch's own words, without this package."""
    C, H = layer.attention.d_model, layer.attention.n_heads
    W, b = layer.attention.W_QKV.weight, layer.attention.W_QKV.bias
    qkv = torch.nn.functional.linear(layer.x, W, b)
    q, k, v = qkv.unflatten(-1, (3, H, C // H)).permute(2, 0, 3, 1, 4)
    z = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return {"qkv": qkv, "q": q, "k": k, "v": v, "z": z}


def right(name: str, number: int, layer: Layer) -> tuple[Exercise, Shown, str]:
    exercise = load(name)[number]
    shown = on_layer(exercise, layer)
    assert not shown.elsewhere
    return exercise, shown, shown.choices[shown.right]


def size(numbers: object) -> str:
    return str(list(numbers))  # type: ignore[call-overload]


SHAPES: list[tuple[str, int, Callable[[Layer, dict[str, Tensor]], object]]] = [
    ("why_several_heads", 0, lambda la, by: size((by["q"] @ by["k"].mT).shape)),
    ("walkthrough", 0, lambda la, by: size(by["q"].shape)),
    ("walkthrough", 1, lambda la, by: size(by["qkv"][..., : la.x.shape[-1]].stride())),
    ("kv_cache", 1, lambda la, by: size((by["q"][:, :, -1:] @ by["k"].mT).shape)),
    ("grouped_query", 1, lambda la, by: size((by["q"] @ by["k"][:, :1].mT).shape)),
    ("kv_cache", 0, lambda la, by: f"{la.L * (by['k'].numel() + by['v'].numel()):,}"),
    ("grouped_query", 0, lambda la, by: f"{la.L * 2 * by['k'][0, 0, 0].numel():,}"),
    ("cost", 1, lambda la, by: f"{4 * la.attention.W_O.weight.numel():,}"),
    ("list_of_heads", 2, lambda la, by: size(torch.nn.Linear(192, 32).weight.shape)),
    ("one_product", 2, lambda la, by: size(la.attention.W_QKV.weight.T.shape)),
    ("masks", 1, lambda la, by: str(sum(min(t + 1, 2) for t in range(la.x.shape[1])))),
]


@pytest.mark.parametrize(("name", "number", "answer"), SHAPES)
def test_torch_gives_the_same_shape_or_number(
    name: str, number: int, answer: Callable[[Layer, dict[str, Tensor]], object], of_text: Layer
) -> None:
    assert right(name, number, of_text)[2] == answer(of_text, by_hand(of_text))


def test_torch_refuses_the_view_and_copies_in_reshape(of_text: Layer) -> None:
    z = by_hand(of_text)["z"].contiguous()
    _, shown, choice = right("memory_layout", 0, of_text)
    assert choice == "an error"
    with pytest.raises(RuntimeError) as refused:
        z.transpose(1, 2).view(of_text.x.shape)
    assert str(refused.value)[:60] in shown.explanations[shown.right]
    assert right("memory_layout", 1, of_text)[2].startswith("no copy")
    assert right("memory_layout", 2, of_text)[2].startswith("a copy")
    assert z.transpose(1, 2).reshape(of_text.x.shape).data_ptr() != z.data_ptr()


def test_the_bug_that_is_fixed_gives_the_layers_output(of_text: Layer) -> None:
    exercise, _, choice = right("bugs", 0, of_text)
    (B, T, C), H = of_text.x.shape, of_text.attention.n_heads
    names = {"B": B, "T": T, "C": C, "H": H, "d_h": C // H, "torch": torch}
    names |= {"later": torch.ones(T, T).triu(1).bool(), "W_O": of_text.attention.W_O}
    names["qkv"] = by_hand(of_text)["qkv"]
    lines = list(exercise.code)
    number, line = re.fullmatch(r"line (\d): `(.*)`", choice).groups()  # type: ignore[union-attr]
    outputs = []
    for mended in (lines, [*lines[: int(number) - 1], line, *lines[int(number) :]]):
        made = dict(names)
        exec("\n".join(mended), made)
        outputs.append(made["out"])
    wanted = of_text.attention(of_text.x)
    assert not torch.allclose(outputs[0], wanted, atol=1e-2)
    torch.testing.assert_close(outputs[1], wanted, atol=1e-4, rtol=1e-4)


BROKEN = """## predict a shape

What is its shape?

Answer: `{answer}`

- `(B, T, C)`: One.
- `{choice}`: Two.
"""


@pytest.mark.parametrize(
    ("answer", "choice", "line", "words"),
    [
        ("x.shape", "x.shape", 1, "the choices in lines 7 and 8 are both right"),
        ("x.mT.shape", "(B, T)", 1, "no choice of this exercise has the value of its answer"),
        ("y.shape", "(B, T)", 1, "There is no y here"),
        ("x.shape", "__import__('os')", 8, "__import__"),
        ("x.shape", "(B, T", 8, "Python cannot read"),
        ("x.shape", "(B, T)` **{w}** `", 8, "a choice is written"),
        ("x.shape", "(B, T)` **{zz}", 8, "a choice is written"),
    ],
)
def test_an_exercise_without_a_single_answer_is_refused_by_its_line(
    answer: str, choice: str, line: int, words: str
) -> None:
    text = BROKEN.replace("{answer}", answer).replace("{choice}", choice)
    with pytest.raises(ExerciseError, match=rf"b\.md, line {line}: .*{re.escape(words)}"):
        parse(text, "b.md")


def test_a_placeholder_that_is_no_number_is_refused() -> None:
    text = BROKEN.replace("{answer}", "x.shape").replace("{choice}", "(B, T)")
    with pytest.raises(ExerciseError, match=r"b\.md, line 8: \{x\} is not a number"):
        parse(text.replace("Two.", "It is {x}."), "b.md")


def test_numbers_are_grouped_in_sentences_and_whole_in_code() -> None:
    text = BROKEN.replace("{answer}", "x.shape").replace("{choice}", "(B, T)")
    (exercise,) = parse(text.replace("Two.", "{C * 1000} or `{C * 1000}`, {-C}, {1 / 8}."), "b.md")
    assert on_layer(exercise, None).explanations[1] == "36,000 or `36000`, −36, 0.125."


def test_a_part_without_a_file_has_no_exercises() -> None:
    assert load("nothing_here") == ()


def test_the_example_in_the_readme_is_an_exercise() -> None:
    lines = (answers.FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    example = "\n".join(line[4:] for line in lines if line.startswith("    ") or not line)
    (exercise,) = parse(example, "README.md")
    shown = on_layer(exercise, None)
    assert shown.choices[shown.right] == "[2, 36, 5]"
    assert shown.choices[2] == "36 rows of 5 numbers"
