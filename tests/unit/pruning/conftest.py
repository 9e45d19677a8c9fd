"""The small model of the pruning tests."""

from collections.abc import Callable
from typing import Any

import pytest
from support.pruning import model_of
from tokenizers import Tokenizer

from mha_viz.model import Model


@pytest.fixture
def model(gpt2: Callable[..., Any], tokenizer: Tokenizer) -> Model:
    return model_of(gpt2(5), tokenizer)
