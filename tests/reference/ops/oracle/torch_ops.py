"""Every op in PyTorch: torch.nn.functional if it has the op, else the formula; gradients by autograd.

table[kind](op, inputs...) -> the outputs in order, from op.inputs in order. fp64 throughout, independent of the textbook.
"""
import functools
import math

import torch
import torch.nn.functional as F

table = {}


def computes(*kinds):
    def register(function):
        for kind in kinds:
            table[kind] = functools.partial(function, **({"kind": kind} if len(kinds) > 1 else {}))
        return function
    return register


def gradients(forward, inputs, *dy):
    """Gradients of sum(dy * forward(*inputs)) by autograd."""
    leaves = [x.detach().requires_grad_() for x in inputs]
    y = forward(*leaves)
    return torch.autograd.grad(y if isinstance(y, (tuple, list)) else [y], leaves, list(dy))


@computes("triad")
def triad(op, b, c):
    return b + op.factor * c


@computes("scale")
def scale(op, x):
    return op.factor * x


@computes("add")
def add(op, a, b):
    return a + b


def rounded(x, dtype):
    """Rounds fp64 to f32, to nearest, ties to even."""
    if dtype == "f64":
        return x
    types = {"bf16": torch.bfloat16, "f16": torch.float16}
    assert torch.equal(x.float().double(), x)
    return x.float().to(types[dtype]).double()


@computes("cast")
def cast(op, x):
    return rounded(x, op.dtypes["y"])


def gelu(form, x):
    """F.gelu's formulas with 1 + erf and 1 + tanh in a form without cancellation below zero."""
    if form == "erf":
        return 0.5 * x * torch.erfc(-x / math.sqrt(2))
    return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))


@computes("gelu_forward")
def gelu_forward(op, x):
    return gelu(op.form, x)


@computes("gelu_backward")
def gelu_backward(op, x, dy):
    return gradients(lambda x: gelu(op.form, x), [x], dy)


@computes("relu_forward")
def relu_forward(op, x):
    return F.relu(x)


@computes("relu_backward")
def relu_backward(op, y, dy):
    return gradients(F.relu, [y], dy)


def philox(counters, key):
    """Four words of Philox4x32-10 (Salmon et al., SC 2011) for each counter [..., 4], as integers below 2^32."""
    words, ones = list(counters.unbind(-1)), 2 ** 32 - 1
    for step in range(10):
        a, b = words[0].numpy().astype("uint64") * 0xD2511F53, words[2].numpy().astype("uint64") * 0xCD9E8D57
        high = [torch.from_numpy((x >> 32).astype("int64")) for x in (a, b)]
        low = [torch.from_numpy((x & ones).astype("int64")) for x in (a, b)]
        keys = [(key[0] + step * 0x9E3779B9) & ones, (key[1] + step * 0xBB67AE85) & ones]
        words = [high[1] ^ words[1] ^ keys[0], low[1], high[0] ^ words[3] ^ keys[1], low[0]]
    return torch.stack(words, -1)


