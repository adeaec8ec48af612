"""Generation and decoding through the generated Python module.

    generation_test.py --compiler build/bin/transformerc
"""
import unittest

import numpy as np

from small_models import compiled, random, run_tests


class Generation(unittest.TestCase):
    def test_greedy_is_argmax_of_forward(self):
        m = compiled("language").Model(seed=4)
        prompt = random().integers(11, size=(3, 2))
        out = m.generate(prompt, max_new=4)
        for t in range(2, 6):
            np.testing.assert_array_equal(out[:, t], m.forward(out[:, :t], last=True).argmax(-1))
        np.testing.assert_array_equal(m.generate(prompt, max_new=0), prompt)

    def test_rows_of_different_lengths(self):
        for name in ("language", "maskless"):
            m = compiled(name).Model(seed=4)
            rows = [[1, 2, 3], [4], [5, 6]]
            out = m.generate(rows, max_new=4)
            self.assertIsInstance(out, list)
            for row, result in zip(rows, out):
                np.testing.assert_array_equal(result, m.generate([row], max_new=4)[0])
            with self.assertRaises(ValueError):
                m.generate([[1], []])

    def test_rows_of_different_lengths_draw_as_under_a_mask(self):
        padded, maskless = compiled("padded").Model(seed=4), compiled("maskless").Model(seed=4)
        rows, settings = [[1, 2, 3], [4], [5, 6]], {"max_new": 6, "temperature": 1.5, "seed": 2 ** 64 - 2}
        mask = np.arange(3) < [[3], [1], [2]]
        together = padded.generate(np.array([[1, 2, 3], [4, 0, 0], [5, 6, 0]]), mask=mask, **settings)
        for m in (padded, maskless):
            for row, result, whole in zip(rows, m.generate(rows, **settings), together):
                np.testing.assert_array_equal(result, np.concatenate([row, whole[3:]]))
            np.testing.assert_array_equal(m.generate(rows[:1], **settings)[0], together[0])
        self.assertFalse(np.array_equal(padded.generate(rows[1:2], **settings)[0, 1:], together[1, 3:]))

    def test_eos_pads_and_stops(self):
        m = compiled("language").Model(seed=4)
        prompt = random().integers(11, size=(6, 1))
        free = m.generate(prompt, max_new=6, temperature=1.5, seed=3)
        eos = free[0, 2]
        out = m.generate(prompt, max_new=6, temperature=1.5, seed=3, eos=eos, pad=-7)
        for row, whole in zip(out, free):
            ends = np.flatnonzero(whole[1:] == eos)
            length = 1 + ends[0] + 1 if len(ends) else len(whole)
            np.testing.assert_array_equal(row[:length], whole[:length])
            self.assertTrue((row[length:] == -7).all())

    def test_context(self):
        m = compiled("language").Model(seed=4)
        prompt = [[1, 2, 3, 4, 5, 6]]
        stopped = m.generate(prompt, max_new=9)
        self.assertEqual(stopped.shape, (1, 8))
        slid = m.generate(prompt, max_new=9, context="slide")
        self.assertEqual(slid.shape, (1, 15))
        np.testing.assert_array_equal(slid[:, :8], stopped)
        np.testing.assert_array_equal(slid[:, 12], m.forward(slid[:, 4:12], last=True).argmax(-1))
        with self.assertRaises(ValueError):
            m.generate(prompt, max_new=9, context="error")

    def test_encoder_decoder(self):
        m = compiled("translate").Model(seed=5)
        src = random().integers(11, size=(2, 4))
        out = m.generate(src=src, bos=1, max_new=3)
        self.assertEqual(out.shape, (2, 4))
        self.assertTrue((out[:, 0] == 1).all())
        np.testing.assert_array_equal(out[:, 3], m.forward(src, out[:, :3], last=True).argmax(-1))
        np.testing.assert_array_equal(m.generate(src, tgt=out[:, :2], max_new=2), out)
        masked = m.generate(src=src, src_mask=[[1, 1, 0, 0], [1, 1, 1, 1]], bos=1, max_new=3)
        np.testing.assert_array_equal(masked[0], m.generate(src=src[:1, :2], bos=1, max_new=3)[0])
        with self.assertRaises(TypeError):
            m.generate(src=src)
        with self.assertRaisesRegex(TypeError, "bos and tgt"):
            m.generate(src=src, tgt=out[:, :2], bos=1)

    def test_decode(self):
        m = compiled("language", "f32").Model(seed=4)
        tokens = random().integers(11, size=(3, 8))
        whole = m.forward(tokens)
        for split in ([8], [1] * 8, [3, 4, 1]):
            m.reset_cache()
            parts = [m.decode(part) for part in np.split(tokens, np.cumsum(split)[:-1], axis=1)]
            np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
        with self.assertRaises(ValueError):
            m.decode(tokens[:, :1])  # the cache is full
        m.reset_cache(batch=3)
        y = m.decode(tokens[:, :4], mask=[[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]])
        self.assertEqual(m.cache_lengths.tolist(), [2, 4, 1])
        np.testing.assert_array_equal(y[1], whole[1, :4])
        np.testing.assert_array_equal(m.decode(tokens[:, 2:3])[0, 0], whole[0, 2])
        s = compiled("translate").Model(seed=4)
        src = random().integers(11, size=(3, 5))
        s.reset_cache(src=src)
        np.testing.assert_allclose(s.decode(tokens[:, :4]), s.forward(src, tokens[:, :4]), rtol=0, atol=1e-12)


if __name__ == "__main__":
    run_tests()
