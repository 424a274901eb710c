"""The check of one op's results against the fp64 textbook, within derived bounds."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _library as c
from ._tensors import HostTensor, host_tensor

Attribute = Union[bool, int, float, str, Sequence[int]]


@dataclass(frozen=True)
class Verdict:
    """The result of a check; true if it passed."""

    op: str
    passed: bool
    verdict: str
    """"pass", "fail", or "not_proven" (nothing was compared)."""
    error_over_bound: float
    """The largest error of an element beyond its final rounding, relative to its bound; at most 1 if all are right."""
    judged: int
    """Elements compared, of `elements`."""
    elements: int
    bad: int
    """Judged elements outside their bound."""
    operand: str | None
    """The tensor of the worst element, and its index."""
    index: tuple[int, ...] | None
    got: float
    want: float
    """The value of the fp64 textbook."""
    bound: float
    """The largest distance from `want` of a correct result, before it is rounded to its type."""
    rule: str
    """The rule of the bound, with its numbers."""
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        if self.passed:
            return f"{self.op}: pass, {self.judged} of {self.elements} elements, {self.error_over_bound:.3g} of the bound"
        text = f"{self.op}: {self.verdict}: {self.message}"
        return text if self.operand is None else f"{text} ({self.error_over_bound:.3g} times the bound: {self.rule})"


def _attribute(name: str, value: Attribute, keep: list[Any]) -> c.Attribute:
    made = c.Attribute(name=c.encoded("attribute", name))
    if isinstance(value, bool):
        made.type, made.whole = c.BOOL, int(value)
    elif isinstance(value, str):
        made.type, made.word = c.WORD, c.encoded(name, value)
    elif isinstance(value, (list, tuple)):
        numbers = (ctypes.c_int64 * len(value))(*value)
        keep.append(numbers)
        made.type, made.count = c.LIST, len(value)
        made.list = ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64))
    elif hasattr(value, "__index__"):
        made.type, made.whole = c.WHOLE, value.__index__()
    elif hasattr(value, "__float__"):
        made.type, made.real = c.REAL, float(value)
    else:
        raise TypeError(f"attribute {name} is a {type(value).__name__}; expected a bool, number, word or list of numbers")
    return made


def _listed(given: Mapping[str, Any]) -> list[tuple[bytes, int, HostTensor]]:
    tensors = []
    for operand, value in given.items():
        encoded = c.encoded("operand", operand)
        for item, one in enumerate(value if isinstance(value, (list, tuple)) else [value]):
            try:
                tensors.append((encoded, item, host_tensor(one)))
            except (TypeError, ValueError) as error:
                raise type(error)(f"{operand}: {error}") from None
    return tensors


def check(
    op: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    *,
    accumulate: str | None = None,
    products: str = "exact",
    fast_accumulation: bool = False,
    split_k_in_output: bool = False,
    approximate_tanh: bool = False,
    sample: bool = False,
    seed: int = 0,
    threads: int = 0,
    **attributes: Attribute,
) -> Verdict:
    """Judges the `outputs` of an op for its `inputs`, tensors by operand name (a list for a list operand).

    Accepts tensors of PyTorch, NumPy, JAX, and objects with DLPack or a buffer; copies them from a GPU to the host.
    `gpubench explain OP` lists operands and attributes. For an output that updates an input ("w'"), the input must have
    the content before the call.

    accumulate: the type of sums; default f32, or f64 if an input is f64.
    products: how products read their inputs: "exact", "tf32" (rounded to tf32) or "emulated".
    sample: judge a sample of the elements, including tile edges, if judging all takes long.

    Raises ValueError for an unknown op or attribute, a missing operand, shapes or types that the op does not accept,
    and a tensor without memory.
    """
    ins, outs = _listed(inputs), _listed(outputs)
    if accumulate is None:
        accumulate = "f64" if any(one.type == "f64" for _, _, one in ins) else "f32"
    tensors = (c.Tensor * (len(ins) + len(outs)))()
    for place, (operand, item, one) in zip(tensors, ins + outs):
        one.fill(place, operand, item)
    keep: list[Any] = []
    listed = (c.Attribute * len(attributes))(*(_attribute(name, value, keep) for name, value in attributes.items()))
    call = c.Call(
        c.encoded("op", op),
        c.encoded("accumulate", accumulate),
        c.encoded("products", products),
        fast_accumulation,
        split_k_in_output,
        approximate_tanh,
        False,
        listed,
        len(attributes),
        tensors,
        len(ins),
        len(outs),
    )
    found = c.Verdict()
    text = ctypes.create_string_buffer(2048)
    options = c.CheckOptions(sample, threads, seed)
    if c.library().gpubench_check(call, options, found, text, len(text)) != c.OK:
        raise ValueError(text.value.decode(errors="replace"))
    placed = found.worst_rank >= 0
    return Verdict(
        op=op,
        passed=bool(found.passed),
        verdict=found.verdict.decode(),
        error_over_bound=found.error_over_bound,
        judged=found.judged,
        elements=found.elements,
        bad=found.bad,
        operand=found.worst_operand.decode() if placed else None,
        index=tuple(found.worst_index[: found.worst_rank]) if placed else None,
        got=found.got if placed else math.nan,
        want=found.want if placed else math.nan,
        bound=found.bound if placed else math.nan,
        rule=found.rule.decode(),
        message=found.message.decode(errors="replace"),
    )


def assert_conformant(op: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], **options: Any) -> Verdict:
    """check(), but raises AssertionError with op, element and bound if it does not pass."""
    verdict = check(op, inputs, outputs, **options)
    if not verdict:
        raise AssertionError(str(verdict))
    return verdict