@computes("dropout")
def dropout(op, x, seed, offset):
    seed, offset = ([int(word) % 2 ** 32 for word in words] for words in (seed, offset))
    groups = torch.arange((x.numel() + 3) // 4)
    counters = torch.stack([groups, groups * 0, groups * 0 + offset[0], groups * 0 + offset[1]], -1)
    words = philox(counters, seed).reshape(-1)[:x.numel()].reshape(x.shape)
    return torch.where(words < math.floor(op.p * 2 ** 32), 0 * x, x / (1 - op.p))


def squared_relu(x):
    return F.relu(x) ** 2


@computes("squared_relu_forward")
def squared_relu_forward(op, x):
    return squared_relu(x)


@computes("squared_relu_backward")
def squared_relu_backward(op, x, dy):
    return gradients(squared_relu, [x], dy)


@computes("silu_forward")
def silu_forward(op, x):
    return F.silu(x)


@computes("silu_backward")
def silu_backward(op, x, dy):
    return gradients(F.silu, [x], dy)


def swiglu(gate, up):
    return F.silu(gate) * up


@computes("swiglu_forward")
def swiglu_forward(op, gate, up):
    return swiglu(gate, up)


@computes("swiglu_backward")
def swiglu_backward(op, gate, up, dy):
    return gradients(swiglu, [gate, up], dy)


@computes("copy", "reorder")
def copy(op, x, kind):
    return x.clone()


def repeated(x, y):
    """Repeats every row of x to fill the rows of y."""
    rows = x.reshape(-1, x.shape[-1])
    return rows.repeat_interleave(y.numel() // x.numel(), 0).reshape(y.shape)


@computes("repeat_rows")
def repeat_rows(op, x):
    return repeated(x, op.outputs["y"])


@computes("multiply")
def multiply(op, a, b):
    return a * repeated(b, a)


@computes("modulate_forward")
def modulate_forward(op, x, scale, shift):
    return x * (1 + repeated(scale, x)) + repeated(shift, x)


@computes("modulate_backward")
def modulate_backward(op, dy, scale):
    return dy * (1 + repeated(scale, dy))


@computes("transpose")
def transpose(op, x):
    return x.permute(op.permutation)


def f8(x, exponent_bits, mantissa_bits, largest):
    """The nearest number of an 8-bit type, ties to even, saturating. Open Compute Project, OFP8 (2023)."""
    smallest_exponent = 2 - 2 ** (exponent_bits - 1)
    exponent = torch.frexp(x)[1] - 1
    step = torch.ldexp(torch.ones_like(x), torch.clamp(exponent, min=smallest_exponent) - mantissa_bits)
    return torch.clamp(torch.round(x / step) * step, -largest, largest)


NARROW = {"f8_e4m3": (4, 3, 448.0), "f8_e5m2": (5, 2, 57344.0), "f4_e2m1": (2, 1, 6.0)}


@computes("quantize")
def quantize(op, x, scale):
    exponent_bits, mantissa_bits, largest = NARROW[op.to]
    values = scale * x
    if op.saturate == "saturated":
        values = torch.clamp(values, -largest, largest)
    if op.dtypes["values"] != "f64":
        values = f8(values, exponent_bits, mantissa_bits, largest)
    return values, 1 / scale, x.abs().max().reshape(1)


@computes("amax")
def amax(op, x):
    return x.abs().max().reshape(1)


@computes("scale_from_amax")
def scale_from_amax(op, history):
    return torch.exp2(torch.floor(torch.log2(NARROW[op.to][2] / history.max()))).reshape(1) / 2 ** op.margin


@computes("quantize_blocks")
def quantize_blocks(op, x, *scale):
    """OCP Microscaling Formats 1.0; NVFP4: e4m3 scales of 16 elements, whose largest becomes 6."""
    to = {"mxfp8_e4m3": "f8_e4m3", "mxfp8_e5m2": "f8_e5m2"}.get(op.format, "f4_e2m1")
    largest = NARROW[to][2]
    blocks = x.reshape(*x.shape[:-1], -1, 16 if op.format == "nvfp4" else 32)
    if op.format == "nvfp4":
        blocks = blocks * scale[0]
        scales = f8((blocks.abs().amax(-1) / 6).float().double(), *NARROW["f8_e4m3"])
        values = blocks / scales[..., None]
        return f8(values, *NARROW[to]).reshape(x.shape), scales
    ratio = blocks.abs().amax(-1) / largest
    power = torch.ceil(torch.log2(ratio)) if op.covers else torch.floor(torch.log2(blocks.abs().amax(-1)))
    if not op.covers:
        power = power - math.floor(math.log2(largest))
    values = torch.ldexp(blocks, -power[..., None])
    return f8(values, *NARROW[to]).reshape(x.shape), power + 127


def product(op, a, b):
    return op.alpha * torch.matmul(a.mT if op.transpose_a else a, b.mT if op.transpose_b else b)


def scales_of_elements(x, scales):
    """Expands one scale per block of k to [rows, k]: powers of two in E8M0, or magnitudes."""
    numbers = scales.abs() if scales.is_floating_point() else torch.exp2(scales.double() - 127)
    return numbers.repeat_interleave(x.shape[-1] // scales.shape[-1], -1)


@computes("gemm")
def gemm(op, a, b, *rest):
    rest = list(rest)
    if op.blocks:
        b, a = (x * scales_of_elements(x, rest.pop()) for x in (b, a))
    z = product(op, a, b)
    if op.beta != 0:
        z = z + op.beta * rest.pop(0)
    if op.bias:
        z = z + rest.pop(0)
    if op.scaled:
        z = z * rest.pop(0) * rest.pop(0)
    if op.epilogue == "gelu":
        return gelu(op.gelu_form, z), z
    if op.epilogue == "gelu_gradient":
        return gelu_backward_of(op.gelu_form, rest.pop(0), z)
    return z


def gelu_backward_of(form, pre, dy):
    return gradients(lambda x: gelu(form, x), [pre], dy)[0]


@computes("gemm_gelu_bias_gradient")
def gemm_gelu_bias_gradient(op, a, b, pre):
    dz = gelu_backward_of(op.gelu_form, pre, product(op, a, b))
    return dz, dz.sum(0)


@computes("gemm_weight_bias_gradient")
def gemm_weight_bias_gradient(op, a, b):
    return product(op, a, b), (a if op.bias_gradient == "a" else b).sum(0)


@computes("column_sum")
def column_sum(op, x):
    y = op.outputs["y"]
    return x.reshape(y.numel() // y.shape[-1], -1, y.shape[-1]).sum(1).reshape(y.shape)


# Images: NHWC and KRSC here, NCHW and KCRS there.

def conv2d(op, x, filter):
    y = F.conv2d(x.permute(0, 3, 1, 2), filter.permute(0, 3, 1, 2), None, (op.stride_h, op.stride_w), (op.pad_h, op.pad_w),
                 (op.dilation_h, op.dilation_w), op.groups)
    return y.permute(0, 2, 3, 1)


@computes("conv2d_forward")
def conv2d_forward(op, x, filter):
    return conv2d(op, x, filter)


@computes("conv2d_backward_data")
def conv2d_backward_data(op, dy, filter):
    return gradients(lambda x: conv2d(op, x, filter), [torch.zeros_like(op.outputs["dx"])], dy)


@computes("conv2d_backward_filter")
def conv2d_backward_filter(op, x, dy):
    return gradients(lambda filter: conv2d(op, x, filter), [torch.zeros_like(op.outputs["dfilter"])], dy)


def padded(op, x, value, beyond=0.0):
    """As NCHW, cut or extended with `beyond` to the extent of the windows; PyTorch's pooling allows padding of half a window only."""
    p, q = next(iter(op.outputs.values() if "y" in op.outputs else op.inputs.values())).shape[1:3]
    plane = x.permute(0, 3, 1, 2)
    if op.pad_h <= op.window_h // 2 and op.pad_w <= op.window_w // 2:
        of_torch = F.avg_pool2d(plane, (op.window_h, op.window_w), (op.stride_h, op.stride_w), (op.pad_h, op.pad_w), op.ceil_mode)
        assert of_torch.shape[2:] == (p, q), f"{tuple(of_torch.shape[2:])} windows, here {p} x {q}"
    plane = F.pad(plane, (op.pad_w, op.pad_w, op.pad_h, op.pad_h), value=value)
    rows, columns = (p - 1) * op.stride_h + op.window_h, (q - 1) * op.stride_w + op.window_w
    return F.pad(plane, (0, columns - plane.shape[3], 0, rows - plane.shape[2]), value=beyond)


def max_pool(op, x):
    plane = padded(op, x, -math.inf, -math.inf)
    y, place = F.max_pool2d(plane, (op.window_h, op.window_w), (op.stride_h, op.stride_w), return_indices=True)
    row, column = place // plane.shape[3], place % plane.shape[3]
    row = row - op.stride_h * torch.arange(y.shape[2]).reshape(-1, 1)
    column = column - op.stride_w * torch.arange(y.shape[3])
    return y.permute(0, 2, 3, 1), (row * op.window_w + column).permute(0, 2, 3, 1)


@computes("max_pool_forward")
def max_pool_forward(op, x):
    return max_pool(op, x)


@computes("max_pool_backward")
def max_pool_backward(op, dy, index):
    """Differentiates a look-up of the chosen elements, which needs no x."""
    def chosen(x):
        windows = F.unfold(padded(op, x, 0.0), (op.window_h, op.window_w), stride=(op.stride_h, op.stride_w))
        n, p, q, c = index.shape
        windows = windows.reshape(n, c, op.window_h * op.window_w, p, q)
        return windows.gather(2, index.permute(0, 3, 1, 2).unsqueeze(2)).squeeze(2).permute(0, 2, 3, 1)
    return gradients(chosen, [torch.zeros_like(op.outputs["dx"])], dy)


def average_pool(op, x):
    def sums(plane):
        return F.avg_pool2d(plane, (op.window_h, op.window_w), (op.stride_h, op.stride_w), divisor_override=1)
    elements = sums(padded(op, torch.ones_like(x), 1.0 if op.counts_padding else 0.0))
    return (sums(padded(op, x, 0.0)) / elements).permute(0, 2, 3, 1)


@computes("average_pool_forward")
def average_pool_forward(op, x):
    return average_pool(op, x)


@computes("average_pool_backward")
def average_pool_backward(op, dy):
    return gradients(lambda x: average_pool(op, x), [torch.zeros_like(op.outputs["dx"])], dy)


def layer_norm(op, x, gamma, beta):
    return F.layer_norm(x, x.shape[-1:], gamma, beta, op.epsilon)


@computes("layer_norm_forward")
def layer_norm_forward(op, x, gamma, beta):
    variance, mean = torch.var_mean(x, -1, unbiased=False)
    return layer_norm(op, x, gamma, beta), mean, torch.rsqrt(variance + op.epsilon)


@computes("layer_norm_backward")
def layer_norm_backward(op, dy, x, gamma, mean, rstd):
    return gradients(lambda *inputs: layer_norm(op, *inputs), [x, gamma, torch.zeros_like(gamma)], dy)


@computes("residual_norm_forward")
def residual_norm_forward(op, x, r, gamma, beta):
    return (x + r, *layer_norm_forward(op, x + r, gamma, beta))


@computes("residual_norm_backward")
def residual_norm_backward(op, dy, x, gamma, mean, rstd, dr):
    return gradients(lambda x, gamma, beta: (layer_norm(op, x, gamma, beta), x), [x, gamma, torch.zeros_like(gamma)], dy, dr)


def rms_norm(op, x, gamma):
    return gamma * x * torch.rsqrt((x * x).mean(-1, keepdim=True) + op.epsilon)


@computes("rms_norm_forward")
def rms_norm_forward(op, x, gamma):
    return rms_norm(op, x, gamma), torch.rsqrt((x * x).mean(-1) + op.epsilon)


@computes("rms_norm_backward")
def rms_norm_backward(op, dy, x, gamma, rstd):
    return gradients(lambda *inputs: rms_norm(op, *inputs), [x, gamma], dy)


@computes("batch_norm_forward")
def batch_norm_forward(op, x, gamma, beta, running_mean, running_var):
    rows = x.reshape(-1, x.shape[-1])
    new_mean, new_var = running_mean.detach().clone(), running_var.detach().clone()
    y = F.batch_norm(rows, new_mean, new_var, gamma, beta, True, op.momentum, op.epsilon)
    variance, mean = torch.var_mean(rows, 0, unbiased=False)
    return y.reshape(x.shape), mean, torch.rsqrt(variance + op.epsilon), new_mean, new_var


@computes("batch_norm_relu_forward")
def batch_norm_relu_forward(op, x, gamma, beta, running_mean, running_var, r=None):
    y, *statistics = batch_norm_forward(op, x, gamma, beta, running_mean, running_var)
    return (torch.relu(y if r is None else y + r), *statistics)


@computes("conv2d_batch_norm_forward")
def conv2d_batch_norm_forward(op, x, filter, gamma, beta, running_mean, running_var, r=None):
    product = conv2d(op, x, filter)
    y, *statistics = batch_norm_forward(op, product, gamma, beta, running_mean, running_var)
    y = y if r is None else y + r
    return (product, torch.relu(y) if op.relu else y, *statistics)


@computes("batch_norm_backward")
def batch_norm_backward(op, dy, x, gamma, mean, rstd):
    """The op has no epsilon; derives it from the given rstd."""
    axes = tuple(range(x.dim() - 1))
    epsilon = 1 / rstd ** 2 - torch.var(x, axes, unbiased=False)

    def forward(x, gamma, beta):
        variance, mean = torch.var_mean(x, axes, unbiased=False)
        return gamma * (x - mean) * torch.rsqrt(variance + epsilon) + beta
    return gradients(forward, [x, gamma, torch.zeros_like(gamma)], dy)


@computes("batch_norm_relu_backward")
def batch_norm_relu_backward(op, dy, x, gamma, mean, rstd, y, dy2=None):
    dr, = relu_backward(op, y, dy if dy2 is None else dy + dy2)
    return (*batch_norm_backward(op, dr, x, gamma, mean, rstd), *([dr] if op.dr else []))


@computes("attention_merge")
def attention_merge(op, o1, lse1, o2, lse2):
    lses = torch.stack([lse1, lse2])
    weights = lses.softmax(0).transpose(2, 3).unsqueeze(-1)
    return weights[0] * o1 + weights[1] * o2, torch.logsumexp(lses, 0)


def loss_of(op, logits, labels):
    """Cross-entropy, and PaLM's z-loss, which PyTorch lacks: a mean over the rows that are not ignored."""
    counted = labels != op.ignore_index if op.ignores else torch.ones_like(labels, dtype=torch.bool)
    if op.given_count and not counted.any():
        return 0.0 * logits.sum()
    loss = F.cross_entropy(logits, labels, ignore_index=op.ignore_index if op.ignores else -100, label_smoothing=op.label_smoothing)
    return loss + op.z_loss * torch.logsumexp(logits[counted], -1).square().mean()


def of_given(op, labels, count):
    """The factor from a mean over the rows that are not ignored to one over the given count."""
    return (labels != op.ignore_index).sum() / count if op.given_count else 1.0


@computes("count_labels")
def count_labels(op, labels):
    return ((labels != op.ignore_index).sum().double() / op.parts).reshape(1),


@computes("cross_entropy_forward")
def cross_entropy_forward(op, logits, labels, count=None):
    return (loss_of(op, logits, labels) * of_given(op, labels, count)).reshape(1), torch.logsumexp(logits, -1)


@computes("cross_entropy_backward")
def cross_entropy_backward(op, logits, labels, lse, *numbers):
    dloss = (numbers[0] if op.scaled else torch.ones(()).double()).reshape(())
    dloss = dloss * (of_given(op, labels, numbers[-1]).reshape(()) if op.given_count else 1.0)
    if not op.classes:
        return gradients(lambda logits: loss_of(op, logits, labels), [logits], dloss)
    rest = torch.log(lse.exp() - torch.logsumexp(logits, -1).exp())  # of the classes that are elsewhere

    def loss(logits):
        here, score = cross_entropy_partial(op, logits, labels)
        counted = (labels != op.ignore_index).sum()  # what is given is in dloss
        return cross_entropy_combine(op, torch.stack([here, rest]), score.unsqueeze(0), labels, counted)[0].reshape(())
    return gradients(loss, [logits], dloss)


@computes("cross_entropy_forward_backward")
def cross_entropy_forward_backward(op, logits, labels, *numbers):
    count = numbers[-1] if op.given_count else None
    return (*cross_entropy_forward(op, logits, labels, count), *cross_entropy_backward(op, logits, labels, None, *numbers))


@computes("cross_entropy_partial")
def cross_entropy_partial(op, logits, labels):
    classes = op.classes or logits.shape[1]
    counted = labels != op.ignore_index if op.ignores else torch.ones_like(labels, dtype=torch.bool)
    labels = labels.where(counted, torch.zeros_like(labels))
    target = (1 - op.label_smoothing) * F.one_hot(labels, classes).double() + op.label_smoothing / classes
    here = target[:, op.first:op.first + logits.shape[1]]
    return torch.logsumexp(logits, -1), (here * logits).sum(-1) * counted


@computes("cross_entropy_combine")
def cross_entropy_combine(op, lses, scores, labels, count=None):
    lse = torch.logsumexp(lses, 0)
    losses = lse - scores.sum(0) + op.z_loss * lse.square()
    losses = losses[labels != op.ignore_index if op.ignores else slice(None)]
    mean = torch.zeros(()).double() if op.given_count and not losses.numel() else losses.mean()
    return (mean * of_given(op, labels, count)).reshape(1), lse


def looked_up(op, table, tokens):
    """Looks up in a table of all tokens with zeros in other ranks' rows."""
    after = max(op.vocabulary - op.first - table.shape[0], 0)
    return F.embedding(tokens, F.pad(table, (0, 0, op.first, after)), padding_idx=op.padding_token if op.padding_token >= 0 else None)


@computes("embedding_forward")
def embedding_forward(op, table, tokens):
    return looked_up(op, table, tokens)


@computes("embedding_backward")
def embedding_backward(op, dy, tokens):
    return gradients(lambda table: looked_up(op, table, tokens), [torch.zeros_like(op.outputs["dtable"])], dy)


@computes("embedding_backward_add")
def embedding_backward_add(op, dy, tokens, dtable):
    return dtable + gradients(lambda table: looked_up(op, table, tokens), [torch.zeros_like(dtable)], dy)[0]


@computes("softmax_forward")
def softmax_forward(op, x):
    return torch.softmax(x, -1)


@computes("softmax_backward")
def softmax_backward(op, y, dy):
    return gradients(lambda x: torch.softmax(x, -1), [y.log()], dy)


def routing_weights(op, logits, indices):
    scores = torch.softmax(logits, -1) if op.scores == "softmax" else torch.sigmoid(logits)
    chosen = scores.gather(-1, indices)
    return op.scale * (chosen / chosen.sum(-1, keepdim=True) if op.normalize else chosen)


@computes("routing_forward")
def routing_forward(op, logits, bias=None):
    scores = torch.softmax(logits, -1) if op.scores == "softmax" else torch.sigmoid(logits)
    keys = scores if bias is None else scores + bias
    indices = torch.sort(keys.detach(), dim=-1, descending=True, stable=True).indices[:, :op.k]
    return indices, routing_weights(op, logits, indices)


def without_noise(gradient):
    """Zeroes numbers below 1e-15, autograd's rounding of zero gradients (of a weight that is always 1)."""
    return gradient.where(gradient.abs() > 1e-15, torch.zeros_like(gradient))


@computes("routing_backward")
def routing_backward(op, logits, indices, dweights):
    return [without_noise(one) for one in gradients(lambda logits: routing_weights(op, logits, indices), [logits], dweights)]


@computes("group_tokens")
def group_tokens(op, indices):
    experts = indices.flatten() - op.first
    experts = torch.where((experts >= 0) & (experts < op.experts), experts, op.experts)
    by_expert = torch.sort(experts, stable=True).indices
    sizes = torch.bincount(experts, minlength=op.experts + 1)
    left_out = torch.arange(len(by_expert)) >= len(by_expert) - sizes[-1]
    places = torch.empty_like(by_expert)
    places[by_expert] = torch.where(left_out, -1, torch.arange(len(by_expert)))
    return sizes[:-1], torch.where(left_out, -1, by_expert), places.reshape(indices.shape)


@computes("permute_tokens")
def permute_tokens(op, x, order, weights=None):
    pairs = order.clamp(min=0)
    rows = x[pairs // (len(order) // len(x))]
    if weights is not None:
        rows = rows * weights.flatten()[pairs, None]
    return torch.where(order[:, None] >= 0, rows, torch.zeros_like(rows))


def rows_of_tokens(x, places):
    """[t, k, h]: 0 for rows on other ranks."""
    rows = x[places.clamp(min=0)]
    return torch.where(places[..., None] >= 0, rows, torch.zeros_like(rows))


@computes("unpermute_tokens")
def unpermute_tokens(op, x, places, weights=None):
    rows = rows_of_tokens(x, places)
    return (rows if weights is None else rows * weights[..., None]).sum(1)


@computes("unpermute_backward_weights")
def unpermute_backward_weights(op, x, places, dy):
    return (rows_of_tokens(x, places) * dy[:, None]).sum(-1)


@computes("grouped_gemm")
def grouped_gemm(op, a, b, sizes):
    groups = a.split([*sizes.tolist(), len(a) - int(sizes.sum())])
    products = [rows @ (matrix.mT if op.transpose_b else matrix) for rows, matrix in zip(groups, b)]
    return torch.cat([*products, a.new_zeros(len(groups[-1]), products[0].shape[1])])


@computes("grouped_gemm_backward_weight")
def grouped_gemm_backward_weight(op, a, b, sizes):
    split = [*sizes.tolist(), len(a) - int(sizes.sum())]
    return torch.stack([left.mT @ right for left, right in list(zip(a.split(split), b.split(split)))[:-1]])


@computes("rotary")
def rotary(op, x, cos, sin):
    """A product of complex numbers, one per pair."""
    half = x.shape[-1] // 2
    pairs = torch.stack([x[..., :half], x[..., half:]], -1) if op.pairing == "half" else x.reshape(*x.shape[:-1], half, 2)
    turn = torch.complex(cos, -sin if op.inverse else sin)[None, :, None, :]
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    if op.pairing == "half":
        return torch.cat([turned[..., 0], turned[..., 1]], -1)
    return turned.reshape(x.shape)


def seen_pairs(op, s, t, documents):
    """[b or 1, 1, s, t]: whether a query sees a key, by distance and documents."""
    query, key = torch.arange(s)[:, None] + t - s, torch.arange(t)[None, :]
    seen = torch.ones(1, 1, s, t, dtype=torch.bool)
    if op.causal == "causal":
        seen = seen & (key <= query)
    if op.window:
        seen = seen & (query - key < op.window)
    if documents is not None:
        document = torch.stack([torch.bucketize(torch.arange(s), row, right=True) for row in documents])
        seen = seen & (document[:, None, :, None] == document[:, None, None, :])
    return seen


def attention(op, q, k, v, sinks=None, documents=None):
    """(o, log-sum-exp), from scores of all pairs; a sink is an extra key without a value."""
    shared = q.shape[2] // k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # [b, heads, s, d]
    k, v = (x.repeat_interleave(shared, 1) for x in (k, v))
    scores = op.scale * q @ k.mT
    if op.softcap:
        scores = op.softcap * torch.tanh(scores / op.softcap)
    seen = seen_pairs(op, q.shape[2], k.shape[2], documents)
    scores = scores.masked_fill(~seen, -math.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
    shares = torch.softmax(scores if sinks is not None else scores.masked_fill(~seen.any(-1, keepdim=True), 0.0), -1)
    return (shares[..., :k.shape[2]] * seen @ v).transpose(1, 2), torch.logsumexp(scores, -1)


def optional_operands(op, rest):
    """sinks and documents, those that the attributes declare."""
    rest = list(rest)
    return rest.pop(0) if op.sinks else None, rest.pop(0) if op.documents else None


@computes("attention_forward")
def attention_forward(op, q, k, v, *rest):
    return attention(op, q, k, v, *optional_operands(op, rest))


@computes("attention_backward")
def attention_backward(op, do, q, k, v, o, lse, *rest):
    sinks, documents = optional_operands(op, rest)
    if sinks is None:
        return gradients(lambda *inputs: attention(op, *inputs, None, documents)[0], [q, k, v], do)
    return gradients(lambda *inputs: attention(op, *inputs, documents)[0], [q, k, v, sinks], do)


@computes("gradient_norm")
def gradient_norm(op, g):
    return torch.nn.utils.parameters_to_vector(g).norm().reshape(1)


def clip_factor(op, norm):
    """torch.nn.utils.clip_grad_norm_, given the norm."""
    return torch.clamp(op.limit / (norm + 1e-6), max=1.0)


@computes("clip")
def clip(op, norm, g):
    return [clip_factor(op, norm) * one for one in g],


def updated(op, step, operands):
    """Applies `step` to each parameter's w, g and moments; copies equal the weights. No change if found_inf is set."""
    if op.skips:
        found, *operands = operands
        if found != 0:
            return operands[0], *operands[2:]
    lists = [list(each) for each in zip(*(step(*each) for each in zip(*(operands[:-1] if op.copies else operands))))]
    return *lists, *lists[:op.copies]


@computes("adamw")
def adamw(op, lr, step, *operands):
    return updated(op, lambda *each: adamw_step(op, float(lr), int(step), *each), operands)


def adamw_step(op, lr, step, w, g, m, v):
    """torch.optim.AdamW in the middle of training: sets its state and step count."""
    parameter = torch.nn.Parameter(w.clone())
    parameter.grad = g.clone()
    optimizer = (torch.optim.Adam if op.l2 else torch.optim.AdamW)([parameter], lr=lr, betas=(op.beta1, op.beta2), eps=op.epsilon, weight_decay=op.weight_decay)
    optimizer.state[parameter] = {"step": torch.tensor(float(step - 1)), "exp_avg": m.clone(), "exp_avg_sq": v.clone()}
    optimizer.step()
    state = optimizer.state[parameter]
    return parameter.detach(), state["exp_avg"], state["exp_avg_sq"]


@computes("clip_adamw")
def clip_adamw(op, norm, lr, step, *operands):
    g = 2 if op.skips else 1
    return adamw(op, lr, step, *operands[:g], *clip(op, norm, operands[g]), *operands[g + 1:])


@computes("sgd")
def sgd(op, lr, *operands):
    return updated(op, lambda *each: sgd_step(op, float(lr), *each), operands)


def sgd_step(op, lr, w, g, m):
    """torch.optim.SGD, which keeps no moment if momentum is zero; it equals the gradient with decay."""
    parameter = torch.nn.Parameter(w.clone())
    parameter.grad = g.clone()
    optimizer = torch.optim.SGD([parameter], lr=lr, momentum=op.momentum, weight_decay=op.weight_decay,
                                nesterov=op.nesterov and op.momentum > 0)  # without momentum it changes nothing, and PyTorch refuses it
    optimizer.state[parameter] = {"momentum_buffer": m.clone()}
    optimizer.step()
    buffer = optimizer.state[parameter]["momentum_buffer"] if op.momentum else g + op.weight_decay * w
    return parameter.detach(), buffer


@computes("lion")
def lion(op, lr, *operands):
    """Algorithm 2 of arXiv 2302.06675, which PyTorch lacks."""
    def step(w, g, m):
        sign = torch.sign(op.beta1 * m + (1 - op.beta1) * g)
        return w - lr * (sign + op.weight_decay * w), op.beta2 * m + (1 - op.beta2) * g
    return updated(op, step, operands)


@computes("unscale")
def unscale(op, scale, g):
    """torch._amp_foreach_non_finite_check_and_unscale_, which PyTorch 1.13 has on GPUs only."""
    return torch.tensor([float(not all(torch.isfinite(one).all() for one in g))]).double(), [one / scale for one in g]


@computes("update_scale")
def update_scale(op, scale, tracker, found_inf):
    """torch._amp_update_scale_, which PyTorch 1.13 has on GPUs only."""
    if found_inf != 0:
        return scale * op.backoff, torch.zeros_like(tracker)
    grows = tracker + 1 == op.interval
    return (scale * op.growth, torch.zeros_like(tracker)) if grows else (scale, tracker + 1)


# Collectives, by the definitions of MPI 4.1, chapter 6, in tensor operations, as torch.distributed has no fp64 average
# and needs processes. One tensor per rank, in order, or several (all_reduce).

def reduced(op, tensors):
    stacked = torch.stack(tensors)
    return {"sum": stacked.sum, "avg": stacked.mean, "max": stacked.amax}[op.reduction](0)


@computes("all_reduce")
def all_reduce(op, x):
    each = len(x) // op.ranks
    return [reduced(op, x[i::each]) for i in range(each)] * op.ranks,


@computes("reduce_scatter")
def reduce_scatter(op, x):
    return list(reduced(op, [one.flatten() for one in x]).chunk(op.ranks)),


@computes("all_gather")
def all_gather(op, x):
    parts = [one.flatten() for one in x]
    if op.outputs["y"][0].numel() == parts[0].numel():  # in place: each rank holds room for all parts, and its own in its place
        parts = [one.chunk(op.ranks)[rank] for rank, one in enumerate(parts)]
    return [torch.cat(parts)] * op.ranks,


@computes("broadcast")
def broadcast(op, x):
    return x * op.ranks,


@computes("all_to_all")
def all_to_all(op, x):
    counts = torch.tensor(op.counts).reshape(op.ranks, op.ranks).tolist()
    blocks = [one.flatten().split(counts[rank]) for rank, one in enumerate(x)]
    return [torch.cat([blocks[sender][rank] for sender in range(op.ranks)]) for rank in range(op.ranks)],


def expert_blocks(op, rows, sizes):
    """Each rank's rows by expert, and the rest."""
    counts = [one.long().tolist() for one in sizes]
    return [one.split([*of_rank, one.shape[0] - sum(of_rank)]) for one, of_rank in zip(rows, counts)]


@computes("dispatch_tokens")
def dispatch_tokens(op, x, sizes):
    each = sizes[0].numel() // op.ranks
    blocks = expert_blocks(op, x, sizes)
    y = []
    for rank in range(op.ranks):
        mine = torch.cat([block[expert] for expert in range(rank * each, (rank + 1) * each) for block in blocks])
        y.append(torch.cat([mine, mine.new_zeros(op.ranks * x[0].shape[0] - mine.shape[0], mine.shape[1])]))
    total = torch.stack(list(sizes)).sum(0)
    return y, list(total.chunk(op.ranks))


@computes("return_tokens")
def return_tokens(op, y, sizes):
    """Dispatches row numbers and inverts the result."""
    n, h = y[0].shape[0] // op.ranks, y[0].shape[1]
    numbers = [torch.arange(1, n + 1).double()[:, None] + rank * n for rank in range(op.ranks)]
    x = y[0].new_zeros(op.ranks * n, h)
    for rows, where in zip(y, dispatch_tokens(op, numbers, sizes)[0]):
        there = where[:, 0].long() - 1
        x = x.index_put((there[there >= 0],), rows[there >= 0])
    return list(x.chunk(op.ranks)),


@computes("send_recv")
def send_recv(op, x):
    if op.round == 0:
        return [x[(rank - op.shift) % op.ranks] for rank in range(op.ranks)],
    m = op.ranks - 1 + op.ranks % 2
    meets = {rank: [q for q in range(m) if q != rank and (q + rank - op.round) % m == 0] for rank in range(m)}
    alone = next(rank for rank in range(m) if not meets[rank])
    other = m if m < op.ranks else alone
    meets[alone], meets[other] = [other], [alone]
    return [x[meets[rank][0]] for rank in range(op.ranks)],


def compute(op, inputs):
    """{output name: tensor, or list of tensors}, from inputs in the op's order."""
    results = table[op.kind](op, *inputs)
    if isinstance(results, torch.Tensor):
        results = (results,)
    names = list(op.output_ids)
    assert len(results) == len(names), f"{op.kind}: {len(results)} results for {names}"
    return dict(zip(names, results))
