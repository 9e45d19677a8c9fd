"""Names of models on the Hugging Face Hub: `gpt2`, `owner/name`, `name@revision`."""

import re
from dataclasses import dataclass

from mha_viz.errors import SourceError

MAIN = "main"
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"(?!.*(?:--|\.\.))(?:{_PART}/)?{_PART}(?<!\.git)")
_REVISION = re.compile(r"(?!.*(?:\.\.|//|@\{))[A-Za-z0-9_](?:[\w./+-]{0,198}[\w+-])?", re.ASCII)
_NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class HubName:
    """A model on the Hub, at a branch, a tag or a commit."""

    repo: str
    revision: str = MAIN

    def __str__(self) -> str:
        return self.repo if self.revision == MAIN else f"{self.repo}@{self.revision}"


def parse(name: str) -> HubName:
    """The model and the revision that `name` names, by default `main`.

    Raises SourceError for a name that the Hub does not allow; makes no request.
    """
    repo, at, revision = name.partition("@")
    if not _REPO.fullmatch(repo):
        raise SourceError(
            f"{name[:100]!r} is not a name on the Hugging Face Hub. Write it as `gpt2` or "
            "`owner/name`, with letters, digits, `-`, `_` and `.` only."
        )
    if at and repo == "bundled":
        raise SourceError("The bundled model has no revisions. Write `bundled` alone.")
    if at and not _REVISION.fullmatch(revision):
        raise SourceError(
            f"{revision[:100]!r} is not a revision of {repo}. Write a branch, a tag or a commit "
            f"after the @, such as `{repo}@main`."
        )
    return HubName(repo, revision or MAIN)


def in_order(revisions: list[str]) -> list[str]:
    """The revisions in the order of their numbers: `main`, then step-900 before step-1000."""

    def key(name: str) -> tuple[bool, list[tuple[bool, int, str]]]:
        parts = [part for part in _NUMBER.split(name) if part]
        numbers = [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
        return name != MAIN, numbers

    return sorted(set(revisions), key=key)
