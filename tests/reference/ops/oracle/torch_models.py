"""Training steps written from the papers, which know nothing of our programs but the names of their tensors.

table[workload](rank, w) -> (loss, {what it is: (ours, what it should be)}): the forward of one rank, `w` being the parameters; gradients and
updates follow (steps_of). Where it should be a leaf, its gradient should.
"""
import math

import torch
import torch.nn.functional as F

import torch_ops
from recorded import Rank

table = {}


def step_of(workload):
    def register(function):
        table[workload] = function
        return function
    return register


class Parameters:
    """Leaves of a training, by name; `rank`: whose values they start from."""

    def __init__(self, rank):
        self.rank, self.leaves = rank, {}

    def __getitem__(self, name):
        if name not in self.leaves:
            self.leaves[name] = self.rank.named(name).clone().requires_grad_()
        return self.leaves[name]


def steps_of(workload, program):
    """{what it is: (ours, what it should be)}. Every rank has a batch of its own; models average the loss over them, blocks add."""
    ranks = [Rank(program, i) for i in range(program.ranks)]
    w = Parameters(ranks[0])
    forwards = [table[workload](rank, w) for rank in ranks]
    total = sum(loss for loss, _ in forwards)
    (total if workload.endswith("_block") else total / len(ranks)).backward()
    updated = adamw(ranks[0], w)
    found = {}
    for i, (rank, (_, forward)) in enumerate(zip(ranks, forwards)):
        expected = {what: (ours, want.grad if want.is_leaf else want) for what, (ours, want) in forward.items()}
        for what, (ours, want) in updated.items():
            expected[what] = ours(rank), want
        found.update({f"rank {i}: {what}": pair for what, pair in expected.items()})
    return found


def adamw(rank, w):
    """{what it is: (where a rank has it, what it should be)}: gradients, their norm, and what AdamW makes of the clipped ones, as the
    recipe of GPT-3 has it (Brown et al., 2020, appendix B)."""
    found = {}

    def expect(name, want):
        found[name] = (lambda rank: rank.named(name)), want

    for name, leaf in w.leaves.items():
        found[f"gradient of {name}"] = (lambda rank, name=name: rank.gradient(name)), leaf.grad.clone()
    expect("gradient_norm", torch.nn.utils.clip_grad_norm_(list(w.leaves.values()), 1.0).reshape(1))
    for name, leaf in w.leaves.items():
        optimizer = torch.optim.AdamW([leaf], lr=float(rank.named("lr")), betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        state = {"step": torch.tensor(float(rank.named("step")) - 1), "exp_avg": rank.named(name + ".m").clone(),
                 "exp_avg_sq": rank.named(name + ".v").clone()}
        optimizer.state[leaf] = state
        optimizer.step()
        expect(name + "'", leaf.detach())
        expect(name + ".m'", state["exp_avg"])
        expect(name + ".v'", state["exp_avg_sq"])
        if rank.find(name + ".master'") is not None:
            expect(name + ".master'", leaf.detach())
    return found


def block_step(rank, block):
    """`block`: of x [b, s, h]."""
    given = rank.named("x")
    x = given.clone().requires_grad_()
    y = block(x.reshape(rank.dims["b"], -1, given.shape[-1])).reshape(given.shape)
    return (y * rank.named("dy")).sum(), {"y": (rank.named("residual2"), y), "gradient of x": (rank.named("d(x)"), x)}


# Radford et al., Language Models are Unsupervised Multitask Learners (2019): pre-norm blocks, GELU (tanh), tied embedding.

def gpt2_block(w, prefix, x, heads):
    """x: [b, s, h]"""
    def linear(name, x):
        return F.linear(x, w[prefix + name + ".w"], w[prefix + name + ".b"])

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], w[prefix + name + ".gamma"], w[prefix + name + ".beta"], 1e-5)

    b, s, h = x.shape
    q, k, v = (part.reshape(b, s, heads, h // heads).transpose(1, 2) for part in linear("qkv", norm("ln1", x)).chunk(3, -1))
    scores = q @ k.mT / math.sqrt(h // heads)
    scores = scores.masked_fill(torch.ones(s, s, dtype=torch.bool).triu(1), -math.inf)
    attended = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, s, h)
    x = x + linear("attention_out", attended)
    return x + linear("down", torch_ops.gelu("tanh", linear("up", norm("ln2", x))))


@step_of("gpt2_train_step")
def gpt2_train_step(rank, w):
    b, s, layers, heads = (rank.dims[name] for name in ("b", "s", "layers", "heads"))
    x = w["wte"][rank.named("tokens").reshape(b, s)] + w["wpe"][torch.arange(s)]
    for layer in range(layers):
        x = gpt2_block(w, f"block{layer}.", x, heads)
    x = F.layer_norm(x, x.shape[-1:], w["ln_f.gamma"], w["ln_f.beta"], 1e-5)
    logits = (x @ w["wte"].mT).flatten(0, 1)
    loss = F.cross_entropy(logits, rank.named("labels"))
    return loss, {"logits": (rank.named("logits"), logits), "loss": (rank.named("loss.loss"), loss.reshape(1))}


@step_of("gpt2_block")
def gpt2_block_step(rank, w):
    return block_step(rank, lambda x: gpt2_block(w, "", x, rank.dims["heads"]))


# Llama 3 (Grattafiori et al., 2024): RMSNorm (Zhang and Sennrich), rotary positions (Su et al.) of the first half of a head with the second,
# grouped-query attention (Ainslie et al.), SwiGLU (Shazeer), no biases.

def llama_norm(gamma, x):
    return gamma * x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + 1e-5)


def llama_block(rank, w, prefix, x):
    """x: [b, s, h]"""
    cos, sin = rank.named("cos"), rank.named("sin")  # [s, d/2]; the suite's are not of true angles

    def turned(x):
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    (b, s, h), heads, kv = x.shape, rank.dims["heads"], rank.dims["kv"]
    d = h // heads
    q, k, v = F.linear(llama_norm(w[prefix + "norm1.gamma"], x), w[prefix + "qkv.w"]).split([heads * d, kv * d, kv * d], -1)
    q, k, v = (part.reshape(b, s, -1, d).transpose(1, 2) for part in (q, k, v))
    q, k = turned(q), turned(k)
    k, v = (part[:, :, None].expand(b, kv, heads // kv, s, d).reshape(b, heads, s, d) for part in (k, v))
    scores = q @ k.mT / math.sqrt(d) + torch.full((s, s), -math.inf, dtype=x.dtype).triu(1)
    x = x + F.linear((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, s, h), w[prefix + "attention_out.w"])
    gate, up = F.linear(llama_norm(w[prefix + "norm2.gamma"], x), w[prefix + "gate_up.w"]).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, w[prefix + "down.w"])


@step_of("llama_train_step")
def llama_train_step(rank, w):
    x = w["embedding.table"][rank.named("tokens").reshape(rank.dims["b"], -1)]
    for layer in range(rank.dims["layers"]):
        x = llama_block(rank, w, f"block{layer}.", x)
    logits = F.linear(llama_norm(w["norm.gamma"], x), w["head.w"]).flatten(0, 1)
    loss = F.cross_entropy(logits, rank.named("labels"))
    return loss, {"logits": (rank.named("head"), logits), "loss": (rank.named("loss.loss"), loss.reshape(1))}


@step_of("llama_block")
def llama_block_step(rank, w):
    return block_step(rank, lambda x: llama_block(rank, w, "", x))
