"""The fixtures against a second opinion: GPT-2 and LLaMA written once more, in plain NumPy loops over heads.

Outputs and losses must agree to 1e-12, and the gradients with the slope of the loss along a random direction.
"""
import os
import sys
import unittest

import numpy as np

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x, p, name, eps):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return y * p[name + ".weight"] + p[name + ".bias"]


def rms_norm(x, p, name, eps):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + eps) * p[name + ".weight"]


def linear(x, p, name):
    return x @ p[name + ".weight"].T + p.get(name + ".bias", 0.0)


def attention(x, p, name, heads, kv_heads, real, rotate=None):
    """One row [T,D] of a batch; query t sees the real ones among keys 0..t."""
    q, k, v = (linear(x, p, f"{name}.{part}") for part in "qkv")
    width = q.shape[1] // heads
    out = np.zeros_like(q)
    for h in range(heads):
        g = h // (heads // kv_heads)
        mine, theirs = slice(h * width, (h + 1) * width), slice(g * width, (g + 1) * width)
        qh, kh = (rotate(q[:, mine]), rotate(k[:, theirs])) if rotate else (q[:, mine], k[:, theirs])
        for t in range(len(x)):
            seen = [s for s in range(t + 1) if real[s]]
            out[t, mine] = softmax(kh[seen] @ qh[t] / np.sqrt(width)) @ v[seen][:, theirs]
    return linear(out, p, f"{name}.o")


def mean_loss(logits, targets):
    logp = np.log(softmax(logits))
    counted = targets != -100
    return -np.mean([logp[b, t, targets[b, t]] for b, t in zip(*np.nonzero(counted))])


def gpt2(p, tokens, real):
    def row(ids, real):
        x = p["tok_emb.weight"][ids] + p["pos_emb.weight"][: len(ids)]
        for i in range(2):
            x = x + attention(layer_norm(x, p, f"layers.{i}.norm1", 1e-5), p, f"layers.{i}.attn", 2, 2, real)
            h = linear(layer_norm(x, p, f"layers.{i}.norm2", 1e-5), p, f"layers.{i}.ffn.up")
            h = h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h * h * h)))
            x = x + linear(h, p, f"layers.{i}.ffn.down")
        return layer_norm(x, p, "final_norm", 1e-5) @ p["tok_emb.weight"].T
    return np.stack([row(ids, mask) for ids, mask in zip(tokens, real)])


def llama(p, tokens, style):
    def rotate(x):
        y, width = x.copy(), x.shape[1]
        for t in range(len(x)):
            for i in range(width // 2):
                a, b = (i, i + width // 2) if style == "half" else (2 * i, 2 * i + 1)
                turn = np.exp(1j * t * 500.0 ** (-2 * i / width))
                z = (x[t, a] + 1j * x[t, b]) * turn
                y[t, a], y[t, b] = z.real, z.imag
        return y

    def row(ids):
        x = p["tok_emb.weight"][ids]
        for i in range(2):
            h = rms_norm(x, p, f"layers.{i}.norm1", 1e-6)
            x = x + attention(h, p, f"layers.{i}.attn", 4, 2, [True] * len(ids), rotate)
            h = rms_norm(x, p, f"layers.{i}.norm2", 1e-6)
            gate = linear(h, p, f"layers.{i}.ffn.gate")
            x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, p, f"layers.{i}.ffn.up"), p, f"layers.{i}.ffn.down")
        return linear(rms_norm(x, p, "final_norm", 1e-6), p, "head")
    return np.stack([row(ids) for ids in tokens])


class Fixtures(unittest.TestCase):
    def check(self, name, model):
        data = np.load(os.path.join(FIXTURES, name + ".npz"))
        p = {k[6:]: data[k] for k in data.files if k.startswith("param/")}
        real = data["real"]

        def loss(p):
            return mean_loss(model(p, data), data["targets"])

        self.assertLess(np.abs(model(p, data) - data["output"])[real].max(), 1e-12)
        self.assertLess(abs(loss(p) - data["loss"]), 1e-12)

        random, step = np.random.default_rng(1), 1e-4
        direction = {k: random.standard_normal(v.shape) for k, v in p.items()}
        slope = sum(np.sum(direction[k] * data["grad/" + k]) for k in p)

        def at(factor):
            return loss({k: v + factor * step * direction[k] for k, v in p.items()})

        measured = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
        self.assertAlmostEqual(measured, slope, delta=1e-8 * (1 + abs(slope)))

    def test_gpt2(self):
        self.check("gpt2_style", lambda p, data: gpt2(p, data["in/tokens"], data["in/mask"]))

    def test_llama_half(self):
        self.check("llama_half", lambda p, data: llama(p, data["in/tokens"], "half"))

    def test_llama_interleaved(self):
        self.check("llama_interleaved", lambda p, data: llama(p, data["in/tokens"], "interleaved"))

    def test_every_description_has_its_arrays(self):
        names = [f[:-5] for f in os.listdir(FIXTURES) if f.endswith(".toml")]
        self.assertGreaterEqual(len(names), 25)
        for name in names:
            files = np.load(os.path.join(FIXTURES, name + ".npz")).files
            params = {k[6:] for k in files if k.startswith("param/")}
            moving = {k[5:] for k in files if k.startswith("grad/")}
            with open(os.path.join(FIXTURES, name + ".toml")) as file:
                some_rest = "lora" in file.read()  # adapters alone are trained
            self.assertTrue(moving < params if some_rest else moving == params, name)
            after = {k[6:] for k in files if k.startswith("after/")}
            self.assertIn(after, (params, moving), name)


if __name__ == "__main__":
    sys.exit(unittest.main())
