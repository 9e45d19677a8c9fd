"""Measured memory: exact for calls whose memory is known, T^2 for the explicit way, T for tiles."""

import threading

import pytest
import torch

from mha_viz.lessons.peak_memory import attention_memory, peak_bytes


def test_what_a_call_holds_at_its_worst_is_counted_to_the_byte() -> None:
    one, two = peak_bytes([lambda: torch.ones(1000), lambda: torch.ones(1000) + torch.ones(1000)])
    assert one == 4000
    assert two == 12_000  # both terms and their sum


def test_what_is_given_back_before_does_not_add_up() -> None:
    def again() -> None:
        for _ in range(5):
            torch.ones(1000)

    (found,) = peak_bytes([again])
    assert found == 4000


def test_inputs_and_other_threads_do_not_count() -> None:
    there, stop = torch.ones(10**6), threading.Event()

    def noise() -> None:
        while not stop.is_set():
            torch.ones(10**6)

    thread = threading.Thread(target=noise)
    thread.start()
    try:
        (found,) = peak_bytes([lambda: [there[:10].clone() for _ in range(200)]])
    finally:
        stop.set()
        thread.join()
    assert found == 200 * 40


def test_nothing_is_measured_of_nothing() -> None:
    assert peak_bytes([]) == []
    assert attention_memory([], 2, 8) == []


@pytest.mark.parametrize(("n_heads", "d_head"), [(4, 16), (12, 64)])
def test_the_explicit_way_holds_three_squares_and_the_fused_one_none(
    n_heads: int, d_head: int
) -> None:
    told: list[int] = []
    uses = attention_memory([128, 256, 512], n_heads, d_head, on_length=told.append)
    assert [use.T for use in uses] == [128, 256, 512]
    assert told == [0, 1, 2]
    for use in uses:
        square, output = 4 * n_heads * use.T**2, 4 * n_heads * use.T * d_head
        # Besides the three, two boolean masks of T x T: at most 2 / (12 H) of them.
        assert 3 * square <= use.explicit <= 3.3 * square
        # The output, the sums of the softmax, and tiles of at most a few dozen KiB a core.
        assert output <= use.fused <= 2 * output + 2**20
    assert uses[2].explicit / uses[0].explicit == pytest.approx(16, rel=0.02)
    assert uses[2].fused / uses[0].fused < 6
