#!/usr/bin/env python3
"""Compares the textbook with ONNX's node vectors: onnx_test.py WRITE_PROGRAMS FOLDER [VECTORS ...]

VECTORS are folders that may contain the wheel onnx (scripts/onnx-vectors.txt). Every vector of a supported op becomes a
call, evaluated in fp64 on its inputs. Its outputs are f32 arithmetic, so 2-norms may differ by 2^-20; casts and 8-bit
values must be equal. Unsupported vectors are counted by reason.
"""
import collections
import json
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
vectors = [found for folder in sys.argv[3:] if (found := Path(folder) / "onnx/backend/test/data/node").is_dir()]
if not vectors:
    print("skipped: ONNX's node vectors are not in", " or ".join(sys.argv[3:]), "(scripts/test --full fetches them)")
    sys.exit(77)
try:
    import numpy
    import torch  # noqa: F401: what recorded.py reads
except ImportError as missing:
    print(f"skipped: {missing} (Debian: python3-torch)")
    sys.exit(77)
import recorded  # noqa: E402
from onnx_vectors import Vector  # noqa: E402

limit = 2.0 ** -20
of_four_digits = {"averagepool_2d_ceil_last_window_starts_on_pad"}  # what it expects is rounded so


class NotOurs(Exception):
    """The op lacks the feature that the vector tests."""


def ours(holds, reason):
    if not holds:
        raise NotOurs(reason)


class Call:
    """A call. expected: {output: tensor}; as_stored: computed in its own types, and compared exactly."""

    def __init__(self, kind, inputs, expected, outputs, attributes=None, as_stored=False, types=None):
        self.kind, self.inputs, self.expected, self.outputs = kind, inputs, expected, outputs
        self.attributes, self.as_stored, self.types = attributes or {}, as_stored, types or {}

    def record(self, name):
        def described(operand, shape):
            return {"name": operand, "dtype": self.types.get(operand, "f32" if self.as_stored else "f64"), "shape": list(shape)}
        inputs = [described(operand, x.shape) for operand, x in self.inputs.items()]
        outputs = [described(operand, shape) for operand, shape in self.outputs.items()]
        return {"name": name, "kind": self.kind, "attributes": self.attributes, "as_stored": self.as_stored, "inputs": inputs, "outputs": outputs}


translations = {}


def translates(*ops):
    def register(function):
        translations.update({op: function for op in ops})
        return function
    return register


def elementwise(kind, names, **attributes):
    def translate(vector):
        tensors = [x.values for x in vector.inputs]
        ours(all(x.dtype == "f32" for x in vector.inputs), "not of floating-point numbers")
        ours(all(x.shape == tensors[0].shape for x in tensors), "broadcasts")
        y = vector.outputs[0].values
        return [Call(kind, dict(zip(names, tensors)), {"y": y}, {"y": y.shape}, attributes)]
    return translate


translations.update({"Add": elementwise("add", "ab"), "Relu": elementwise("relu_forward", "x")})


@translates("Swish")
def swish(vector):
    ours(vector.attributes.get("alpha", 1.0) == 1.0, "alpha")
    return elementwise("silu_forward", "x")(vector)


@translates("Gelu")
def gelu(vector):
    return elementwise("gelu_forward", "x", form="tanh" if vector.attributes.get("approximate") == "tanh" else "erf")(vector)


