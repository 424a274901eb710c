"""libgpubench.so by ctypes: structures and functions of gpubench/implementation.h and library.h."""

from __future__ import annotations

import ctypes
from pathlib import Path

OK, DECLINED, FAILED = 0, 1, 2
BOOL, WHOLE, REAL, WORD, LIST = range(5)
CPU, CUDA = 1, 2
ABI_VERSION = 1 << 16


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Attribute(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int32),
        ("whole", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("word", ctypes.c_char_p),
        ("list", ctypes.POINTER(ctypes.c_int64)),
        ("count", ctypes.c_size_t),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("operand", ctypes.c_char_p),
        ("item", ctypes.c_size_t),
        ("type", ctypes.c_char_p),
        ("dl", DLTensor),
    ]


class Call(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_char_p),
        ("accumulate", ctypes.c_char_p),
        ("inputs", ctypes.c_char_p),
        ("fast_accumulation", ctypes.c_int32),
        ("split_k_in_output", ctypes.c_int32),
        ("approximate_tanh", ctypes.c_int32),
        ("deterministic", ctypes.c_int32),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_size_t),
        ("tensors", ctypes.POINTER(Tensor)),
        ("input_count", ctypes.c_size_t),
        ("output_count", ctypes.c_size_t),
    ]


class Plan(ctypes.Structure):
    _fields_ = [("state", ctypes.c_void_p), ("workspace_bytes", ctypes.c_size_t), ("name", ctypes.c_char * 64)]


# Output text is a void*: ctypes would pass a copy for a char*.
Offers = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Call), ctypes.c_void_p, ctypes.c_size_t)
Prepare = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(Call), ctypes.POINTER(Plan), ctypes.c_void_p, ctypes.c_size_t
)
Run = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
)
Destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Implementation(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("struct_size", ctypes.c_uint32),
        ("version", ctypes.c_char_p),
        ("offers", Offers),
        ("plan", Prepare),
        ("run", Run),
        ("destroy", Destroy),
    ]


class CheckOptions(ctypes.Structure):
    _fields_ = [("sample", ctypes.c_int32), ("threads", ctypes.c_int32), ("seed", ctypes.c_uint64)]


class Verdict(ctypes.Structure):
    _fields_ = [
        ("passed", ctypes.c_int32),
        ("verdict", ctypes.c_char * 16),
        ("error_over_bound", ctypes.c_double),
        ("judged", ctypes.c_int64),
        ("elements", ctypes.c_int64),
        ("bad", ctypes.c_int64),
        ("worst_rank", ctypes.c_int32),
        ("worst_index", ctypes.c_int64 * 16),
        ("worst_operand", ctypes.c_char * 64),
        ("got", ctypes.c_double),
        ("want", ctypes.c_double),
        ("bound", ctypes.c_double),
        ("message", ctypes.c_char * 1024),
        ("rule", ctypes.c_char * 512),
    ]


def _path() -> str:
    return str(Path(__file__).parent / "lib" / "libgpubench.so")


_loaded: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """The library, loaded on the first call."""
    global _loaded
    if _loaded is None:
        loaded = ctypes.CDLL(_path())
        loaded.gpubench_check.argtypes = [
            ctypes.POINTER(Call),
            ctypes.POINTER(CheckOptions),
            ctypes.POINTER(Verdict),
            ctypes.c_char_p,
            ctypes.c_size_t,
        ]
        loaded.gpubench_describe.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        loaded.gpubench_register.argtypes = [ctypes.c_char_p, ctypes.POINTER(Implementation)]
        loaded.gpubench_register.restype = None
        loaded.gpubench_main.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
        _loaded = loaded
    return _loaded


def encoded(what: str, name: str) -> bytes:
    """A name for C. Rejects control characters: C ends a name at a NUL, so "gemm\\0x" would be gemm."""
    if not name.isprintable():
        raise ValueError(f"{what} {ascii(name)}: a name has no control characters; remove them")
    return name.encode()


def describe(op: str) -> tuple[list[str], list[str], dict[str, object], set[str]]:
    """Inputs and outputs of an op ("bias?" is optional, "w*" a list), defaults of its attributes, and the boolean
    attributes that require an input."""
    text = ctypes.create_string_buffer(8192)
    if library().gpubench_describe(encoded("op", op), text, len(text)) != OK:
        raise ValueError(text.value.decode())
    inputs, outputs, *attributes = text.value.decode().splitlines()
    readers = {
        BOOL: lambda value: value == "true",
        WHOLE: int,
        REAL: float,
        WORD: str,
        LIST: lambda value: [int(number) for number in value.split()],
    }
    defaults, switches = {}, set()
    for line in attributes:
        name, kind, value, asks_for = line.split("\t")
        defaults[name] = readers[int(kind)](value)
        if asks_for:
            switches.add(name)
    return inputs.split(), outputs.split(), defaults, switches
