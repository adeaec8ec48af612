#!/usr/bin/python3
"""Makes tests/fixtures/: what PyTorch computes in float64 for small models, beside their descriptions.

Run with a Python that has PyTorch (Debian: apt-get install python3-torch, then /usr/bin/python3). The test suite only
reads the files. With names it makes those alone: functions here, or modules of fixtures/. Every NAME.toml has a NAME.npz with these arrays:

  param/P        parameters under transformerc's names          in/I      inputs (masks: True is a real token)
  output         what forward gives (arbitrary where masked)    real      which rows of the output are real
  upstream       gradient handed to vjp, or                     targets   with `loss`, the mean over those that count
                 (then `upstream` is the loss's, where there are float inputs)
  grad/P         gradient of every parameter that moves                    input_grad/I   of every float input
  after/P        parameters after STEPS AdamW steps on the same batch, settings in adamw/lr, ...
  dropout/seed   with dropout: calls 0, 1, ... draw from this seed; gradients are those of call 0, whose loss is
                 dropout/loss, and the steps those of calls 1 to STEPS; output and loss are without

Of a model with named heads output, real, targets and weights (of the targets, where there are some) are of each head:
output.HEAD and so on, and losses.HEAD its own mean loss.
"""
import importlib
import os
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "fixtures")
STEPS = 10
ADAMW = dict(lr=2e-3, beta1=0.9, beta2=0.95, eps=1e-5, weight_decay=0.1, clip=0.5)

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


def by_head(name, value):
    """An array, or one for each head."""
    if isinstance(value, dict):
        return {f"{name}.{head}": v.detach().numpy() for head, v in value.items()}
    return {name: value.detach().numpy()}


def write(name, toml, params, inputs, run, real, targets=None, upstream=None, weights=None, inference=None, seed=None,
          trains=lambda name: True):
    """`run(inputs)` gives the output, or (output, loss) where there are targets; `params` are the tensors it reads,
    `trains` tells which of them move. Of named heads output, real, targets and weights are dicts, and run gives (outputs, loss, losses).
    With dropout each run is the next call from `seed`, and `inference` runs without."""
    float_inputs = {k: v for k, v in inputs.items() if v.is_floating_point()}
    trained = {k: v for k, v in params.items() if trains(k)}
    for tensor in list(trained.values()) + list(float_inputs.values()):
        tensor.requires_grad_(True)
        tensor.grad = None

    def objective():
        if targets is None:
            output = run(inputs)
            return output, (output * upstream).sum()
        output, loss, *losses = run(inputs)
        own_losses.update(*losses)
        return output, loss

    own_losses = {}
    arrays = {f"param/{k}": v.detach().numpy().copy() for k, v in params.items()}
    arrays.update({f"in/{k}": v.detach().numpy().copy() for k, v in inputs.items()})
    output, scalar = objective()
    if float_inputs and targets is not None:
        output.retain_grad()
    scalar.backward()
    if inference is not None:
        arrays["dropout/seed"] = np.uint64(seed)
        arrays["dropout/loss"] = scalar.detach().numpy()
        with torch.no_grad():
            output, scalar = inference(inputs) if targets is not None else (inference(inputs), None)
    arrays.update(by_head("output", output))
    arrays.update(by_head("real", real))
    if targets is None:
        arrays["upstream"] = upstream.numpy()
    else:
        if float_inputs:
            arrays["upstream"] = output.grad.numpy()
        arrays.update(by_head("targets", targets))
        if weights is not None:
            arrays.update(by_head("weights", weights))
        arrays["loss"] = scalar.detach().numpy()
        if own_losses:
            arrays.update(by_head("losses", own_losses))
    arrays.update({f"grad/{k}": v.grad.numpy().copy() for k, v in trained.items()})
    arrays.update({f"input_grad/{k}": v.grad.numpy().copy() for k, v in float_inputs.items()})

    decayed = [p for p in trained.values() if p.dim() >= 2]
    others = [p for p in trained.values() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": ADAMW["weight_decay"]},
                                   {"params": others, "weight_decay": 0.0}],
                                  lr=ADAMW["lr"], betas=(ADAMW["beta1"], ADAMW["beta2"]), eps=ADAMW["eps"])
    for _ in range(STEPS):
        optimizer.zero_grad()
        objective()[1].backward()
        nn.utils.clip_grad_norm_(decayed + others, ADAMW["clip"])
        optimizer.step()
    arrays.update({f"after/{k}": v.detach().numpy() for k, v in params.items()})
    arrays.update({f"adamw/{k}": np.float64(v) for k, v in ADAMW.items()})
    arrays["adamw/steps"] = np.int64(STEPS)

    with open(os.path.join(FOLDER, name + ".toml"), "w") as file:
        file.write(toml.strip() + "\n")
    np.savez_compressed(os.path.join(FOLDER, name + ".npz"), **arrays)
    print(f"{name}: {os.path.getsize(os.path.join(FOLDER, name + '.npz')) / 1024:.0f} KiB, "
          f"greatest gradient {max(np.abs(v).max() for k, v in arrays.items() if k.startswith('grad/')):.3g}")


