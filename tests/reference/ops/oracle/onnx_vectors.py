"""ONNX's node vectors: a node with attributes, its inputs and outputs. Reads only the parts of protobuf that they use.

https://github.com/onnx/onnx/blob/v1.20.0/onnx/onnx.proto; https://protobuf.dev/programming-guides/encoding/
"""
import functools
import struct

import numpy


def fields(data):
    """(number, value) of a message: an integer, or the bytes of a fixed or length-delimited field."""
    at = 0

    def varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << 64) if value >= 1 << 63 else value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, data[at:at + size]
        at += size


def collect(data):
    found = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def integers(values):
    """Values of a repeated field, packed or not."""
    numbers = []
    for value in values:
        if isinstance(value, int):
            numbers.append(value)
            continue
        number, shift = 0, 0
        for byte in value:
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                numbers.append(number - (1 << 64) if number >= 1 << 63 else number)
                number, shift = 0, 0
    return numbers


def f8(bits, exponent_bits, mantissa_bits):
    """E4M3FN and E5M2 as fp64. Open Compute Project, OFP8 (2023)."""
    bits = bits.astype(numpy.int64)
    exponent, mantissa = bits >> mantissa_bits & (1 << exponent_bits) - 1, bits & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    value = numpy.where(exponent == 0, mantissa * 2.0 ** (1 - bias - mantissa_bits),
                        (mantissa + (1 << mantissa_bits)) * 2.0 ** (exponent - bias - mantissa_bits))
    magnitude = bits & 127
    if exponent_bits == 5:
        value = numpy.where(magnitude == 0x7C, numpy.inf, numpy.where(magnitude > 0x7C, numpy.nan, value))
    else:
        value = numpy.where(magnitude == 0x7F, numpy.nan, value)
    return numpy.where(bits >> 7, -value, value)


class Tensor:
    """`dtype` by gpubench's name; `values` as fp64."""
    types = {1: ("f32", "<f4"), 2: ("u8", "u1"), 6: ("i32", "<i4"), 7: ("i64", "<i8"), 9: ("bool", "u1"), 10: ("f16", "<f2"), 11: ("f64", "<f8"),
             16: ("bf16", "<u2"), 17: ("f8_e4m3", "u1"), 19: ("f8_e5m2", "u1"), 23: ("f4_e2m1", "u1")}
    e2m1 = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])

    def __init__(self, data):
        message = collect(data)
        number = message[2][0]
        self.dtype, stored = self.types.get(number, (f"type {number}", None))
        shape = integers(message.get(1, []))
        if stored is None:
            self.values = None
            return
        if 9 in message:
            values = numpy.frombuffer(message[9][0], stored)
        elif 4 in message:
            values = numpy.frombuffer(b"".join(message[4]), "<f4")
        else:
            values = numpy.array(integers(message.get(5, message.get(7, []))), numpy.int64)
        if self.dtype == "bf16":
            values = (values.astype("<u4") << 16).view("<f4")
        elif self.dtype == "f4_e2m1":  # two in a byte, the first one low
            values = self.e2m1[numpy.stack([values & 15, values >> 4], -1).flatten()[:int(numpy.prod(shape))]]
        elif self.dtype.startswith("f8"):
            values = f8(values, *((4, 3) if self.dtype == "f8_e4m3" else (5, 2)))
        self.values = values.astype(numpy.float64).reshape(shape)


class Vector:
    """A node (`op`, `attributes`) with its inputs and outputs in order; None for omitted ones."""

    def __init__(self, folder):
        graph = collect(collect((folder / "model.onnx").read_bytes())[7][0])
        nodes = [collect(node) for node in graph[1]]
        self.name, self.nodes, node = folder.name.removeprefix("test_"), len(nodes), nodes[0]
        self.op = node[4][0].decode()
        self.attributes = dict(self.attribute(collect(one)) for one in node.get(5, []))
        self.node, self.data = node, folder / "test_data_set_0"

    @functools.cached_property
    def inputs(self):
        return self.tensors("input", self.node.get(1, []))

    @functools.cached_property
    def outputs(self):
        return self.tensors("output", self.node[2])

    @staticmethod
    def attribute(message):
        name = message[1][0].decode()
        if 2 in message:
            return name, struct.unpack("<f", message[2][0])[0]
        if 4 in message:
            return name, message[4][0].decode()
        return name, message[3][0] if 3 in message else integers(message.get(8, []))

    def tensors(self, what, names):
        """In the order of the node; files number only those with a name."""
        given = iter(range(len(names)))
        return [Tensor((self.data / f"{what}_{next(given)}.pb").read_bytes()) if name else None for name in names]
