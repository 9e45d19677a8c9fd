"""The small model, its heads and the texts that the pruning tests share."""

from typing import Any

from tokenizers import Tokenizer

from mha_viz.model import Description, Model
from support.models import ours_of, some_ids

L, H, D_H = 2, 4, 8


IDS = some_ids(24, 300, 4)[0].tolist()


OTHER_IDS = some_ids(60, 300, 5)[0].tolist()


HEADS = [(layer, head) for layer in range(L) for head in range(H)]


def model_of(theirs: Any, tokenizer: Tokenizer) -> Model:
    return Model(ours_of(theirs), tokenizer, Description("a model", "folder", "float32", 0, ""))
