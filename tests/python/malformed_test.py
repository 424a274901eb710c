"""gpubench.check() raises a ValueError with the reason for invalid calls: malformed_test.py [TEST ...]"""

import array
import math
import unittest

import gpubench

try:
    import torch
except ImportError:
    torch = None


def buffer(code, values, shape):
    flat = array.array(code, values)
    return memoryview(flat).cast("B").cast(code, shape=list(shape))


def f(*shape):
    """f32, all 0.5."""
    return buffer("f", [0.5] * math.prod(shape), shape)


def d(*shape):
    return buffer("d", [0.5] * math.prod(shape), shape)


def i(*shape):
    return buffer("i", [0] * math.prod(shape), shape)


def u(*shape):
    return buffer("B", [0] * math.prod(shape), shape)


class Nowhere:
    """An f32 array at address 0."""

    def __init__(self, *shape):
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": "<f4", "data": (0, False)}
        self.dtype = type("dtype", (), {"name": "float32"})


NORM = {"x": f(2, 8), "gamma": f(8), "beta": f(8)}
NORMED = {"y": f(2, 8), "mean": f(2), "rstd": f(2)}
ATTENTION = {"q": f(1, 3, 2, 4), "k": f(1, 3, 2, 4), "v": f(1, 3, 2, 4)}
ATTENDED = {"o": f(1, 3, 2, 4), "lse": f(1, 2, 3)}
ADAMW = {"lr": f(1), "step": i(1), "w": [f(2, 3)], "g": [f(2, 3)], "m": [f(2, 3)], "v": [f(2, 3)]}
ADAMWED = {"w'": [f(2, 3)], "m'": [f(2, 3)], "v'": [f(2, 3)]}
CONV = {"x": f(1, 5, 5, 2), "filter": f(4, 3, 3, 2)}
CONV_DX = {"dy": f(1, 3, 3, 4), "filter": f(4, 3, 3, 2)}
POOL = {"window_h": 3, "window_w": 3}
POOL_DX = {"dy": f(1, 2, 2, 2), "index": u(1, 2, 2, 1)}
ENTROPY = {"logits": f(2, 5), "labels": i(2)}
LOSS = {"loss": f(1), "lse": f(2)}

