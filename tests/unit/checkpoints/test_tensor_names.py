"""The same weights under other names: wrappers, heads of other tasks, tied parameters."""

import pytest
import torch
from support.checkpoints import check_equal, edit_tensors
from torch import Tensor
from transformers.models.gpt2.modeling_gpt2 import (
    GPT2DoubleHeadsModel,
    GPT2ForQuestionAnswering,
    GPT2ForSequenceClassification,
    GPT2ForTokenClassification,
    GPT2LMHeadModel,
    GPT2Model,
)

from mha_viz.checkpoints import load
from mha_viz.errors import CheckpointError
from mha_viz.model import Model

HEAD, EMBEDDING = "lm_head.weight", "transformer.wte.weight"
WRAPPERS = [
    "_module.",
    "module.",
    "model.",
    "transformer.",
    "_orig_mod.",
    "base_model.model.",
    "pretrained_model.",
    "module._orig_mod.",
    "model.gpt2.",
    "net.backbone.",
]
Tensors = dict[str, Tensor]


def says(model: Model, words: str) -> bool:
    return any(words in note for note in model.description.notes)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("bare", [False, True], ids=["transformer", "bare"])
def test_the_name_of_a_wrapper_is_taken_off(gpt2, checkpoint, wrapper, bare):
    theirs = gpt2(1)

    def wrap(tensors: Tensors) -> Tensors:
        names = {k: k.removeprefix("transformer.") if bare else k for k in tensors}
        return {wrapper + names[k]: v for k, v in tensors.items()}

    check_equal(load(edit_tensors(checkpoint(theirs), wrap)), theirs)


@pytest.mark.parametrize("wrapper", ["_module.", "model.", "net."])
def test_an_untied_head_under_a_wrapper_is_used(gpt2, checkpoint, wrapper):
    theirs = gpt2(1, tie_word_embeddings=False)
    folder = edit_tensors(checkpoint(theirs), lambda t: {wrapper + k: v for k, v in t.items()})
    check_equal(load(folder), theirs)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (GPT2ForQuestionAnswering, "qa_outputs.weight"),
        (GPT2ForSequenceClassification, "score.weight"),
        (GPT2ForTokenClassification, "classifier.weight"),
        (GPT2DoubleHeadsModel, "multiple_choice_head.summary.weight"),
    ],
)
def test_the_head_of_another_task_is_left_out_with_a_note(gpt2, checkpoint, kind, name):
    theirs = gpt2(1)
    other = kind(theirs.config)
    missing = other.load_state_dict(theirs.state_dict(), strict=False).missing_keys
    assert name in missing
    model = load(checkpoint(other))
    check_equal(model, theirs)
    assert says(model, f"`{name}`")


@pytest.mark.parametrize("name", ["v_head.summary.weight", "score.weight", "reward_head.0.weight"])
@pytest.mark.parametrize("wrapper", ["", "module.", "pretrained_model."])
def test_a_head_of_a_wrapped_model_is_left_out_with_a_note(gpt2, checkpoint, name, wrapper):
    theirs = gpt2(1)
    folder = edit_tensors(
        checkpoint(theirs),
        lambda t: {wrapper + k: v for k, v in t.items()} | {wrapper + name: torch.ones(1, 32)},
    )
    model = load(folder)
    check_equal(model, theirs)
    assert says(model, f"`{name}`")


@pytest.mark.parametrize(
    "name", ["lm_head.bias", "prompt_encoder.embedding.weight", "wte_2.weight"]
)
def test_tensors_that_may_change_the_logits_are_rejected_by_name(gpt2, checkpoint, name):
    folder = edit_tensors(checkpoint(gpt2(1)), lambda t: t | {name: torch.ones(300)})
    with pytest.raises(CheckpointError, match=rf"holds `{name}`, which GPT-2 does not have"):
        load(folder)


def test_two_models_in_one_file_are_rejected_by_both_names(gpt2, checkpoint):
    other = {f"ref_model.{k}": v.clone() for k, v in gpt2(2).transformer.state_dict().items()}
    folder = edit_tensors(checkpoint(gpt2(1)), lambda t: t | other)
    with pytest.raises(CheckpointError, match=r"twice, with different values: as `.*` and as `"):
        load(folder)


def test_parts_of_one_network_under_two_prefixes_are_rejected_by_both(gpt2, checkpoint):
    def moved(tensors: Tensors) -> Tensors:
        return {f"critic.{k}" if ".h.1." in k else k: v for k, v in tensors.items()}

    folder = edit_tensors(checkpoint(gpt2(1)), moved)
    words = (
        r"under different prefixes, such as `critic\.transformer\.h\.1.*` and `transformer\.h\.0"
    )
    with pytest.raises(CheckpointError, match=words):
        load(folder)


def test_a_part_that_is_stored_again_under_another_prefix_is_no_matter(gpt2, checkpoint):
    theirs = gpt2(1)

    def doubled(tensors: Tensors) -> Tensors:
        return tensors | {f"critic.{k}": v.clone() for k, v in tensors.items() if ".h.1." in k}

    check_equal(load(edit_tensors(checkpoint(theirs), doubled)), theirs)


def test_the_same_model_twice_is_one(gpt2, checkpoint):
    theirs = gpt2(1)
    copy = {k: v.clone() for k, v in theirs.transformer.state_dict().items()}
    check_equal(load(edit_tensors(checkpoint(theirs), lambda t: t | copy)), theirs)


def with_head(tensors: Tensors) -> Tensors:
    return tensors | {HEAD: tensors[EMBEDDING].clone()}


def only_head(tensors: Tensors) -> Tensors:
    return {HEAD if k == EMBEDDING else k: v for k, v in tensors.items()}


def both_different(tensors: Tensors) -> Tensors:
    return tensors | {HEAD: tensors[EMBEDDING] * 2}


TIED = [lambda t: t, only_head, with_head, both_different]


@pytest.mark.parametrize("stored", TIED, ids=["wte", "lm_head", "both equal", "both different"])
def test_tied_parameters_under_either_name_are_read_as_transformers_does(gpt2, checkpoint, stored):
    folder = edit_tensors(checkpoint(gpt2(1)), stored)
    check_equal(load(folder), GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager"))


def test_a_bare_model_may_have_a_head_beside_it(gpt2, checkpoint):
    """`GPT2Model` as an attribute of another class, with its own unembedding."""
    theirs = gpt2(1, tie_word_embeddings=False)
    bare = GPT2Model(theirs.config)
    bare.load_state_dict(theirs.transformer.state_dict())
    folder = edit_tensors(checkpoint(bare), lambda t: t | {HEAD: theirs.lm_head.weight.clone()})
    check_equal(load(folder), theirs)


@pytest.mark.parametrize(("stored", "lacks"), [(only_head, EMBEDDING), (lambda t: t, HEAD)])
def test_an_untied_model_that_lacks_one_of_both_is_rejected(gpt2, checkpoint, stored, lacks):
    theirs = gpt2(1)
    theirs.config.tie_word_embeddings = False
    folder = edit_tensors(
        checkpoint(theirs), lambda t: stored({k: v for k, v in t.items() if k != HEAD})
    )
    with pytest.raises(CheckpointError, match=rf"lacks `{lacks}`"):
        load(folder)
