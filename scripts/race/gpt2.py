"""GPT-2 124M for the race of training steps: the model of Radford et al. 2019 in idiomatic PyTorch."""
import math

import torch
import torch.nn.functional as F
from torch import nn


def causal_attention(q, k, v):
    """q, k, v: [batch, heads, sequence, d]. PyTorch before 2.0 has no scaled_dot_product_attention."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    later = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    return scores.masked_fill(later, -math.inf).softmax(dim=-1) @ v


class Block(nn.Module):
    """x: [batch, sequence, width]; norm before attention and before the MLP, as in GPT-2; no dropout."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, sequence, width = x.shape
        q, k, v = (part.view(batch, sequence, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, dim=2))
        attended = causal_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """Tokens and their successors, both [batch, sequence] -> mean cross-entropy. The head shares the token embedding."""

    def __init__(self, layers, width, heads, vocabulary, sequence):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(sequence, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=width ** -0.5)
        nn.init.normal_(self.positions.weight, std=width ** -0.5)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def training_step(device, batch, sequence, layers, width, heads, vocabulary, recipe, on_gpu=True):
    """A function that runs one step: f32 weights, autocast for bf16, gradient clipping, AdamW. On a GPU: compiled, with the
    fused AdamW."""
    torch.set_float32_matmul_precision("high")
    model = Gpt2(layers, width, heads, vocabulary, sequence).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0 / 2048, betas=(0.9, 0.95), weight_decay=0.1,
                                  **({"fused": True} if on_gpu else {"foreach": True}))
    loss_of = torch.compile(model) if on_gpu else model
    tokens = torch.randint(vocabulary, (batch, sequence), device=device)
    targets = torch.randint(vocabulary, (batch, sequence), device=device)

    def step():
        with torch.autocast(torch.device(device).type, dtype=torch.bfloat16, enabled=recipe == "bf16"):
            loss = loss_of(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step
