"""Values inside a model through the generated Python module: looked at (taps) and changed (edits).

    inside_test.py --compiler build/bin/transformerc
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


class Edits(unittest.TestCase):
    def setUp(self):
        self.module = compiled("changed")
        self.m = self.module.Model(seed=3, threads=1)
        self.tokens = random().integers(11, size=(2, 6))

    def test_a_head_that_is_off_is_one_whose_columns_are_not_read(self):
        m, head = self.m, np.arange(16) < 8
        plain = m.forward(self.tokens)
        m.edit("layers.1.attn", replace=0, where=head)
        edited, loss = m.forward(self.tokens), m.backward(self.tokens, targets=self.tokens)
        gradient = m.grads["layers.0.ffn.up.weight"].copy()
        m.clear_edits("layers.1.attn")
        np.testing.assert_array_equal(m.forward(self.tokens), plain)
        m.params["layers.1.attn.o.weight"][:, head] = 0
        np.testing.assert_array_equal(m.forward(self.tokens), edited)
        self.assertEqual(m.backward(self.tokens, targets=self.tokens), loss)
        np.testing.assert_array_equal(m.grads["layers.0.ffn.up.weight"], gradient)

    def test_what_is_replaced_has_no_gradient_and_what_is_added_to_has(self):
        m = self.m
        m.edit("layers.0.ffn.act", replace=np.zeros((1, 20), np.float32))
        m.backward(self.tokens, targets=self.tokens)
        self.assertTrue((m.grads["layers.0.ffn.up.weight"] == 0).all())
        m.edit("layers.0.ffn.act", add=np.arange(20))
        m.backward(self.tokens, targets=self.tokens)
        self.assertFalse((m.grads["layers.0.ffn.up.weight"] == 0).all())
        expected = m.forward(self.tokens)
        m.clear_edits()
        m.edit("layers.0.ffn.down", add=m.params["layers.0.ffn.down.weight"] @ np.arange(20))
        np.testing.assert_allclose(m.forward(self.tokens), expected, rtol=1e-10, atol=1e-12)

    def test_broadcasting_is_numpys(self):
        m = self.m
        for shape in ((), (1,), (16,), (6, 1), (6, 16), (1, 6, 16), (2, 1, 1), (2, 1, 16), (2, 6, 1), (2, 6, 16)):
            value = random().standard_normal(shape)
            where = random().random(shape) < 0.5
            m.edit("layers.1.attn", replace=value, where=where)
            edited = m.forward(self.tokens)
            m.edit("layers.1.attn", replace=np.broadcast_to(value, (2, 6, 16)), where=np.broadcast_to(where, (2, 6, 16)))
            np.testing.assert_array_equal(m.forward(self.tokens), edited)

    def test_what_is_set(self):
        m = self.m
        self.assertEqual(list(m.edits), list(self.module.EDITS))
        self.assertEqual(set(m.edits.values()), {None})
        value = np.ones(16)
        m.edit("layers.1.attn", add=value, where=value == 1)
        value[:] = 7
        kept = m.edits["layers.1.attn"]
        self.assertEqual((list(kept), kept["add"].tolist(), kept["where"].dtype), (["add", "where"], [1] * 16, np.dtype(bool)))
        self.assertEqual(set(m.session().edits.values()), {None})
        for wrong in ({"replace": np.ones(15)}, {"replace": "x"}, {"replace": 1, "where": [2] * 16}, {"add": np.ones((1,) * 5)},
                      {"add": np.zeros((0,))}, {"add": np.ones((3, 1, 1, 16))}, {"add": 1j}):
            with self.assertRaises(ValueError):
                m.edit("layers.1.attn", **wrong)
        for wrong in ({}, {"where": True}, {"add": 1, "replace": 1}):
            with self.assertRaises(TypeError):
                m.edit("layers.1.attn", **wrong)
        for call in (lambda: m.edit("layers.0.attn", add=1), lambda: m.clear_edits("head.logits")):
            with self.assertRaises(KeyError):
                call()
        self.assertEqual(list(m.edits["layers.1.attn"]), ["add", "where"])
        m.clear_edits()
        self.assertEqual(set(m.edits.values()), {None})

    def test_decode_and_generate(self):
        m = self.m
        m.edit("layers.1.attn", add=np.ones((6, 16)))
        m.forward(self.tokens)
        with self.assertRaisesRegex(ValueError, r"has shape \[6,16\], which does not fit \[2,2,16\], the shape in this call"):
            m.decode(self.tokens[:, :2])
        with self.assertRaisesRegex(ValueError, r"does not fit \[2,1,16\]"):
            m.generate(self.tokens, max_new=1)
        m.reset_cache()
        m.decode(self.tokens)
        m.edit("layers.1.attn", add=np.ones(16))
        whole = m.forward(self.tokens)
        m.reset_cache()
        np.testing.assert_array_equal(np.hstack([m.decode(self.tokens[:, :2]), m.decode(self.tokens[:, 2:])]), whole)
        self.assertEqual(m.generate(self.tokens, max_new=1)[0, 6], whole[0, -1].argmax())


if __name__ == "__main__":
    run_tests()
