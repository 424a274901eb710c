"""Training steps written from the papers; they use only the tensor names of gpubench's programs.

table[workload] = forward, optimizer, for parameters `w`:
forward(rank, w) -> (loss, {name: (got, expected)}); for an expected leaf, its gradient is compared.
optimizer(rank, w) -> {name: (place on a rank, expected)}: gradients and updates.
"""
import math

import torch
import torch.nn.functional as F

import torch_ops
from recorded import Rank

table = {}


def step_of(workloads, optimizer):
    def register(function):
        table.update(dict.fromkeys(workloads.split(), (function, optimizer)))
        return function
    return register


class Parameters:
    """Leaves of a training step, by name, with the initial values of `rank`."""

    def __init__(self, rank):
        self.rank, self.leaves = rank, {}

    def __getitem__(self, name):
        if name not in self.leaves:
            self.leaves[name] = self.rank.named(name).clone().requires_grad_()
        return self.leaves[name]


def steps_of(workload, program):
    """{name: (got, expected)}. Every rank has a batch: models average the loss over ranks; blocks, which have a dy, sum."""
    ranks = [Rank(program, i) for i in range(program.ranks)]
    w = Parameters(ranks[0])
    forward, optimizer = table[workload]
    forwards = [forward(rank, w) for rank in ranks]
    total = sum(loss for loss, _ in forwards)
    (total if ranks[0].find("dy") is not None else total / len(ranks)).backward()
    updated = optimizer(ranks[0], w)
    found = {}
    for i, (rank, (_, results)) in enumerate(zip(ranks, forwards)):
        expected = {what: (ours, want.grad if want.is_leaf and want.requires_grad else want) for what, (ours, want) in results.items()}
        for what, (ours, want) in updated.items():
            expected[what] = ours(rank), want
        found.update({f"rank {i}: {what}": pair for what, pair in expected.items()})
    return found


class Expected(dict):
    """{name: (place on a rank, expected)}"""

    def expect(self, name, want):
        self[name] = (lambda rank: rank.named(name)), want

    def expect_gradients(self, w):
        for name, leaf in w.leaves.items():
            self[f"gradient of {name}"] = (lambda rank, name=name: rank.gradient(name)), leaf.grad.clone()

    def expect_update(self, rank, name, leaf, optimizer, state):
        """`state`: the optimizer's, updated in place; members by suffix of gpubench's tensors."""
        optimizer.step()
        self.expect(name + "'", leaf.detach())
        for suffix, member in state.items():
            self.expect(name + suffix + "'", optimizer.state[leaf][member])
        if rank.find(name + ".master'") is not None:
            self.expect(name + ".master'", leaf.detach())


