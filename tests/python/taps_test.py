"""Taps through the generated Python module.

    taps_test.py --compiler build/bin/transformerc
"""
import unittest

import numpy as np

from small_models import compiled, random, run_tests


class Taps(unittest.TestCase):
    def setUp(self):
        self.m = compiled("watched").Model(seed=3, threads=1)
        self.tokens, self.mask = random().integers(11, size=(2, 6)), np.arange(6) < [[4], [6]]

    def test_weights_are_the_softmax_of_queries_and_keys(self):
        self.m.forward(self.tokens, self.mask)
        q, k = self.m.taps["layers.1.attn.q"], self.m.taps["layers.1.attn.k"]
        self.assertEqual((q.shape, k.shape), ((2, 6, 16), (2, 6, 8)))  # two heads share one of keys
        scores = np.einsum("bthe,bse->bhts", q.reshape(2, 6, 2, 8), k) / np.sqrt(8)
        seen = self.mask[:, None, None] & (np.arange(6) <= np.arange(6)[:, None])
        weights = np.exp(np.where(seen, scores, -np.inf))
        weights *= self.mask[:, None, :, None] / weights.sum(-1, keepdims=True)
        np.testing.assert_allclose(self.m.taps["layers.1.attn.weights"], weights, rtol=1e-12, atol=0)

    def test_gradients(self):
        """The gradient of a product's sum is that of its bias."""
        self.m.backward(self.tokens, mask=self.mask, targets=self.tokens)
        dy = self.m.tap_grads["layers.1.ffn.down"]
        np.testing.assert_allclose(dy.sum((0, 1)), self.m.grads["layers.1.ffn.down.bias"], rtol=1e-10, atol=1e-14)
        self.assertTrue((dy[0, 4:] == 0).all() and (self.m.taps["layers.1.ffn.down"][0, 4:] == 0).all())
        self.assertEqual(set(self.m.tap_grads), {"layers.1.attn.q", "layers.1.attn.k", "layers.1.ffn.down"})

    def test_what_the_last_call_left(self):
        m, name = self.m, "layers.0.attn.weights"
        self.assertEqual((list(m.taps), name in m.taps), ([], False))
        with self.assertRaisesRegex(RuntimeError, "has left no value of 'layers.0.attn.weights'"):
            m.taps[name]
        m.loss(self.tokens, mask=self.mask, targets=self.tokens)
        kept = m.taps[name]
        self.assertEqual((len(m.taps), name in m.taps, len(m.tap_grads)), (5, True, 0))
        m.forward(self.tokens[:1, :3])
        self.assertEqual((kept.shape, m.taps[name].shape), ((2, 2, 6, 6), (1, 2, 3, 3)))
        m.reset_cache(capacity=7)
        m.decode(self.tokens[:, :3])
        m.decode(self.tokens[:, 3:4])
        self.assertEqual((m.taps[name].shape, m.taps["layers.1.ffn.down"].shape), ((2, 2, 1, 7), (2, 1, 16)))
        with self.assertRaises(KeyError):
            m.taps["layers.0.attn.q"]
        m.train_step(self.tokens, targets=self.tokens)
        self.assertEqual(dict(m.taps), {})


if __name__ == "__main__":
    run_tests()
