"""PyTorch's own functions on a CPU as an implementation under test:

    gpubench --device cpu --impl reference/examples/torch_cpu.py --versus reference --suite norm,attention,loss,optimizer
"""

import gpubench
import torch
import torch.nn.functional as F

__version__ = f"PyTorch {torch.__version__}"


@gpubench.implements("layer_norm_forward", types=("f32",))  # in bf16 its statistics are rounded to bf16
def native_layer_norm(x, gamma, beta, epsilon):
    y, mean, rstd = torch.native_layer_norm(x, gamma.shape, gamma, beta, epsilon)
    return y, mean.squeeze(-1), rstd.squeeze(-1)


@gpubench.implements("rms_norm_forward", types=("f32",))
def rms_norm(x, gamma, epsilon, out):
    torch.mean(x * x, -1, out=out.rstd)
    out.rstd.add_(epsilon).rsqrt_()
    torch.mul(x, out.rstd.unsqueeze(-1), out=out.y)
    out.y.mul_(gamma)


@gpubench.implements("softmax_forward")
def softmax(x, out):
    torch.softmax(x, -1, out=out.y)


@gpubench.implements("cross_entropy_forward", types=("f32",))
def cross_entropy(logits, labels):
    lse = torch.logsumexp(logits, -1)
    return F.cross_entropy(logits, labels.long()).reshape(1), lse


@gpubench.implements("attention_forward", types=("f32",))
def attention(q, k, v, causal, scale):
    groups = q.shape[2] // k.shape[2]  # heads of q that share one of k and v
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = (q @ k.transpose(-1, -2)).mul_(scale)
    if causal == "causal":
        queries, keys = scores.shape[-2:]
        scores.masked_fill_(torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries).logical_not_(), float("-inf"))
    lse = torch.logsumexp(scores, -1)
    finite = lse.unsqueeze(-1).clamp_min(torch.finfo(torch.float32).min)  # -inf where a query sees no key: its weights are 0
    return (torch.exp_(scores.sub_(finite)) @ v).transpose(1, 2), lse


@gpubench.implements("adamw", types=("f32",), when=lambda call: not (call.attributes["copies"] or call.attributes["skips"]))
def adamw(lr, step, w, g, m, v, beta1, beta2, epsilon, weight_decay, out):
    """Weights, moments and outputs are the same memory: the outputs are updates."""
    rate, steps = lr.item(), step.item()
    correction1, correction2 = 1 - beta1**steps, 1 - beta2**steps
    for weight, gradient, first, second in zip(w, g, m, v):
        first.lerp_(gradient, 1 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        size = (second / correction2).sqrt_().add_(epsilon)
        weight.mul_(1 - rate * weight_decay).addcdiv_(first, size, value=-rate / correction1)
