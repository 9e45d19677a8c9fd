"""Lines that visitors type: allowed ones give what torch gives, all others are refused."""

import resource

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from mha_viz.errors import LineError
from mha_viz.lessons.bounded import MOST_NUMBERS
from mha_viz.lessons.expression import LONGEST, METHODS, Names, evaluate

B, T, C, H, d_h = 1, 4, 12, 3, 4


@pytest.fixture(scope="module")
def names() -> Names:
    torch.manual_seed(0)
    W_QKV = nn.Linear(C, 3 * C).requires_grad_(False)
    x = torch.randn(B, T, C)
    q, k, v = W_QKV(x).split(C, dim=-1)
    later = torch.ones(T, T).triu(1).bool()
    sizes = {"B": B, "T": T, "C": C, "H": H, "d_h": d_h, "self.H": H, "self.d_h": d_h}
    modules = {"self.W_QKV": W_QKV, "self.dropout": nn.Dropout(0.5).eval()}
    return {"x": x, "q": q, "k": k, "v": v, "later": later, "W": W_QKV.weight, **sizes, **modules}


ALLOWED = [
    "q.view(B, T, H, d_h).transpose(1, 2)",
    "q.view(B, T, self.H, self.d_h).mT",
    "q.reshape(B, H, T, d_h)",
    "q.unflatten(-1, (H, d_h)).permute(0, 2, 1, 3).contiguous()",
    "q @ k.mT / d_h**0.5",
    "(q @ k.transpose(-2, -1) / d_h**0.5).masked_fill(later, -torch.inf).softmax(dim=-1) @ v",
    "torch.einsum('bti,bsi->bts', q, k)",
    "torch.cat((q, k), dim=-1).chunk(2, -1)[0]",
    "torch.stack([q, k, v]).flatten(0, 1).squeeze()",
    "self.dropout(q)[:, -1, ::2]",
    "q[..., None, : C // H].expand(B, T, H, d_h)",
    "x @ W.T",
    "self.W_QKV(x)",
    "2 * q - q ** 2 + 1",
    "~later",
    "q.size(-1) + q.shape[1] - q.dim()",
]


@pytest.mark.parametrize("line", ALLOWED)
def test_an_allowed_line_gives_what_python_gives(line: str, names: Names) -> None:
    here = {name: value for name, value in names.items() if "." not in name}
    me = nn.Module()
    me.__dict__.update(H=H, d_h=d_h, W_QKV=names["self.W_QKV"], dropout=names["self.dropout"])
    expected = eval(line, {"torch": torch, "self": me, **here})
    found = evaluate(line, names).value
    assert torch.equal(found, expected) if isinstance(expected, Tensor) else found == expected
    if isinstance(expected, Tensor):
        assert found.stride() == expected.stride()


def test_a_line_may_be_an_assignment_or_a_return(names: Names) -> None:
    for line in ("q.mT", "q = q.mT", "return q.mT", "  q.mT  # turned"):
        assert evaluate(line, names).tensors[0].shape == (B, C, T)


def test_the_operations_of_a_line_are_listed_in_order(names: Names) -> None:
    result = evaluate("q.view(B, T, H, d_h).transpose(1, 2)", names)
    assert [one.code for one in result.operations] == [
        "q",
        ".view(B, T, H, d_h)",
        ".transpose(1, 2)",
    ]
    assert result.only_layout
    assert not evaluate("q @ k.mT", names).only_layout


@pytest.mark.parametrize(
    ("line", "function"),
    [
        ("q.view(B, H, T, d_h)", lambda q, k: q.view(B, H, T, d_h)),
        ("q.view(B, T, 5)", lambda q, k: q.view(B, T, 5)),
        ("q @ k", lambda q, k: q @ k),
        ("q + k[:, :2]", lambda q, k: q + k[:, :2]),
        ("q[3, 0]", lambda q, k: q[3, 0]),
        ("q.transpose(1, 5)", lambda q, k: q.transpose(1, 5)),
        ("q.masked_fill(k, 0)", lambda q, k: q.masked_fill(k, 0)),
    ],
)
def test_what_torch_refuses_is_reported_in_its_own_words(line, function, names: Names) -> None:
    with pytest.raises((RuntimeError, IndexError)) as torch_s:
        function(names["q"], names["k"])
    with pytest.raises(LineError) as ours:
        evaluate(line, names)
    assert str(ours.value) == f"torch: {str(torch_s.value).splitlines()[0]}"


