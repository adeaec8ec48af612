"""The generated Python module's own behaviour: arguments, errors, lifetimes, sessions, libraries.

    module_test.py --compiler build/bin/transformerc
"""
import gc
import os
import shutil
import threading
import unittest

import numpy as np

import small_models
from small_models import compiled, imported, random, run_tests


class Arguments(unittest.TestCase):
    def setUp(self):
        self.m = compiled("language").Model(seed=3, threads=1)
        self.tokens = random().integers(11, size=(2, 5))

    def rejected(self, error, text, call, *args, **kwargs):
        with self.assertRaises(error) as caught:
            call(*args, **kwargs)
        self.assertIn(text, str(caught.exception))

    def test_any_integers_at_any_stride(self):
        expected = self.m.forward(self.tokens)
        wide = np.zeros((5, 4), np.int16)
        wide[:, ::2] = self.tokens.T
        for ids in (self.tokens.tolist(), wide[:, ::2].T, *(self.tokens.astype(t) for t in "bBhHiIqQ"),
                    self.tokens.astype(">i4")):
            np.testing.assert_array_equal(self.m.forward(ids), expected)

    def test_any_floats_at_any_stride(self):
        m = compiled("vectors").Model()
        x = random().standard_normal((2, 3, 16)).astype(np.float16)
        expected = m.forward(x)
        self.assertEqual(expected.dtype, np.float64)
        for floats in (x.astype(np.float32), x.astype(np.longdouble), x.astype(">f8"), np.asfortranarray(x),
                       np.repeat(x, 2, axis=1)[:, ::2]):
            np.testing.assert_array_equal(m.forward(floats), expected)
        self.rejected(ValueError, "x has dtype int64", m.forward, np.ones((2, 3, 16), np.int64))

    def test_masked_positions_are_not_read(self):
        ids = self.tokens.astype(np.int64)
        expected = self.m.forward(ids, lengths=[3, 5])
        ids[0, 3:] = [2 ** 40, -5]
        for given in ({"lengths": [3, 5]}, {"mask": np.arange(5) < [[3], [5]]}):
            np.testing.assert_array_equal(self.m.forward(ids, **given), expected)
        m, x = compiled("vectors").Model(), random().standard_normal((1, 4, 16))
        mask = [[1, 0, 1, 1]]
        expected = m.forward(x, mask)
        x[0, 1] = np.nan
        np.testing.assert_array_equal(m.forward(x, mask), expected)

    def test_wrong_arguments_are_named(self):
        t, m = self.tokens, self.m
        self.rejected(ValueError, "tokens has dtype float64", m.forward, t * 1.0)
        self.rejected(ValueError, "tokens has shape [5], expected [B,T]", m.forward, t[0])
        self.rejected(ValueError, "T is 0", m.forward, t[:, :0])
        self.rejected(ValueError, "tokens", m.forward, t + 2 ** 40)
        self.rejected(ValueError, "tokens[0,0] is 11", m.forward, np.full((1, 1), 11))
        self.rejected(ValueError, "T is 9", m.forward, np.zeros((1, 9), int))
        self.rejected(ValueError, "mask has shape [2, 4], expected [2,5]", m.forward, t, mask=np.ones((2, 4)))
        self.rejected(ValueError, "values other than 0 and 1", m.forward, t, mask=t)
        self.rejected(ValueError, "expected one", m.forward, t, mask=np.ones((2, 5)), lengths=[5, 5])
        self.rejected(ValueError, "lengths", m.forward, t, lengths=[5, 6])
        self.rejected(ValueError, "lengths has shape []", m.forward, t[:1], lengths=5)
        self.rejected(ValueError, "targets", m.loss, t, targets=np.full((2, 5), 12))
        self.rejected(ValueError, "targets has shape", m.loss, t, targets=t[0])
        self.rejected(TypeError, "types", m.forward, t, types=t)
        self.rejected(TypeError, "tokens", m.forward)
        self.rejected(TypeError, "mask", compiled("maskless").Model().forward, t, mask=np.ones((2, 5)))
        self.rejected(ValueError, "grad_output has shape", m.vjp, np.ones((2, 5, 12)), t)

    def test_wrong_settings(self):
        m, before = self.m, self.m.params["tok_emb.weight"].copy()
        m.accumulate(self.tokens, targets=self.tokens)
        for settings in ({"lr": -1}, {"lr": float("nan")}, {"betas": (1.0, 0.9)}, {"betas": 0.9}, {"eps": -1},
                         {"clip": -1}, {"weight_decay": float("inf")}, {"decay": "some"}, {"count": -1}):
            self.rejected(ValueError, next(iter(settings)).split("_")[0][:4], m.step, **settings)
        for settings in ({"temperature": -1}, {"top_k": -1}, {"top_p": 1.5}, {"context": "on"}, {"eos": 11},
                         {"max_new": -1}, {"seed": -1}, {"temperature": float("nan")}):
            self.rejected(ValueError, next(iter(settings)), m.generate, self.tokens, **settings)
        np.testing.assert_array_equal(m.params["tok_emb.weight"], before)
        self.assertEqual(m.step_count, 0)

    def test_what_a_model_cannot_do(self):
        vectors, topic = compiled("vectors").Model(), compiled("topic").Model()
        for name in ("loss", "backward", "accumulate", "train_step", "logprobs", "generate", "decode", "reset_cache"):
            self.assertFalse(hasattr(vectors, name), name)
        self.assertFalse(hasattr(topic, "generate"))
        self.rejected(AttributeError, "vjp and step", lambda: vectors.loss)
        self.assertEqual((dict(self.m.taps), dict(self.m.tap_grads), len(self.m.taps)), ({}, {}, 0))


    def test_last_of_every_output(self):
        m, x = compiled("vectors").Model(seed=2), random().standard_normal((3, 4, 16))
        mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
        last = m.forward(x, mask, last=True)
        np.testing.assert_array_equal(last[:2], m.forward(x, mask)[[0, 1], [1, 3]])
        self.assertFalse(last[2].any())
        pair = compiled("attend").Model(seed=1)
        memory, tgt = random().standard_normal((2, 3, 16)), random().standard_normal((2, 4, 16))
        np.testing.assert_array_equal(pair.forward(memory, tgt, last=True), pair.forward(memory, tgt)[:, -1])
        topic = compiled("topic").Model()
        self.rejected(TypeError, "last=True, but a classifier", topic.forward, self.tokens, self.tokens * 0, last=True)

    def test_what_was_left_out(self):
        tokens = self.tokens
        infer = compiled("language", functions="infer").Model(seed=3, threads=1)
        np.testing.assert_array_equal(infer.forward(tokens), self.m.forward(tokens))
        np.testing.assert_array_equal(infer.generate(tokens, max_new=2), self.m.generate(tokens, max_new=2))
        self.assertEqual(infer.loss(tokens, targets=tokens), self.m.loss(tokens, targets=tokens))
        for name in ("grads", "backward", "accumulate", "vjp", "step", "train_step", "zero_grad"):
            self.assertFalse(hasattr(infer, name), name)
        self.rejected(AttributeError, "compiled with --functions=infer", lambda: infer.train_step)
        train = compiled("language", functions="train").Model(seed=3, threads=1)
        self.assertEqual(train.train_step(tokens, targets=tokens), self.m.train_step(tokens, targets=tokens))
        for name in ("logprobs", "generate", "decode", "reset_cache", "cache_lengths"):
            self.assertFalse(hasattr(train, name), name)
        self.rejected(AttributeError, "compiled with --functions=train", lambda: train.generate)
        self.rejected(TypeError, "compiled with --functions=train", train.forward, tokens, last=True)


