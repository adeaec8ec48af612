"""Heads in Python: dicts by name, losses by head, weights of targets, what is refused.

    heads_test.py --compiler build/bin/transformerc
"""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

TRUNK = """
[model]
kind    = "encoder"
d_model = 8
layers  = 2
heads   = 2
vocab   = 13
max_seq = 9
"""
MODELS = {
    "pretraining": TRUNK + """
[head.mlm]
type = "mlm"
[head.nsp]
type        = "classifier"
classes     = 2
loss_weight = 0.5
[head.score]
type = "regression"
from = "layers.0"
[head.states]
type = "none"
from = "layers.0"
[inputs]
weights = true
""",
    "tags": TRUNK + """
[head]
type    = "classifier"
classes = 3
pool    = "mean"
loss    = "binary_cross_entropy"
""",
    "marks": TRUNK + """
[head]
type = "regression"
[inputs]
weights = true
""",
    "both_sides": """
[model]
kind           = "encoder-decoder"
d_model        = 8
encoder_layers = 2
decoder_layers = 1
heads          = 2
vocab          = 13
src_vocab      = 17
max_seq        = 9
[head.words]
type = "lm"
[head.masked]
type = "mlm"
from = "encoder.layers.1"
[head.topic]
type    = "classifier"
classes = 4
from    = "encoder.layers.0"
""",
    "words": TRUNK.replace("encoder", "decoder") + """
[head.words]
type = "lm"
[head.topic]
type    = "classifier"
classes = 4
""",
}
rng = np.random.default_rng(1)
TOKENS = rng.integers(13, size=(4, 6))


class Heads(unittest.TestCase):
    def setUp(self):
        self.m = pretraining.Model(seed=3, threads=2)
        self.targets = {"mlm": np.where(rng.random((4, 6)) < 0.5, TOKENS, -100), "nsp": np.array([0, 1, 1, -100]),
                        "score": rng.normal(size=4)}
        self.targets["mlm"][0, 0] = 5

    def test_outputs_are_a_dict(self):
        outputs = self.m.forward(TOKENS)
        self.assertEqual({name: array.shape for name, array in outputs.items()},
                         {"mlm": (4, 6, 13), "nsp": (4, 2), "score": (4, 1), "states": (4, 6, 8)})
        self.assertIn("head.mlm.transform.weight", self.m.params)
        self.assertNotIn("head.mlm.weight", self.m.params)  # the token table

    def test_loss_is_the_weighted_sum_of_means(self):
        outputs = self.m.forward(TOKENS)
        log_p = self.m.logprobs(TOKENS, targets={k: self.targets[k] for k in ("mlm", "nsp")})
        means = {name: -log_p[name][self.targets[name] != -100].mean() for name in log_p}
        means["score"] = ((outputs["score"][:, 0] - self.targets["score"]) ** 2).mean()
        loss = self.m.loss(TOKENS, targets=self.targets)
        for name, mean in means.items():
            self.assertAlmostEqual(self.m.losses[name], mean, 5)
        self.assertAlmostEqual(loss, means["mlm"] + 0.5 * means["nsp"] + means["score"], 5)
        self.assertAlmostEqual(self.m.backward(TOKENS, targets=self.targets), loss, 5)

    def test_parts_of_equal_counts_are_the_whole(self):
        targets = {"mlm": TOKENS, "nsp": np.array([0, 1, 1, 0]), "score": self.targets["score"]}
        self.m.backward(TOKENS, targets=targets)
        whole = {name: gradient.copy() for name, gradient in self.m.grads.items()}
        self.m.zero_grad()
        for part in (slice(0, 2), slice(2, 4)):
            total, count = self.m.accumulate(TOKENS[part], targets={k: v[part] for k, v in targets.items()})
            self.assertEqual(count, 1)
            self.assertAlmostEqual(total, self.m.losses["mlm"] + 0.5 * self.m.losses["nsp"] + self.m.losses["score"], 5)
        for name, gradient in self.m.grads.items():  # step would divide by the two calls
            np.testing.assert_allclose(gradient / 2, whole[name], rtol=1e-4, atol=1e-5)

    def test_vjp_takes_a_dict(self):
        outputs = self.m.forward(TOKENS)
        both = {name: rng.normal(size=outputs[name].shape) for name in ("nsp", "states")}
        total = 0
        for name, upstream in both.items():
            self.m.vjp({name: upstream}, TOKENS)
            total = total + self.m.grads["layers.0.ffn.up.weight"].copy()
        self.m.vjp(both, TOKENS)
        np.testing.assert_allclose(self.m.grads["layers.0.ffn.up.weight"], total, rtol=1e-4, atol=1e-5)

    def test_weights_by_head(self):
        weights = {"nsp": np.array([1.0, 0.0, 2.0, 1.0])}
        self.m.loss(TOKENS, targets=self.targets, weights=weights)
        log_p = self.m.logprobs(TOKENS, targets={k: self.targets[k] for k in ("mlm", "nsp")})["nsp"]
        self.assertAlmostEqual(self.m.losses["nsp"], -(log_p[0] + 2 * log_p[2]) / 3, 5)

    def test_refusals(self):
        def refused(error, text, **call):
            with self.assertRaisesRegex(error, text):
                self.m.loss(TOKENS, **{"targets": self.targets, **call})

        refused(ValueError, "targets is no dict", targets=self.targets["mlm"])
        refused(ValueError, "targets lacks the head 'score'", targets={k: self.targets[k] for k in ("mlm", "nsp")})
        refused(ValueError, "targets has 'states'", targets={**self.targets, "states": 1})
        refused(ValueError, r"targets.nsp has shape \[3\], expected \[4\]", targets={**self.targets, "nsp": np.zeros(3, int)})
        refused(ValueError, r"targets.nsp\[1\] is 2, expected 0 to 1, or -100",
                targets={**self.targets, "nsp": np.array([0, 2, 0, 0])})
        refused(ValueError, "targets.score has dtype int64, expected floats", targets={**self.targets, "score": np.arange(4)})
        refused(ValueError, r"weights.mlm\[0,0\] is -1", weights={"mlm": -np.ones((4, 6))})
        refused(ValueError, r"weights.score\[2\] is nan", weights={"score": np.array([1, 1, np.nan, 1])})
        with self.assertRaisesRegex(ValueError, "grad_output has 'words'"):
            self.m.vjp({"words": np.zeros(3)}, TOKENS)
        with self.assertRaises(TypeError):
            self.m.forward(TOKENS, last=True)


