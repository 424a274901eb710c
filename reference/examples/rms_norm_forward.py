"""rms_norm_forward in PyTorch: y = gamma x rstd, rstd = 1 / sqrt(mean of x^2 + epsilon).

gpubench run --impl rms_norm_forward.py --versus reference --filter norm/rms_norm_forward
"""

import torch

import gpubench


@gpubench.implements("rms_norm_forward", tensors="torch", types=("f32", "bf16"))
def rms_norm_forward(x, gamma, *, epsilon, out):
    wide = x.float()
    rstd = torch.rsqrt(wide.square().mean(-1) + epsilon)
    out["y"].copy_(gamma.float() * wide * rstd.unsqueeze(-1))
    out["rstd"].copy_(rstd)
