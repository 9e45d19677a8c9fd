"""A talk's file: what is read, what is refused and where, and the talk that comes with the app."""

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from mha_viz import pruning, talk
from mha_viz.analysis.reference_texts import evaluation_texts, selection_texts
from mha_viz.app.samples import DEFAULT
from mha_viz.assets import ASSETS
from mha_viz.checkpoints import load
from mha_viz.errors import TalkError
from mha_viz.head import Head
from mha_viz.lessons.opinions import opinions
from mha_viz.model import Model

BUNDLED = (ASSETS / "talks" / "heads.talk.toml").read_text(encoding="utf-8")
SMALL = """# mine
title = "T"
mood = "calm"

[[scene]]
title = "One"
sentence = "S"
link = "head?at=L1H2"
colour = "red"  # of my own
"""
INLINE = """title = "T"
scene = [
  {title="One", sentence="S", link="head"},  # first
  {title="Two", sentence="S {not a brace}", link="heads"},
]
"""


def test_a_scene_has_its_own_text_and_keeps_the_parameters_of_its_link() -> None:
    scene = talk.Scene("T", "S", "head?at=L1H2&text=link&look=Lines", text="a & b")
    assert scene.page == "head"
    assert scene.parameters == {"at": "L1H2", "look": "Lines", "text": "a & b"}
    assert scene.address == "head?at=L1H2&text=a+%26+b&look=Lines"
    assert talk.Scene("T", "S", "").address == ""
    assert talk.Scene("T", "S", "attention?at=L1H2").address == "?at=L1H2"


def test_scenes_without_minutes_share_what_is_left() -> None:
    scenes = tuple(talk.Scene("T", "S", "", minutes=m) for m in (2, None, None))
    assert talk.Talk("T", scenes, 12).plan() == [2, 5, 5]
    assert talk.Talk("T", scenes, 1).plan() == [2, 0, 0]


def test_a_written_talk_reads_as_it_was() -> None:
    read = talk.read(BUNDLED)
    assert talk.read(talk.write(read)) == read


@pytest.mark.parametrize("source", [SMALL, INLINE])
@pytest.mark.parametrize("after", [0, 1, 99])
def test_adding_a_scene_leaves_all_else_as_it_was(source: str, after: int) -> None:
    new = talk.Scene("New", "N", "pruning?off=L1H2", text="a\n“b”", ask=("x", "y"))
    before = talk.read(source).scenes
    added = talk.add(source, new, after)
    place = min(after, len(before))
    assert talk.read(added).scenes == (*before[:place], new, *before[place:])
    for kept in ("# mine", 'mood = "calm"', 'colour = "red"  # of my own', "# first"):
        assert (kept in added) == (kept in source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (SMALL.replace('link = "head?at=L1H2"\n', ""), "Line 5: scene 1 has no link. Copy one"),
        (
            SMALL.replace("L1H2", "first"),
            "Line 8: scene 1 has a link whose head cannot be shown: “first",
        ),
        (
            SMALL.replace("L1H2", "L4H0"),
            "L4 H0 is not in the model bundled, which",
        ),
        (SMALL.replace("at=L1H2", "off=L0H1-L0H6"), "L0 H6 is not in the model bundled"),
        (
            SMALL.replace("at=L1H2", "token=last"),
            "Line 8: scene 1 has a link with token=last",
        ),
        (SMALL.replace("at=L1H2", "window=1-2"), "Line 8: scene 1 has a link with window=1-2"),
        (SMALL + f'text = "{"x" * 20_001}"', "Line 10: scene 1 has a text of 20,001 characters"),
        (SMALL.replace("head?", "haed?"), "Line 8: scene 1 leads to “haed”"),
        (SMALL.replace('"head?', '"http://host/head?'), "Line 8: scene 1 has a link with a host"),
        (SMALL.replace('"head?at', '"//[?at'), "Line 8: scene 1 has a link that is not an address"),
        (SMALL.replace('"One"', f'"{"x" * 49}"'), "Line 6: scene 1 has a title of 49 characters"),
        (SMALL.replace('"S"', "3"), "Line 7: scene 1 has a sentence that is not text"),
        (SMALL.replace('"S"', '""'), "Line 7: scene 1 has no sentence"),
        (SMALL + "minutes = -1", "Line 10: scene 1 has minutes = -1"),
        (SMALL + "minutes = nan", "Line 10: scene 1 has minutes = nan"),
        (SMALL + 'theme = "pink"', "Line 10: scene 1 has the theme “pink”"),
        (SMALL + "ask = [1]", "Line 10: scene 1 has an “ask”"),
        (INLINE.replace('sentence="S {not', 'sentense="S {not'), "Line 4: scene 2 has no sentence"),
        (INLINE.replace('link="heads"', 'link="x"'), "Line 4: scene 2 leads to “x”"),
        ('title = "T"', "Line 1: the talk has no scenes"),
        (SMALL.replace('title = "T"', ""), "Line 1: the talk has no title"),
        ('title = "T"\nscene = [1]', "scene 1 is not a table"),
        ('title = "T"\nscene = 1', "the talk has no scenes"),
        ('title = "T\n', "Line 1: "),
        ("title = ", "The end of the file: invalid value"),
        ("x" * 300_000, "at most 262,144"),
        (b'title = "\xff"', "Line 1: this is not UTF-8"),
        ("a = " + "[" * 9000, "too deeply"),
        ('title = "T"\n' + '[[scene]]\ntitle="a"\n' * 101, "at most 100"),
    ],
)
def test_a_broken_file_is_refused_by_line(source: str | bytes, message: str) -> None:
    with pytest.raises(TalkError) as refused:
        talk.read(source)
    assert message in str(refused.value)