HOSTILE = [
    "", "   ", "#", "q;k", "import os", "del q", "q.data", "q.grad", "q.__class__", "q.storage()",
    "q.__class__.__bases__[0].__subclasses__()", "self", "self.__dict__", "self.W_QKV.weight",
    "self.W_QKV", "self.forward(x)", "torch", "torch.os", "torch.load('x')", "torch.ones(10**9)",
    "torch.cat.__globals__", "F.linear", "__import__('os')", "open('x')", "eval('1')", "print(q)",
    "lambda: q", "[t for t in q]", "{t for t in q}", "q if 1 else k", "q and k", "q < k", "not q",
    "(y := q)", "f'{q}'", "'q' * 10**9", "(1,) * 10**9", "q.view(*q.shape)", "q.exp(out=k)",
    "q.sum(dtype=1)", "q.add_(1)", "q.masked_fill_(later, 0)", "q.zero_()", "q.tolist()", "q.numpy",
    "q.view('int32')", "q.apply_(q)", "9**9**9", "10**8**8", "2**-9", "1/0", "T//0", "(-8)**0.5",
    "q.expand(10**6, T, C)", "torch.cat((q,) * 99)", "q.split(0)", "q.chunk(0)", "q[q]", "q['a']",
    "q[::-1]", "q[10**9]", "-" * 150 + "1", "q" + ".mT" * 40, "q" * (LONGEST + 1),
    "1_000_000_000_000", "1e999", "1j", "b'x'", "ｑ.view(1)", "q\u2028k", "q\\\nk", "\0", "q.T",
    "torch.einsum('...i->i', q)", "torch.einsum(q, q)", "torch.einsum('ab,cd,ef->abcdef', q, q, q)",
    "torch.einsum('abc,def->abcdef', x, x.expand(999, T, C))", "q.unflatten(1, (10**9, 10**9))",
    "x.view(B, T, C, 1).expand(B, T, C, 10**5)", "q.sum(dim=[[[[1]]]])", "float('nan')", "None",
    "...", "self.W_QKV()", "self.W_QKV(x, x)", "self.W_QKV(3)", "q.to('cuda')", "q.cuda()", "async",
]  # fmt: skip


@pytest.mark.parametrize("line", HOSTILE)
def test_whatever_is_not_on_the_list_is_refused_with_a_sentence(line: str, names: Names) -> None:
    if line == "1e999":  # a float like any other
        assert evaluate(line, names).value == float("inf")
        return
    with pytest.raises(LineError) as refused:
        evaluate(line, names)
    assert len(str(refused.value)) > 15
    assert "Traceback" not in str(refused.value)


def test_no_operation_changes_a_given_tensor(names: Names) -> None:
    before = {name: value.clone() for name, value in names.items() if isinstance(value, Tensor)}
    for line in ALLOWED:
        evaluate(line, names)
    for name, value in before.items():
        assert torch.equal(names[name], value), name
    assert not [name for name in METHODS if name.endswith("_")]


@pytest.mark.parametrize(
    "line",
    [
        "a @ b",  # each operand would be repeated 512 times
        "a.expand(512, 512, 1, 512).contiguous()",
        "a + b",
        "torch.einsum('aic,bid->abcd', a[:, 0], a[:, 0])",
    ],
)
def test_a_large_result_is_refused_before_it_is_made(line: str) -> None:
    a, b = torch.zeros(512, 1, 1, 512), torch.zeros(1, 512, 512, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LineError, match=r"numbers in all|multiplications"):
        evaluate(line, {"a": a, "b": b})
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 4 * MOST_NUMBERS


WORDS = st.sampled_from(
    [
        "q",
        "k",
        "x",
        "W",
        "later",
        "B",
        "T",
        "C",
        "H",
        "d_h",
        "self.H",
        "self.W_QKV",
        "self",
        "torch",
    ]
    + ["torch.cat", "torch.stack", "torch.einsum", "'bti,bsi->bts'", "'ij->ji'", "F.softmax", "os"]
    + [f".{name}" for name in sorted(METHODS)]
    + [".mT", ".T", ".shape", ".data", ".__class__", "__import__", "lambda", "for", "in", "if"]
    + [
        "(",
        ")",
        "[",
        "]",
        ",",
        ":",
        "...",
        "None",
        "True",
        "*",
        "**",
        "@",
        "+",
        "-",
        "~",
        "/",
        "//",
    ]
    + ["0", "1", "-1", "2", "3", "0.5", "10**9", "999999999", "dim=-1", "dim=", "out=", "=", "'a'"]
)
SIZES = st.integers(-2, 10**6).map(str) | st.sampled_from(["B", "T", "C", "H", "d_h"])
ARGUMENTS = st.lists(SIZES, max_size=4).map(", ".join)
TENSORS = st.recursive(
    st.sampled_from(["q", "k", "x", "W", "later"]),
    lambda inner: st.one_of(
        st.builds("{}.{}({})".format, inner, st.sampled_from(sorted(METHODS)), ARGUMENTS),
        st.builds(
            "({} {} {})".format,
            inner,
            st.sampled_from(["@", "+", "-", "*", "/", "//", "**"]),
            inner,
        ),
        st.builds("{}[{}]".format, inner, ARGUMENTS),
        st.builds("torch.cat(({}, {}), {})".format, inner, inner, SIZES),
        st.builds("torch.einsum('bti,cuj->bticuj', {}, {})".format, inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=16).map("".join), TENSORS))
def test_no_line_raises_anything_else_or_makes_too_much(line: str) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, B, T, C).unbind()
    names: Names = {"q": q, "k": k, "x": q, "W": q[0], "later": q > 0, "B": B, "T": T, "C": C}
    names = {**names, "H": H, "d_h": d_h, "self.H": H, "self.W_QKV": nn.Linear(C, C)}
    try:
        result = evaluate(line, names)
    except LineError as refused:
        words = str(refused)
    else:
        assert sum(tensor.numel() for tensor in result.tensors) <= MOST_NUMBERS
        kinds = (Tensor, int, float, bool, tuple)
        assert isinstance(result.value, kinds), type(result.value)
        return
    assert words
    assert "<function" not in words