# -- torch's own layers ------------------------------------------------------------------------------------------------

def scramble(module):
    """Parameters away from their special starting values: biases not zero, norms not one."""
    for name, p in module.named_parameters():
        with torch.no_grad():
            if p.dim() >= 2:
                p.copy_(torch.randn(p.shape) / p.shape[1] ** 0.5)
            elif "norm" in name and name.endswith("weight"):
                p.copy_(1 + 0.2 * torch.randn(p.shape))
            else:
                p.copy_(0.2 * torch.randn(p.shape))


class Packed(nn.Module):
    """nn.MultiheadAttention keeps q, k and v in one matrix; here each is a leaf of its own, joined before every use."""

    @staticmethod
    def leaves(attention, prefix):
        d = attention.embed_dim
        weight, bias = attention.in_proj_weight.detach(), attention.in_proj_bias.detach()
        names = {}
        for i, part in enumerate("qkv"):
            names[f"{prefix}.{part}.weight"] = weight[i * d:(i + 1) * d].clone()
            names[f"{prefix}.{part}.bias"] = bias[i * d:(i + 1) * d].clone()
        names[f"{prefix}.o.weight"] = attention.out_proj.weight.detach().clone()
        names[f"{prefix}.o.bias"] = attention.out_proj.bias.detach().clone()
        return names

    @staticmethod
    def torch_values(params, ours, theirs):
        return {
            f"{theirs}.in_proj_weight": torch.cat([params[f"{ours}.{p}.weight"] for p in "qkv"]),
            f"{theirs}.in_proj_bias": torch.cat([params[f"{ours}.{p}.bias"] for p in "qkv"]),
            f"{theirs}.out_proj.weight": params[f"{ours}.o.weight"],
            f"{theirs}.out_proj.bias": params[f"{ours}.o.bias"],
        }


class Names:
    """The two namings of a torch module made of encoder and decoder layers."""

    def __init__(self, module):
        self.module = module
        self.attentions, self.plain = [], []  # (ours, theirs)

    def layer(self, ours, theirs, cross):
        self.attentions.append((f"{ours}.attn", f"{theirs}self_attn"))
        if cross:
            self.attentions.append((f"{ours}.cross", f"{theirs}multihead_attn"))
        pairs = [("ffn.up", "linear1"), ("ffn.down", "linear2"), ("norm1", "norm1"), ("norm2", "norm2")]
        for a, b in pairs + ([("norm3", "norm3")] if cross else []):
            self.norm(f"{ours}.{a}", f"{theirs}{b}")
        return self

    def norm(self, ours, theirs):
        self.plain += [(f"{ours}.{kind}", f"{theirs}.{kind}") for kind in ("weight", "bias")]
        return self

    def parameters(self):
        values = dict(self.module.named_parameters())
        params = {}
        for ours, theirs in self.attentions:
            params.update(Packed.leaves(self.module.get_submodule(theirs), ours))
        for ours, theirs in self.plain:
            params[ours] = values[theirs].detach().clone()
        return params

    def call(self, params, *args, **kwargs):
        values = {theirs: params[ours] for ours, theirs in self.plain}
        for ours, theirs in self.attentions:
            values.update(Packed.torch_values(params, ours, theirs))
        missing = {k for k, _ in self.module.named_parameters()} - set(values)
        assert not missing, missing
        return nn.utils.stateless.functional_call(self.module, values, args, kwargs)


