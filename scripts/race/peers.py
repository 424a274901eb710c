"""PyTorch's side: the same work on random data of the same scale, with cold caches as in gpubench. Timed by events on a GPU,
by the host's clock on the CPU, with as many threads as gpubench uses."""
import contextlib
import ctypes
import gc
import os
import re
import statistics
import time

import torch
import torch.nn.functional as F

from . import gpt2, resnet
from .races import CannotRace


def cublaslt_version():
    """Version of the library loaded by this process, which may differ from gpubench's; "not loaded": none."""
    path = loaded_library("libcublasLt")
    if not path:
        return "not loaded"
    function = ctypes.CDLL(path).cublasLtGetVersion
    function.restype = ctypes.c_size_t
    number = function()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def loaded_library(name):
    """The path of a loaded library; empty: not loaded."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        found = re.search(rf"(/\S*{re.escape(name)}\.so\S*)", maps.read())
    return found.group(1) if found else ""


def versions(device):
    """Versions of the peer's libraries, for the record."""
    if torch.device(device).type == "cpu":
        found = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
        return {"torch": torch.__version__, "oneDNN": found.group(1) if found else "none",
                "blas": loaded_library("blas") or "none", "threads": str(torch.get_num_threads())}
    return {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version()),
            "cublasLt": cublaslt_version(), "device": torch.cuda.get_device_name(device)}


def dims(case):
    """The numbers in a case's id: {"m": 4096, ...}."""
    return {key: int(value) for key, value in re.findall(r"[/,]([a-z0-9]+)=(\d+)", case)}


def random(device, dtype, *shape):
    return torch.randn(*shape, device=device, dtype=dtype)


def keeping(run):
    """The run, with its results kept until the next run of the same inputs, as activations are kept for the backward.
    Otherwise the allocator would reuse the last result's memory, and the next result would be written into the cache."""
    held = []

    def again():
        held[:] = [run()]

    return again


def gemm(device, dtype, d, copies):
    sets = [(random(device, dtype, d["m"], d["k"]), random(device, dtype, d["k"], d["n"]) / d["k"] ** 0.5,
             torch.empty(d["m"], d["n"], device=device, dtype=dtype)) for _ in range(copies)]
    return [lambda a=a, b=b, c=c: torch.mm(a, b, out=c) for a, b, c in sets]


def convolution(device, dtype, d, copies, workload):
    """NHWC, as in gpubench; gradients by the function that autograd calls."""
    layout = {"memory_format": torch.channels_last}
    padding = [d["pad"], d["pad"]]
    runs = []
    for _ in range(copies):
        x = random(device, dtype, d["n"], d["c"], d["h"], d["w"]).to(**layout)
        w = random(device, dtype, d["k"], d["c"], d["r"], d["s"]).to(**layout) / (d["c"] * d["r"] * d["s"]) ** 0.5
        if workload == "conv2d_forward":
            runs.append(lambda x=x, w=w: F.conv2d(x, w, stride=d["stride"], padding=d["pad"]))
            continue
        dy = torch.randn_like(F.conv2d(x, w, stride=d["stride"], padding=d["pad"]))
        wanted = [workload == "conv2d_backward_data", workload == "conv2d_backward_filter", False]
        runs.append(lambda x=x, w=w, dy=dy: torch.ops.aten.convolution_backward(
            dy, x, w, None, [d["stride"]] * 2, padding, [1, 1], False, [0, 0], 1, wanted))
    return runs


def qkv(device, dtype, d):
    """q, k, v: [batch, heads, sequence, d], parts of one packed projection, as in gpubench's case."""
    packed = random(device, dtype, d["b"], d["s"], (d["h"] + 2 * d["kv"]) * d["d"])
    parts = packed.split([d["h"] * d["d"], d["kv"] * d["d"], d["kv"] * d["d"]], dim=2)
    return [part.unflatten(2, (-1, d["d"])).transpose(1, 2).requires_grad_() for part in parts]


def attention(device, dtype, d, copies, backward, cudnn):
    from torch.nn.attention import SDPBackend, sdpa_kernel  # PyTorch 2.3 or later

    def chosen():
        return sdpa_kernel(SDPBackend.CUDNN_ATTENTION) if cudnn else contextlib.nullcontext()

    def forward(q, k, v):
        with chosen():  # inputs require gradients, so that it keeps the log-sum-exp, as gpubench does
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])

    runs = []
    for _ in range(copies):
        inputs = qkv(device, dtype, d)
        if not backward:
            runs.append(lambda inputs=inputs: forward(*inputs))
            continue
        out = forward(*inputs)
        d_out = torch.randn_like(out)
        runs.append(lambda inputs=inputs, out=out, d_out=d_out: torch.autograd.grad(out, inputs, d_out, retain_graph=True))
    return runs


