"""Talks: a list of scenes, each a title, a sentence and a link of the app, in a plain text file.

The file is UTF-8 TOML, `name.talk.toml`:

    title = "What does a language model look at?"
    minutes = 12

    [[scene]]
    title = "This head looks one token back"
    sentence = "Each later token puts more than 99% of its weight on the token before it."
    link = "attention?at=L0H1"

A scene may also have `notes`, `minutes`, `text` (for the link), `theme` and `ask` (choices for the
audience; the picture shows on the next press). Keys that a talk does not know are kept.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import tomlkit
from tomlkit.items import AoT, Array

from mha_viz.assets import ASSETS
from mha_viz.errors import HeadNotFound, TalkError
from mha_viz.head import Head

PAGES = (
    "attention", "head", "next_token", "heads", "compare", "pruning",
    "shapes", "many_heads", "variants", "training",
)  # fmt: skip
LONGEST_TITLE, LONGEST_SENTENCE = 48, 95  # characters that fit on a stage
MOST_BYTES = 256 * 1024
MOST_SCENES = 100
MOST_MINUTES = 24 * 60
MOST_CHOICES = 6
_REPORTED = 6  # problems in one message
_NEEDED = ("title", "sentence", "link")
_KINDS: dict[str, type | tuple[type, ...]] = {
    "title": str, "sentence": str, "link": str, "notes": str, "text": str, "theme": str,
    "minutes": (int, float), "ask": list,
}  # fmt: skip
_LENGTHS = {"title": LONGEST_TITLE, "sentence": LONGEST_SENTENCE, "text": 20_000, "link": 20_000}
_WANTED = {"minutes": "a number", "ask": "a list"}  # the others are texts
_NUMBERS = {  # parameters that are numbers in the links of every page
    "token": re.compile(r"\d{1,6}"), "key": re.compile(r"\d{1,6}"),
    "window": re.compile(r"\d{1,6}(-\d{1,6}){3}"),
}  # fmt: skip
Size = tuple[int, int]  # layers, heads per layer
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|\#[^\n]*'
    r"|(?P<header>^[ \t]*\[\[[ \t]*scene[ \t]*\]\])|(?P<list>^[ \t]*scene[ \t]*=[ \t]*\[)|[{}]",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene. `link` is the part of the app's address after the host; `minutes` its share.

    `ask` has the choices for the audience; the picture of such a scene shows on the next press.
    """

    title: str
    sentence: str
    link: str
    notes: str = ""
    minutes: float | None = None
    text: str = ""
    theme: str = ""
    ask: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        """The page of the link; Attention if it names none."""
        return urlsplit(self.link).path.strip("/") or PAGES[0]

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the link, with the scene's own text."""
        found = {name: values[-1] for name, values in self._query().items()}
        return found | ({"text": self.text} if self.text else {})

    @property
    def address(self) -> str:
        """The link with the scene's text, relative to the app's first page."""
        query = urlencode(self._query() | ({"text": [self.text]} if self.text else {}), doseq=True)
        path = "" if self.page == PAGES[0] else self.page
        return f"{path}?{query}" if query else path

    def _query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.link).query, keep_blank_values=True, errors="replace")


@dataclass(frozen=True, slots=True)
class Talk:
    """A talk that can be played. `minutes` is its length, shared by scenes without their own."""

    title: str
    scenes: tuple[Scene, ...]
    minutes: float

    def plan(self) -> list[float]:
        """The minutes of each scene."""
        own = [scene.minutes for scene in self.scenes]
        left = self.minutes - sum(minutes for minutes in own if minutes is not None)
        share = max(left, 0) / max(own.count(None), 1)
        return [share if minutes is None else minutes for minutes in own]