def causal_mask(t):
    return torch.full((t, t), float("-inf")).triu(1)


def prefix_mask(lengths, t):
    return torch.arange(t)[None, :] < torch.tensor(lengths)[:, None]


def upstream_for(real, width):
    return torch.randn(*real.shape, width) * real[..., None]


LAYER_TOML = """
# {what}
[model]
kind      = "{kind}"
d_model   = {d}
{layers}
heads     = {heads}
d_ff      = {ff}

[norm]
placement = "{placement}"
final     = {final}

[ffn]
activation = "{activation}"
"""


def encoder_layers():
    for placement in ("post", "pre"):
        for activation in ("relu", "gelu"):
            for causal in (False, True):
                d, heads, ff, b, t = (12, 3, 21, 3, 7) if causal else (15, 3, 22, 3, 6)
                layer = nn.TransformerEncoderLayer(d, heads, ff, dropout=0.0, activation=activation, batch_first=True,
                                                   norm_first=placement == "pre")
                scramble(layer)
                names = Names(layer).layer("layers.0", "", cross=False)
                params, x = names.parameters(), torch.randn(b, t, d)
                inputs, real = {"x": x}, torch.ones(b, t, dtype=torch.bool)
                if not causal:  # holes, not only padding on the right
                    real = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 0], [0, 1, 1, 1, 1, 0]], dtype=torch.bool)
                    inputs["mask"] = real

                def run(inputs, names=names, params=params, causal=causal, t=t):
                    padding = ~inputs["mask"] if "mask" in inputs else None
                    return names.call(params, inputs["x"], src_mask=causal_mask(t) if causal else None,
                                      src_key_padding_mask=padding)

                write(f"encoder_layer_{placement}_{activation}_{'causal' if causal else 'padded'}",
                      LAYER_TOML.format(
                          what=f"torch's TransformerEncoderLayer, norm_first={placement == 'pre'}, {activation}"
                               + (", with a causal mask" if causal else ", with padding"),
                          kind="decoder" if causal else "encoder", d=d, layers="layers    = 1", heads=heads, ff=ff,
                          placement=placement, final="false", activation=activation),
                      params, inputs, run, real, upstream=upstream_for(real, d))


def decoder_layers():
    for placement in ("post", "pre"):
        for activation in ("relu", "gelu"):
            for padded in (False, True):
                d, heads, ff, b, t, s = (15, 5, 17, 2, 7, 5) if padded else (12, 2, 20, 2, 5, 7)
                layer = nn.TransformerDecoderLayer(d, heads, ff, dropout=0.0, activation=activation, batch_first=True,
                                                   norm_first=placement == "pre")
                scramble(layer)
                names = Names(layer).layer("decoder.layers.0", "", cross=True)
                params = names.parameters()
                inputs = {"tgt": torch.randn(b, t, d), "memory": torch.randn(b, s, d)}
                real = torch.ones(b, t, dtype=torch.bool)
                if padded:
                    real = prefix_mask([7, 4], t)
                    inputs["mask"] = real
                    inputs["src_mask"] = torch.tensor([[1, 0, 1, 1, 0], [1, 1, 1, 1, 1]], dtype=torch.bool)

                def run(inputs, names=names, params=params, t=t):
                    pad = {k: ~inputs[k] if k in inputs else None for k in ("mask", "src_mask")}
                    return names.call(params, inputs["tgt"], inputs["memory"], tgt_mask=causal_mask(t),
                                      tgt_key_padding_mask=pad["mask"], memory_key_padding_mask=pad["src_mask"])

                write(f"decoder_layer_{placement}_{activation}_{'padded' if padded else 'causal'}",
                      LAYER_TOML.format(
                          what=f"torch's TransformerDecoderLayer, norm_first={placement == 'pre'}, {activation}"
                               + (", with padding on both sides" if padded else ""),
                          kind="encoder-decoder", d=d, layers="encoder_layers = 0\ndecoder_layers = 1", heads=heads,
                          ff=ff, placement=placement, final="false", activation=activation),
                      params, inputs, run, real, upstream=upstream_for(real, d))


