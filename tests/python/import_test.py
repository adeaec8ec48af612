"""examples/import_gpt2.py, on small checkpoints with the names and layouts of Hugging Face's.

    import_test.py --compiler build/bin/transformerc
"""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import small_models
from small_models import imported, run_tests
from weights_test import written

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SCRIPT = os.path.join(TESTS, "..", "examples", "import_gpt2.py")
D, H, V, T = 16, 2, 11, 8  # of the random model


def random_checkpoint():
    draw = np.random.default_rng(5).standard_normal
    arrays = {"wte.weight": draw((V, D)), "wpe.weight": draw((T, D))}
    for layer in ("h.0.", "h.1."):
        for name, rows, columns in (("attn.c_attn", D, 3 * D), ("attn.c_proj", D, D), ("mlp.c_fc", D, 4 * D),
                                    ("mlp.c_proj", 4 * D, D)):
            arrays[layer + name + ".weight"] = draw((rows, columns)) / 4
            arrays[layer + name + ".bias"] = draw(columns)
        for name in ("ln_1", "ln_2"):
            arrays[layer + name + ".weight"], arrays[layer + name + ".bias"] = 1 + draw(D) / 4, draw(D)
        arrays[layer + "attn.bias"] = np.tril(np.ones((1, 1, T, T)))
        arrays[layer + "attn.masked_bias"] = np.array(-1e4)
    arrays["ln_f.weight"], arrays["ln_f.bias"] = 1 + draw(D) / 4, draw(D)
    return {name: array.astype(np.float32).astype(np.float64) for name, array in arrays.items()}


def gpt2(w, tokens):
    """GPT-2 in a few lines (Radford et al. 2019), with its weights as [in, out]."""
    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]

    def linear(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    t = tokens.shape[1]
    x = w["wte.weight"][tokens] + w["wpe.weight"][:t]
    for layer in ("h.0.", "h.1."):
        q, k, v = (part.reshape(len(tokens), t, H, D // H).transpose(0, 2, 1, 3)
                   for part in np.split(linear(norm(x, layer + "ln_1"), layer + "attn.c_attn"), 3, -1))
        scores = np.where(np.tril(np.ones((t, t))) > 0, q @ k.transpose(0, 1, 3, 2) / np.sqrt(D // H), -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + linear(mixed, layer + "attn.c_proj")
        up = linear(norm(x, layer + "ln_2"), layer + "mlp.c_fc")
        up = up * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up ** 3))) / 2
        x = x + linear(up, layer + "mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def as_checkpoint(params):
    """A model's parameters as Hugging Face would keep them."""
    theirs = {"tok_emb": "wte", "pos_emb": "wpe", "final_norm": "ln_f", "norm1": "ln_1", "norm2": "ln_2",
              "attn.o": "attn.c_proj", "ffn.up": "mlp.c_fc", "ffn.down": "mlp.c_proj"}
    arrays = {}
    for name, value in params.items():
        part, kind = name.rsplit(".", 1)
        layer, part = (f"h.{part.split('.')[1]}.", part.split(".", 2)[2]) if part.startswith("layers.") else ("", part)
        if part in theirs:
            arrays[f"{layer}{theirs[part]}.{kind}"] = value.T if part.startswith(("attn", "ffn")) else value
        elif part == "attn.q":
            joined = np.concatenate([params[name.replace(".q.", f".{letter}.")] for letter in "qkv"])
            arrays[f"{layer}attn.c_attn.{kind}"] = joined.T
    return arrays


class ImportedGpt2(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source, self.target = (os.path.join(folder.name, name) for name in ("theirs", "ours"))

    def compiled(self, name, d, layers, heads, vocab, max_seq, more=""):
        path = os.path.join(small_models.FOLDER, name + ".toml")
        if not os.path.exists(path):
            with open(path, "w") as file:
                file.write(f'extends = "gpt2"\n[model]\nd_model = {d}\nlayers = {layers}\nheads = {heads}\n'
                           f"vocab = {vocab}\nmax_seq = {max_seq}\n{more}")
            subprocess.run([small_models.COMPILER, path, "--precision=f64", "-o", small_models.FOLDER], check=True,
                           stdout=subprocess.DEVNULL)
        return imported(name, path[:-5] + ".py").Model()

    def small(self):
        return self.compiled("small", D, 2, H, V, T)

    def convert(self, arrays, dtype="F32"):
        with open(self.source, "wb") as file:
            file.write(written(arrays, dtype))
        return subprocess.run([sys.executable, SCRIPT, self.source, self.target], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)

    def check(self, arrays, model, tokens, expected, tolerance=1e-9, dtype="F32"):
        self.assertEqual(self.convert(arrays, dtype).returncode, 0)
        model.load(self.target)
        np.testing.assert_allclose(model.forward(tokens), expected, rtol=tolerance, atol=tolerance)

    def test_gives_what_gpt2_gives(self):
        w, tokens = random_checkpoint(), np.random.default_rng(6).integers(V, size=(3, 7))
        self.check(w, self.small(), tokens, gpt2(w, tokens))

    def test_gives_what_pytorch_gave(self):
        data = np.load(os.path.join(TESTS, "fixtures", "gpt2_style.npz"))
        params = {name[6:]: data[name] for name in data.files if name.startswith("param/")}
        model = self.compiled("torchs", 12, 2, 2, 23, 9)
        self.assertEqual(self.convert(as_checkpoint(params), "F64").returncode, 0)
        model.load(self.target)
        logits, real = model.forward(data["in/tokens"], data["in/mask"]), data["real"]
        np.testing.assert_allclose(logits[real], data["output"][real], rtol=0, atol=1e-5)  # the file is of float32

    def test_names_of_the_whole_class_and_narrow_numbers(self):
        """GPT2LMHeadModel saves its parts as `transformer.*`, and the table again as its head."""
        w, tokens = random_checkpoint(), np.random.default_rng(6).integers(V, size=(3, 7))
        whole = {"transformer." + name: array for name, array in w.items()}
        whole["lm_head.weight"] = w["wte.weight"]
        self.check(whole, self.small(), tokens, gpt2(w, tokens))
        rounded = {name: array.astype(np.float16).astype(np.float64) for name, array in w.items()}
        self.check(w, self.small(), tokens, gpt2(rounded, tokens), dtype="F16")
        words = {name: np.atleast_1d(array).astype(np.float32).view(np.uint32) & 0xffff0000 for name, array in w.items()}
        cut = {name: upper.view(np.float32).astype(np.float64) for name, upper in words.items()}
        self.check(w, self.small(), tokens, gpt2(cut, tokens), dtype="BF16")

    def test_a_head_of_its_own(self):
        w, tokens = random_checkpoint(), np.random.default_rng(6).integers(V, size=(3, 7))
        w["lm_head.weight"] = w["wte.weight"][::-1]
        untied = self.compiled("untied", D, 2, H, V, T, "[embedding]\ntie = false\n")
        self.check(w, untied, tokens, gpt2(w, tokens)[..., ::-1])
        with self.assertRaisesRegex(ValueError, "head.weight"):
            self.small().load(self.target)

    def test_what_is_not_gpt2_is_refused(self):
        said = self.convert({"model.embed_tokens.weight": np.ones((2, 2))})
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("model.embed_tokens.weight is no tensor of GPT-2's", said.stderr)
        self.assertFalse(os.path.exists(self.target))


if __name__ == "__main__":
    run_tests()