class BothSides(unittest.TestCase):
    def test_rows_of_the_source(self):
        m, src = both_sides.Model(seed=2), rng.integers(17, size=(4, 5))
        outputs = m.forward(src, TOKENS)
        self.assertEqual({name: array.shape for name, array in outputs.items()},
                         {"words": (4, 6, 13), "masked": (4, 5, 17), "topic": (4, 4)})
        real = np.arange(5) < np.array([[5], [3], [1], [4]])
        targets = {"words": TOKENS, "masked": np.where(rng.random((4, 5)) < 0.7, src, -100), "topic": np.arange(4)}
        targets["masked"][0, 0] = 16
        log_p = m.logprobs(src, TOKENS, src_mask=real, targets=targets)
        counts = real & (targets["masked"] != -100)
        m.loss(src, TOKENS, src_mask=real, targets=targets)
        self.assertAlmostEqual(m.losses["masked"], -log_p["masked"][counts].mean(), 5)
        self.assertFalse(log_p["masked"][~counts].any())
        targets["masked"][1, 4] = 99  # no token stands there
        m.loss(src, TOKENS, src_mask=real, targets=targets)
        targets["masked"][0, 1] = 17
        with self.assertRaisesRegex(ValueError, r"targets.masked\[0,1\] is 17, expected 0 to 16"):
            m.loss(src, TOKENS, src_mask=real, targets=targets)
        with self.assertRaisesRegex(ValueError, r"targets.masked has shape \[4, 6\], expected \[4,5\]"):
            m.loss(src, TOKENS, targets={**targets, "masked": TOKENS})

    def test_the_target_is_what_is_generated(self):
        m, src = both_sides.Model(seed=2), rng.integers(17, size=(4, 5))
        self.assertEqual(m.generate(src=src, bos=1, max_new=3).shape, (4, 4))


class OneHead(unittest.TestCase):
    def test_tags(self):
        m, targets = tags.Model(seed=1), rng.random((4, 3))
        x = m.forward(TOKENS).astype(np.float64)
        expected = (np.logaddexp(0, x) - targets * x).mean()
        self.assertAlmostEqual(m.loss(TOKENS, targets=targets), expected, 5)
        targets[1, 2] = 1.5
        with self.assertRaisesRegex(ValueError, r"targets\[0\]\[1,2\] is 1.5, expected 0 to 1"):
            m.loss(TOKENS, targets=targets)
        with self.assertRaisesRegex(AttributeError, "its loss is no cross entropy"):
            m.logprobs
        with self.assertRaisesRegex(AttributeError, "one head alone"):
            m.losses
        with self.assertRaises(TypeError):
            m.loss(TOKENS, targets=targets, weights=np.ones(4))  # not declared

    def test_marks(self):
        m, targets, weights = marks.Model(seed=1), rng.normal(size=4), np.array([1.0, 0.5, 0.0, 2.0])
        y = m.forward(TOKENS)[:, 0]
        expected = (weights * (y - targets) ** 2).sum() / weights.sum()
        for shape in (4,), (4, 1):
            self.assertAlmostEqual(m.loss(TOKENS, targets=targets.reshape(shape), weights=weights), expected, 5)
        targets[2] = np.nan  # weighs nothing
        total, count = m.accumulate(TOKENS, targets=targets, weights=weights)
        self.assertAlmostEqual(total / count, expected, 5)
        self.assertEqual(count, 3.5)
        self.assertEqual(m.loss(TOKENS, targets=targets, weights=np.zeros(4)), 0)
        targets[2] = 0.0
        first = m.loss(TOKENS, targets=targets)
        for _ in range(200):
            last = m.train_step(TOKENS, targets=targets, lr=1e-2)
        self.assertLess(last, 0.05 * first)

    def test_words_and_topic(self):
        m = words.Model(seed=2)
        output = m.forward(TOKENS)
        np.testing.assert_array_equal(m.forward(TOKENS, last=True)["words"], output["words"][:, -1])
        np.testing.assert_array_equal(m.decode(TOKENS), output["words"])
        self.assertEqual(m.generate(TOKENS, max_new=2).shape, (4, 8))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    compiler = parser.parse_args().compiler
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for name, text in MODELS.items():
            path = os.path.join(folder, name + ".toml")
            with open(path, "w") as file:
                file.write(text)
            subprocess.run([compiler, path, "-o", folder], check=True, stdout=subprocess.DEVNULL)
            globals()[name] = __import__(name)
        unittest.main(argv=sys.argv[:1])