def read(source: str | bytes, sizes: Mapping[str, Size] | None = None) -> Talk:
    """The talk in a file's content. Raises TalkError, which names the lines and what to write.

    `sizes` has the (layers, heads per layer) of models besides the bundled one; the heads of links
    to those models are checked.
    """
    text = decoded(source)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TalkError(_syntax(str(error))) from error
    except RecursionError as error:
        raise TalkError("This file nests lists too deeply for a talk.") from error
    problems = list(_problems(content, text, {"bundled": _bundled_size(), **(sizes or {})}))
    if problems:
        more = len(problems) - _REPORTED
        shown = problems[:_REPORTED] + ([f"{more} more problems follow."] if more > 0 else [])
        raise TalkError("\n".join(shown))
    return Talk(
        title=content["title"],
        scenes=tuple(_scene(table) for table in content["scene"]),
        minutes=float(content.get("minutes", len(content["scene"]))),
    )


def add(source: str, scene: Scene, after: int) -> str:
    """The file with one more scene after the first `after`; all else stays as it is.

    Raises TalkError if the file or the scene cannot be used.
    """
    after = max(0, min(after, len(read(source).scenes)))
    document = tomlkit.parse(source)
    scenes = document["scene"]
    if isinstance(scenes, AoT):
        scenes.insert(after, tomlkit.item(_table(scene)))
    elif isinstance(scenes, Array):
        inline = tomlkit.inline_table()
        inline.update(_table(scene))
        scenes.insert(after, inline)
    added = tomlkit.dumps(document)
    read(added)
    return added


def reword(source: str, number: int, title: str, sentence: str) -> str:
    """The file with another title and sentence for the scene of that number, from 0.

    Raises TalkError if the file or the words cannot be used.
    """
    read(source)
    document = tomlkit.parse(source)
    document["scene"][number].update({"title": title, "sentence": sentence})
    changed = tomlkit.dumps(document)
    read(changed)
    return changed


def write(talk: Talk) -> str:
    """The talk as a file that `read` understands."""
    document = tomlkit.document()
    document["title"], document["minutes"] = talk.title, talk.minutes
    scenes = tomlkit.aot()
    for scene in talk.scenes:
        scenes.append(tomlkit.item(_table(scene)))
    document["scene"] = scenes
    return tomlkit.dumps(document)


def decoded(source: str | bytes) -> str:
    """The text of a file. Raises TalkError if it is too large or not UTF-8."""
    if len(source) > MOST_BYTES:
        raise TalkError(
            f"This file has {len(source):,} bytes; a talk has at most {MOST_BYTES:,}. Check that "
            "it is a .talk.toml file."
        )
    if isinstance(source, str):
        return source
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source[: error.start].count(b"\n") + 1
        raise TalkError(f"Line {line}: this is not UTF-8. Save the file as UTF-8 text.") from error


