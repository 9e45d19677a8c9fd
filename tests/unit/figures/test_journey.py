"""The journey through a layer: numbers are the module's, and nothing moves that does not."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from support.node import evaluate

from mha_viz.app.pages.shapes.walk import layer_of
from mha_viz.figures.journey import heads, merge, tape
from mha_viz.figures.journey.band import HIGH, miniatures
from mha_viz.figures.journey.cells import images
from mha_viz.figures.journey.layer import Focus, Layer, pointed
from mha_viz.figures.journey.parts import LAST
from mha_viz.figures.journey.place import triptych
from mha_viz.figures.journey.scene import Box, Cells, Motion, Rect, Scene, Text
from mha_viz.figures.journey.score_motion import products
from mha_viz.figures.journey.sent import as_data
from mha_viz.figures.journey.setting import NARROW, WIDE, Setting, contrast
from mha_viz.figures.journey.steps import STEPS
from mha_viz.figures.journey.still import painted, still
from mha_viz.figures.theme import DARK, LIGHT, NORMAL, STAGE, Theme
from mha_viz.lessons import walkthrough
from mha_viz.lessons.grouped_query import grouped
from mha_viz.lessons.walkthrough import LESSONS, Step

SHAPES = {  # C, H, T, G, d_h, the numbers of the heads
    "plain": (24, 4, 5, 4, 6, range(4)),
    "one token": (24, 4, 1, 4, 6, range(4)),
    "one head": (8, 1, 3, 1, 8, range(1)),
    "shared keys": (24, 4, 5, 2, 6, range(4)),
    "pruned": (24, 3, 5, 3, 6, (0, 2, 3)),
    "many": (300, 25, 24, 25, 12, range(25)),
    "sixty tokens": (96, 12, 60, 12, 8, range(12)),
}


@cache
def walked(name: str) -> tuple[Layer, tuple[Step, ...]]:
    C, H, T, G, d_h, numbers = SHAPES[name]
    attention, x = walkthrough.random_layer(H * d_h, H, 1, T)
    if H * d_h != C:
        torch.manual_seed(0)
        attention = walkthrough.MultiHeadAttention(C, H, d_head=d_h).requires_grad_(False)
        x = torch.randn(1, T, C, generator=torch.Generator().manual_seed(1))
    if G != H:
        attention = grouped(attention, G)
    steps = walkthrough.walk(attention, x)
    tokens = tuple(f"·token{i}" for i in range(T))
    return layer_of(steps, attention, x, numbers, tokens, 60), steps


def setting(name: str = "plain", width: float = WIDE, theme: Theme = LIGHT) -> Setting:
    layer, _ = walked(name)
    focus = Focus(layer.T - 1, layer.H - 1, layer.d_head - 1, layer.T // 2)
    return Setting(layer, focus, theme, width)


def texts(scene: Scene, frame: float = LAST) -> list[str]:
    seen = (item for item in scene.items if item.motion.at(frame)[1] > 0)
    return [item.text for item in seen if isinstance(item, Text)]


def cells(scene: Scene, frame: float) -> list[tuple[str, tuple[int, ...], Rect, float]]:
    return [
        (item.image, item.crop, *item.motion.at(frame))
        for item in scene.items
        if isinstance(item, Cells)
    ]


EVERY = pytest.mark.parametrize("name", SHAPES)
WIDTHS = pytest.mark.parametrize("width", [WIDE, NARROW])


def test_the_steps_are_those_of_the_walkthrough() -> None:
    assert list(STEPS) == [lesson.name for lesson in LESSONS]
    assert [one.step for one in miniatures(setting())] == list(STEPS)


@WIDTHS
@EVERY
def test_nothing_lies_outside_of_its_picture(name: str, width: float) -> None:
    for theme_sizes in (NORMAL, STAGE) if width == WIDE else (NORMAL,):
        for lay_out in STEPS.values():
            scene = lay_out(replace(setting(name, width), sizes=theme_sizes))
            for item in scene.items:
                rect, _ = item.motion.at(LAST)
                assert min(rect.x, rect.right) >= -3, (scene.step, item)
                assert max(rect.x, rect.right) <= width + 3, (scene.step, item)
                assert max(rect.y, rect.bottom) <= scene.height + 3, (scene.step, item)


@EVERY
def test_miniatures_have_one_scale_and_fit_into_the_band(name: str) -> None:
    found = {one.step: one for one in miniatures(setting(name))}
    layer, _ = walked(name)
    for one in found.values():
        assert max(item.motion.end.bottom for item in one.items) <= HIGH + 0.01
        assert one.sizes == f"[{', '.join(map(str, shape_of(one.step, layer)))}]"
    q, fused = found["split"].width, found["q k v"].width - 2
    assert fused == pytest.approx(q * layer.step / layer.width, abs=0.5)
    assert found["x"].width == pytest.approx(q * layer.C / layer.width, abs=0.5)


def shape_of(step: str, layer: Layer) -> list[int]:
    _, steps = walked(next(name for name in SHAPES if walked(name)[0] is layer))
    return next(one.shape for one in steps if one.lesson.name == step)[1:]


# ---- what moves ----


@WIDTHS
@EVERY
def test_every_picture_shows_something_in_every_frame(name: str, width: float) -> None:
    at = setting(name, width)
    drawn = images(at.layer, LIGHT)
    for lay_out in STEPS.values():
        scene = lay_out(at)
        for frame in (0, 5, LAST):
            assert painted(scene, drawn, width, frame)[..., 3].any(), (scene.step, frame)


@WIDTHS
def test_no_two_steps_have_the_same_picture(width: float) -> None:
    at = setting(width=width)
    drawn = images(at.layer, LIGHT)
    found = {name: painted(lay_out(at), drawn, width).tobytes() for name, lay_out in STEPS.items()}
    assert len(set(found.values())) == len(STEPS)


@WIDTHS
def test_view_and_transpose_only_move_the_cells_of_q(width: float) -> None:
    at = setting(width=width)
    drawn = images(at.layer, LIGHT)
    rows, trays, sheets = triptych(at, heads.ORDER)
    found = {
        kind: [crop_of(at, drawn, block) for block in picture.blocks]
        for kind, picture in zip(heads.ORDER, (rows, trays, sheets), strict=True)
    }
    for kind in ("trays", "sheets"):
        for head, shown in enumerate(found[kind]):
            assert sorted(set(shown)) == sorted(set(found["rows"][head])), (kind, head)


def crop_of(at: Setting, drawn: dict, block: Rect) -> list[tuple[int, ...]]:
    """The colours of a block in the last frame of the transpose, row by row."""
    picture = painted(heads.transpose(at), drawn, at.width)
    colours = []
    for token in range(at.layer.T):
        y = round(2 * (block.y + token * at.row + (at.row - at.gap) / 2))
        left, right = round(2 * block.x) + 1, round(2 * block.right) - 1
        colours += [tuple(pixel) for pixel in picture[y, left:right].tolist()]
    return colours


@WIDTHS
@EVERY
def test_a_step_begins_where_the_one_before_it_ended(name: str, width: float) -> None:
    at = setting(name, width)
    for before, after in (("split", "view"), ("view", "transpose"), ("mask", "softmax")):
        ended = [one for one in cells(STEPS[before](at), LAST) if one[3] > 0.2]
        begun = [one[:3] for one in cells(STEPS[after](at), -1) if one[3] > 0.2]
        assert {one[:3] for one in ended} == set(begun), (before, after)


def test_k_and_v_fade_in_the_split_and_q_stays() -> None:
    at = setting()
    scene = heads.split(at)
    for frame in range(LAST + 1):
        q = [one for one in cells(scene, frame) if one[1][0] < at.layer.width]
        assert {rect.y for _, _, rect, _ in q} == {triptych(at, heads.ORDER)[0].top}
        assert [one[2:] for one in q] == [one[2:] for one in cells(scene, 0) if one[1][0] < 24]
    others = [opacity for _, crop, _, opacity in cells(scene, LAST) if crop[0] >= at.layer.width]
    assert others == pytest.approx([heads.GHOST] * len(others))


def test_the_heads_are_turned_one_after_another() -> None:
    at = setting()
    sheets = triptych(at, heads.ORDER)[2].blocks
    done = []
    for frame in range(LAST + 1):
        now = [rect for _, _, rect, _ in cells(heads.transpose(at), frame)]
        done.append([block in now for block in sheets])
    firsts = [next(f for f in range(LAST + 1) if done[f][h]) for h in range(at.layer.H)]
    assert firsts == sorted(firsts)
    assert firsts[0] < firsts[-1] <= 8


def test_no_cell_is_faded_by_the_mask_or_the_softmax() -> None:
    at = setting()
    for lay_out in (STEPS["mask"], STEPS["softmax"]):
        for frame in range(LAST + 1):
            assert {one[3] for one in cells(lay_out(at), frame)} <= {0.0, 1.0}


@WIDTHS
def test_the_tape_stays_as_it_is_in_view_and_transpose(width: float) -> None:
    at = setting(width=width)
    shown = set()
    for step in ("view", "transpose"):
        items, _ = tape.tape(at, step, 0)
        for frame in range(LAST + 1):
            boxes = [(one.motion.at(frame), one.fill) for one in items if isinstance(one, Box)]
            shown.add(repr(boxes))
    assert len(shown) == 1


@WIDTHS
@EVERY
def test_products_rise_their_sum_walks_and_the_cell_takes_its_colour(
    name: str, width: float
) -> None:
    at = setting(name, width)
    layer, focus = at.layer, at.focus
    scene = STEPS["scores"](at)

    def bars(frame: int) -> list[float]:
        boxes = [item for item in scene.items if isinstance(item, Box) and item.fill]
        seen = [box.motion.at(frame) for box in boxes]
        return [rect.height for rect, opacity in seen if opacity > 0]

    steps = {one.lesson.name: one.tensor[0] for one in walked(name)[1]}
    q = steps["transpose"][focus.head, focus.token].numpy()
    k = layer.qkv[focus.key, layer.column("k", focus.head) :][: layer.d_head]
    np.testing.assert_allclose(products(at), q * k, rtol=1e-6)
    heights = np.abs(q * k) / np.abs(q * k).max()
    np.testing.assert_allclose(np.array(bars(5)) / max(bars(5)), heights, atol=1e-6)
    assert bars(LAST) == []
    said = f"sum so far: {(q * k).sum():.2f}".replace("-", "−")
    assert said in texts(scene, 9)
    assert "sum so far: none" in texts(scene, 5)
    for frame in range(LAST + 1):
        sums = [text for text in texts(scene, frame) if "sum so far" in text or " ÷ " in text]
        assert len(sums) == 1, (frame, sums)
    score = f"= {float(steps['scores'][focus.head, focus.token, focus.key]):.2f}"
    for frame in (10, LAST):
        assert any(text.endswith(score.replace("-", "−")) for text in texts(scene, frame))

    def filled(frame: int) -> int:
        seen = [one for one in cells(scene, frame) if one[0] == "scores" and one[3] > 0]
        return len({(row, c) for _, crop, *_ in seen for row, c in of_crop(crop)})

    all_cells = layer.H * layer.T**2
    assert [filled(frame) for frame in (9, 10, LAST)] == [0, 1, all_cells]


def of_crop(crop: tuple[int, ...]) -> list[tuple[int, int]]:
    column, row, columns, rows = crop
    return [(row + r, column + c) for r in range(rows) for c in range(columns)]


# ---- numbers ----


@EVERY
def test_the_followed_number_is_the_modules_in_every_picture(name: str) -> None:
    at = setting(name)
    layer, focus = at.layer, at.focus
    steps = {one.lesson.name: one.tensor[0] for one in walked(name)[1]}
    t, h, i = focus.token, focus.head, focus.element
    c = h * layer.d_head + i
    q = f"{steps['transpose'][h, t, i]:.3f}".replace("-", "−")
    shown = texts(heads.transpose(at))
    assert steps["split"][t, c] == steps["view"][t, h, i] == steps["transpose"][h, t, i]
    for index in (f"q[{t}, {c}]", f"q[{t}, {h}, {i}]", f"q[{h}, {t}, {i}]"):
        assert f"{index} = {q}" in shown
    z = f"{steps['z'][h, t, i]:.3f}".replace("-", "−")
    assert f"z[{h}, {t}, {i}] = {z}" in texts(merge.merge(at))
    assert f"z[{t}, {c}] = {z}" in texts(merge.merge(at))


@EVERY
def test_the_listed_scores_and_weights_are_the_modules(name: str) -> None:
    at = setting(name)
    focus, steps = at.focus, {one.lesson.name: one.tensor[0] for one in walked(name)[1]}
    row = steps["softmax"][focus.head, focus.token]
    score = float(steps["scores"][focus.head, focus.token, focus.key])
    shown = texts(STEPS["softmax"](at))
    assert f"{score:.2f}".replace("-", "−") in shown
    assert f"{float(row[focus.key]):.2f}" in shown
    assert shown.count("−∞") == int((row == 0).sum()) or at.layer.T > 12


@WIDTHS
@EVERY
def test_what_the_sentences_say_is_what_the_module_gives(name: str, width: float) -> None:
    at = setting(name, width)
    layer, focus = at.layer, at.focus
    steps = {one.lesson.name: one.tensor[0] for one in walked(name)[1]}
    for token in {0, layer.T // 2, layer.T - 1}:
        here = replace(at, focus=replace(focus, token=token, key=0))
        masked = int(steps["mask"][focus.head, token].isinf().sum())
        sentence = STEPS["mask"](here).sentence
        assert f"{layer.T - masked} of {layer.T} tokens" in sentence
        assert ("none is masked" if not masked else f"{masked} later one") in sentence
        row = steps["softmax"][focus.head, token]
        best = f"{layer.label(int(row.argmax()))} with {float(row.max()):.2f}"
        assert best in STEPS["softmax"](here).sentence
        score = float(steps["scores"][focus.head, token, 0])
        assert f"score {score:.3f}".replace("-", "−") in STEPS["scores"](here).sentence
        z = float(steps["z"][focus.head, token, focus.element])
        assert f"is {z:.3f}".replace("-", "−") in STEPS["z"](here).sentence
        after, before = steps["+ x"][token], steps["+ x"][token] - steps["output"][token]
        said = f"had length {float(before.norm()):.1f} and now has {float(after.norm()):.1f}"
        assert said in STEPS["+ x"](here).sentence


@WIDTHS
@EVERY
def test_weights_and_powers_in_the_pictures_are_the_modules(name: str, width: float) -> None:
    at = setting(name, width)
    focus, steps = at.focus, {one.lesson.name: one.tensor[0] for one in walked(name)[1]}
    weight = float(steps["softmax"][focus.head, focus.token, focus.key])
    assert (f"{weight:.2f}" if weight >= 0.005 else "<.01") in texts(STEPS["z"](at))
    row = steps["scores"][focus.head, focus.token]
    power = float((row[focus.key] - row[: focus.token + 1].max()).exp())
    assert f"{power:.3f}" in texts(STEPS["softmax"](at))


@EVERY
def test_the_tape_has_the_addresses_and_the_strides_of_the_tensors(name: str) -> None:
    at = setting(name)
    layer, steps = at.layer, {one.lesson.name: one.tensor for one in walked(name)[1]}
    view, turned = steps["view"], steps["transpose"]
    size, start = view.element_size(), view.data_ptr()
    for token in {0, layer.T - 1}:
        for head in {0, layer.H - 1}:
            found = tape.address(at, token, head, layer.d_head - 1)
            assert turned[0, head, token, layer.d_head - 1].data_ptr() == start + found * size
    strides = {"view": view.stride()[1:], "transpose": turned.stride()[1:]}
    words = " ".join(texts(heads.transpose(at)))
    if layer.T > 1:  # torch may give an axis of one element any stride
        assert f"view {strides['view']}" in words
    assert strides["transpose"] == (strides["view"][1], strides["view"][0], 1)
    assert f"{layer.step} t + {layer.d_head} h + i" in words


@EVERY
def test_the_merge_writes_each_number_to_its_address(name: str) -> None:
    at = setting(name)
    layer, steps = at.layer, {one.lesson.name: one.tensor for one in walked(name)[1]}
    z, merged = steps["z"].flatten(), steps["merge"].flatten()
    for token in {0, layer.T - 1}:
        for head in range(layer.H):
            before, after = merge.address(at, token, head, 1)
            assert z[before] == merged[after] == steps["z"][0, head, token, 1]


def test_a_pixel_of_an_image_is_a_number() -> None:
    layer, _ = walked("plain")
    drawn = images(layer, LIGHT)
    for name, values in (("qkv", layer.qkv), ("z", layer.z), ("x", layer.x)):
        assert drawn[name].pixels.shape == (*values.shape, 4)
    masked = drawn["masked"].pixels[..., 3].reshape(4, 5, 5)
    np.testing.assert_array_equal(masked == 0, np.isnan(layer.pattern))
    ranked = np.argsort(np.abs(layer.qkv), axis=None)[[0, -1]]
    faint, strong = drawn["qkv"].pixels[..., 3].ravel()[ranked]
    assert faint < strong


def test_a_click_on_a_cell_follows_its_number() -> None:
    layer, _ = walked("shared keys")
    focus = Focus(0, 0)
    assert pointed(focus, layer, "qkv", 3, 13) == Focus(3, 2, 1)
    k = pointed(focus, layer, "qkv", 3, layer.width + 6 + 2)
    assert (k.key, layer.kv_head(k.head), k.element) == (3, 1, 2)
    assert pointed(focus, layer, "pattern", 2 * layer.T + 4, 1) == Focus(4, 2, 0, 1)
    assert pointed(focus, layer, "z", 2, 23) == Focus(2, 3, 5)
    assert pointed(focus, layer, "out", 2, 23) == Focus(2, 0)


# ---- drawing ----


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_names_of_heads_can_be_read_on_the_page(theme: Theme) -> None:
    for colour in setting("many", theme=theme).names:
        assert contrast(colour, theme.page) >= 4.5


def test_the_still_has_all_that_the_last_frame_shows() -> None:
    at = setting()
    for lay_out in STEPS.values():
        scene = lay_out(at)
        figure = still(scene, images(at.layer, LIGHT), WIDE, LIGHT)
        shown = [
            note.text.replace("<b>", "").replace("</b>", "") for note in figure.layout.annotations
        ]
        assert shown == texts(scene)
        boxes = [i for i in scene.items if isinstance(i, Box) and i.motion.at(LAST)[1] > 0]
        assert len([one for one in figure.layout.shapes if one.type == "rect"]) >= len(boxes)


def test_frames_are_the_same_in_the_browser() -> None:
    motions = [item.motion for lay_out in STEPS.values() for item in lay_out(setting()).items][::9]
    sent = [
        item["motion"]
        for lay_out in STEPS.values()
        for item in as_data(lay_out(setting()))["items"]
    ]
    code = """
    const { at } = await import("#app/pages/shapes/journey/motion.js");
    result = data.motions.map((motion) => data.frames.map((frame) => at(motion, frame)));
    """
    frames = [-1, 0, 3, 7.5, 11]
    found = evaluate(code, {"motions": json.loads(json.dumps(sent[::9])), "frames": frames})
    for motion, by_frame in zip(motions, found, strict=True):
        for frame, one in zip(frames, by_frame, strict=True):
            rect, opacity = motion.at(frame)
            np.testing.assert_allclose(one["rect"], rect, atol=0.06)
            assert one["opacity"] == pytest.approx(opacity)


def test_a_motion_is_straight_and_eased() -> None:
    motion = Motion(Rect(0, 0), Rect(100, 50), 4, 9)
    places = [motion.at(frame)[0] for frame in range(12)]
    assert places[3] == Rect(0, 0)
    assert places[9] == Rect(100, 50)
    assert all(place.y == pytest.approx(place.x / 2) for place in places)
    steps = np.diff([place.x for place in places[3:10]])
    assert steps[0] < steps[2]
    assert steps[-1] < steps[3]
