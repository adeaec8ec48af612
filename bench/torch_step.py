#!/usr/bin/python3
"""The same models in PyTorch: seconds of a forward and of a whole training step with AdamW.

    torch_step.py MODEL --batch 4 --seq 256 --threads 2 [--what step|forward] [--seconds 2]

MODEL is gpt2, llama, nano, bert_hidden, vit or reverse; the sizes are those of examples/ and bench/models/. Prints one line
of JSON. bench/compare.py runs it with the environment in which PyTorch's products are fastest on this kind of machine.

Written the way a careful user would: q, k, v in one product, gate and up in one product, the tied table, no dropout, no
gradient tape in a forward. Gradients are not clipped, which the compiled step does as well. Weights are small normal numbers, as after a usual initialisation:
with nn.Embedding's own, gradients become denormal and PyTorch slow.
"""
import argparse
import json
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

MODELS = {
    "gpt2": dict(layers=12, width=768, heads=12, kv=12, inner=3072, vocab=50257, positions="learned", norm="layer",
                 ffn="gelu_tanh", causal=True, head="tied"),
    "nano": dict(layers=4, width=128, heads=4, kv=4, inner=512, vocab=65, positions="learned", norm="layer",
                 ffn="gelu", causal=True, head="tied"),
    "llama": dict(layers=8, width=512, heads=8, kv=2, inner=1376, vocab=32000, positions="rope", norm="rms",
                  ffn="swiglu", causal=True, head="tied"),
    "bert_hidden": dict(layers=12, width=768, heads=12, kv=12, inner=3072, vocab=30522, positions="learned",
                        norm="layer", ffn="gelu", causal=False, head="none"),
    "vit": dict(layers=12, width=768, heads=12, kv=12, inner=3072, positions="learned", norm="layer", ffn="gelu",
                causal=True, classes=1000, image=224, patch=16),
    "reverse": dict(layers=2, width=64, heads=4, inner=256, vocab=12),
}


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class Attention(nn.Module):
    def __init__(self, shape, length):
        super().__init__()
        self.heads, self.kv, self.each = shape["heads"], shape["kv"], shape["width"] // shape["heads"]
        bias = shape["norm"] == "layer"
        self.qkv = nn.Linear(shape["width"], (self.heads + 2 * self.kv) * self.each, bias=bias)
        self.out = nn.Linear(shape["width"], shape["width"], bias=bias)
        mask = torch.full((length, length), -math.inf).triu(1) if shape["causal"] else None
        self.register_buffer("mask", mask)
        self.rotary = shape["positions"] == "rope"
        if self.rotary:
            steps = 10000.0 ** (-torch.arange(0, self.each, 2) / self.each)
            angles = torch.outer(torch.arange(length).float(), steps).repeat(1, 2)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())

    def rotate(self, x):
        left, right = x.chunk(2, -1)
        return x * self.cos + torch.cat((-right, left), -1) * self.sin

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(x).split((width, self.kv * self.each, self.kv * self.each), -1)
        q, k, v = (part.view(batch, length, -1, self.each).transpose(1, 2) for part in parts)
        if self.rotary:
            q, k = self.rotate(q), self.rotate(k)
        if self.kv < self.heads:
            k, v = (part.repeat_interleave(self.heads // self.kv, 1) for part in (k, v))
        scores = q @ (k * self.each ** -0.5).transpose(-2, -1)
        if self.mask is not None:
            scores = scores + self.mask
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.kind = shape["ffn"]
        bias = shape["norm"] == "layer"
        self.up = nn.Linear(shape["width"], shape["inner"] * (2 if self.kind == "swiglu" else 1), bias=bias)
        self.down = nn.Linear(shape["inner"], shape["width"], bias=bias)

    def forward(self, x):
        x = self.up(x)
        if self.kind == "swiglu":
            gate, x = x.chunk(2, -1)
            return self.down(F.silu(gate) * x)
        return self.down(F.gelu(x, approximate="tanh" if self.kind == "gelu_tanh" else "none"))


class Layer(nn.Module):
    """Norms before each part, or after the sum where the model is not causal (BERT)."""

    def __init__(self, shape, length):
        super().__init__()
        norm = RMSNorm if shape["norm"] == "rms" else nn.LayerNorm
        self.first, self.second = norm(shape["width"]), norm(shape["width"])
        self.attention, self.ffn = Attention(shape, length), FeedForward(shape)
        self.before = shape["causal"]

    def forward(self, x):
        if self.before:
            x = x + self.attention(self.first(x))
            return x + self.ffn(self.second(x))
        x = self.first(x + self.attention(x))
        return self.second(x + self.ffn(x))


class Stack(nn.Module):
    def __init__(self, shape, length):
        super().__init__()
        self.shape = shape
        self.table = nn.Embedding(shape["vocab"], shape["width"])
        self.positions = nn.Embedding(length, shape["width"]) if shape["positions"] == "learned" else None
        self.layers = nn.ModuleList(Layer(shape, length) for _ in range(shape["layers"]))
        self.norm = (RMSNorm if shape["norm"] == "rms" else nn.LayerNorm)(shape["width"])

    def logits(self, tokens):
        x = self.table(tokens)
        if self.positions is not None:
            x = x + self.positions.weight
        if self.shape["head"] == "none":
            x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return x if self.shape["head"] == "none" else self.norm(x) @ self.table.weight.t()

    def forward(self, source, tokens, targets):
        return F.cross_entropy(self.logits(tokens).flatten(0, 1), targets.flatten())


class Vision(nn.Module):
    """ViT: patches and a class token through layers with norms before each part, but without a causal mask."""

    def __init__(self, shape, _):
        super().__init__()
        width, patch = shape["width"], shape["patch"]
        length = (shape["image"] // patch) ** 2 + 1
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.zeros(1, length, width))
        self.layers = nn.ModuleList(Layer(shape, length) for _ in range(shape["layers"]))
        for layer in self.layers:
            layer.attention.mask = None
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, shape["classes"])

    def logits(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])

    def forward(self, _, images, targets):
        return F.cross_entropy(self.logits(images), targets)


