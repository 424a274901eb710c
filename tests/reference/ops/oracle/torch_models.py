"""Training steps written from the papers, which know nothing of our programs but the names of their tensors.

table[workload](program) -> {what it is: (ours, what it should be)}
"""
import math

import torch
import torch.nn.functional as F

import torch_ops

table = {}


def step_of(workload):
    def register(function):
        table[workload] = function
        return function
    return register


class Parameters:
    """Leaves of a training, by name; `program`: where they start."""

    def __init__(self, program):
        self.program, self.leaves = program, {}

    def __getitem__(self, name):
        if name not in self.leaves:
            self.leaves[name] = self.program.named(name).clone().requires_grad_()
        return self.leaves[name]


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


def trained(program, w, loss):
    """Gradients, their norm, and what AdamW makes of the clipped ones, as the recipe of GPT-3 has it (Brown et al., 2020, appendix B)."""
    loss.backward()
    optimized = [name for name in w.leaves if program.find(name + ".m") is not None]
    found = {f"gradient of {name}": (program.gradient(name), w[name].grad.clone()) for name in optimized}
    norm = torch.nn.utils.clip_grad_norm_([w[name] for name in optimized], 1.0)
    found["norm of the gradients"] = program.named("gradient_norm"), norm.reshape(1)
    for name in optimized:
        optimizer = torch.optim.AdamW([w[name]], lr=float(program.named("lr")), betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        state = {"step": torch.tensor(float(program.named("step")) - 1), "exp_avg": program.named(name + ".m").clone(),
                 "exp_avg_sq": program.named(name + ".v").clone()}
        optimizer.state[w[name]] = state
        optimizer.step()
        for what, want in ((name, w[name].detach()), (name + ".m", state["exp_avg"]), (name + ".v", state["exp_avg_sq"])):
            found[what + "'"] = program.named(what + "'"), want
        if program.find(name + ".master'") is not None:
            found[name + ".master'"] = program.named(name + ".master'"), w[name].detach()
    return found


@step_of("gpt2_train_step")
def gpt2_train_step(program):
    w = Parameters(program)
    b, s, layers, heads = (program.dims[name] for name in ("b", "s", "layers", "heads"))
    x = w["wte"][program.named("tokens").reshape(b, s)] + w["wpe"][torch.arange(s)]
    for layer in range(layers):
        x = gpt2_block(w, f"block{layer}.", x, heads)
    x = F.layer_norm(x, x.shape[-1:], w["ln_f.gamma"], w["ln_f.beta"], 1e-5)
    logits = (x @ w["wte"].mT).reshape(b * s, -1)
    loss = F.cross_entropy(logits, program.named("labels"))
    return {"logits": (program.named("logits"), logits), "loss": (program.named("loss.loss"), loss.reshape(1)), **trained(program, w, loss)}


@step_of("gpt2_block")
def gpt2_block_step(program):
    w = Parameters(program)
    x = w["x"]
    y = gpt2_block(w, "", x.reshape(program.dims["b"], program.dims["s"], -1), program.dims["heads"]).reshape(x.shape)
    found = trained(program, w, (y * program.named("dy")).sum())
    return {"y": (program.named("residual2"), y), "gradient of x": (program.named("d(x)"), x.grad), **found}


# Llama 3 (Grattafiori et al., 2024): RMSNorm (Zhang and Sennrich), rotary positions (Su et al.) of the first half of a head with the second,
# grouped-query attention (Ainslie et al.), SwiGLU (Shazeer), no biases.

def llama_block(w, prefix, x, heads, kv):
    """x: [b, s, h]"""
    def norm(name, x):
        return w[prefix + name + ".gamma"] * x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + 1e-5)

    def turned(x):
        first, second = x.chunk(2, -1)
        return torch.cat([first * w.tables[0] - second * w.tables[1], second * w.tables[0] + first * w.tables[1]], -1)

    b, s, h = x.shape
    d = h // heads
    q, k, v = (F.linear(norm("norm1", x), w[prefix + "qkv.w"])).split([heads * d, kv * d, kv * d], -1)
    q, k, v = (part.reshape(b, s, -1, d).transpose(1, 2) for part in (q, k, v))
    q, k = turned(q), turned(k)
    k, v = (part[:, :, None].expand(b, kv, heads // kv, s, d).reshape(b, heads, s, d) for part in (k, v))
    scores = q @ k.mT / math.sqrt(d) + torch.full((s, s), -math.inf, dtype=x.dtype).triu(1)
    x = x + F.linear((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, s, h), w[prefix + "attention_out.w"])
    gate, up = F.linear(norm("norm2", x), w[prefix + "gate_up.w"]).chunk(2, -1)
    return x + F.linear(F.silu(gate) * up, w[prefix + "down.w"])


class LlamaParameters(Parameters):
    def __init__(self, program):
        super().__init__(program)
        self.tables = program.named("cos"), program.named("sin")  # [s, d/2]; the suite's are not of true angles


@step_of("llama_train_step")
def llama_train_step(program):
    w, dims = LlamaParameters(program), program.dims
    x = w["embedding.table"][program.named("tokens").reshape(dims["b"], dims["s"])]
    for layer in range(dims["layers"]):
        x = llama_block(w, f"block{layer}.", x, dims["heads"], dims["kv"])
    x = w["norm.gamma"] * x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + 1e-5)
    logits = F.linear(x, w["head.w"]).flatten(0, 1)
    loss = F.cross_entropy(logits, program.named("labels"))
    return {"logits": (program.named("head"), logits), "loss": (program.named("loss.loss"), loss.reshape(1)), **trained(program, w, loss)}


@step_of("llama_block")
def llama_block_step(program):
    w, dims = LlamaParameters(program), program.dims
    x = w["x"]
    y = llama_block(w, "", x.reshape(dims["b"], dims["s"], -1), dims["heads"], dims["kv"]).reshape(x.shape)
    found = trained(program, w, (y * program.named("dy")).sum())
    return {"y": (program.named("residual2"), y), "gradient of x": (program.named("d(x)"), x.grad), **found}
