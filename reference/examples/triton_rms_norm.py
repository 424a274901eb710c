"""RMSNorm as a Triton kernel. Not yet run on a GPU.

    gpubench --impl reference/examples/triton_rms_norm.py --versus reference --filter rms_norm_forward
"""

import gpubench
import triton
import triton.language as tl

__version__ = f"Triton {triton.__version__}"


@triton.jit
def kernel(x, gamma, y, rstd, columns, epsilon, block: tl.constexpr):
    """A row for each program: mean of squares and the scaled row in f32, rounded once."""
    row = tl.program_id(0)
    at = tl.arange(0, block)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(values * values, 0) / columns + epsilon)
    weights = tl.load(gamma + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * columns + at, (values * scale * weights).to(y.dtype.element_ty), mask=inside)
    tl.store(rstd + row, scale)


def fits(call):
    if call.on_host:
        return "Triton's kernels run on a GPU"
    return call.shapes["x"][-1] <= 65536 or "rows are longer than a block of Triton's"


@gpubench.implements("rms_norm_forward", types=("f32", "f16", "bf16"), when=fits)
def triton_rms_norm(x, gamma, epsilon, out):
    columns = x.shape[-1]
    rows = x.numel() // columns
    kernel[(rows,)](x, gamma, out.y, out.rstd, columns, epsilon, block=triton.next_power_of_2(columns))
