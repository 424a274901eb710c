"""Python functions as an implementation under test: the function table of gpubench/implementation.h, by ctypes."""

from __future__ import annotations

import ctypes
import inspect
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _library as c
from ._tensors import OwnTensor, as_dlpack, as_jax, as_numpy, as_torch

_FLOATS = ("f4_e2m1", "f8_e4m3", "f8_e5m2", "bf16", "f16", "f32", "f64")  # by width, the narrowest first
_TAKEN_AS = {"torch": as_torch, "numpy": as_numpy, "jax": as_jax, "dlpack": as_dlpack}
_OWN_NAMES = ("out", "stream")
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Call:
    """A call of an op; the argument of `when`."""

    op: str
    attributes: dict[str, Any]
    types: dict[str, str]
    """By operand, inputs and outputs."""
    shapes: dict[str, tuple[int, ...]]
    accumulate: str
    products: str
    """How products may read their inputs: "exact", "tf32", "emulated"."""
    deterministic: bool
    on_host: bool

    @property
    def type(self) -> str:
        """The narrowest floating-point type of its tensors; without one, the type of the first tensor."""
        floats = [type for type in self.types.values() if type in _FLOATS]
        return min(floats, key=_FLOATS.index) if floats else next(iter(self.types.values()), "")


class Outputs(dict):
    """The outputs of a call by operand name, as items, and as attributes if the name is an identifier."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Offer:
    """A decorated function and the calls it takes."""

    def __init__(self, function: Callable[..., Any], op: str, tensors: str, types: Sequence[str], when: Any):
        self.function, self.op, self.tensors, self.types, self.when = function, op, tensors, tuple(types), when
        inputs, outputs, self.defaults, self.switches = c.describe(op)
        self.optional = {operand.rstrip("?*") for operand in inputs if operand.endswith("?")}
        self.lists = {operand.rstrip("?*") for operand in inputs + outputs if "*" in operand}
        operands = {operand.rstrip("?*") for operand in inputs}
        parameters = inspect.signature(function).parameters.values()
        self.takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
        self.parameters = {one.name: one for one in parameters if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
        unknown = [
            one.name
            for one in self.parameters.values()
            if one.name not in operands
            and one.name not in self.defaults
            and one.name not in _OWN_NAMES
            and one.default is one.empty
        ]
        if unknown:
            known = sorted(operands) + sorted(self.defaults) + list(_OWN_NAMES)
            raise TypeError(f"{function.__name__}: {op} has no {', '.join(unknown)}; it has {', '.join(known)}")
        self.copies = "out" not in self.parameters

    @property
    def name(self) -> str:
        return self.function.__name__ + ("+copy" if self.copies else "")

    def declines(self, call: Call) -> str:
        """The reason for declining the call; empty: takes it."""
        if call.type not in self.types:
            return f"{self.function.__name__} takes {', '.join(self.types)}, not {call.type}"
        if not call.on_host and self.tensors in ("numpy", "jax"):
            return f"{self.function.__name__} takes {self.tensors} tensors, which cannot be enqueued on a GPU's stream"
        if self.tensors == "numpy" and call.type in ("bf16", "f8_e4m3", "f8_e5m2"):
            try:
                import ml_dtypes  # noqa: F401
            except ImportError:
                return f"NumPy has no {call.type} without the package ml_dtypes"
        if not self.takes_all:
            for operand in self.optional & call.types.keys():
                if operand not in self.parameters:
                    return f"{self.function.__name__} has no parameter '{operand}', which this call has"
            for name, value in call.attributes.items():
                if name not in self.parameters and name not in self.switches and value != self.defaults.get(name):
                    return f"{self.function.__name__} has no parameter '{name}', which is {value!r} here"
        if self.when is not None:
            said = self.when(call)
            if isinstance(said, str):
                return said
            if not said:
                return f"{self.function.__name__} declines this call by its `when`"
        return ""


_offers: list[Offer] = []


def implements(
    op: str,
    *,
    tensors: str = "torch",
    types: Sequence[str] = ("f32", "bf16"),
    when: Callable[[Call], bool | str] | None = None,
) -> Callable[[Function], Function]:
    """Offers the decorated function as an implementation of an op, in a file for `gpubench --impl FILE.py`.

    Parameters are named after the op's inputs and attributes; `gpubench explain OP` lists them. A list operand is a
    list, a missing optional operand is None. The function declines a call with a non-default attribute that it does not
    name. It writes its results to the parameter `out` (outputs by name). Without `out`, it returns a tensor, or a tuple
    in the order of the outputs; the measured time includes their copy, and the kernel's name ends in "+copy". A
    parameter `stream` is the CUDA stream to use; for PyTorch functions it is the current stream.

    tensors: type of the arguments: "torch", "numpy", "jax", or "dlpack" (objects with __dlpack__).
    types: accepted calls, by their narrowest floating-point type.
    when: further condition on a call; false or a reason declines it.
    """
    if tensors not in _TAKEN_AS:
        raise ValueError(f"tensors='{tensors}'; expected one of {', '.join(_TAKEN_AS)}")

    def decorate(function: Function) -> Function:
        _offers.append(Offer(function, op, tensors, types, when))
        return function

    return decorate


# --- calls


def _attributes_of(call: c.Call) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for i in range(call.attribute_count):
        one = call.attributes[i]
        values[one.name.decode()] = {
            c.BOOL: lambda one: bool(one.whole),
            c.WHOLE: lambda one: one.whole,
            c.REAL: lambda one: one.real,
            c.WORD: lambda one: one.word.decode(),
            c.LIST: lambda one: [one.list[j] for j in range(one.count)],
        }[one.type](one)
    return values


def _described(call: c.Call) -> Call:
    tensors = [call.tensors[i] for i in range(call.input_count + call.output_count)]
    return Call(
        op=call.op.decode(),
        attributes=_attributes_of(call),
        types={one.operand.decode(): one.type.decode() for one in reversed(tensors)},
        shapes={one.operand.decode(): tuple(one.dl.shape[: one.dl.ndim]) for one in reversed(tensors)},
        accumulate=call.accumulate.decode(),
        products=call.inputs.decode(),
        deterministic=bool(call.deterministic),
        on_host=all(one.dl.device.device_type == c.CPU for one in tensors),
    )


def _by_operand(offer: Offer, tensors: list[OwnTensor]) -> dict[str, Any]:
    named: dict[str, Any] = {}
    take = _TAKEN_AS[offer.tensors]
    for tensor in tensors:
        if tensor.name in offer.lists:
            named.setdefault(tensor.name, []).append(take(tensor))
        else:
            named[tensor.name] = take(tensor)
    return named


def _copy(offer: Offer, results: Any, outputs: list[tuple[str, Any]]) -> None:
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    if len(results) != len(outputs):
        names = ", ".join(name for name, _ in outputs)
        raise TypeError(f"{offer.function.__name__} returned {len(results)} tensors; expected {len(outputs)}: {names}")
    for (name, output), result in zip(outputs, results):
        if tuple(result.shape) != tuple(output.shape):
            raise TypeError(f"{offer.function.__name__} returned {name} of shape {tuple(result.shape)}; expected {tuple(output.shape)}")
        if offer.tensors == "torch":
            output.copy_(result)
        else:
            import numpy

            numpy.copyto(output, numpy.asarray(result), casting="same_kind")


def _bound(offer: Offer, call: c.Call, stream: int | None) -> Callable[[], None]:
    """The function with its arguments prepared, so that each run only calls it."""
    own = [OwnTensor(call.tensors[i]) for i in range(call.input_count + call.output_count)]
    attributes = {name: value for name, value in _attributes_of(call).items() if name not in offer.optional}  # "bias"
    arguments = {**attributes, **_by_operand(offer, own[: call.input_count])}
    made = own[call.input_count :]
    for name, parameter in offer.parameters.items():
        if name not in arguments and name in offer.optional and parameter.default is parameter.empty:
            arguments[name] = None
    if not offer.takes_all:
        arguments = {name: value for name, value in arguments.items() if name in offer.parameters}
    if "stream" in offer.parameters:
        arguments["stream"] = stream
    function = offer.function
    if not offer.copies:
        arguments["out"] = Outputs(_by_operand(offer, made))

        def work() -> None:
            function(**arguments)

    else:
        # JAX arrays are immutable: outputs are NumPy views of the memory.
        take = as_numpy if offer.tensors in ("jax", "dlpack") else _TAKEN_AS[offer.tensors]
        outputs = [(one.name, take(one)) for one in made]

        def work() -> None:
            _copy(offer, function(**arguments), outputs)

    if offer.tensors != "torch" or not stream:
        return work
    import torch

    def on_stream() -> None:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            work()

    return on_stream


# --- the table


def _write(text: int, size: int, said: str) -> None:
    encoded = said.encode()[: size - 1] + b"\0"
    ctypes.memmove(text, encoded, len(encoded))


def _told(error: BaseException, file: str) -> str:
    """ "TypeError: ... (my_kernels.py:12)": the innermost line of the file under test in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if one.filename == file] or frames
    place = f" ({os.path.basename(own[-1].filename)}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