class Parameters(unittest.TestCase):
    def test_views_are_live_and_keep_the_memory(self):
        m = compiled("language").Model(seed=1)
        view, tokens = m.params["tok_emb.weight"], [[1, 2, 3]]
        before = m.forward(tokens)
        view[:] *= 2
        self.assertFalse(np.array_equal(m.forward(tokens), before))
        expected, slices = view.copy(), view[2:4]
        del m, view
        gc.collect()
        np.testing.assert_array_equal(slices, expected[2:4])

    def test_assignment_checks_the_shape(self):
        m = compiled("language").Model()
        m.params["final_norm.bias"] = np.arange(16, dtype=np.int8)
        np.testing.assert_array_equal(m.params["final_norm.bias"], np.arange(16))
        for wrong in (0.0, np.zeros(15), np.zeros((16, 1))):
            with self.assertRaisesRegex(ValueError, "final_norm.bias has shape"):
                m.params["final_norm.bias"] = wrong
        with self.assertRaises(KeyError):
            m.params["final_norm.gamma"]

    def test_gradients_before_and_after(self):
        m = compiled("language").Model()
        self.assertEqual(list(m.grads), list(m.params))
        self.assertFalse(any(g.any() for g in m.grads.values()))
        m.backward([[1, 2, 3]], targets=[[2, 3, 4]])
        self.assertTrue(all(np.isfinite(g).all() for g in m.grads.values()))
        self.assertTrue(m.grads["tok_emb.weight"].any())
        m.zero_grad()
        self.assertFalse(m.grads["tok_emb.weight"].any())

    def test_seeds(self):
        module = compiled("language")
        same = [module.Model(seed=s).params["tok_emb.weight"].copy() for s in (5, 5, 6)]
        np.testing.assert_array_equal(same[0], same[1])
        self.assertFalse(np.array_equal(same[0], same[2]))


