"""The effects of a change, checked against the distributions and patterns themselves."""

import numpy as np
import pytest
import torch
from support.models import trace_of
from support.pruning import HEADS, IDS, OTHER_IDS

from mha_viz import pruning
from mha_viz.model import Model
from mha_viz.pruning import (
    Pass,
)


def test_next_tokens_before_and_after(model: Model):
    whole = Pass.of(model, IDS)
    one = whole.without([(1, 1), (0, 0)])
    gate = pruning.gate_without(model.config, [(1, 1), (0, 0)])
    p = model.network(torch.tensor([IDS]))[0, -1].softmax(-1)
    q = model.network(torch.tensor([IDS]), head_gate=gate)[0, -1].softmax(-1)
    found = pruning.next_tokens(whole, one, 5, also=[7, int(p.argmax())])
    ids = [candidate.id for candidate in found]
    assert ids[:5] == p.topk(5).indices.tolist()
    assert set(q.topk(5).indices.tolist()) <= set(ids)
    assert 7 in ids
    assert len(ids) == len(set(ids))
    for candidate in found:
        assert candidate.before == pytest.approx(float(p[candidate.id]), abs=1e-6)
        assert candidate.after == pytest.approx(float(q[candidate.id]), abs=1e-6)
        assert candidate.rank_before == int((p > p[candidate.id]).sum()) + 1
        assert candidate.rank_after == int((q > q[candidate.id]).sum()) + 1


def test_the_divergence_is_that_of_the_distributions(model: Model):
    ids = OTHER_IDS + OTHER_IDS[:4]
    whole = Pass.of(model, ids)
    gate = pruning.gate_without(model.config, [(0, 3)])
    p = model.network(torch.tensor([ids]))[0].double().softmax(-1)
    q = model.network(torch.tensor([ids]), head_gate=gate)[0].double().softmax(-1)
    expected = (p * (p / q).log()).sum(-1).numpy()
    found = pruning.divergence(whole, whole.without([(0, 3)]))
    assert expected.max() > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_change_of_patterns_is_that_of_two_traces(model: Model):
    ids = torch.tensor([IDS])
    gate = pruning.gate_without(model.config, [(0, 3)])
    a = trace_of(model.network.run(ids), model.config)
    b = trace_of(model.network.run(ids, head_gate=gate), model.config)
    whole = Pass.of(model, IDS)
    found = pruning.pattern_change(whole, whole.without([(0, 3)]))
    for layer, head in HEADS:
        apart = np.abs(a.pattern(layer, head) - b.pattern(layer, head))[1:].sum(1) / 2
        assert found[layer, head] == pytest.approx(apart.mean(), abs=1e-6)
    assert np.all(found[0] == 0)
    assert np.all(found[1] > 0)
    assert np.all(found <= 1)