class Translator(nn.Module):
    """examples/reverse.toml: norms before each part, one tied table on both sides and at the output."""

    def __init__(self, shape, length):
        super().__init__()
        width = shape["width"]
        self.table, self.positions = nn.Embedding(shape["vocab"], width), nn.Embedding(length, width)
        self.inner = nn.Transformer(width, shape["heads"], shape["layers"], shape["layers"], shape["inner"],
                                    dropout=0.0, batch_first=True, norm_first=True)
        self.register_buffer("mask", self.inner.generate_square_subsequent_mask(length))

    def logits(self, tokens, source):
        embedded = [self.table(ids) + self.positions.weight for ids in (source, tokens)]
        return self.inner(*embedded, tgt_mask=self.mask) @ self.table.weight.t()

    def forward(self, source, tokens, targets):
        return F.cross_entropy(self.logits(tokens, source).flatten(0, 1), targets.flatten())


def median_seconds(call, budget):
    call()
    call()
    times = []
    while sum(times) < budget or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--what", choices=["step", "forward"], default="step")
    parser.add_argument("--seconds", type=float, default=2)
    wanted = parser.parse_args()
    torch.set_num_threads(wanted.threads)
    torch.manual_seed(0)
    shape = MODELS[wanted.model]
    model = {"reverse": Translator, "vit": Vision}.get(wanted.model, Stack)(shape, wanted.seq)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    if wanted.model == "vit":
        tokens, source = torch.randn(wanted.batch, 3, shape["image"], shape["image"]), None
        targets = torch.randint(0, shape["classes"], (wanted.batch,))
    else:
        tokens, source, targets = (torch.randint(0, shape["vocab"], (wanted.batch, wanted.seq)) for _ in range(3))

    def forward():
        with torch.inference_mode():
            return model.logits(tokens, source) if wanted.model == "reverse" else model.logits(tokens)

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95))

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(source, tokens, targets).backward()
        optimizer.step()

    if wanted.what == "forward":
        model.eval()
    seconds = median_seconds(step if wanted.what == "step" else forward, wanted.seconds)
    print(json.dumps({"version": torch.__version__, "threads": wanted.threads, "seconds": seconds,
                      "parameters": sum(parameter.numel() for parameter in model.parameters())}))


if __name__ == "__main__":
    main()
