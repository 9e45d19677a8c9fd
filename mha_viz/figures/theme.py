"""The only source of colours, fonts and text sizes, for Plotly, the token strip and Streamlit.

`python -m mha_viz.figures.theme` prints the [theme] tables of .streamlit/config.toml; a test checks
that they match. Violet shows how much, orange shows the selection, blue shows what looks at it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

SANS = "Source Sans, Source Sans Pro, sans-serif"
MONO = "Source Code Pro, Source Code, monospace"


def _palette(colours: str) -> tuple[str, ...]:
    return tuple(f"#{colour}" for colour in colours.split())


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of the light or the dark scheme; text on `page` has a contrast of 4.5:1 or more.

    `sequential` and `diverging` have ten steps of equal difference in lightness, from 0 to 1 and
    from negative to positive. A value above `ink_flips_at` (0 to 1) takes `ink_on_strong`.
    """

    name: Literal["light", "dark"]
    page: str
    surface: str
    hairline: str
    control: str
    ink: str
    muted: str
    accent: str
    link: str
    query: str
    query_fill: str
    key: str
    value: str
    good: str
    warn: str
    bad: str
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]
    midpoint: str
    categorical: tuple[str, ...]
    ink_flips_at: float
    ink_on_strong: str


LIGHT = Theme(
    name="light",
    page="#FFFFFF",
    surface="#F5F6F8",
    hairline="#D3D7DE",
    control="#868E99",
    ink="#1B1F27",
    muted="#57606E",
    accent="#5E3D9F",
    link="#4C3191",
    query="#B54E00",
    query_fill="#FFE3CC",
    key="#0068A6",
    value="#00795A",
    good="#1A7A4B",
    warn="#8A5A00",
    bad="#B3261E",
    sequential=_palette("EFF2FA D2D9EE B6C0E6 9DA6DE 878CD5 7672C7 6958B3 5E3D9F 52277A 411555"),
    diverging=_palette("00436B 05659A 2989C6 77ACD9 C3D9EE F1D0BB DB986F C36C3B A83E04 762401"),
    midpoint="#F7F7F7",
    categorical=_palette("1B1F27 C28850 4A97DC 00614F 746502 045791 592600 A4768C"),
    ink_flips_at=139 / 256,
    ink_on_strong="#FFFFFF",
)

DARK = Theme(
    name="dark",
    page="#111419",
    surface="#1A1E26",
    hairline="#363D49",
    control="#6F7988",
    ink="#ECEEF2",
    muted="#A9B1BD",
    accent="#B08CF0",
    link="#C4A8F7",
    query="#FFA14A",
    query_fill="#4A2C10",
    key="#62B8F0",
    value="#3FC79A",
    good="#5CC98D",
    warn="#E3B341",
    bad="#FF8A80",
    sequential=_palette("23252F 31375B 454789 6457AC 8768CB AA7BE0 CB92EA E8ACF1 F9CCF4 FFEFFA"),
    diverging=_palette("BADCF1 60BAEF 0A94D5 026EA5 004266 6B2C00 A84E00 D37214 EAA157 F1D2AF"),
    midpoint="#1F222A",
    categorical=_palette("ECEEF2 FFDC9E 028AB7 00927B AABD03 99B7FE BC6C3B E895AD"),
    ink_flips_at=114 / 256,
    ink_on_strong="#111419",
)

THEMES: dict[str, Theme] = {theme.name: theme for theme in (LIGHT, DARK)}


@dataclass(frozen=True, slots=True)
class TextSizes:
    """Text sizes in pixels. Plotly has no rem, so stage mode needs sizes of its own."""

    text: int = 12  # ticks, notes, legends
    cell: int = 14  # numbers inside cells


NORMAL = TextSizes()
STAGE = TextSizes(text=15, cell=16)


ColourScale = list[tuple[float, str]]


def colorscale(theme: Theme) -> ColourScale:
    """The sequential colours in Plotly's form."""
    return _evenly(theme.sequential)


def diverging_scale(theme: Theme) -> ColourScale:
    """The diverging colours in Plotly's form: eleven stops with the midpoint at zero."""
    return _evenly((*theme.diverging[:5], theme.midpoint, *theme.diverging[5:]))


def sequential_colour(theme: Theme, value: float) -> str:
    """The sequential colour of a value from 0 to 1."""
    return _interpolate(colorscale(theme), value)


def diverging_colour(theme: Theme, value: float) -> str:
    """The diverging colour of a value from -1 to 1."""
    return _interpolate(diverging_scale(theme), (value + 1) / 2)


def _evenly(colours: tuple[str, ...]) -> ColourScale:
    return [(i / (len(colours) - 1), colour) for i, colour in enumerate(colours)]


def _interpolate(scale: ColourScale, value: float) -> str:
    at = min(max(value, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(at), len(scale) - 2)
    pair = zip(rgb(scale[low][1]), rgb(scale[low + 1][1]), strict=True)
    mixed = [round(a + (b - a) * (at - low)) for a, b in pair]
    return "#{:02X}{:02X}{:02X}".format(*mixed)


def rgb(colour: str) -> tuple[int, int, int]:
    """The red, green and blue of `#RRGGBB`, each from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


CONFIG = """[theme]
font = "sans-serif"
headingFont = "sans-serif"
codeFont = "monospace"
baseFontSize = 16
baseRadius = "0.375rem"
headingFontSizes = ["1.75rem", "1.375rem", "1.125rem", "1rem", "1rem", "0.875rem"]
headingFontWeights = [650, 600, 600, 600, 600, 600]
showWidgetBorder = true
"""


def config_toml() -> str:
    """The [theme] tables of Streamlit's configuration."""
    return CONFIG + "".join(map(_tables, (LIGHT, DARK)))


def _tables(theme: Theme) -> str:
    colours = {
        "primaryColor": theme.accent,
        "backgroundColor": theme.page,
        "secondaryBackgroundColor": theme.surface,
        "textColor": theme.ink,
        "borderColor": theme.control,
        "linkColor": theme.link,
        "codeTextColor": theme.ink,
        "codeBackgroundColor": theme.surface,
        "chartSequentialColors": list(theme.sequential),
        "chartDivergingColors": list(theme.diverging),
        "chartCategoricalColors": list(theme.categorical),
    }
    sidebar = {"backgroundColor": theme.surface, "secondaryBackgroundColor": theme.page}
    tables: dict[str, Mapping[str, object]] = {
        f"theme.{theme.name}": colours,
        f"theme.{theme.name}.sidebar": sidebar,
    }
    return "".join(f"\n[{name}]\n{_lines(table)}" for name, table in tables.items())


def _lines(table: Mapping[str, object]) -> str:
    """Strings and lists of strings look the same in JSON and in TOML."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())


if __name__ == "__main__":
    print(config_toml(), end="")