def of_rows(device, dtype, d, copies, workload):
    """Ops on rows of n numbers, by the functions of eager mode, into existing outputs if they accept them."""
    aten, runs = torch.ops.aten, []
    for _ in range(copies):
        x, y, dy = (random(device, dtype, d["rows"], d["n"]) for _ in range(3))
        gamma, beta = torch.ones(d["n"], device=device, dtype=dtype), torch.zeros(d["n"], device=device, dtype=dtype)
        labels = torch.randint(d["n"], (d["rows"],), device=device)
        if workload.startswith("layer_norm"):
            normed, mean, rstd = aten.native_layer_norm(x, [d["n"]], gamma, beta, 1e-5)
        if workload == "layer_norm_forward":
            runs.append(lambda x=x, gamma=gamma, beta=beta: aten.native_layer_norm(x, [d["n"]], gamma, beta, 1e-5))
        elif workload == "layer_norm_backward":
            runs.append(lambda dy=dy, x=x, mean=mean, rstd=rstd, gamma=gamma, beta=beta: aten.native_layer_norm_backward(
                dy, x, [d["n"]], mean, rstd, gamma, beta, [True, True, True]))
        elif workload == "softmax_forward":
            runs.append(lambda x=x, y=y: aten._softmax.out(x, 1, False, out=y))
        elif workload == "gelu_forward":
            runs.append(lambda x=x, y=y: aten.gelu.out(x, approximate="tanh", out=y))
        elif workload == "gelu_backward":
            runs.append(lambda dy=dy, x=x, y=y: aten.gelu_backward.grad_input(dy, x, approximate="tanh", grad_input=y))
        elif workload == "cross_entropy_forward":
            runs.append(lambda x=x, labels=labels: F.cross_entropy(x, labels, reduction="none"))
        else:
            raise CannotRace(f"no PyTorch implementation of {workload}")
    return runs


def adamw(device, d):
    weight = torch.nn.Parameter(torch.randn(d["n"], device=device) / 4)
    weight.grad = torch.randn(d["n"], device=device) / 16
    return [torch.optim.AdamW([weight], lr=1.0 / 1024, betas=(0.9, 0.95), weight_decay=0.1, fused=True).step]


class Peers:
    """Builds and times the PyTorch sides on one device, each block for about `seconds`."""

    def __init__(self, device, seconds):
        self.device, self.seconds = device, seconds
        self.on_gpu = torch.device(device).type == "cuda"
        if not self.on_gpu:
            torch.set_num_threads(len(os.sched_getaffinity(0)))

    def runs(self, race, peer, copies):
        """`copies` functions that do the race's work once each, on separate inputs, for cold caches."""
        d = dims(race.case)
        suite, workload, _, recipe, _ = race.case.split("/")
        dtype = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[recipe]
        if workload == "matmul":
            return gemm(self.device, dtype, d, copies)
        if suite == "conv":
            return convolution(self.device, dtype, d, copies, workload)
        if suite == "attention":
            return attention(self.device, dtype, d, copies, workload == "causal_backward", peer == "sdpa cudnn")
        if suite in ("norm", "activation", "loss"):
            return of_rows(self.device, dtype, d, copies, workload)
        if workload == "adamw":
            return adamw(self.device, d)
        if workload == "gpt2_train_step":
            if not self.on_gpu and recipe == "f32" and re.search(r"/blas/libblas\.so", loaded_library("libblas")):
                raise CannotRace("PyTorch uses the slow reference BLAS for f32 products; install "
                                 "libopenblas0-pthread")
            return [gpt2.training_step(self.device, d["b"], d["s"], d["layers"], d["h"], d["heads"], d["vocab"],
                                       recipe, self.on_gpu)]
        if workload == "resnet_train_step":
            return [resnet.training_step(self.device, d["n"], d["image"], d["classes"], recipe)]
        raise CannotRace(f"no PyTorch implementation of {race.case}")

    def side(self, race, peer, copies):
        """A function that runs one block and returns the median seconds per run."""
        torch.manual_seed(42)
        runs = [keeping(run) for run in self.runs(race, peer, copies)]
        for run in runs:  # compiles, tunes and allocates
            run()
        self.window(runs, 3 * len(runs))
        return lambda: self.block(runs)

    def window(self, runs, count):
        """Seconds for `count` consecutive runs; on a GPU, between two events of the stream."""
        if not self.on_gpu:
            start = time.perf_counter()
            for i in range(count):
                runs[i % len(runs)]()
            return time.perf_counter() - start
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for i in range(count):
            runs[i % len(runs)]()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def block(self, runs):
        warm = self.window(runs, len(runs)) / len(runs)
        count = max(1, min(4096, int(self.seconds / 20 / max(warm, 1e-6))))  # about 20 windows per block
        total, samples = 0.0, []
        while total < self.seconds or len(samples) < 3:
            taken = self.window(runs, count)
            total += taken
            samples.append(taken / count)
        return statistics.median(samples)

    @staticmethod
    def release():
        """Frees the memory of a race, before gpubench's next race needs it."""
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
