"""The token strip gets the weights that it colours."""

import base64

import numpy as np

from mha_viz.app.widgets.token_strip import pack


def test_the_strip_is_sent_the_weights_to_three_digits() -> None:
    pattern = np.tril(np.random.default_rng(0).random((5, 5))).astype(np.float32)
    pattern[0, 0] = 1.0
    raw = np.frombuffer(base64.b64decode(pack(pattern)), dtype=np.uint8).astype(int).reshape(-1, 3)
    first = raw[:, 0] | (raw[:, 1] & 15) << 8
    second = raw[:, 1] >> 4 | raw[:, 2] << 4
    found = np.stack([first, second], axis=1).ravel()[:15]
    found = (found + 0.5) / 4000
    np.testing.assert_allclose(found, pattern[np.tril_indices(5)], atol=0.5 / 4000 + 1e-7)