# op, inputs, outputs, attributes, pattern of the error
CALLS = [
    ("layer_norm_forward", {**NORM, "gamma": f(9)}, NORMED, {}, r"gamma.*\[9\].*\[8\]"),
    ("layer_norm_forward", NORM, {**NORMED, "y": f(4, 4)}, {}, r"y.*\[4, 4\].*\[2, 8\]"),
    ("layer_norm_forward", NORM, {**NORMED, "y": f(16)}, {}, r"y.*\[16\].*\[2, 8\]"),
    ("layer_norm_forward", NORM, {**NORMED, "mean": f(3)}, {}, r"mean.*\[3\].*\[2\]"),
    ("layer_norm_forward", NORM, {**NORMED, "rstd": d(2)}, {}, r"rstd.*f64.*f32"),
    ("layer_norm_forward", NORM, {**NORMED, "y": d(2, 8)}, {}, r"y.*f64.*f32"),
    ("layer_norm_forward", {**NORM, "gamma": i(8)}, NORMED, {}, r"gamma.*i32"),
    ("layer_norm_forward", {**NORM, "x": f()}, NORMED, {}, r"x.*\[\].*at least one axis"),
    ("layer_norm_forward", NORM, NORMED, {"epsilon": -1.0}, r"epsilon is -1.*0 or more"),
    ("layer_norm_forward", {**NORM, "x": Nowhere(2, 8)}, NORMED, {}, r"x \[2, 8\] has no memory"),
    ("layer_norm_forward", NORM, {**NORMED, "y": Nowhere(2, 8)}, {}, r"y \[2, 8\] has no memory"),
    ("softmax_forward", {"x": f(2, 8)}, {"y": f(8, 2)}, {}, r"y.*\[8, 2\].*\[2, 8\]"),
    ("softmax_forward", {"x": i(2, 8)}, {"y": f(2, 8)}, {}, r"x.*i32"),
    ("gemm", {"a": f(2, 3), "b": f(4, 5)}, {"c": f(2, 5)}, {}, r"b.*\[4, 5\].*k = 3"),
    ("gemm", {"a": f(2, 3), "b": f(3, 5)}, {"c": f(5, 2)}, {}, r"c.*\[5, 2\].*\[2, 5\]"),
    ("gemm", {"a": f(2, 3), "b": f(3, 5)}, {"c": i(2, 5)}, {}, r"c.*i32"),
    ("gemm", {"a": f(2, 3), "b": f(3, 5), "bias": f(2)}, {"c": f(2, 5)}, {}, r"bias.*\[2\].*\[5\]"),
    ("gemm", {"a": f(2, 3), "b": d(3, 5)}, {"c": f(2, 5)}, {}, r"f64"),
    ("gemm", {"a": f(6), "b": f(6)}, {"c": f(1)}, {}, r"a.*\[6\].*\[m, k\]"),
    ("conv2d_forward", {**CONV, "filter": f(4, 3, 3, 3)}, {"y": f(1, 3, 3, 4)}, {}, r"filter.*\[4, 3, 3, 3\]"),
    ("conv2d_forward", CONV, {"y": f(1, 5, 5, 4)}, {}, r"y.*\[1, 5, 5, 4\]"),
    ("conv2d_forward", CONV, {"y": f(1, 3, 3, 4)}, {"stride_h": 0}, r"at least 1"),
    ("conv2d_backward_data", CONV_DX, {"dx": f(50)}, {}, r"dx.*\[50\].*h, w"),
    ("conv2d_backward_data", CONV_DX, {"dx": f(1, 7, 7, 2)}, {}, r"\[1, 5, 5, 4\]"),
    ("max_pool_forward", {"x": f(1, 4, 4, 2)}, {"y": f(1, 2, 2, 2), "index": f(1, 2, 2, 2)}, POOL, r"index.*f32.*u8"),
    ("max_pool_backward", POOL_DX, {"dx": f(1, 4, 4, 2)}, POOL, r"index.*\[1, 2, 2, 1\]"),
    ("attention_forward", {**ATTENTION, "k": f(1, 3, 2, 5)}, ATTENDED, {}, r"k.*\[1, 3, 2, 5\]"),
    ("attention_forward", {**ATTENTION, "k": f(1, 3, 3, 4), "v": f(1, 3, 3, 4)}, ATTENDED, {}, r"kv heads"),
    ("attention_forward", ATTENTION, {**ATTENDED, "lse": f(1, 3, 2)}, {}, r"lse.*\[1, 3, 2\].*\[1, 2, 3\]"),
    ("attention_forward", ATTENTION, ATTENDED, {"window": -1}, r"window"),
    ("cross_entropy_forward", {**ENTROPY, "labels": i(3)}, LOSS, {}, r"labels.*\[3\].*\[2\]"),
    ("cross_entropy_forward", {**ENTROPY, "labels": f(2)}, LOSS, {}, r"labels.*f32.*i32"),
    ("cross_entropy_forward", ENTROPY, {**LOSS, "loss": f(2)}, {}, r"loss.*\[2\].*\[1\]"),
    ("embedding_forward", {"table": f(4, 3), "tokens": i(2)}, {"y": f(2, 4)}, {}, r"y.*\[2, 4\].*\[2, 3\]"),
    ("embedding_backward", {"dy": f(2, 3), "tokens": i(2)}, {"dtable": f(4, 5)}, {}, r"dtable.*\[4, 5\].*\[4, 3\]"),
    ("transpose", {"x": f(2, 3)}, {"y": f(3, 2)}, {"permutation": [1, 1]}, r"every axis once"),
    ("transpose", {"x": f(2, 3)}, {"y": f(2, 3)}, {"permutation": [1, 0]}, r"y.*\[2, 3\].*\[3, 2\]"),
    ("adamw", {**ADAMW, "m": [f(3, 2)]}, ADAMWED, {}, r"m.*\[3, 2\].*\[2, 3\]"),
    ("adamw", ADAMW, {**ADAMWED, "v'": [f(2, 4)]}, {}, r"v'.*\[2, 4\].*\[2, 3\]"),
    ("adamw", {**ADAMW, "step": f(1)}, ADAMWED, {}, r"step.*f32.*i32"),
    ("adamw", {**ADAMW, "g": [f(2, 3)] * 2}, ADAMWED, {}, r"g\[1\]"),
    ("rotary", {"x": f(1, 3, 2, 4), "cos": f(3, 3), "sin": f(3, 2)}, {"y": f(1, 3, 2, 4)}, {}, r"cos.*\[3, 3\]"),
    ("add", {"a": f(2, 3), "b": f(3)}, {"y": f(2, 3)}, {}, r"b.*\[3\].*\[2, 3\]"),
]