@translates("Cast", "CastLike")
def cast(vector):
    x, y = vector.inputs[0], vector.outputs[0]
    floats = ("f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "f4_e2m1")
    ours(x.dtype in floats and y.dtype in floats, "a type that we do not cast")
    if y.dtype.startswith("f8") and vector.attributes.get("saturate", 1):
        return [quantized(x.values, numpy.ones(1), y, x.dtype)]
    want = y.values
    if y.dtype == "f4_e2m1":  # which has no NaN, and OCP leaves open what becomes of it: the largest number in PTX and here
        want = numpy.where(numpy.isnan(x.values), 6.0, want)
    return [Call("cast", {"x": x.values}, {"y": want}, {"y": want.shape}, None, True, {"x": x.dtype, "y": y.dtype})]


def quantized(x, scale, y, dtype="f32"):
    amax = numpy.abs(x).max().reshape(1)
    return Call("quantize", {"x": x, "scale": scale}, {"values": y.values, "inverse": 1 / scale, "amax": amax},
                {"values": y.values.shape, "inverse": (1,), "amax": (1,)}, {"to": y.dtype}, True, {"x": dtype, "values": y.dtype})


@translates("QuantizeLinear")
def quantize(vector):
    ours(vector.outputs[0].dtype.startswith("f8"), "not to 8-bit floating point")
    ours(vector.inputs[1].values.size == 1, "a scale of each channel")
    return [quantized(vector.inputs[0].values, 1 / vector.inputs[1].values.reshape(1), vector.outputs[0])]


@translates("Transpose")
def transpose(vector):
    x, y = vector.inputs[0].values, vector.outputs[0].values
    permutation = vector.attributes.get("perm", list(range(x.ndim))[::-1])
    return [Call("transpose", {"x": x}, {"y": y}, {"y": y.shape}, {"permutation": permutation})]


@translates("Gather")
def gather(vector):
    table, tokens = (x.values for x in vector.inputs)
    ours(vector.attributes.get("axis", 0) == 0, "along another axis")
    ours(tokens.min() >= 0, "indices from the end")
    rows = table.reshape(table.shape[0], -1)
    y = vector.outputs[0].values.reshape(tokens.size, -1)
    return [Call("embedding_forward", {"table": rows, "tokens": tokens.flatten()}, {"y": y}, {"y": y.shape}, types={"tokens": "i32"})]


@translates("MatMul")
def matmul(vector):
    a, b = (x.values for x in vector.inputs)
    ours(a.ndim == b.ndim and a.ndim >= 2 and a.shape[:-2] == b.shape[:-2], "broadcasts")
    y = vector.outputs[0].values
    if a.ndim > 3:
        a, b, y = (x.reshape(-1, *x.shape[-2:]) for x in (a, b, y))
    return [Call("gemm", {"a": a, "b": b}, {"c": y}, {"c": y.shape})]


@translates("Gemm")
def gemm(vector):
    a, b, c = [x.values for x in vector.inputs] + [None] * (3 - len(vector.inputs))
    y, given = vector.outputs[0].values, vector.attributes
    attributes = {"transpose_a": bool(given.get("transA", 0)), "transpose_b": bool(given.get("transB", 0)), "alpha": given.get("alpha", 1.0)}
    inputs = {"a": a, "b": b}
    if c is not None and c.shape[-1:] == y.shape[-1:] and c.size == y.shape[-1] and given.get("beta", 1.0) == 1.0:
        attributes["bias"], inputs["bias"] = True, c.flatten()
    elif c is not None:
        attributes["beta"], inputs["c_in"] = given.get("beta", 1.0), numpy.broadcast_to(c, y.shape)
    return [Call("gemm", inputs, {"c": y}, {"c": y.shape}, attributes)]


@translates("ReduceL2")
def reduce_l2(vector):
    ours(len(vector.inputs) < 2 or vector.inputs[1] is None or vector.inputs[1].values.size == 0, "of each row")
    x = vector.inputs[0].values
    return [Call("gradient_norm", {"g": x}, {"norm": vector.outputs[0].values.reshape(1)}, {"norm": (1,)})]


@translates("Momentum")
def momentum(vector):
    """A call for each parameter."""
    lr, step, *tensors = (tensor.values for tensor in vector.inputs)
    given, count = vector.attributes, len(tensors) // 3
    ours(step == 0 or given["beta"] == 1, "dampening")
    attributes = {"momentum": given["alpha"], "weight_decay": given["norm_coefficient"], "nesterov": given["mode"] == "nesterov"}
    return [Call("sgd", {"lr": lr.reshape(1), **dict(zip("wgm", tensors[i::count]))},
                 {"w'": vector.outputs[i].values, "m'": vector.outputs[count + i].values},
                 {"w'": tensors[i].shape, "m'": tensors[i].shape}, attributes) for i in range(count)]


# Images: NCHW there, NHWC here.

def channels_last(x):
    return numpy.moveaxis(x, 1, -1)


def window(vector, x, y, kernel):
    """Attributes of a window that slides over two axes."""
    given = vector.attributes
    ours(x.ndim == 4, "not two-dimensional")
    strides, dilations = given.get("strides", [1, 1]), given.get("dilations", [1, 1])
    pads = given.get("pads", [0, 0, 0, 0])
    if given.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        reach = [(y.shape[2 + i] - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 - x.shape[2 + i] for i in range(2)]
        small, large = [max(r, 0) // 2 for r in reach], [(max(r, 0) + 1) // 2 for r in reach]
        pads = small + large if given["auto_pad"] == "SAME_UPPER" else large + small
    ours(pads[:2] == pads[2:], "uneven padding")
    return {"stride_h": strides[0], "stride_w": strides[1], "pad_h": pads[0], "pad_w": pads[1]}, dilations


@translates("Conv")
def conv(vector):
    x, filter = (tensor.values for tensor in vector.inputs[:2])
    y = vector.outputs[0].values
    ours(len(vector.inputs) == 2, "a bias")
    attributes, dilations = window(vector, x, y, filter.shape[2:])
    attributes.update(dilation_h=dilations[0], dilation_w=dilations[1], groups=vector.attributes.get("group", 1))
    y = channels_last(y)
    return [Call("conv2d_forward", {"x": channels_last(x), "filter": channels_last(filter)}, {"y": y}, {"y": y.shape}, attributes)]


def pooling(vector):
    x, y = vector.inputs[0].values, vector.outputs[0].values
    ours(vector.inputs[0].dtype == "f32", "not of floating-point numbers")
    kernel = list(x.shape[2:]) if vector.op.startswith("Global") else vector.attributes["kernel_shape"]
    attributes, dilations = window(vector, x, y, kernel)
    ours(dilations == [1, 1], "dilation")
    ceil_mode = bool(vector.attributes.get("ceil_mode", 0))
    return channels_last(x), channels_last(y), {**attributes, "window_h": kernel[0], "window_w": kernel[1], "ceil_mode": ceil_mode}


@translates("AveragePool", "GlobalAveragePool")
def average_pool(vector):
    x, y, attributes = pooling(vector)
    attributes["counts_padding"] = bool(vector.attributes.get("count_include_pad", 0))
    return [Call("average_pool_forward", {"x": x}, {"y": y}, {"y": y.shape}, attributes)]


@translates("MaxPool", "GlobalMaxPool")
def max_pool(vector):
    x, y, attributes = pooling(vector)
    expected = {"y": y}
    if len(vector.outputs) > 1:  # elements of the whole input, counted as it is stored
        n, h, w, c = x.shape
        place = channels_last(vector.outputs[1].values) % (h * w)
        row, column = (place % h, place // h) if vector.attributes.get("storage_order", 0) else (place // w, place % w)
        row = row + attributes["pad_h"] - attributes["stride_h"] * numpy.arange(y.shape[1]).reshape(-1, 1, 1)
        column = column + attributes["pad_w"] - attributes["stride_w"] * numpy.arange(y.shape[2]).reshape(-1, 1)
        expected["index"] = row * attributes["window_w"] + column
    return [Call("max_pool_forward", {"x": x}, expected, {"y": y.shape, "index": y.shape}, attributes, types={"index": "u8"})]


# Rows.

@translates("BatchNormalization")
def batch_norm(vector):
    ours(vector.attributes.get("training_mode", 0), "inference")
    x, gamma, beta, mean, variance = (tensor.values for tensor in vector.inputs)
    y, new_mean = (channels_last(vector.outputs[0].values), vector.outputs[1].values)  # its running variance stays biased, PyTorch's and ours not
    attributes = {"epsilon": vector.attributes.get("epsilon", 1e-5), "momentum": 1 - vector.attributes.get("momentum", 0.9)}
    row = (x.shape[1],)
    return [Call("batch_norm_forward", {"x": channels_last(x), "gamma": gamma, "beta": beta, "running_mean": mean, "running_var": variance},
                 {"y": y, "running_mean'": new_mean}, {"y": y.shape, "mean": row, "rstd": row, "running_mean'": row, "running_var'": row}, attributes)]


def rows_from(vector, x):
    """As rows: all axes from the given one are normalized together."""
    axis = vector.attributes.get("axis", -1) % x.ndim
    return int(numpy.prod(x.shape[:axis])), int(numpy.prod(x.shape[axis:]))


@translates("LayerNormalization")
def layer_norm(vector):
    x, gamma, beta = (tensor.values for tensor in vector.inputs)
    rows, n = rows_from(vector, x)
    expected = {name: tensor.values.reshape(shape) for name, tensor, shape in zip(("y", "mean", "rstd"), vector.outputs, ((rows, n), (rows,), (rows,)))}
    return [Call("layer_norm_forward", {"x": x.reshape(rows, n), "gamma": gamma.flatten(), "beta": beta.flatten()}, expected,
                 {"y": (rows, n), "mean": (rows,), "rstd": (rows,)}, {"epsilon": vector.attributes.get("epsilon", 1e-5)})]


@translates("RMSNormalization")
def rms_norm(vector):
    x, gamma = (tensor.values for tensor in vector.inputs)
    rows, n = rows_from(vector, x)
    return [Call("rms_norm_forward", {"x": x.reshape(rows, n), "gamma": gamma.flatten()}, {"y": vector.outputs[0].values.reshape(rows, n)},
                 {"y": (rows, n), "rstd": (rows,)}, {"epsilon": vector.attributes.get("epsilon", 1e-5)})]


@translates("Softmax")
def softmax(vector):
    axis = vector.attributes.get("axis", -1)
    x, y = (numpy.moveaxis(tensor.values, axis, -1) for tensor in (vector.inputs[0], vector.outputs[0]))
    return [Call("softmax_forward", {"x": x}, {"y": y}, {"y": y.shape})]


@translates("SoftmaxCrossEntropyLoss")
def cross_entropy(vector):
    logits, labels = (tensor.values for tensor in vector.inputs[:2])
    ours(vector.attributes.get("reduction", "mean") == "mean", "not the mean")
    ours(len(vector.inputs) == 2, "weights of classes")
    index = vector.attributes.get("ignore_index")
    ignored = {} if index is None else {"ignores": True, "ignore_index": index}
    rows = channels_last(logits).reshape(-1, logits.shape[1])
    return [Call("cross_entropy_forward", {"logits": rows, "labels": labels.flatten()}, {"loss": vector.outputs[0].values.reshape(1)},
                 {"loss": (1,), "lse": (len(rows),)}, ignored, types={"labels": "i32"})]


# Attention: heads before positions there, behind them here.

@translates("RotaryEmbedding")
def rotary(vector):
    """A call for each sequence of the batch, as tables may differ."""
    x, cos, sin, *positions = (tensor.values for tensor in vector.inputs)
    y, given = vector.outputs[0].values, vector.attributes
    if positions:
        cos, sin = (table[positions[0].astype(int)] for table in (cos, sin))
    if x.ndim == 3:
        x, y = (z.reshape(*z.shape[:2], given["num_heads"], -1) for z in (x, y))
    else:
        x, y = (numpy.swapaxes(z, 1, 2) for z in (x, y))
    turned = given.get("rotary_embedding_dim", 0) or x.shape[-1]
    x, y = x[..., :turned], y[..., :turned]
    attributes = {"pairing": "interleaved" if given.get("interleaved", 0) else "half"}
    return [Call("rotary", {"x": x[i:i + 1], "cos": cos[i], "sin": sin[i]}, {"y": y[i:i + 1]}, {"y": y[i:i + 1].shape}, attributes)
            for i in range(len(x))]


@translates("Attention")
def attention(vector):
    q, k, v, mask, past_k, past_v, *rest = [tensor and tensor.values for tensor in vector.inputs] + [None] * (6 - len(vector.inputs))
    o, given = vector.outputs[0].values, vector.attributes
    ours(vector.inputs[0].dtype == "f32", "of 16 bits")
    ours(mask is None and not any(x is not None for x in rest), "a mask")
    ours(len(vector.outputs) < 4 or vector.outputs[3] is None, "its scores")
    if q.ndim == 3:
        q, o = (x.reshape(*x.shape[:2], given["q_num_heads"], -1) for x in (q, o))
        k, v = (x.reshape(*x.shape[:2], given["kv_num_heads"], -1) for x in (k, v))
    else:
        q, k, v, o = (numpy.swapaxes(x, 1, 2) for x in (q, k, v, o))
    if past_k is not None:
        k, v = (numpy.concatenate([numpy.swapaxes(past, 1, 2), x], 1) for past, x in ((past_k, k), (past_v, v)))
    causal = bool(given.get("is_causal", 0))
    ours(v.shape == k.shape, "values of another width")
    ours(not causal or q.shape[1] == k.shape[1] or past_k is not None, "causal from the first key on")
    attributes = {"causal": "causal" if causal else "full", "scale": given.get("scale", q.shape[-1] ** -0.5)}
    if given.get("softcap", 0):
        attributes["softcap"] = given["softcap"]
    b, s, heads, d = q.shape
    return [Call("attention_forward", {"q": q, "k": k, "v": v}, {"o": o}, {"o": o.shape, "lse": (b, heads, s)}, attributes)]


class OnnxVectors(unittest.TestCase):
    calls, reasons, programs, seen = {}, collections.Counter(), {}, collections.Counter()
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        for path in sorted(vectors[0].iterdir()):
            vector = Vector(path)
            if vector.nodes != 1 or vector.op not in translations:
                continue
            try:
                ours(vector.name not in of_four_digits, "results of four digits")
                calls = translations[vector.op](vector)
            except NotOurs as reason:
                cls.reasons[f"{vector.op}: {reason}"] += 1
                continue
            cls.seen[vector.op] += 1
            cls.calls.update({f"{vector.name}[{i}]": call for i, call in enumerate(calls)})
        folder = Path(sys.argv[2])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "calls.json").write_text(json.dumps([call.record(name) for name, call in cls.calls.items()]))
        numpy.concatenate([x.flatten() for call in cls.calls.values() for x in call.inputs.values()]).tofile(folder / "calls.f64")
        subprocess.run([sys.argv[1], folder, folder], check=True)
        cls.programs = {program.name: program for program in recorded.read(sys.argv[2])[1]}

    def test_agree(self):
        wrong, worst = [], 0.0
        for name, call in self.calls.items():
            for output, want in call.expected.items():
                got = self.programs[name].ops[0].outputs[output]
                got = (got[0] if isinstance(got, list) else got).numpy()
                if call.as_stored:
                    if not numpy.array_equal(got, want, equal_nan=True):
                        wrong.append(f"{name}: {output} has other bits")
                    continue
                error = numpy.linalg.norm((got - want).flatten()) / max(numpy.linalg.norm(want.flatten()), 1e-30)
                worst = max(worst, error)
                if got.shape != want.shape or not error <= limit:
                    wrong.append(f"{name}: {output}, error {error:.2e}")
        print(f"{sum(self.seen.values())} vectors: " + ", ".join(f"{op} {count}" for op, count in sorted(self.seen.items())) + f"; largest error {worst:.1e}")
        print("unsupported: " + "; ".join(f"{reason} ({count})" for reason, count in sorted(self.reasons.items())))
        self.assertEqual("\n".join(wrong), "")

    def test_every_op_has_vectors(self):
        self.assertEqual(sorted(op for op in translations if op not in self.seen), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