class Libraries(unittest.TestCase):
    def test_sessions_in_threads(self):
        m = compiled("language").Model(seed=1, threads=1)
        tokens = random().integers(11, size=(8, 8))
        expected, wrong = m.forward(tokens), []

        def work(session):
            for _ in range(50):
                if not np.array_equal(session.forward(tokens), expected):
                    wrong.append(session)

        threads = [threading.Thread(target=work, args=(m.session(threads=1),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_busy_session_says_so(self):
        m = compiled("language").Model()
        with m._busy, self.assertRaisesRegex(RuntimeError, "busy"):
            m.forward([[1]])

    def test_thread_counts_give_the_same_bits(self):
        module, tokens = compiled("language", "f32"), random().integers(11, size=(5, 7))
        results = []
        for threads in (1, 2, 3):
            m = module.Model(seed=9, threads=threads)
            for _ in range(3):
                m.train_step(tokens, targets=tokens, lr=0.01)
            results.append({k: v.copy() for k, v in m.params.items()})
        for other in results[1:]:
            for name, value in other.items():
                np.testing.assert_array_equal(value, results[0][name], err_msg=name)

    def test_workspace(self):
        m = compiled("language").Model()
        sizes = [m.workspace_bytes("train", B=4, T=t) for t in (1, 4, 8)]
        self.assertEqual(sizes, sorted(sizes))
        with self.assertRaises(ValueError):
            m.workspace_bytes("training", B=1, T=1)
        with self.assertRaisesRegex(ValueError, "T 9; T may be at most 8"):
            m.workspace_bytes("train", B=1, T=9)
        m.workspace_bytes("decode", B=1, T=8)

    def test_other_builds_and_places(self):
        compiled("language")
        folder = os.path.join(small_models.FOLDER, "f64")
        with open(os.path.join(folder, "language.py")) as file:
            text = file.read()
        other = os.path.join(small_models.FOLDER, "other")
        os.makedirs(other, exist_ok=True)
        path = os.path.join(other, "language.py")
        with open(path, "w") as file:
            file.write(text)
        with self.assertRaises(OSError):
            imported("language", path)  # no library beside it
        os.environ["language_LIBRARY"] = os.path.join(folder, "liblanguage.so")
        try:
            imported("language", path).Model()
            with open(path, "w") as file:
                file.write(text.replace("BUILD_ID = 0x", "BUILD_ID = 1 + 0x"))
            with self.assertRaisesRegex(ImportError, "not of one build"):
                imported("language", path)
        finally:
            del os.environ["language_LIBRARY"]
        compiled("vectors")
        shutil.copy(os.path.join(folder, "libvectors.so"), os.path.join(other, "liblanguage.so"))
        with self.assertRaisesRegex(ImportError, "not a library of the model language"):
            imported("language", path)


if __name__ == "__main__":
    run_tests()
