"""Windows, prefixes, documents and positions from Python: what is given and what is not, errors, generation, memory.

    attention_test.py --compiler build/bin/transformerc
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

COMPILER, FOLDER = None, None
COMMON = "d_model = 16\nheads = 2\nd_ff = 20\n"
DECODER = '[model]\nkind = "decoder"\nlayers = 2\nvocab = 11\n' + COMMON
ROPE = '[position]\ntype = "rope"\n'
MODELS = {
    "packed": DECODER + "max_seq = 12\n[inputs]\ndocuments = true\npositions = true\n",
    "prefixed": DECODER + ROPE + "[attention]\nprefix = true\n[inputs]\nprefix = true\nmask = false\n",
    "windowed": DECODER + ROPE + "[attention]\nwindow = 70\n",
    "wide": DECODER + ROPE,
    "pairs": '[model]\nkind = "encoder-decoder"\nencoder_layers = 1\ndecoder_layers = 1\nvocab = 11\n' + COMMON
             + '[position]\ntype = "alibi"\n[inputs]\ndocuments = true\npositions = true\n',
}
_loaded = {}


def model(name):
    if name not in _loaded:
        path = os.path.join(FOLDER, name + ".toml")
        with open(path, "w") as file:
            file.write(MODELS[name])
        subprocess.run([COMPILER, path, "--precision=f64", "-o", FOLDER], check=True, stdout=subprocess.DEVNULL)
        spec = importlib.util.spec_from_file_location(name, os.path.join(FOLDER, name + ".py"))
        _loaded[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_loaded[name])
    return _loaded[name].Model(seed=3, threads=1)


def tokens(b, t):
    return np.random.default_rng(5).integers(0, 11, (b, t))


class Documents(unittest.TestCase):
    def test_a_packed_row_is_its_documents(self):
        m, ids = model("packed"), tokens(1, 9)
        documents, positions = [[4] * 5 + [2] * 4], [[0, 1, 2, 3, 4, 0, 1, 2, 3]]
        packed = m.forward(ids, documents=documents, positions=positions)
        self.assertLess(np.abs(packed[:, :5] - m.forward(ids[:, :5])).max(), 1e-12)
        self.assertLess(np.abs(packed[:, 5:] - m.forward(ids[:, 5:])).max(), 1e-12)

    def test_what_is_not_given(self):
        m, ids = model("packed"), tokens(2, 7)
        same = m.forward(ids, documents=np.full((2, 7), 9), positions=[range(7)] * 2)
        self.assertTrue(np.array_equal(m.forward(ids), same))

    def test_decoding_goes_on_from_the_last_token(self):
        m, ids = model("packed"), tokens(2, 8)
        documents, positions = [[0, 0, 1, 1, 1, 1, 1, 1]] * 2, [[0, 1, 0, 3, 4, 5, 6, 7], [5, 6, 2, 4, 5, 6, 7, 8]]
        whole = m.forward(ids, documents=documents, positions=positions)
        m.reset_cache()
        parts = [m.decode(ids[:, :4], documents=np.array(documents)[:, :4], positions=np.array(positions)[:, :4]),
                 m.decode(ids[:, 4:5]), m.decode(ids[:, 5:])]
        self.assertTrue(np.array_equal(np.concatenate(parts, axis=1), whole))

    def test_positions_out_of_the_table(self):
        m, ids = model("packed"), tokens(1, 3)
        for positions, text in ((
                [[0, 12, 1]], "positions[0,1] is 12, expected 0 to 11"), ([[-1, 0, 0]], "positions[0,0] is -1")):
            with self.assertRaisesRegex(ValueError, text.replace("[", r"\[")):
                m.forward(ids, positions=positions)
        m.forward(ids, positions=[[0, 1, 99]], mask=[[1, 1, 0]])  # never read
        m.reset_cache()
        m.decode(ids, positions=[[0, 1, 10]])
        with self.assertRaisesRegex(ValueError, r"positions\[0,1\] is 12 \(it goes on from the last one\)"):
            m.decode(ids[:, :2])
        self.assertEqual(m.cache_lengths.tolist(), [3])

    def test_generation(self):
        m, ids = model("packed"), tokens(2, 5)
        given = dict(documents=[[0, 0, 1, 1, 1], [0, 0, 0, 0, 3]], positions=[[0, 1, 0, 1, 2], [0, 1, 2, 3, 0]])
        out = m.generate(ids, max_new=4, **given)
        for b in range(2):
            row, documents, positions = ids[b:b + 1], given["documents"][b], given["positions"][b]
            for _ in range(4):
                logits = m.forward(row, documents=[documents], positions=[positions], last=True)
                row = np.append(row, [[logits[0].argmax()]], axis=1)
                documents, positions = documents + [documents[-1]], positions + [positions[-1] + 1]
            self.assertTrue(np.array_equal(out[b], row[0]))
        full = m.generate(ids, max_new=9, positions=[[0, 1, 2, 3, 9], [0, 1, 2, 3, 4]])  # ends with the table
        self.assertEqual(full.shape[1], 12)
        self.assertEqual(full[0, 7:].tolist(), [0] * 5)
        with self.assertRaisesRegex(ValueError, "documents is given, but a sliding context"):
            m.generate(ids, documents=given["documents"], context="slide")

    def test_undeclared(self):
        for name in ("documents", "positions", "prefix", "src_documents"):
            with self.assertRaisesRegex(TypeError, name):
                model("wide").forward(tokens(1, 3), **{name: [[0, 0, 0]]})

    def test_pairs(self):
        m, src, tgt = model("pairs"), tokens(2, 6), tokens(2, 5)
        given = dict(src_documents=[[1, 1, 1, 2, 2, 2]] * 2, src_positions=[[0, 1, 2, 0, 1, 2]] * 2,
                     documents=[[1, 1, 2, 2, 2]] * 2, positions=[[0, 1, 0, 1, 2]] * 2)
        whole = m.forward(src, tgt, **given)
        first = m.forward(src[:, :3], tgt[:, :2])
        self.assertLess(np.abs(whole[:, :2] - first).max(), 1e-12)
        m.reset_cache(capacity=8, src=src, src_documents=given["src_documents"], src_positions=given["src_positions"])
        parts = [m.decode(tgt[:, a:b], documents=np.array(given["documents"])[:, a:b],
                          positions=np.array(given["positions"])[:, a:b]) for a, b in ((0, 3), (3, 4), (4, 5))]
        self.assertTrue(np.array_equal(np.concatenate(parts, axis=1), whole))


class Prefixes(unittest.TestCase):
    def test_tokens_of_a_prefix_see_each_other(self):
        m, ids = model("prefixed"), tokens(2, 6)
        other = ids.copy()
        other[:, 3] = (other[:, 3] + 1) % 11
        before, after = (m.forward(i, prefix=[4, 2]) for i in (ids, other))
        self.assertFalse(np.allclose(before[0, :3], after[0, :3]))
        self.assertTrue(np.array_equal(before[1, :3], after[1, :3]))
        self.assertTrue(np.array_equal(m.forward(ids), m.forward(ids, prefix=[0, 0])))

    def test_a_prefix_is_decoded_whole(self):
        m, ids = model("prefixed"), tokens(2, 7)
        whole = m.forward(ids, prefix=[4, 2])
        m.reset_cache(capacity=8)
        with self.assertRaisesRegex(ValueError, r"prefix\[0\] is 4, expected 0 to 3, what the row brings"):
            m.decode(ids[:, :3], prefix=[4, 2])
        parts = [m.decode(ids[:, :4], prefix=[4, 2])]
        with self.assertRaisesRegex(ValueError, r"prefix\[1\] is 2, expected 0 to 0: the row has begun"):
            m.decode(ids[:, 4:], prefix=[0, 2])
        parts += [m.decode(ids[:, 4:5]), m.decode(ids[:, 5:], prefix=[0, 0])]
        self.assertTrue(np.array_equal(np.concatenate(parts, axis=1), whole))
        for bad, text in (([7, 8], r"prefix\[1\] is 8, expected 0 to 7"), ([-1, 0], r"prefix\[0\] is -1")):
            with self.assertRaisesRegex(ValueError, text):
                m.forward(ids, prefix=bad)

    def test_generation_takes_long_prefixes(self):
        m, ids = model("prefixed"), tokens(3, 40)  # longer than a piece of the prompt
        out = m.generate(ids, max_new=3, prefix=[35, 0, 40])
        row = ids
        for _ in range(3):
            row = np.append(row, m.forward(row, prefix=[35, 0, 40])[:, -1].argmax(-1)[:, None], axis=1)
        self.assertTrue(np.array_equal(out, row))


class Windows(unittest.TestCase):
    def test_the_cache_grows_with_the_window(self):
        for capacity, least in ((1000, 8), (100, 1)):
            windowed, wide = (self.cache_bytes(name, 2, capacity) for name in ("windowed", "wide"))
            slots = min(capacity, 69)
            self.assertEqual(wide - windowed, 2 * 2 * 2 * (capacity - slots) * 16 * 8)  # layers, k and v, rows
            self.assertGreater(wide, least * windowed)

    def cache_bytes(self, name, rows, capacity):
        model(name)
        return _loaded[name]._api.memory(3, rows, capacity, 0, 1)  # TC_MEMORY_CACHE

    def test_decoding_past_the_window(self):
        m, ids = model("windowed"), tokens(2, 300)
        whole = m.forward(ids)
        for split in ([1] * 300, [100, 150, 50], [299, 1]):
            m.reset_cache(capacity=300)
            ends = np.cumsum(split)
            parts = [m.decode(ids[:, end - n:end]) for n, end in zip(split, ends)]
            self.assertTrue(np.array_equal(np.concatenate(parts, axis=1), whole), split)


if __name__ == "__main__":
    COMPILER = os.path.abspath(sys.argv[sys.argv.index("--compiler") + 1])
    with tempfile.TemporaryDirectory() as FOLDER:
        unittest.main(argv=sys.argv[:1])
