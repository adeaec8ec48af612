"""The generated Python module's own behaviour: arguments, errors, lifetimes, sessions, generation.

    module_test.py --compiler build/bin/transformerc
"""
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

COMPILER, FOLDER = None, None
COMMON = "d_model = 16\nheads = 2\nd_ff = 20\n"
MODELS = {
    "language": 'kind = "decoder"\nlayers = 1\nvocab = 11\nmax_seq = 8\n' + COMMON + "[inputs]\nlengths = true\n",
    "adapted": 'kind = "decoder"\nlayers = 1\nvocab = 11\nmax_seq = 8\n' + COMMON + "[inputs]\nlengths = true\n"
               + "[train]\nlora = { rank = 2, alpha = 4 }\n",
    "maskless": 'kind = "decoder"\nlayers = 1\nvocab = 11\n' + COMMON + '[position]\ntype = "rope"\n[inputs]\nmask = false\n',
    "padded": 'kind = "decoder"\nlayers = 1\nvocab = 11\n' + COMMON + '[position]\ntype = "rope"\n',
    "partly": 'kind = "decoder"\nlayers = 2\nvocab = 11\nmax_seq = 8\n' + COMMON
              + '[train]\nfreeze = ["embedding", "layers.0", "layers.1.*.bias"]\n',
    "vectors": 'kind = "encoder"\nlayers = 1\n' + COMMON,
    "topic": 'kind = "encoder"\nlayers = 1\nvocab = 11\nmax_seq = 8\n' + COMMON
             + '[embedding]\ntypes = 2\n[head]\ntype = "classifier"\nclasses = 3\npool = "mean"\n',
    "translate": 'kind = "encoder-decoder"\nencoder_layers = 1\ndecoder_layers = 1\nvocab = 11\nmax_seq = 8\n' + COMMON,
    "watched": 'kind = "decoder"\nlayers = 2\nvocab = 11\nmax_seq = 8\nkv_heads = 1\n' + COMMON
               + '[debug]\ntaps = ["layers.1.attn.[qk]", "layers.*.weights", "layers.1.ffn.down"]\n',
    "changed": 'kind = "decoder"\nlayers = 2\nvocab = 11\nmax_seq = 8\n' + COMMON
               + '[debug]\nedits = ["layers.1.attn", "layers.0.ffn.*"]\n',
    "attend": 'kind = "encoder-decoder"\nencoder_layers = 0\ndecoder_layers = 1\n' + COMMON,
}
_loaded = {}


def compiled(name, precision="f64", functions="all"):
    """The module, compiled once."""
    if (name, precision, functions) not in _loaded:
        folder = os.path.join(FOLDER, precision + "_" + functions if functions != "all" else precision)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name + ".toml")
        with open(path, "w") as file:
            file.write("[model]\n" + MODELS[name])
        subprocess.run([COMPILER, path, f"--precision={precision}", f"--functions={functions}", "-o", folder], check=True,
                       stdout=subprocess.DEVNULL)
        _loaded[name, precision, functions] = imported(name, os.path.join(folder, name + ".py"))
    return _loaded[name, precision, functions]


def imported(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random():
    return np.random.default_rng(7)


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
        folder = os.path.join(FOLDER, "f64")
        with open(os.path.join(folder, "language.py")) as file:
            text = file.read()
        other = os.path.join(FOLDER, "other")
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


def main():
    """Runs the tests of the program that was started."""
    global COMPILER, FOLDER
    where = sys.argv.index("--compiler")
    COMPILER = sys.argv[where + 1]
    del sys.argv[where:where + 2]
    with tempfile.TemporaryDirectory() as FOLDER:
        unittest.main("__main__", verbosity=2, exit=False).result.wasSuccessful() or sys.exit(1)


if __name__ == "__main__":
    main()
