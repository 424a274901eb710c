"""Conversion of tensors from and to other frameworks, without copies of host memory."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from . import _library as c

# By DLPack's type code and bits.
_TYPES = {
    (2, 64): "f64",
    (2, 32): "f32",
    (2, 16): "f16",
    (4, 16): "bf16",
    (10, 8): "f8_e4m3",
    (12, 8): "f8_e5m2",
    (0, 32): "i32",
    (1, 8): "u8",
    (6, 8): "u8",
    (0, 64): "i64",
}
# By NumPy's dtype.name: types of ml_dtypes have no distinct type string.
_NAMES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8_e4m3",
    "float8_e5m2": "f8_e5m2",
    "int32": "i32",
    "uint8": "u8",
    "bool": "u8",
    "int64": "i64",
}
_BUFFER_FORMATS = {"d": "f64", "f": "f32", "e": "f16", "i": "i32", "B": "u8", "?": "u8", "q": "i64"}
_BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8_e4m3": 1, "f8_e5m2": 1, "i32": 4, "u8": 1, "i64": 8}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class HostTensor:
    """A tensor in host memory; `owner` keeps the memory alive. Strides are in elements."""

    def __init__(self, address: int, type: str, shape: tuple[int, ...], strides: tuple[int, ...], owner: Any):
        self.address, self.type, self.shape, self.strides, self.owner = address, type, shape, strides, owner
        self._extents = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = (ctypes.c_int64 * len(shape))(*strides)

    def fill(self, to: c.Tensor, operand: bytes, item: int) -> None:
        to.operand, to.item, to.type = operand, item, self.type.encode()
        to.dl.data = self.address
        to.dl.device = c.DLDevice(c.CPU, 0)
        to.dl.ndim = len(self.shape)
        to.dl.shape = ctypes.cast(self._extents, ctypes.POINTER(ctypes.c_int64))
        to.dl.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _of_array(array: Any) -> HostTensor:
    interface = array.__array_interface__
    name = getattr(getattr(array, "dtype", None), "name", "")
    if name not in _NAMES:
        raise TypeError(f"dtype {name or interface['typestr']}; expected one of {', '.join(_NAMES)}")
    if interface["typestr"][0] == ">":
        raise TypeError("a big-endian array; expected native byte order")
    type = _NAMES[name]
    shape = tuple(interface["shape"])
    steps = interface.get("strides")
    if steps is None:
        strides = _row_major(shape)
    elif any(step < 0 or step % _BYTES[type] for step in steps):
        return _of_array(array.copy())
    else:
        strides = tuple(step // _BYTES[type] for step in steps)
    return HostTensor(interface["data"][0], type, shape, strides, array)


def _of_dlpack(tensor: Any) -> HostTensor:
    capsule = tensor.__dlpack__()
    dl = c.DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    if dl.device.device_type != c.CPU:
        raise TypeError("a tensor on a device; copy it to the host")
    type = _TYPES.get((dl.dtype.code, dl.dtype.bits))
    if type is None or dl.dtype.lanes != 1:
        raise TypeError(f"DLPack type {dl.dtype.code} of {dl.dtype.bits} bits; expected {', '.join(_BYTES)}")
    shape = tuple(dl.shape[i] for i in range(dl.ndim))
    if not dl.data and 0 not in shape:
        raise ValueError("a tensor without memory")
    strides = tuple(dl.strides[i] for i in range(dl.ndim)) if dl.strides else _row_major(shape)
    # The capsule is not consumed, so it deletes its tensor when it is destroyed.
    return HostTensor((dl.data or 0) + dl.byte_offset, type, shape, strides, (tensor, capsule))


def _of_buffer(tensor: Any) -> HostTensor:
    view = memoryview(tensor)
    if view.format not in _BUFFER_FORMATS or not view.c_contiguous:
        raise TypeError(f"a buffer of format '{view.format}'; expected a contiguous one of {', '.join(_BUFFER_FORMATS)}")
    shape = tuple(view.shape or ())
    if view.readonly:
        copy = bytearray(view.tobytes())
        address = ctypes.addressof((ctypes.c_char * len(copy)).from_buffer(copy))
        return HostTensor(address, _BUFFER_FORMATS[view.format], shape, _row_major(shape), copy)
    held = (ctypes.c_char * view.nbytes).from_buffer(view)
    return HostTensor(ctypes.addressof(held), _BUFFER_FORMATS[view.format], shape, _row_major(shape), held)


def _is_torch(tensor: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(tensor, torch.Tensor)


def _of_torch(tensor: Any) -> HostTensor:
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided:
        raise TypeError(f"a tensor of layout {tensor.layout}; expected a dense one")
    try:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()  # PyTorch 1
        has_memory = tensor.device.type != "meta" and (storage.data_ptr() != 0 or tensor.numel() == 0)
    except (NotImplementedError, RuntimeError):
        has_memory = False
    if not has_memory:
        raise ValueError("a tensor without memory (FakeTensor, meta device, or freed storage)")
    last = tensor.storage_offset() + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    if tensor.numel() and (last + 1) * tensor.element_size() > storage.nbytes():
        raise ValueError(f"a tensor that reaches beyond its storage of {storage.nbytes()} bytes")
    tensor = tensor.detach().cpu()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    # Older versions of DLPack have no bool.
    return _of_dlpack(tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor)


def _narrowed(tensor: Any) -> Any:
    """64-bit integers, such as labels and tokens of frameworks, as the 32 bits that gpubench's ops read."""
    narrow = tensor.int() if _is_torch(tensor) else tensor.astype("int32")
    if not bool((narrow == tensor).all()):
        raise ValueError("64-bit integers that do not fit 32 bits")
    return narrow