def adamw(rank, w):
    """Clipped at 1, as for GPT-3 (Brown et al., 2020, appendix B)."""
    found = Expected()
    found.expect_gradients(w)
    found.expect("gradient_norm", torch.nn.utils.clip_grad_norm_(list(w.leaves.values()), 1.0).reshape(1))
    for name, leaf in w.leaves.items():
        optimizer = torch.optim.AdamW([leaf], lr=float(rank.named("lr")), betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
        optimizer.state[leaf] = {"step": torch.tensor(float(rank.named("step")) - 1), "exp_avg": rank.named(name + ".m").clone(),
                                 "exp_avg_sq": rank.named(name + ".v").clone()}
        found.expect_update(rank, name, leaf, optimizer, {".m": "exp_avg", ".v": "exp_avg_sq"})
    return found


def sgd(rank, w):
    """He et al., arXiv 1512.03385, 3.4: momentum 0.9, a weight decay of 0.0001."""
    found = Expected()
    found.expect_gradients(w)
    for name, leaf in w.leaves.items():
        optimizer = torch.optim.SGD([leaf], lr=float(rank.named("lr")), momentum=0.9, weight_decay=1e-4)
        optimizer.state[leaf] = {"momentum_buffer": rank.named(name + ".m").clone()}
        found.expect_update(rank, name, leaf, optimizer, {".m": "momentum_buffer"})
    return found


def block_step(rank, y_name, block):
    """`block`: applied to x as stored."""
    x = rank.named("x").clone().requires_grad_()
    y = block(x)
    return (y * rank.named("dy")).sum(), {"y": (rank.named(y_name), y), "gradient of x": (rank.named("d(x)"), x)}


def loss_of(rank, logits, name, smoothing=0.0):
    """The return value of a classifier; `name`: of gpubench's logits."""
    loss = F.cross_entropy(logits, rank.named("labels"), label_smoothing=smoothing)
    return loss, {"logits": (rank.named(name), logits), "loss": (rank.named("loss.loss"), loss.reshape(1))}


def linear(w, name, x):
    return F.linear(x, w[name + ".w"], w[name + ".b"])


def layer_norm(w, name, x, epsilon):
    return F.layer_norm(x, x.shape[-1:], w[name + ".gamma"], w[name + ".beta"], epsilon)


def self_attention(w, prefix, x, heads, causal):
    """Vaswani et al., arXiv 1706.03762. x: [b, s, h]"""
    b, s, h = x.shape
    q, k, v = (part.reshape(b, s, heads, h // heads).transpose(1, 2) for part in linear(w, prefix + "qkv", x).chunk(3, -1))
    scores = q @ k.mT / math.sqrt(h // heads)
    if causal:
        scores = scores.masked_fill(torch.ones(s, s, dtype=torch.bool).triu(1), -math.inf)
    return linear(w, prefix + "attention_out", (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, s, h))


def mlp(w, prefix, x, form):
    return linear(w, prefix + "down", torch_ops.gelu(form, linear(w, prefix + "up", x)))


# Radford et al., Language Models are Unsupervised Multitask Learners (2019): pre-norm blocks, GELU (tanh), tied embedding.

def gpt2_block(w, prefix, x, heads):
    """x: [b, s, h]"""
    x = x + self_attention(w, prefix, layer_norm(w, prefix + "ln1", x, 1e-5), heads, causal=True)
    return x + mlp(w, prefix, layer_norm(w, prefix + "ln2", x, 1e-5), "tanh")


@step_of("gpt2_train_step gpt2_weak gpt2_strong gpt2_stages", adamw)
def gpt2_train_step(rank, w):
    s, layers, heads = (rank.dims[name] for name in ("s", "layers", "heads"))
    x = w["wte"][rank.named("tokens").reshape(-1, s)] + w["wpe"][torch.arange(s)]
    for layer in range(layers):
        x = gpt2_block(w, f"block{layer}.", x, heads)
    return loss_of(rank, (layer_norm(w, "ln_f", x, 1e-5) @ w["wte"].mT).flatten(0, 1), "logits")


@step_of("gpt2_block", adamw)
def gpt2_block_step(rank, w):
    return block_step(rank, "residual2",
                      lambda x: gpt2_block(w, "", x.reshape(rank.dims["b"], rank.dims["s"], -1), rank.dims["heads"]).flatten(0, 1))


# Llama 3 (Grattafiori et al., 2024): RMSNorm (Zhang and Sennrich), rotary positions (Su et al.) of the first half of a head with the second,
# grouped-query attention (Ainslie et al.), SwiGLU (Shazeer), no biases.

def llama_norm(gamma, x):
    return gamma * x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + 1e-5)


def llama_block(rank, w, prefix, x, feed_forward):
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
    return x + feed_forward(rank, w, prefix, llama_norm(w[prefix + "norm2.gamma"], x))


def swiglu_mlp(rank, w, prefix, x):
    gate, up = F.linear(x, w[prefix + "gate_up.w"]).chunk(2, -1)
    return F.linear(F.silu(gate) * up, w[prefix + "down.w"])


@step_of("llama_train_step llama_shared llama_sequences", adamw)
def llama_train_step(rank, w, feed_forward=swiglu_mlp):
    x = w["embedding.table"][rank.named("tokens").reshape(rank.dims["b"], -1)]
    for layer in range(rank.dims["layers"]):
        x = llama_block(rank, w, f"block{layer}.", x, feed_forward)
    return loss_of(rank, F.linear(llama_norm(w["norm.gamma"], x), w["head.w"]).flatten(0, 1), "head")


@step_of("llama_block", adamw)
def llama_block_step(rank, w, feed_forward=swiglu_mlp):
    heads = (rank.dims["b"], rank.dims["s"], -1)
    return block_step(rank, "residual2", lambda x: llama_block(rank, w, "", x.reshape(heads), feed_forward).flatten(0, 1))


# Devlin et al., BERT, arXiv 1810.04805: post-norm blocks of bidirectional attention, GELU; a transform and the
# embedding predict masked tokens, here every seventh one.

@step_of("bert_train_step", adamw)
def bert_train_step(rank, w):
    b, s, layers, heads = (rank.dims[name] for name in ("b", "s", "layers", "heads"))
    tokens, segments = (rank.named(name).reshape(b, s) for name in ("tokens", "segments"))
    x = w["wte"][tokens] + w["position_embedding.table"][torch.arange(s)] + w["segment_embedding.table"][segments]
    x = layer_norm(w, "ln", x, 1e-12)
    for layer in range(layers):
        prefix = f"block{layer}."
        x = layer_norm(w, prefix + "ln1", x + self_attention(w, prefix, x, heads, causal=False), 1e-12)
        x = layer_norm(w, prefix + "ln2", x + mlp(w, prefix, x, "erf"), 1e-12)
    masked = x.flatten(0, 1)[::7][:b * s // 7]
    hidden = layer_norm(w, "transform.ln", torch_ops.gelu("erf", linear(w, "transform", masked)), 1e-12)
    return loss_of(rank, F.linear(hidden, w["wte"], w["logits.b"]), "logits")


# Dosovitskiy et al., An Image is Worth 16x16 Words, arXiv 2010.11929: patches by a convolution, a class token, pre-norm blocks.

@step_of("vit_train_step", adamw)
def vit_train_step(rank, w):
    n, patch, layers, heads = (rank.dims[name] for name in ("n", "patch", "layers", "heads"))
    h = w["patch_embedding.w"].shape[0]
    filter = w["patch_embedding.w"].reshape(h, patch, patch, 3).permute(0, 3, 1, 2)
    patches = F.conv2d(rank.named("image").permute(0, 3, 1, 2), filter, w["patch_embedding.b"], stride=patch).flatten(2).mT
    x = torch.cat([w["class_token.table"].expand(n, 1, h), patches], 1) + w["position_embedding.table"]
    for layer in range(layers):
        prefix = f"block{layer}."
        x = x + self_attention(w, prefix, layer_norm(w, prefix + "ln1", x, 1e-6), heads, causal=False)
        x = x + mlp(w, prefix, layer_norm(w, prefix + "ln2", x, 1e-6), "erf")
    return loss_of(rank, linear(w, "head", layer_norm(w, "ln", x[:, 0], 1e-6)), "head")


# Peebles and Xie, Scalable Diffusion Models with Transformers, arXiv 2212.09748: blocks of ViT with adaLN-Zero, figure 3.

def modulation(w, prefix, conditioning, count):
    return linear(w, prefix + "modulation", F.silu(conditioning))[:, None].chunk(count, -1)


def modulated(x, scale, shift):
    return F.layer_norm(x, x.shape[-1:], eps=1e-6) * (1 + scale) + shift


def dit_block(w, prefix, x, conditioning, heads):
    """x: [n, s, h]"""
    shift1, scale1, gate1, shift2, scale2, gate2 = modulation(w, prefix, conditioning, 6)
    x = x + gate1 * self_attention(w, prefix, modulated(x, scale1, shift1), heads, causal=False)
    return x + gate2 * mlp(w, prefix, modulated(x, scale2, shift2), "tanh")


@step_of("dit_block", adamw)
def dit_block_step(rank, w):
    def block(x):
        return dit_block(w, "", x.reshape(rank.dims["n"], rank.dims["s"], -1), rank.named("conditioning"), rank.dims["heads"]).flatten(0, 1)
    return block_step(rank, "residual2", block)


@step_of("dit_train_step", adamw)
def dit_train_step(rank, w):
    n, patch, layers, heads, channels = (rank.dims[name] for name in ("n", "patch", "layers", "heads", "channels"))
    conditioning = linear(w, "timestep.down", F.silu(linear(w, "timestep.up", rank.named("timestep")))) + w["class_embedding.table"][rank.named("labels")]
    h = conditioning.shape[1]
    filter = w["patch_embedding.w"].reshape(h, patch, patch, channels).permute(0, 3, 1, 2)
    x = F.conv2d(rank.named("latent").permute(0, 3, 1, 2), filter, w["patch_embedding.b"], stride=patch).flatten(2).mT + rank.named("positions")
    for layer in range(layers):
        x = dit_block(w, f"block{layer}.", x, conditioning, heads)
    shift, scale = modulation(w, "head.", conditioning, 2)
    predicted = linear(w, "head", modulated(x, scale, shift)).flatten(0, 1)
    loss = F.mse_loss(predicted, rank.named("noise"))
    return loss, {"prediction": (rank.named("head"), predicted),
                  "error_norm": (rank.named("error_norm"), torch.sqrt(loss * predicted.numel()).reshape(1))}


# He et al., Deep Residual Learning for Image Recognition, arXiv 1512.03385, with the stride in the bottleneck's middle ("v1.5", as in
# torchvision and MLPerf). NCHW here.

class ResNet:
    def __init__(self, rank, w):
        self.rank, self.w, self.running = rank, w, {}

    def conv_norm(self, name, x, stride):
        filter = self.w[name + ".filter"].permute(0, 3, 1, 2)
        y = F.conv2d(x, filter, stride=stride, padding=filter.shape[2] // 2)
        mean, variance = (self.rank.named(name + statistic).clone() for statistic in (".running_mean", ".running_var"))
        y = F.batch_norm(y, mean, variance, self.w[name + ".gamma"], self.w[name + ".beta"], training=True, momentum=0.1, eps=1e-5)
        for statistic, want in ((".running_mean'", mean), (".running_var'", variance)):
            self.running[name + statistic] = self.rank.named(name + statistic), want
        return y

    def bottleneck(self, prefix, x, stride):
        y = F.relu(self.conv_norm(prefix + "conv1", x, 1))
        y = F.relu(self.conv_norm(prefix + "conv2", y, stride))
        y = self.conv_norm(prefix + "conv3", y, 1)
        if stride != 1 or x.shape[1] != y.shape[1]:
            x = self.conv_norm(prefix + "shortcut", x, stride)
        return F.relu(y + x)


@step_of("resnet_train_step resnet_weak resnet_strong", sgd)
def resnet_train_step(rank, w):
    net = ResNet(rank, w)
    x = F.relu(net.conv_norm("stem", rank.named("image").permute(0, 3, 1, 2), 2))
    x = F.max_pool2d(x, 3, 2, 1)
    for stage, blocks in enumerate({14: (1, 1, 1, 1), 50: (3, 4, 6, 3)}[rank.dims["depth"]], 1):
        for block in range(blocks):
            x = net.bottleneck(f"stage{stage}.block{block}.", x, 2 if stage > 1 and block == 0 else 1)
    loss, found = loss_of(rank, linear(w, "head", x.mean((2, 3))), "head", smoothing=0.1)
    return loss, {**found, **net.running}


@step_of("resnet_block", sgd)
def resnet_block_step(rank, w):
    net = ResNet(rank, w)
    loss, found = block_step(rank, "relu3", lambda x: net.bottleneck("", x.permute(0, 3, 1, 2), rank.dims["stride"]).permute(0, 2, 3, 1))
    return loss, {**found, **net.running}


# Simonyan and Zisserman, arXiv 1409.1556, configuration D, with batch normalization behind each convolution; without dropout.

@step_of("vgg_train_step", sgd)
def vgg_train_step(rank, w):
    net = ResNet(rank, w)
    x = rank.named("image").permute(0, 3, 1, 2)
    for stage, convolutions in enumerate((2, 2, 3, 3, 3), 1):
        for i in range(1, convolutions + 1):
            x = F.relu(net.conv_norm(f"stage{stage}.conv{i}", x, 1))
        x = F.max_pool2d(x, 2)
    x = x.permute(0, 2, 3, 1).flatten(1)
    x = F.relu(linear(w, "linear2", F.relu(linear(w, "linear1", x))))
    loss, found = loss_of(rank, linear(w, "head", x), "head")
    return loss, {**found, **net.running}


# Mixtures of experts, computed densely with weights of 0 for unchosen experts: Mixtral (Jiang et al., 2024; softmax
# over the chosen logits), and the layer of DeepSeek-V3 (2024, equations 12 to 16).

def of_experts(w, prefix, x, weights):
    """weights [..., experts]: 0 for unchosen experts."""
    outputs = []
    for gate_up, down in zip(w[prefix + "experts.gate_up.w"], w[prefix + "experts.down.w"]):
        gate, up = F.linear(x, gate_up).chunk(2, -1)
        outputs.append(F.linear(F.silu(gate) * up, down))
    return (torch.stack(outputs, -1) * weights[..., None, :]).sum(-1)


def mixtral_experts(rank, w, prefix, x):
    logits = F.linear(x, w[prefix + "router.w"])
    chosen = torch.zeros_like(logits).scatter(-1, logits.topk(rank.dims["k"]).indices, 1).bool()
    return of_experts(w, prefix, x, torch.softmax(logits.masked_fill(~chosen, -math.inf), -1))


@step_of("mixtral_train_step mixtral_weak mixtral_experts", adamw)
def mixtral_train_step(rank, w):
    return llama_train_step(rank, w, mixtral_experts)


@step_of("mixtral_block", adamw)
def mixtral_block_step(rank, w):
    return llama_block_step(rank, w, mixtral_experts)


def deepseek_experts(rank, w, x):
    affinity = torch.sigmoid(F.linear(x, w["router.w"]))
    chosen = (affinity + rank.named("router.bias")).topk(rank.dims["k"]).indices
    gates = torch.zeros_like(affinity).scatter(-1, chosen, 1) * affinity
    return swiglu_mlp(rank, w, "shared.", x) + of_experts(w, "", x, 2.5 * gates / gates.sum(-1, keepdim=True))


@step_of("deepseek_layer", adamw)
def deepseek_layer(rank, w):
    return block_step(rank, "residual", lambda x: x + deepseek_experts(rank, w, llama_norm(w["norm.gamma"], x)))


# Multi-head latent attention, equations 1 to 11 of DeepSeek-V3; rotation by complex numbers of neighbours, as in
# DeepSeek's code.

def latent_attention(rank, w, x):
    """x: [b, s, h]"""
    (b, s, _), (heads, kv_rank, nope, rope, v_width) = x.shape, (rank.dims[name] for name in ("heads", "kv_rank", "nope", "rope", "v"))
    turns = torch.complex(rank.named("cos"), rank.named("sin"))  # [s, rope/2]; the suite's are not of true angles

    def turned(x):
        """x: [b, heads, s, rope]"""
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * turns).flatten(-2)

    def of_heads(x):
        return x.reshape(b, s, heads, -1).transpose(1, 2)

    q = of_heads(F.linear(llama_norm(w["q_norm.gamma"], F.linear(x, w["q_a.w"])), w["q_b.w"]))
    latent, shared = F.linear(x, w["kv_a.w"]).split([kv_rank, rope], -1)
    k, v = of_heads(F.linear(llama_norm(w["kv_norm.gamma"], latent), w["kv_b.w"])).split([nope, v_width], -1)
    q = torch.cat([q[..., :nope], turned(q[..., nope:])], -1)
    k = torch.cat([k, turned(shared[:, None]).expand(b, heads, s, rope)], -1)
    scores = q @ k.mT / math.sqrt(nope + rope) + torch.full((s, s), -math.inf, dtype=x.dtype).triu(1)
    return F.linear((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, s, -1), w["attention_out.w"])


@step_of("deepseek_block", adamw)
def deepseek_block(rank, w):
    def block(x):
        attended = latent_attention(rank, w, llama_norm(w["norm1.gamma"], x).reshape(rank.dims["b"], rank.dims["s"], -1))
        middle = x + attended.flatten(0, 1)
        return middle + deepseek_experts(rank, w, llama_norm(w["norm2.gamma"], middle))
    return block_step(rank, "residual2", block)
