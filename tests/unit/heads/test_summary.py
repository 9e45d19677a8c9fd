"""Measures of a head on patterns whose values are known beforehand."""

import math

import numpy as np
import pytest

from mha_viz.heads import summary

T = 20


def test_a_head_that_looks_at_itself() -> None:
    found = summary(np.eye(T, dtype=np.float32))
    assert (found.itself, found.previous_token, found.first_token) == (1, 0, 0)
    assert (found.entropy, found.distance) == (0, 0)


def test_a_previous_token_head() -> None:
    pattern = np.eye(T, k=-1, dtype=np.float32)
    pattern[0, 0] = 1
    found = summary(pattern)
    assert found.previous_token == 1
    assert found.itself == 0
    assert found.first_token == pytest.approx(1 / (T - 1))  # token 1's previous is token 0
    assert found.distance == 1


def test_a_head_that_rests_on_the_first_token() -> None:
    pattern = np.zeros((T, T), dtype=np.float32)
    pattern[:, 0] = 1
    found = summary(pattern)
    assert found.first_token == 1
    assert found.entropy == 0
    assert found.distance == pytest.approx(T / 2)


def test_a_head_that_looks_at_all_keys_equally() -> None:
    pattern = np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None]
    found = summary(pattern.astype(np.float32))
    assert found.entropy == pytest.approx(1, abs=1e-6)
    assert found.itself == pytest.approx(np.mean(1 / np.arange(2, T + 1)), abs=1e-6)


def test_one_token_says_nothing() -> None:
    found = summary(np.ones((1, 1), dtype=np.float32))
    assert math.isnan(found.first_token)
    assert math.isnan(found.entropy)