def transformers():
    for placement in ("post", "pre"):
        d, heads, ff, b, t, s = 12, 3, 19, 2, 6, 5
        model = nn.Transformer(d, heads, 2, 2, ff, dropout=0.0, activation="relu" if placement == "post" else "gelu",
                               batch_first=True, norm_first=placement == "pre")
        scramble(model)
        names = Names(model)
        for i in range(2):
            names.layer(f"encoder.layers.{i}", f"encoder.layers.{i}.", cross=False)
            names.layer(f"decoder.layers.{i}", f"decoder.layers.{i}.", cross=True)
        names.norm("encoder.final_norm", "encoder.norm").norm("decoder.final_norm", "decoder.norm")
        params = names.parameters()
        real = prefix_mask([6, 5], t)
        inputs = {"src": torch.randn(b, s, d), "tgt": torch.randn(b, t, d), "mask": real,
                  "src_mask": torch.tensor([[1, 1, 1, 1, 1], [0, 1, 1, 0, 1]], dtype=torch.bool)}

        def run(inputs, names=names, params=params, t=t):
            return names.call(params, inputs["src"], inputs["tgt"], tgt_mask=causal_mask(t),
                              src_key_padding_mask=~inputs["src_mask"], tgt_key_padding_mask=~inputs["mask"],
                              memory_key_padding_mask=~inputs["src_mask"])

        write(f"transformer_{placement}",
              LAYER_TOML.format(what=f"torch's nn.Transformer, 2+2 layers, norm_first={placement == 'pre'}",
                                kind="encoder-decoder", d=d, layers="encoder_layers = 2\ndecoder_layers = 2",
                                heads=heads, ff=ff, placement=placement, final="true",
                                activation="relu" if placement == "post" else "gelu"),
              params, inputs, run, real, upstream=upstream_for(real, d))


# -- whole models, written out -----------------------------------------------------------------------------------------

class Weights(dict):
    """Parameters by name, made in the order in which they are first asked for."""

    def matrix(self, name, rows, columns, scale=None):
        self[name + ".weight"] = torch.randn(rows, columns) * (scale or columns ** -0.5)

    def bias(self, name, rows):
        self[name + ".bias"] = 0.2 * torch.randn(rows)

    def norm(self, name, d, bias=True):
        self[name + ".weight"] = 1 + 0.2 * torch.randn(d)
        if bias:
            self.bias(name, d)

    def linear(self, name, rows, columns, bias=True):
        self.matrix(name, rows, columns)
        if bias:
            self.bias(name, rows)

    def layer(self, name, d, ff, q_rows, kv_rows, bias=True, norm_bias=True, gated=False):
        self.linear(f"{name}.attn.q", q_rows, d, bias)
        self.linear(f"{name}.attn.k", kv_rows, d, bias)
        self.linear(f"{name}.attn.v", kv_rows, d, bias)
        self.linear(f"{name}.attn.o", d, q_rows, bias)
        self.norm(f"{name}.norm1", d, norm_bias)
        self.norm(f"{name}.norm2", d, norm_bias)
        if gated:
            self.linear(f"{name}.ffn.gate", ff, d, bias)
        self.linear(f"{name}.ffn.up", ff, d, bias)
        self.linear(f"{name}.ffn.down", d, ff, bias)

    def apply(self, name, x):
        return F.linear(x, self[name + ".weight"], self.get(name + ".bias"))

    def layer_norm(self, name, x, eps):
        return F.layer_norm(x, x.shape[-1:], self[name + ".weight"], self.get(name + ".bias"), eps)

    def rms_norm(self, name, x, eps):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * self[name + ".weight"]

    def attention(self, name, x, heads, kv_heads, causal, real=None, rotate=lambda x: x):
        b, t, _ = x.shape

        def split(y, n):
            return y.view(b, t, n, -1).transpose(1, 2)  # [B,n,T,E]

        q = rotate(split(self.apply(f"{name}.q", x), heads))
        k = rotate(split(self.apply(f"{name}.k", x), kv_heads)).repeat_interleave(heads // kv_heads, dim=1)
        v = split(self.apply(f"{name}.v", x), kv_heads).repeat_interleave(heads // kv_heads, dim=1)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if causal:
            scores = scores + causal_mask(t)
        if real is not None:
            scores = scores.masked_fill(~real[:, None, None, :], float("-inf"))
        o = (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1)
        return self.apply(f"{name}.o", o)


def gpt2():
    v, d, heads, layers, max_seq, b, t = 23, 12, 2, 2, 9, 3, 7
    w = Weights()
    w.matrix("tok_emb", v, d, 0.5)
    w.matrix("pos_emb", max_seq, d, 0.5)
    for i in range(layers):
        w.layer(f"layers.{i}", d, 4 * d, d, d)
    w.norm("final_norm", d)
    real = prefix_mask([7, 5, 6], t)
    tokens = torch.randint(v, (b, t))
    targets = torch.randint(v, (b, t)).masked_fill(~real, -100)
    targets[0, 2] = -100

    def run(inputs):
        x = F.embedding(inputs["tokens"], w["tok_emb.weight"]) + w["pos_emb.weight"][:t]
        for i in range(layers):
            x = x + w.attention(f"layers.{i}.attn", w.layer_norm(f"layers.{i}.norm1", x, 1e-5), heads, heads, True,
                                inputs["mask"])
            h = w.apply(f"layers.{i}.ffn.up", w.layer_norm(f"layers.{i}.norm2", x, 1e-5))
            h = 0.5 * h * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (h + 0.044715 * h ** 3)))  # as in GPT-2's code
            x = x + w.apply(f"layers.{i}.ffn.down", h)
        logits = w.layer_norm("final_norm", x, 1e-5) @ w["tok_emb.weight"].T
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)

    write("gpt2_style", f"""
# A decoder as GPT-2: learned positions, tanh GELU, norms before, output tied to the token table
[model]
kind    = "decoder"
d_model = {d}
layers  = {layers}
heads   = {heads}
vocab   = {v}
max_seq = {max_seq}

[ffn]
activation = "gelu_tanh"
""", w, {"tokens": tokens, "mask": real}, run, real, targets=targets)


