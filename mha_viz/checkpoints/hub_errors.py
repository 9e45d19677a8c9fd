"""What goes wrong between this machine and the Hugging Face Hub, in sentences for the user."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RevisionNotFoundError

from mha_viz.checkpoints.hub_names import parse
from mha_viz.errors import MhaVizError, SourceError

TIMEOUT = 10.0  # seconds without any data
OFFLINE_MODELS = "The bundled model and models downloaded before work without the Hub."


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turns network and disk errors into a SourceError that says what to do."""
    try:
        yield
    except MhaVizError:
        raise
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise SourceError(_explanation(name, error)) from error


def not_the_hub(name: str) -> str:
    """The message where the reply came from elsewhere, such as the login page of a network."""
    return (
        f"The reply for {name} did not come from the Hugging Face Hub. Your network "
        f"may need a login: open a browser and check. {OFFLINE_MODELS}"
    )


def _explanation(name: str, error: Exception) -> str:
    status = error.response.status_code if isinstance(error, HfHubHTTPError) else 0
    login = "log in with `hf auth login`"
    if isinstance(error, GatedRepoError):
        return f"{name} is gated. Request access on its page, then {login}."
    if isinstance(error, RevisionNotFoundError):
        at = parse(name)
        return (
            f"{at.repo} has no revision `{at.revision}`. Give a branch, a tag or a commit that it "
            f"has, such as `{at.repo}@main`."
        )
    if status in (401, 404):
        return f"{name} does not exist or is private. Check the spelling, or {login}."
    if status:
        return (
            f"{name} could not be downloaded: the Hugging Face Hub returned error {status}. "
            f"Try again later. {OFFLINE_MODELS}"
        )
    if isinstance(error, OSError):
        return (
            f"{name} could not be written to the cache ({error.strerror}). "
            "Set HF_HUB_CACHE to another folder."
        )
    return (
        f"{name} could not be downloaded: there is no network, or the Hub did not answer within "
        f"{TIMEOUT:.0f} seconds. Try again later. {OFFLINE_MODELS}"
    )