def _syntax(message: str) -> str:
    """The message of tomllib, “What (at line 3, column 5)”, with the line first."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message, re.S)
    if found is None:
        return f"This is not TOML: {message}. Compare it with the talk that comes with the app."
    where = f"Line {found[2]}" if found[2] else "The end of the file"
    return f"{where}: {found[1][0].lower()}{found[1][1:]}. Check quotes, commas and brackets."


@cache
def _bundled_size() -> Size:
    config = json.loads((ASSETS / "bundled" / "config.json").read_text(encoding="utf-8"))
    return config["n_layer"], config["n_head"]


def _problems(content: Mapping[str, Any], text: str, sizes: Mapping[str, Size]) -> Iterator[str]:
    if not isinstance(content.get("title"), str) or not content["title"].strip():
        yield 'Line 1: the talk has no title. Write title = "…" at the top.'
    yield from _not_minutes(content, "Line 1: the talk")
    scenes = content.get("scene")
    if not isinstance(scenes, list) or not scenes:
        yield "Line 1: the talk has no scenes. Write [[scene]] and below it title, sentence, link."
        return
    if len(scenes) > MOST_SCENES:
        yield f"The talk has {len(scenes)} scenes; at most {MOST_SCENES} are possible. Split it."
        return
    starts = [*_starts(text), len(text)]
    for number, scene in enumerate(scenes, 1):
        exact = len(starts) == len(scenes) + 1
        begin, end = (starts[number - 1], starts[number]) if exact else (0, len(text))
        if not isinstance(scene, dict):
            yield f"Line {_line(text, begin)}: scene {number} is not a table. Write [[scene]]."
            continue
        for key, problem in _of_scene(scene, sizes):
            at = re.compile(rf"\b{key}[ \t]*=").search(text, begin, end)
            line = _line(text, at.start() if at else begin)
            yield f"Line {line}: scene {number} {problem}"


def _of_scene(scene: Mapping[str, Any], sizes: Mapping[str, Size]) -> Iterator[tuple[str, str]]:
    """(key, what is wrong with it and what to write) for each problem."""
    for key in _NEEDED:
        if key not in scene or (scene[key] == "" and key != "link"):
            help = (
                "Copy one from the address bar, or use “Add to talk”."
                if key == "link"
                else f'Write {key} = "…".'
            )
            yield key, f"has no {key}. {help}"
    for key, kind in _KINDS.items():
        if key in scene and not isinstance(scene[key], kind):
            yield key, f"has a {key} that is not {_WANTED.get(key, 'text in quotes')}."
            return
    for key, most in _LENGTHS.items():
        if len(scene.get(key, "")) > most:
            n = len(scene[key])
            yield key, f"has a {key} of {n:,} characters; at most {most:,} fit. Shorten it."
    for problem in _not_minutes(scene, "has"):
        yield "minutes", problem.removeprefix("has ")
    if scene.get("theme", "") not in ("", "light", "dark"):
        yield "theme", f"has the theme “{scene['theme'][:20]}”. Write light or dark."
    choices = scene.get("ask", [])
    if len(choices) > MOST_CHOICES or not all(isinstance(choice, str) for choice in choices):
        yield (
            "ask",
            f'has an “ask” that is not up to {MOST_CHOICES} texts, as in ["apple", "ring"].',
        )
    yield from _of_link(scene, sizes)


def _of_link(scene: Mapping[str, Any], sizes: Mapping[str, Size]) -> Iterator[tuple[str, str]]:
    made = Scene("", "", scene.get("link", ""), text=scene.get("text", ""))
    try:
        page, parameters = made.page, made.parameters
    except ValueError:
        yield "link", "has a link that is not an address. Copy one from the address bar."
        return
    if urlsplit(made.link).netloc or urlsplit(made.link).scheme:
        yield "link", "has a link with a host. Keep only what comes after the host's slash."
    elif page not in PAGES:
        yield "link", f"leads to “{page[:30]}”, which is no page. Pages: {', '.join(PAGES)}."
    for name, pattern in _NUMBERS.items():
        if name in parameters and not pattern.fullmatch(parameters[name]):
            value = parameters[name][:20]
            yield "link", f"has a link with {name}={value}. Copy one from the address bar."
    try:
        heads = [Head.parse(parameters["at"])] if "at" in parameters else []
        model = parameters.get("model", "bundled")
        if model in sizes:
            for head in heads + Head.find_all(parameters.get("off", "")):
                head.check(*sizes[model], model=f"the model {model}")
    except HeadNotFound as error:
        yield "link", f"has a link whose head cannot be shown: {error}"


def _not_minutes(table: Mapping[str, Any], whose: str) -> Iterator[str]:
    minutes = table.get("minutes", 1)
    whole = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if not whole or not 0 < minutes <= MOST_MINUTES:
        yield f"{whose} has minutes = {str(minutes)[:20]}. Write a number above 0, such as 1.5."


def _starts(text: str) -> Iterator[int]:
    """Where each scene begins: at its [[scene]], or at its brace in `scene = [{…}, {…}]`."""
    depth, listed = 0, False
    for piece in _PIECE.finditer(text):
        if piece["header"]:
            yield piece.start("header")
        elif piece["list"]:
            listed, depth = True, 0
        elif listed and piece[0] == "{":
            depth += 1
            if depth == 1:
                yield piece.start()
        elif listed and piece[0] == "}":
            depth -= 1


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _scene(table: Mapping[str, Any]) -> Scene:
    known = {key: table[key] for key in _KINDS if key in table}
    return Scene(**known | {"ask": tuple(table.get("ask", ()))})


def _table(scene: Scene) -> dict[str, Any]:
    table = {key: getattr(scene, key) for key in _KINDS}
    kept = {key: value for key, value in table.items() if value or key in _NEEDED}
    return kept | ({"ask": list(scene.ask)} if scene.ask else {})
