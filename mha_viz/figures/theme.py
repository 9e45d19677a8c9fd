"""The one source of colours and type, for Plotly, for the token strip and for Streamlit.

`python -m mha_viz.figures.theme` prints the [theme] tables of .streamlit/config.toml; a test holds
the file to them. Violet says how much, orange says where you are, blue says who looks at it.
"""

from dataclasses import dataclass
from typing import Literal

SANS = "Source Sans, Source Sans Pro, sans-serif"
MONO = "Source Code Pro, Source Code, monospace"


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours for one of the two schemes; contrast of text on `page` is at least 4.5 : 1."""

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
    sequential: tuple[str, ...]  # ten steps of equal lightness distance, 0 -> 1
    diverging: tuple[str, ...]  # ten steps, negative -> positive
    midpoint: str
    categorical: tuple[str, ...]
    ink_flips_at: float  # a cell darker (light) or lighter (dark) than this takes the other ink
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
    sequential=tuple(
        [
            "#EFF2FA",
            "#D2D9EE",
            "#B6C0E6",
            "#9DA6DE",
            "#878CD5",
            "#7672C7",
            "#6958B3",
            "#5E3D9F",
            "#52277A",
            "#411555",
        ]
    ),
    diverging=tuple(
        [
            "#00436B",
            "#05659A",
            "#2989C6",
            "#77ACD9",
            "#C3D9EE",
            "#F1D0BB",
            "#DB986F",
            "#C36C3B",
            "#A83E04",
            "#762401",
        ]
    ),
    midpoint="#F7F7F7",
    categorical=tuple(
        ["#1B1F27", "#C28850", "#4A97DC", "#00614F", "#746502", "#045791", "#592600", "#A4768C"]
    ),
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
    sequential=tuple(
        [
            "#23252F",
            "#31375B",
            "#454789",
            "#6457AC",
            "#8768CB",
            "#AA7BE0",
            "#CB92EA",
            "#E8ACF1",
            "#F9CCF4",
            "#FFEFFA",
        ]
    ),
    diverging=tuple(
        [
            "#BADCF1",
            "#60BAEF",
            "#0A94D5",
            "#026EA5",
            "#004266",
            "#6B2C00",
            "#A84E00",
            "#D37214",
            "#EAA157",
            "#F1D2AF",
        ]
    ),
    midpoint="#1F222A",
    categorical=tuple(
        ["#ECEEF2", "#FFDC9E", "#028AB7", "#00927B", "#AABD03", "#99B7FE", "#BC6C3B", "#E895AD"]
    ),
    ink_flips_at=114 / 256,
    ink_on_strong="#111419",
)

THEMES: dict[str, Theme] = {theme.name: theme for theme in (LIGHT, DARK)}


@dataclass(frozen=True, slots=True)
class Type:
    """Text sizes in pixels: Plotly knows no rem, so a stage needs sizes of its own."""

    tick: int = 12
    note: int = 12
    cell: int = 14


NORMAL = Type()
STAGE = Type(tick=15, note=15, cell=16)


def colorscale(theme: Theme) -> list[tuple[float, str]]:
    """The sequential colours as Plotly reads a scale."""
    last = len(theme.sequential) - 1
    return [(i / last, colour) for i, colour in enumerate(theme.sequential)]


def diverging_scale(theme: Theme) -> list[tuple[float, str]]:
    """The diverging colours as Plotly reads a scale: eleven stops with the midpoint at zero."""
    colours = [*theme.diverging[:5], theme.midpoint, *theme.diverging[5:]]
    return [(i / (len(colours) - 1), colour) for i, colour in enumerate(colours)]


def between(theme: Theme, value: float) -> str:
    """The sequential colour of a value from 0 to 1."""
    return _between(colorscale(theme), value)


def mix(theme: Theme, value: float) -> str:
    """The diverging colour of a value from -1 to 1."""
    return _between(diverging_scale(theme), (value + 1) / 2)


def _between(scale: list[tuple[float, str]], value: float) -> str:
    at = min(max(value, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(at), len(scale) - 2)
    pair = zip(rgb(scale[low][1]), rgb(scale[low + 1][1]), strict=True)
    mixed = [round(a + (b - a) * (at - low)) for a, b in pair]
    return "#{:02X}{:02X}{:02X}".format(*mixed)


def rgb(colour: str) -> tuple[int, int, int]:
    """`#RRGGBB` as three numbers from 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def config_toml() -> str:
    """The [theme] tables of Streamlit's configuration."""
    lines = [
        "[theme]",
        'font = "sans-serif"',
        'headingFont = "sans-serif"',
        'codeFont = "monospace"',
        "baseFontSize = 16",
        'baseRadius = "0.375rem"',
        'headingFontSizes = ["1.75rem", "1.375rem", "1.125rem", "1rem", "1rem", "0.875rem"]',
        "headingFontWeights = [650, 600, 600, 600, 600, 600]",
        "showWidgetBorder = true",
    ]
    for theme in (LIGHT, DARK):
        lines += ["", f"[theme.{theme.name}]", *_colours(theme, theme.page, theme.surface)]
        lines += [
            f"chartSequentialColors = {_list(theme.sequential)}",
            f"chartDivergingColors = {_list(theme.diverging)}",
            f"chartCategoricalColors = {_list(theme.categorical)}",
        ]
        lines += ["", f"[theme.{theme.name}.sidebar]"]
        lines += [
            f'backgroundColor = "{theme.surface}"',
            f'secondaryBackgroundColor = "{theme.page}"',
        ]
    return "\n".join(lines) + "\n"


def _colours(theme: Theme, page: str, surface: str) -> list[str]:
    pairs = {
        "primaryColor": theme.accent,
        "backgroundColor": page,
        "secondaryBackgroundColor": surface,
        "textColor": theme.ink,
        "borderColor": theme.control,
        "linkColor": theme.link,
        "codeTextColor": theme.ink,
        "codeBackgroundColor": surface,
    }
    return [f'{key} = "{value}"' for key, value in pairs.items()]


def _list(colours: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{colour}"' for colour in colours) + "]"


if __name__ == "__main__":
    print(config_toml(), end="")