def bert():
    v, types, d, heads, ff, layers, max_seq, classes, b, t = 21, 2, 15, 3, 26, 2, 8, 5, 3, 6
    for head, smoothing in (("none", 0.0), ("first", 0.0), ("mean", 0.1), ("last", 0.0)):
        w = Weights()
        w.matrix("tok_emb", v, d, 0.5)
        w.matrix("pos_emb", max_seq, d, 0.5)
        w.matrix("type_emb", types, d, 0.5)
        w.norm("emb_norm", d)
        for i in range(layers):
            w.layer(f"layers.{i}", d, ff, d, d)
        if head != "none":
            w.linear("head", classes, d)
        real = prefix_mask([6, 3, 5], t)
        inputs = {"tokens": torch.randint(v, (b, t)), "types": torch.randint(types, (b, t)), "mask": real}
        targets = torch.randint(classes, (b,)) if head != "none" else None

        def run(inputs):
            x = F.embedding(inputs["tokens"], w["tok_emb.weight"]) + w["pos_emb.weight"][:t]
            x = w.layer_norm("emb_norm", x + F.embedding(inputs["types"], w["type_emb.weight"]), 1e-12)
            for i in range(layers):
                x = w.layer_norm(f"layers.{i}.norm1",
                                 x + w.attention(f"layers.{i}.attn", x, heads, heads, False, inputs["mask"]), 1e-12)
                h = w.apply(f"layers.{i}.ffn.down", F.gelu(w.apply(f"layers.{i}.ffn.up", x)))
                x = w.layer_norm(f"layers.{i}.norm2", x + h, 1e-12)
            if head == "none":
                return x
            count = inputs["mask"].sum(1)
            if head == "mean":
                pooled = (x * inputs["mask"][..., None]).sum(1) / count[:, None]
            else:
                pooled = x[torch.arange(b), count - 1] if head == "last" else x[:, 0]
            logits = w.apply("head", pooled)
            return logits, F.cross_entropy(logits, targets, label_smoothing=smoothing)

        head_toml = '[head]\ntype = "none"' if head == "none" else (
            f'[head]\ntype    = "classifier"\nclasses = {classes}\npool    = "{head}"\nbias    = true')
        loss_toml = f"\n\n[loss]\nlabel_smoothing = {smoothing}" if smoothing else ""
        write("bert_hidden" if head == "none" else f"bert_classifier_{head}", f"""
# An encoder as BERT: token types, a norm after the embedding, norms after each sub-layer
[model]
kind    = "encoder"
d_model = {d}
layers  = {layers}
heads   = {heads}
d_ff    = {ff}
vocab   = {v}
max_seq = {max_seq}

[embedding]
types = {types}
norm  = true

[norm]
placement = "post"
eps       = 1e-12

{head_toml}{loss_toml}
""", w, inputs, run, real if head == "none" else torch.ones(b, dtype=torch.bool), targets=targets,
              upstream=upstream_for(real, d) if head == "none" else None)


