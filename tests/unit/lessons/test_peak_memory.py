"""Measured peaks: exact for calls of known memory, T^2 for explicit attention, T for tiles."""

import threading

import pytest
import torch

from mha_viz.lessons.peak_memory import attention_memory, peak_bytes


def test_the_peak_of_a_call_is_exact_to_the_byte() -> None:
    one, two = peak_bytes([lambda: torch.ones(1000), lambda: torch.ones(1000) + torch.ones(1000)])
    assert one == 4000
    assert two == 12_000  # both terms and their sum


def test_freed_memory_does_not_add_up() -> None:
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


def test_no_calls_have_no_peaks() -> None:
    assert peak_bytes([]) == []
    assert attention_memory([], 2, 8) == []


@pytest.mark.parametrize(("n_heads", "d_head"), [(4, 16), (12, 64)])
def test_explicit_attention_holds_three_squares_and_the_fused_kernel_none(
    n_heads: int, d_head: int
) -> None:
    finished: list[int] = []
    peaks = attention_memory([128, 256, 512], n_heads, d_head, on_length=finished.append)
    assert [peak.T for peak in peaks] == [128, 256, 512]
    assert finished == [0, 1, 2]
    for peak in peaks:
        square, output = 4 * n_heads * peak.T**2, 4 * n_heads * peak.T * d_head
        # And two boolean masks of T x T: at most 2 / (12 H) of the three squares.
        assert 3 * square <= peak.explicit <= 3.3 * square
        # The output, the sums of the softmax, and tiles of at most a few dozen KiB a core.
        assert output <= peak.fused <= 2 * output + 2**20
    assert peaks[2].explicit / peaks[0].explicit == pytest.approx(16, rel=0.02)
    assert peaks[2].fused / peaks[0].fused < 6
