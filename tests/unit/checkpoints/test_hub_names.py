"""Names of models on the Hub, with a revision."""

import pytest

from mha_viz.checkpoints.hub_names import HubName, in_order, parse
from mha_viz.errors import SourceError


@pytest.mark.parametrize(
    ("name", "repo", "revision"),
    [
        ("gpt2", "gpt2", "main"),
        ("gpt2@main", "gpt2", "main"),
        ("owner/name@step-1000", "owner/name", "step-1000"),
        ("owner/name@v1.0", "owner/name", "v1.0"),
        ("owner/name@refs/pr/1", "owner/name", "refs/pr/1"),
        ("owner/name@" + "a" * 40, "owner/name", "a" * 40),
    ],
)
def test_a_name_with_a_revision(name, repo, revision):
    assert parse(name) == HubName(repo, revision)


@pytest.mark.parametrize(
    "name",
    ["gpt2@", "gpt2@../x", "gpt2@a b", "gpt2@a@b", "gpt2@/x", "gpt2@x/", "gpt2@" + "x" * 300],
)
def test_a_revision_that_cannot_be_is_refused_with_an_example(name):
    with pytest.raises(SourceError, match=r"is not a revision of gpt2\. .* `gpt2@main`"):
        parse(name)


def test_a_name_that_cannot_be_is_refused():
    with pytest.raises(SourceError, match="is not a name on the Hugging Face Hub"):
        parse("a b@main")


def test_the_bundled_model_has_no_revisions():
    with pytest.raises(SourceError, match="Write `bundled` alone"):
        parse("bundled@main")


def test_revisions_come_in_the_order_of_their_numbers():
    found = ["step-1000", "v2", "main", "step-20", "step-3", "v10", "step-20"]
    assert in_order(found) == ["main", "step-3", "step-20", "step-1000", "v2", "v10"]