class Malformed(unittest.TestCase):
    def test_what_the_calls_are_made_of_is_right(self):
        for op, inputs, outputs in [
            ("layer_norm_forward", NORM, NORMED),
            ("attention_forward", ATTENTION, ATTENDED),
            ("adamw", ADAMW, ADAMWED),
        ]:
            self.assertEqual(gpubench.check(op, inputs, outputs).verdict, "fail")

    def test_each_is_refused_with_the_tensor_and_what_was_expected(self):
        self.assertGreaterEqual(len(CALLS), 40)
        for op, inputs, outputs, attributes, text in CALLS:
            with self.subTest(f"{op}: {text}"), self.assertRaisesRegex(ValueError, text):
                gpubench.check(op, inputs, outputs, **attributes)


    def test_a_name_with_a_control_character_is_refused_and_shown_escaped(self):
        ins, outs = {"a": f(2, 3), "b": f(3, 5)}, {"c": f(2, 5)}
        for call, text in [
            (lambda: gpubench.check("gemm\0x", ins, outs), r"op 'gemm\\x00x': a name has no control characters"),
            (lambda: gpubench.check("gemm", {"a\0x": ins["a"], "b": ins["b"]}, outs), r"operand 'a\\x00x'"),
            (lambda: gpubench.check("gemm", ins, outs, **{"alpha\0": 1.0}), r"attribute 'alpha\\x00'"),
            (lambda: gpubench.check("gemm", ins, outs, epilogue="none\0"), r"epilogue 'none\\x00'"),
            (lambda: gpubench.check("gemm", ins, outs, accumulate="f32\0"), r"accumulate 'f32\\x00'"),
            (lambda: gpubench.check("gemm", ins, outs, products="exact\n"), r"products 'exact\\n'"),
            (lambda: gpubench.implements("gemm\0x")(lambda a, b: None), r"op 'gemm\\x00x'"),
        ]:
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                call()


@unittest.skipIf(torch is None, "PyTorch is not installed")
class PyTorch(unittest.TestCase):
    def refused(self, tensor, error, text):
        with self.assertRaisesRegex(error, text):
            gpubench.check("softmax_forward", {"x": torch.zeros(2, 8)}, {"y": tensor})
        with self.assertRaisesRegex(error, text):
            gpubench.check("softmax_forward", {"x": tensor}, {"y": torch.zeros(2, 8)})

    def test_a_tensor_whose_storage_was_freed_has_no_memory(self):
        y = torch.zeros(2, 8)
        y.storage().resize_(0)
        self.refused(y, ValueError, "without memory")

    def test_a_tensor_whose_storage_became_smaller_is_not_read_past_its_end(self):
        y = torch.zeros(2, 8)
        y.storage().resize_(15)
        self.refused(y, ValueError, "beyond its storage of 60 bytes")

    def test_meta_and_fake_tensors_have_no_memory(self):
        self.refused(torch.zeros(2, 8, device="meta"), ValueError, "without memory")
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode():
            fake = torch.zeros(2, 8)
        self.refused(fake, ValueError, "without memory")

    def test_sparse_tensors_are_refused(self):
        self.refused(torch.eye(2, 8).to_sparse(), TypeError, "sparse")


if __name__ == "__main__":
    unittest.main()