class Table:
    """The C function table of one file. Must outlive the run."""

    def __init__(self, file: str, offers: Sequence[Offer], version: str = "", broken: str = ""):
        """broken: the error of the import; every call then fails with it."""
        self.file, self.broken = file, broken
        self.offers: dict[str, list[Offer]] = {}
        for offer in offers:
            self.offers.setdefault(offer.op, []).append(offer)
        self.plans: dict[int, Offer] = {}
        self.last = 0
        # By plan and address of the call: calls with the same tensors have the same address.
        self.calls: dict[int, dict[int, Callable[[], None]]] = {}
        self.version = version.encode()
        self.table = c.Implementation(
            c.ABI_VERSION,
            ctypes.sizeof(c.Implementation),
            self.version or None,
            c.Offers(self.offered),
            c.Prepare(self.prepare),
            c.Run(self.run),
            c.Destroy(self.destroy),
        )

    def choose(self, call: c.Call) -> tuple[Offer | None, str]:
        offers = self.offers.get(call.op.decode())
        if not offers:
            return None, f"no function for {call.op.decode()}"
        described = _described(call)
        reasons = []
        for offer in offers:
            reason = offer.declines(described)
            if not reason:
                return offer, ""
            reasons.append(reason)
        return None, "; ".join(reasons)

    def offered(self, call: Any, text: int, size: int) -> int:
        try:
            if self.broken:
                _write(text, size, self.broken)
                return c.FAILED
            offer, reason = self.choose(call.contents)
            if offer is not None:
                return c.OK
            _write(text, size, reason)
            return c.DECLINED
        except Exception as error:
            _write(text, size, _told(error, self.file))
            return c.FAILED

    def prepare(self, call: Any, plan: Any, text: int, size: int) -> int:
        try:
            offer, reason = self.choose(call.contents)
            if offer is None:
                _write(text, size, reason)
                return c.FAILED
            self.last += 1
            self.plans[self.last] = offer
            self.calls[self.last] = {}
            plan.contents.state = self.last
            plan.contents.name = offer.name.encode()[:63]
            return c.OK
        except Exception as error:
            _write(text, size, _told(error, self.file))
            return c.FAILED

    def run(self, state: int, call: int, workspace: int, stream: int | None, text: int, size: int) -> int:
        try:
            calls = self.calls[state]
            work = calls.get(call)
            if work is None:
                work = calls[call] = _bound(self.plans[state], c.Call.from_address(call), stream)
            work()
            return c.OK
        except Exception as error:
            _write(text, size, _told(error, self.file))
            return c.FAILED

    def destroy(self, state: int) -> None:
        self.calls.pop(state, None)
        self.plans.pop(state, None)