def host_tensor(tensor: Any) -> HostTensor:
    """From PyTorch (copied from a GPU), NumPy, JAX, and objects with __array_interface__, __dlpack__ or a buffer."""
    if _is_torch(tensor):
        taken = _of_torch(tensor)
    elif hasattr(tensor, "__array_interface__"):
        taken = _of_array(tensor)
    elif hasattr(tensor, "__dlpack__"):
        if tensor.__dlpack_device__()[0] != c.CPU and hasattr(tensor, "__array__"):
            return host_tensor(tensor.__array__())
        taken = _of_dlpack(tensor)
    else:
        try:
            taken = _of_buffer(tensor)
        except TypeError as error:
            raise TypeError(f"{type(tensor).__name__} is not a readable tensor ({error})") from None
    if taken.type == "i64":
        return host_tensor(_narrowed(tensor))
    return taken


# --- export


class _ManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_ManagedTensor._fields_ = [("dl", c.DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]

_exported: dict[int, _ManagedTensor] = {}


@_Deleter
def _delete(address: int) -> None:
    _exported.pop(address, None)


class OwnTensor:
    """A tensor of a call, exported by DLPack, and by NumPy's interface for host memory."""

    def __init__(self, tensor: c.Tensor):
        self.name = tensor.operand.decode()
        self.type = tensor.type.decode()
        self.dl = tensor.dl
        self.shape = tuple(tensor.dl.shape[i] for i in range(tensor.dl.ndim))
        self.strides = tuple(tensor.dl.strides[i] for i in range(tensor.dl.ndim))

    @property
    def on_host(self) -> bool:
        return self.dl.device.device_type == c.CPU

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.dl.device.device_type, self.dl.device.device_id

    def __dlpack__(self, **_: Any) -> Any:
        """The capsule. Needs no synchronization: the work is enqueued on gpubench's stream."""
        managed = _ManagedTensor(self.dl, None, _delete)
        address = ctypes.addressof(managed)
        _exported[address] = managed
        return _new_capsule(address, b"dltensor", None)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not self.on_host:
            raise TypeError(f"{self.name} is on a device")
        letter = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i32": "<i4"}.get(self.type)
        size = _BYTES[self.type]
        return {
            "version": 3,
            "shape": self.shape,
            "strides": tuple(stride * size for stride in self.strides),
            "typestr": letter or f"<u{size}",
            "data": (self.dl.data, False),
        }


def as_numpy(tensor: OwnTensor) -> Any:
    import numpy

    array = numpy.asarray(tensor)
    narrow = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}.get(tensor.type)
    if narrow is None:
        return array
    import ml_dtypes

    return array.view(getattr(ml_dtypes, narrow))


def as_torch(tensor: OwnTensor) -> Any:
    import torch

    return torch.from_dlpack(tensor)


def as_jax(tensor: OwnTensor) -> Any:
    import jax

    return jax.dlpack.from_dlpack(tensor)


def as_dlpack(tensor: OwnTensor) -> OwnTensor:
    return tensor