def test_heads_are_checked_in_the_model_of_the_link() -> None:
    source = SMALL.replace("L1H2", "L9H9&model=gpt2")
    assert talk.read(source) == talk.read(source, {"gpt2": (12, 12)})
    with pytest.raises(TalkError, match="L9 H9 is not in the model gpt2"):
        talk.read(source, {"gpt2": (6, 12)})


@pytest.mark.parametrize("source", [SMALL, INLINE])
def test_other_words_for_a_scene_leave_all_else_as_it_was(source: str) -> None:
    before = talk.read(source).scenes
    changed = talk.reword(source, 0, "A “new” one", "New")
    first = replace(before[0], title="A “new” one", sentence="New")
    assert talk.read(changed).scenes == (first, *before[1:])
    for kept in ("# mine", 'mood = "calm"', 'colour = "red"  # of my own', "# first"):
        assert (kept in changed) == (kept in source)
    with pytest.raises(TalkError, match="scene 1 has a title of 49 characters"):
        talk.reword(source, 0, "x" * 49, "New")


@settings(max_examples=300)
@given(some.one_of(some.binary(max_size=200), some.text(max_size=200)))
def test_no_file_ends_in_another_error(source: str | bytes) -> None:
    with pytest.raises(TalkError):
        talk.read(source)


@settings(max_examples=300)
@given(some.integers(0, len(SMALL)), some.text("\"'[]{}=#\n\\x", max_size=3))
def test_no_edit_of_a_good_file_ends_in_another_error(at: int, typed: str) -> None:
    with suppress(TalkError):
        talk.read(SMALL[:at] + typed + SMALL[at:])


# ---- the talk that comes with the app: each sentence is true of the bundled model ----


@cache
def model() -> Model:
    return load("bundled")


def scene(title: str) -> talk.Scene:
    return next(one for one in talk.read(BUNDLED).scenes if one.title.startswith(title))


def chance(word: str, text: str = DEFAULT, without: tuple[tuple[int, int], ...] = ()) -> float:
    """The probability of a word as the next token after a text."""
    full = pruning.Pass.of(model(), text)
    [id] = model().input_ids(f" {word}")
    found = pruning.next_tokens(full, full.without(without) if without else full, also=[id])
    return next(one.after for one in found if one.id == id)


def test_the_talk_has_nine_scenes_of_twelve_minutes() -> None:
    found = talk.read(BUNDLED)
    assert len(found.scenes) == 9
    assert sum(found.plan()) == found.minutes == 12


def test_the_model_knows_4096_pieces_and_guesses_apple() -> None:
    one = scene("A model guesses")
    assert f"{model().config.vocab_size:,}" == "4,096"
    assert "4,096" in one.sentence
    assert "apple, 26%" in one.notes
    assert chance("apple", one.text) == pytest.approx(0.26, abs=0.005)


def test_golden_looks_at_ring_most() -> None:
    row = model().trace(DEFAULT).pattern(3, 3)[16]
    assert row[7] == row.max() == pytest.approx(0.83, abs=0.005)
    assert "0.83" in scene("A head is one row").notes


def test_one_head_looks_one_token_back() -> None:
    pattern = model().trace(DEFAULT).pattern(0, 1)
    assert np.diagonal(pattern, -1).min() > 0.99


def test_one_head_rests_on_the_first_token() -> None:
    assert model().trace(DEFAULT).pattern(3, 4)[1:, 0].mean() > 0.5


def test_ring_wins_among_the_choices() -> None:
    one = scene("Guess first")
    assert max(one.ask, key=chance) == "ring"
    assert "83%" in one.notes
    assert chance("ring") == pytest.approx(0.83, abs=0.005)


def test_without_three_heads_copying_stops() -> None:
    three = ((3, 0), (3, 3), (3, 4))
    steps = [chance("ring", without=three[:n]) for n in range(4)]
    assert "83, 41, 6, 3%" in scene("Ablate three heads").notes
    assert steps == pytest.approx([0.83, 0.41, 0.06, 0.03], abs=0.005)
    assert chance("ring", without=((3, 1), (3, 2), (3, 5))) == pytest.approx(0.63, abs=0.005)
    full, ablated = (
        pruning.induction_loss(model(), gate=pruning.gate_without(model().config, heads))
        for heads in ((), three)
    )
    assert full < 0.1
    assert ablated > np.log(4096)  # worse than a uniform guess


def test_six_heads_look_at_four_tokens_and_one_row_would_blur_them() -> None:
    one = scene("Why not one head")
    trace = model().trace(DEFAULT)
    assert trace.tokens[12] == "·gave"
    assert one.parameters["token"] == "12"
    network = model().network
    x = network.attention_input(torch.tensor([trace.token_ids]), 3)
    found = opinions(network.blocks[3].attn, x)
    assert len({key for _, key, _ in found.favourites(12)}) == 4
    assert found.mean[12].max() < 0.5


def test_six_heads_can_go_and_one_alone_doubles_the_loss() -> None:
    chosen = pruning.chunks(model(), selection_texts()[:3], 512)
    held_out = pruning.chunks(model(), evaluation_texts()[:3], 512)
    order = list(pruning.order(model(), chosen, "exact"))
    points = list(pruning.curve(model(), held_out, order[:6]))
    full, six = points[0].loss, points[6].loss
    assert six < 1.05 * full
    [_, alone] = pruning.curve(model(), held_out, [Head(0, 2)])
    assert alone.loss > 2 * full
    assert (0, 2) not in order[:6]
