"""Lines of tensor code that a user types, evaluated on given tensors without `eval`.

A line is parsed with `ast`, and this module walks the tree: names of the given tensors and sizes,
numbers, tuples, arithmetic, slices, and a short list of tensor operations that change nothing in
place. Whatever else a line holds is refused, and so are results that are too large.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mha_viz.errors import LineError
from mha_viz.lessons.bounded import (
    MOST_NUMBERS,
    Bounded,
    Operation,
    check_pieces,
    check_products,
    first_line,
    tensors_of,
)

LONGEST = 200  # characters of a line
DEEPEST = 24  # expressions within one another
LARGEST_INTEGER = 10**9

LAYOUT = {
    "view", "reshape", "transpose", "permute", "contiguous", "split", "chunk", "unsqueeze",
    "squeeze", "flatten", "unflatten", "expand", "swapaxes", "movedim", "clone",
}  # fmt: skip
METHODS = LAYOUT | {"softmax", "masked_fill", "matmul", "exp", "sum", "amax", "tril", "triu"}
FACTS = {"size", "stride", "dim", "numel", "is_contiguous"}
ATTRIBUTES = ("shape", "mT", "T")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch.cat": torch.cat,
    "torch.stack": torch.stack,
    "torch.matmul": torch.matmul,
    "torch.softmax": torch.softmax,
    "torch.exp": torch.exp,
    "torch.transpose": torch.transpose,
    "F.softmax": torch.softmax,
}
KEYWORDS = {
    "dim", "dim0", "dim1", "dims", "start_dim", "end_dim", "keepdim", "diagonal", "split_size",
    "chunks", "mask", "value",
}  # fmt: skip
BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Pow: ("**", operator.pow),
    ast.MatMult: ("@", operator.matmul),
}
UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("-", operator.neg),
    ast.UAdd: ("+", operator.pos),
    ast.Invert: ("~", operator.invert),
}
KINDS = {
    "Lambda": "a lambda", "ListComp": "a comprehension", "SetComp": "a comprehension",
    "DictComp": "a comprehension", "GeneratorExp": "a comprehension", "Await": "await",
    "Yield": "yield", "YieldFrom": "yield", "NamedExpr": "an assignment", "JoinedStr": "a string",
    "Dict": "a dictionary", "Set": "a set", "Compare": "a comparison", "BoolOp": "and, or",
    "IfExp": "a condition", "Starred": "a star",
}  # fmt: skip
INFINITY = {"float('inf')": math.inf, "float('-inf')": -math.inf}
SHORT = 12  # characters of arguments that a label holds

Names = Mapping[str, Tensor | float | nn.Module]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a line gave: a tensor, several, or a number or sizes."""

    value: Any
    operations: tuple[Operation, ...]  # in the order of computation
    only_layout: bool  # whether no number was computed

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the value."""
        return tensors_of(self.value)


def evaluate(line: str, names: Names, *, most_numbers: int = MOST_NUMBERS) -> Result:
    """The value of a line of code, such as `q.view(B, T, H, d_h)`.

    `names` holds everything that the line may name; a key may have dots, as `self.d_h`. A module
    (`nn.Linear`, `nn.Dropout` in evaluation) can be called. A line `name = …` or `return …` stands
    for the expression in it. All results together have at most `most_numbers` numbers, or four
    times as many as the largest given tensor.

    Raises LineError, in torch's own words where torch refused.
    """
    largest = max((v.numel() for v in names.values() if isinstance(v, Tensor)), default=0)
    walk = _Walk(names, max(most_numbers, 4 * largest))
    with torch.inference_mode():
        value = walk.value(_parsed(line))
    if isinstance(value, (slice, str)) or value is None or value is ...:
        raise LineError("This line gives neither a tensor nor a number.")
    return Result(value, tuple(walk.operations), walk.only_layout)


def _parsed(line: str) -> ast.expr:
    """The expression of a line."""
    line = line.strip()
    if not line:
        raise LineError("The line is empty. Type an expression, for example q.shape.")
    if len(line) > LONGEST:
        raise LineError(f"The line has {len(line):,} characters; at most {LONGEST} are read.")
    odd = next((c for c in line if not " " <= c <= "~" or c == "\\"), None)
    if odd is not None:
        raise LineError(f"The character {odd!a} cannot be used; type plain letters and signs.")
    try:
        statements = ast.parse(line).body
    except SyntaxError as error:
        raise LineError(f"Python cannot read this line: {error.msg}.") from None
    except (ValueError, RecursionError, MemoryError):
        raise LineError("Python cannot read this line; make it simpler.") from None
    if len(statements) != 1:
        raise LineError("Type one expression, without semicolons.")
    match statements[0]:
        case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
            return value
        case ast.Assign(targets=[ast.Name() | ast.Tuple()], value=value):
            return value
    raise LineError("Type an expression; statements are not evaluated here.")


class _Walk(Bounded):
    """One evaluation: the values of a tree's nodes, within the limits."""

    def __init__(self, names: Names, most_numbers: int) -> None:
        super().__init__(most_numbers)
        self.names = names
        self.only_layout = True
        self._depth = 0

    def value(self, node: ast.expr) -> Any:
        """The value of a node. Raises LineError for a kind of node that is not evaluated."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise LineError(f"The line nests more than {DEEPEST} expressions; make it simpler.")
        found = self._value(node)
        self._depth -= 1
        return found

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=constant):
                return _constant(constant)
            case ast.Name() | ast.Attribute() if (name := ast.unparse(node)) in self.names:
                return self._named(name)
            case ast.Name(id=name):
                raise LineError(f"There is no {name} here. Names: {', '.join(self.names)}.")
            case ast.Attribute():
                return self._attribute(node)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.value(part) for part in parts)
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(part and self._integer(part) for part in (lower, upper, step)))
            case ast.Subscript(value=inner, slice=index):
                return self._subscript(inner, index)
            case ast.UnaryOp(op=op, operand=inner):
                return self._unary(op, inner)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(left, op, right)
            case ast.Call():
                return self._call(node)
        kind = KINDS.get(type(node).__name__, "this kind of expression")
        raise LineError(f"A line cannot hold {kind}; see the list of operations.")

    def _named(self, name: str) -> Tensor | float:
        given = self.names[name]
        if isinstance(given, nn.Module):
            raise LineError(f"{name} is a module: call it, for example {name}(x).")
        if isinstance(given, Tensor):
            self.operations.append(Operation(name, (given,)))
        return given

    def _attribute(self, node: ast.Attribute) -> Any:
        name = ast.unparse(node)
        if name == "torch.inf":
            return math.inf
        if node.attr not in ATTRIBUTES or name in FUNCTIONS or _root(node) in ("torch", "F"):
            raise LineError(_unknown(name))
        inner = self.value(node.value)
        if not isinstance(inner, Tensor):
            raise LineError(f"Only a tensor has .{node.attr}.")
        if node.attr == "shape":
            return tuple(inner.shape)
        if node.attr == "T" and inner.dim() != 2:
            raise LineError(f".T is for matrices; this tensor has {inner.dim()} axes: use .mT.")
        return self.run(f".{node.attr}", operator.attrgetter(node.attr), inner)

    def _subscript(self, inner: ast.expr, index: ast.expr) -> Any:
        value, at = self.value(inner), self.value(index)
        if not isinstance(value, (Tensor, tuple)):
            raise LineError("Only tensors and tuples can be indexed.")
        parts = at if isinstance(at, tuple) else (at,)
        if not all(isinstance(part, (int, slice)) or part in (None, ...) for part in parts):
            raise LineError("An index is a whole number, a slice, None or ...; nothing else.")
        label = f"[{_short(index)}]"
        if isinstance(value, tuple) and tensors_of(value) == ():
            return _run_python(operator.getitem, value, at)
        return self.run(label, operator.getitem, value, at)

    def _unary(self, op: ast.unaryop, inner: ast.expr) -> Any:
        if type(op) not in UNARY:
            raise LineError("A line cannot hold `not`.")
        sign, function = UNARY[type(op)]
        value = self._operand(inner, sign)
        if isinstance(value, Tensor):
            self.only_layout = False
            return self.run(sign, function, value)
        return _run_python(function, value)

    def _binary(self, left: ast.expr, op: ast.operator, right: ast.expr) -> Any:
        if type(op) not in BINARY:
            raise LineError("Of the operators, +, -, *, /, //, ** and @ are evaluated.")
        sign, function = BINARY[type(op)]
        a, b = self._operand(left, sign), self._operand(right, sign)
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            self.only_layout = False
            return self.run(f"{sign} {_short(right)}", function, a, b)
        if sign == "**" and (abs(b) > 8 or abs(a) > LARGEST_INTEGER):
            raise LineError("That power is too large; powers of numbers go up to 8.")
        return _run_python(function, a, b)

    def _operand(self, node: ast.expr, sign: str) -> Any:
        value = self.value(node)
        if not isinstance(value, (Tensor, int, float)):
            raise LineError(f"{sign} takes tensors and numbers; {_short(node)} is neither.")
        return value

    def _integer(self, node: ast.expr) -> int | None:
        value = self.value(node)
        if value is not None and not isinstance(value, int):
            raise LineError(f"A slice takes whole numbers; {_short(node)} is not one.")
        return value

    def _call(self, node: ast.Call) -> Any:
        words = {str(word.arg): word.value for word in node.keywords}
        if refused := next((word for word in words if word not in KEYWORDS), None):
            raise LineError(f"The argument {refused} cannot be given here.")
        called = ast.unparse(node.func)
        if called == "float" and ast.unparse(node) in INFINITY:
            return INFINITY[ast.unparse(node)]
        if called == "torch.einsum":
            return self._einsum(node.args)
        label, function, first = self._function(called, node.func)
        given = [*first, *(self.value(argument) for argument in node.args)]
        options = {word: self.value(value) for word, value in words.items()}
        if isinstance(module := self.names.get(called), nn.Module) and (
            len(given) != 1 or options or not isinstance(given[0], Tensor)
        ):
            raise LineError(f"{called} takes one tensor.")
        if isinstance(module, nn.Linear):
            function, given = F.linear, [*given, module.weight, module.bias]
        if label in (".split", ".chunk"):
            check_pieces(label, given, options)
        shown = ", ".join(map(ast.unparse, [*node.args, *node.keywords]))
        label += f"({shown if len(shown) <= SHORT else '…'})"
        return self.run(label, function, *given, **options)

    def _function(self, called: str, node: ast.expr) -> tuple[str, Callable[..., Any], list[Any]]:
        """The label and the function of a call, and the tensor whose method it is."""
        if isinstance(self.names.get(called), nn.Module):
            self.only_layout = False
            return called, lambda x: x, []  # dropout in evaluation; nn.Linear has weights
        if called in FUNCTIONS:
            self.only_layout &= called == "torch.transpose"
            return called, FUNCTIONS[called], []
        if not isinstance(node, ast.Attribute) or _root(node) in ("torch", "F"):
            raise LineError(_unknown(called))
        if node.attr not in METHODS | FACTS:
            raise LineError(_unknown(f".{node.attr}"))
        tensor = self.value(node.value)
        if not isinstance(tensor, Tensor):
            raise LineError(f"Only a tensor has .{node.attr}(…).")
        self.only_layout &= node.attr in LAYOUT | FACTS
        return f".{node.attr}", getattr(Tensor, node.attr), [tensor]

    def _einsum(self, arguments: Sequence[ast.expr]) -> Tensor:
        """An einsum of one or two tensors, whose equation is read before torch sees it."""
        match arguments:
            case [ast.Constant(value=str() as equation), *operands] if 0 < len(operands) < 3:
                tensors = [self.value(operand) for operand in operands]
            case _:
                raise LineError("torch.einsum takes an equation and one or two tensors here.")
        if not all(isinstance(tensor, Tensor) for tensor in tensors):
            raise LineError("torch.einsum takes an equation and one or two tensors here.")
        inputs, arrow, output = equation.replace(" ", "").partition("->")
        letters = inputs.replace(",", "") + output
        if not arrow or not letters.isalpha():
            raise LineError('Write the equation with a letter for each axis, as in "bti,bsi->bts".')
        sizes: dict[str, int] = {}
        for axes, tensor in zip(inputs.split(","), tensors, strict=False):
            for letter, size in zip(axes, tensor.shape, strict=False):
                sizes[letter] = max(size, sizes.get(letter, 1))
        check_products(math.prod(sizes.values()))
        for axes in [*inputs.split(","), output]:  # torch repeats axes of size 1
            self.count(math.prod(sizes.get(letter, 1) for letter in axes))
        self.only_layout = False
        found: Tensor = self.run("einsum(…)", partial(torch.einsum, equation), *tensors)
        return found


def _constant(value: object) -> Any:
    if isinstance(value, int) and value > LARGEST_INTEGER:
        raise LineError(f"Whole numbers go up to {LARGEST_INTEGER:,} here.")
    if value is None or value is ... or isinstance(value, (int, float)):
        return value
    raise LineError(f"{ascii(value)[:40]} cannot be used here; only numbers can.")


def _run_python(function: Callable[..., Any], *args: Any) -> Any:
    """An operation on sizes."""
    try:
        value = function(*args)
    except (TypeError, ValueError, ArithmeticError, IndexError) as error:
        raise LineError(f"Python: {first_line(error)}") from None
    if isinstance(value, complex):
        raise LineError("A root of a negative number is not a size.")
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise LineError(f"Whole numbers go up to {LARGEST_INTEGER:,} here.")
    return value


def _root(node: ast.expr) -> str:
    """What a dotted name begins with; empty for other expressions."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _short(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= SHORT else "…"


def _unknown(name: str) -> str:
    return f"{name} is not evaluated here. Tensors have {', '.join(sorted(METHODS))}."
