"""Training through the generated Python module: losses, divisors, decay, gradients, what is frozen.

    training_test.py --compiler build/bin/transformerc
"""
import unittest

import numpy as np

from small_models import compiled, random, run_tests


class Training(unittest.TestCase):
    def setUp(self):
        self.m = compiled("language").Model(seed=2, threads=2)
        self.tokens = random().integers(11, size=(4, 6))
        self.targets = random().integers(11, size=(4, 6))
        self.targets[1, 2:] = -100

    def test_accumulated_parts_are_the_whole(self):
        m, other = self.m, compiled("language").Model(seed=2)
        loss = other.train_step(self.tokens, targets=self.targets, lr=0.01)
        totals = [m.accumulate(self.tokens[i:i + 2], targets=self.targets[i:i + 2]) for i in (0, 2)]
        self.assertEqual(sum(n for _, n in totals), 20)
        self.assertAlmostEqual(sum(s for s, _ in totals) / 20, loss, places=12)
        m.step(lr=0.01)
        for name, value in other.params.items():
            np.testing.assert_allclose(m.params[name], value, rtol=0, atol=1e-9)

    def test_divisor(self):
        m = self.m
        m.backward(self.tokens, targets=self.targets)
        with self.assertRaises(RuntimeError):
            m.accumulate(self.tokens, targets=self.targets)
        norm = m.step(lr=0.0, clip=None)
        m.accumulate(self.tokens, targets=self.targets)
        self.assertAlmostEqual(m.step(lr=0.0, clip=0), norm, places=12)
        m.accumulate(self.tokens, targets=self.targets)
        self.assertAlmostEqual(m.step(lr=0.0, count=40), norm / 2, places=12)
        self.assertEqual(m.step_count, 3)
        self.assertEqual(m.step(lr=0.1), 0.0)  # nothing accumulated
        self.assertEqual(m.step_count, 3)
        m.accumulate(self.tokens, targets=self.targets)
        self.assertEqual(m.step(lr=0.1, count=0), 0.0)
        with self.assertRaises(ValueError):
            m.step(lr=-1, count=0)
        before = m.params["tok_emb.weight"].copy()
        self.assertAlmostEqual(m.train_step(self.tokens, targets=self.targets, lr=0.1, count=0),
                               m.loss(self.tokens, targets=self.targets), places=12)
        np.testing.assert_array_equal(m.params["tok_emb.weight"], before)
        self.assertEqual(m.step_count, 3)

    def test_decay(self):
        def moved(decay):
            m = compiled("language").Model(seed=2)
            before = {k: v.copy() for k, v in m.params.items()}
            before["final_norm.weight"] = before["final_norm.weight"] + 0
            m.vjp(np.zeros((1, 2, 11)), [[1, 2]])
            m.step(lr=0.5, weight_decay=0.5, decay=decay)
            return {k for k, v in m.params.items() if not np.array_equal(v, before[k])}

        matrices = {name for name, shape, _ in compiled("language").PARAMETERS if len(shape) >= 2}
        self.assertEqual(moved("matrices"), matrices)
        self.assertEqual(moved("all"), matrices | {n for n in self.m.params if n.endswith("norm.weight")
                                                   or ".norm" in n and n.endswith("weight")})
        self.assertEqual(moved(lambda name: name == "tok_emb.weight"), {"tok_emb.weight"})

    def test_counters(self):
        self.m.seed, self.m.call, self.m.step_count = 2 ** 63 + 1, 5, 7
        self.assertEqual((self.m.seed, self.m.call, self.m.step_count), (2 ** 63 + 1, 5, 7))
        with self.assertRaises(ValueError):
            self.m.call = -1

    def test_classifier(self):
        m = compiled("topic").Model()
        types = np.zeros_like(self.tokens)
        self.assertEqual(m.forward(self.tokens, types).shape, (4, 3))
        lp = m.logprobs(self.tokens, types, targets=[0, 1, 2, -100])
        self.assertEqual(lp.shape, (4,))
        self.assertEqual(lp[3], 0)
        self.assertAlmostEqual(m.loss(self.tokens, types, targets=[0, 1, 2, -100]), -lp[:3].mean(), places=12)

    def test_gradients_of_float_inputs(self):
        m = compiled("attend").Model(seed=1)
        memory, tgt = random().standard_normal((2, 3, 16)), random().standard_normal((2, 4, 16))
        upstream = random().standard_normal((2, 4, 16))
        gradients = m.vjp(upstream, memory, tgt)
        self.assertEqual(set(gradients), {"memory", "tgt"})
        for name, step in (("memory", np.zeros_like(memory)), ("tgt", np.zeros_like(tgt))):
            step[1, 2, 5] = 1e-6
            ahead, behind = ({"memory": memory, "tgt": tgt, name: {"memory": memory, "tgt": tgt}[name] + sign * step}
                             for sign in (1, -1))
            slope = np.sum(upstream * (m.forward(**ahead) - m.forward(**behind))) / 2e-6
            self.assertAlmostEqual(slope, gradients[name][1, 2, 5], places=6)


    def test_frozen_parameters(self):
        m = compiled("partly").Model(seed=3, threads=1)
        before = {name: value.copy() for name, value in m.params.items()}
        tokens = random().integers(11, size=(2, 5))
        m.train_step(tokens, targets=tokens, lr=1e-2, weight_decay=0.5, decay="all")
        trained = {name for name in before if not np.array_equal(before[name], m.params[name])}
        self.assertEqual(trained, {name for name in before if name.startswith(("layers.1.", "final_norm."))
                                   and not (name.startswith("layers.1.") and name.endswith(".bias"))})
        m.backward(tokens, targets=tokens)
        self.assertEqual(set(m.grads), trained)
        with self.assertRaises(KeyError):
            m.grads["tok_emb.weight"]


if __name__ == "__main__":
    run_tests()
