"""The code that the page shows: short, whole, and with what a module in use needs."""

import pytest
import torch

from mha_viz.lessons import forms
from mha_viz.lessons.implementations import IMPLEMENTATIONS


def test_the_whole_module_has_at_most_25_lines_with_mask_and_dropout():
    text = IMPLEMENTATIONS[0].code.text
    assert len(text.splitlines()) <= 25
    for part in ("masked_fill(later, -torch.inf)", "nn.Dropout(dropout)", "assert C % H == 0"):
        assert part in text


def test_dropout_acts_in_training_only():
    module, x = forms.MultiHeadAttention(24, 4, dropout=0.5), torch.randn(1, 6, 24)
    assert torch.equal(module.eval()(x), module(x))
    assert not torch.equal(module.train()(x), module(x))


def test_a_width_that_heads_do_not_divide_is_refused():
    with pytest.raises(AssertionError, match="C must divide into H heads"):
        forms.MultiHeadAttention(24, 5)


def test_heads_are_split_and_merged_without_loss():
    x = torch.randn(2, 5, 24)
    assert torch.equal(forms.merge_heads(forms.split_heads(x, 4)), x)