def rotation(style, theta):
    """Each pair of columns turned by position * theta^(-2i/E): halves (i, i+E/2) or neighbours (2i, 2i+1)."""
    def rotate(x):  # [B,n,T,E]
        t, e = x.shape[-2:]
        angle = torch.arange(t)[:, None] * theta ** (-torch.arange(0, e, 2) / e)[None, :]
        cos, sin = angle.cos(), angle.sin()
        a, b = (x[..., : e // 2], x[..., e // 2:]) if style == "half" else (x[..., 0::2], x[..., 1::2])
        turned = (a * cos - b * sin, a * sin + b * cos)
        return torch.cat(turned, -1) if style == "half" else torch.stack(turned, -1).flatten(-2)
    return rotate


def llama():
    for style in ("half", "interleaved"):
        v, d, heads, kv_heads, e, ff, layers, b, t = 19, 16, 4, 2, 6, 21, 2, 2, 7
        w = Weights()
        w.matrix("tok_emb", v, d, 0.5)
        for i in range(layers):
            w.layer(f"layers.{i}", d, ff, heads * e, kv_heads * e, bias=False, norm_bias=False, gated=True)
        w.norm("final_norm", d, bias=False)
        w.matrix("head", v, d)
        tokens, targets = torch.randint(v, (b, t)), torch.randint(v, (b, t))
        rotate = rotation(style, 500.0)

        def run(inputs):
            x = F.embedding(inputs["tokens"], w["tok_emb.weight"])
            for i in range(layers):
                h = w.rms_norm(f"layers.{i}.norm1", x, 1e-6)
                x = x + w.attention(f"layers.{i}.attn", h, heads, kv_heads, True, rotate=rotate)
                h = w.rms_norm(f"layers.{i}.norm2", x, 1e-6)
                h = F.silu(w.apply(f"layers.{i}.ffn.gate", h)) * w.apply(f"layers.{i}.ffn.up", h)
                x = x + w.apply(f"layers.{i}.ffn.down", h)
            logits = w.apply("head", w.rms_norm("final_norm", x, 1e-6))
            return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())

        write(f"llama_{style}", f"""
# A decoder as LLaMA: rotary positions ({style}), RMSNorm, SwiGLU, grouped queries, no biases, output of its own
[model]
kind     = "decoder"
d_model  = {d}
layers   = {layers}
heads    = {heads}
kv_heads = {kv_heads}
head_dim = {e}
d_ff     = {ff}
vocab    = {v}

[embedding]
tie = false

[position]
type       = "rope"
rope_theta = 500.0
rope_style = "{style}"

[norm]
type = "rmsnorm"
eps  = 1e-6

[attention]
bias = false

[ffn]
activation = "swiglu"
bias       = false
""", w, {"tokens": tokens}, run, torch.ones(b, t, dtype=torch.bool), targets=targets)


def main(names):
    """All fixtures, or those of the functions and modules of fixtures/ that are named."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    sys.modules["make_fixtures"] = sys.modules["__main__"]  # so that the modules share what is here
    makers = {make.__name__: [make] for make in (encoder_layers, decoder_layers, transformers, gpt2, bert, llama)}
    for file in sorted(os.listdir(os.path.join(here, "fixtures"))):
        if file.endswith(".py"):
            makers[file[:-3]] = importlib.import_module(f"fixtures.{file[:-3]}").MAKERS
    os.makedirs(FOLDER, exist_ok=True)
    for name in names or makers:
        for make in makers[name]:
            torch.manual_seed(20240607)
            make()


if __name__ == "__main__":
    main(sys.argv[1:])
