"""Weight files through the generated library: files as others write them, training that goes on to the same bits, files
that are not what they should be.

    weights_test.py --compiler build/bin/transformerc
"""
import json
import os
import resource
import struct
import subprocess
import tempfile
import time
import unittest

import numpy as np

import small_models
from small_models import compiled, imported, run_tests

_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16}


def encoded(array, dtype):
    if dtype == "BF16":
        return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return np.ascontiguousarray(array, _DTYPES[dtype]).tobytes()


def written(arrays, dtype="F32", metadata={"format": "pt"}):
    """The bytes of a file as the safetensors package writes it: names sorted, header padded to eight bytes."""
    header, data = {"__metadata__": metadata} if metadata is not None else {}, b""
    for name in sorted(arrays):
        numbers = encoded(arrays[name], dtype)
        header[name] = {"dtype": dtype, "shape": list(np.shape(arrays[name])),
                        "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def parts(path):
    """Header and data of a file."""
    with open(path, "rb") as file:
        content = file.read()
    length, = struct.unpack("<Q", content[:8])
    return json.loads(content[8:8 + length]), content[8 + length:]


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "w.safetensors")
        self.tokens = np.random.default_rng(1).integers(11, size=(3, 6))

    def tearDown(self):
        self.folder.cleanup()

    def put(self, content):
        with open(self.path, "wb") as file:
            file.write(content)

    def refused(self, model, *texts, error=ValueError, **options):
        before = {name: array.copy() for name, array in model.params.items()}
        with self.assertRaises(error) as caught:
            model.load(self.path, **options)
        for text in texts:
            self.assertIn(text, str(caught.exception))
        for name, array in before.items():
            np.testing.assert_array_equal(model.params[name], array)
        return str(caught.exception)

    def test_what_is_saved_is_read_by_others(self):
        m = compiled("language").Model(seed=3)
        m.save(self.path)
        header, data = parts(self.path)
        metadata = header.pop("__metadata__")
        self.assertEqual(list(header), list(m.params))
        self.assertEqual(metadata["format"], "pt")
        self.assertIn("[model]", metadata["description"])
        self.assertTrue(all(isinstance(text, str) for text in metadata.values()))
        for name, tensor in header.items():
            begin, end = tensor["data_offsets"]
            self.assertEqual(tensor["dtype"], "F64")
            array = np.frombuffer(data[begin:end], np.float64).reshape(tensor["shape"])
            np.testing.assert_array_equal(array, m.params[name])
        try:
            from safetensors.numpy import load_file
        except ImportError:
            return
        np.testing.assert_array_equal(load_file(self.path)["tok_emb.weight"], m.params["tok_emb.weight"])

    def test_files_of_the_safetensors_package_are_read(self):
        source, m = compiled("language").Model(seed=3), compiled("language").Model(seed=4)
        view = m.params["tok_emb.weight"]
        for dtype, digits in (("F64", 52), ("F32", 23), ("F16", 10), ("BF16", 7)):
            for metadata in (None, {"format": "pt"}):
                self.put(written(dict(source.params), dtype, metadata))
                m.load(self.path)
                for name, array in source.params.items():
                    np.testing.assert_allclose(m.params[name], array, rtol=2.0 ** -digits, atol=2.0 ** -24 if digits == 10 else 0)
        self.assertTrue(np.shares_memory(view, m.params["tok_emb.weight"]))
        np.testing.assert_array_equal(view, m.params["tok_emb.weight"])

    def test_adapters_are_saved_go_on_and_are_merged(self):
        m, other = compiled("adapted").Model(seed=3), compiled("adapted").Model(seed=4)
        m.train_step(self.tokens, targets=self.tokens)
        m.save(self.path, optimizer=True)
        header, _ = parts(self.path)
        moments = {name[len("optimizer.moment1."):] for name in header if name.startswith("optimizer.moment1.")}
        self.assertEqual(moments, {name for name in m.params if ".lora_" in name})  # nothing else is trained
        self.assertTrue(moments)
        other.load(self.path)
        self.assertEqual(other.train_step(self.tokens, targets=self.tokens), m.train_step(self.tokens, targets=self.tokens))
        for name, array in m.params.items():
            np.testing.assert_array_equal(other.params[name], array)
        expected = m.forward(self.tokens)
        m.merge_lora()
        m.save(self.path)
        other.load(self.path)
        np.testing.assert_array_equal(other.forward(self.tokens), m.forward(self.tokens))
        np.testing.assert_allclose(other.forward(self.tokens), expected, atol=1e-12)
        plain = compiled("language").Model(seed=5)  # the same without adapters takes the merged weights
        for name in plain.params:
            plain.params[name] = other.params[name]
        np.testing.assert_allclose(plain.forward(self.tokens), expected, atol=1e-12)
        plain.save(self.path)
        self.refused(m, "it lacks 4 of this model's tensors", "lora_a", strict=False)

    def test_a_tied_table_may_come_twice(self):
        m = compiled("language").Model(seed=3)
        arrays = {**m.params, "head.weight": m.params["tok_emb.weight"]}
        self.put(written(arrays, "F64"))
        m.load(self.path)
        arrays["head.weight"] = arrays["head.weight"] + 1e-15
        self.put(written(arrays, "F64"))
        self.refused(m, '"head.weight" is "tok_emb.weight" itself in this model')

    def test_names_that_lack_and_names_too_many(self):
        m = compiled("language").Model()
        arrays = dict(m.params)
        del arrays["pos_emb.weight"], arrays["final_norm.bias"]
        self.put(written({**arrays, "h.0.attn.bias": np.zeros(3)}))
        for strict in (True, False):
            self.refused(m, "it lacks 2 of this model's tensors: pos_emb.weight, final_norm.bias",
                         "has 1 that this model has not: h.0.attn.bias", strict=strict)

    def test_another_architecture_is_refused_by_its_keys(self):
        m = compiled("language").Model(seed=3)
        m.save(self.path)
        for changed, text in (('[norm]\nplacement = "post"\nfinal = true\n',
                               'norm.placement is "pre" in the file and "post" here'),
                              ('[ffn]\nactivation = "relu"\n', 'ffn.activation is "gelu" in the file and "relu" here'),
                              ("[norm]\neps = 1e-6\n", "norm.eps is 1e-05 in the file and 1e-06 here"),
                              ("[attention]\nscale = 0.5\n", "attention.scale is 0.3535"),
                              ("[layers.0]\nattention = { heads = 4, head_dim = 4 }\n",
                               "attention.heads is 2 in the file and 4 here")):
            other = self.other_model(changed)
            self.refused(other, "it is of another architecture", text)
            other.load(self.path, strict=False)
            np.testing.assert_array_equal(other.params["tok_emb.weight"], m.params["tok_emb.weight"])

    def other_model(self, changed):
        """The language model with some more in its description, under a name of its own each time."""
        folder = self.folder.name
        self.count = getattr(self, "count", 0) + 1
        name = f"other{self.count}"
        with open(os.path.join(folder, name + ".toml"), "w") as file:
            file.write("[model]\n" + small_models.MODELS["language"] + changed)
        subprocess.run([small_models.COMPILER, os.path.join(folder, name + ".toml"), "--precision=f64", "-o", folder],
                       check=True, stdout=subprocess.DEVNULL)
        return imported(name, os.path.join(folder, name + ".py")).Model()

    def test_what_does_not_change_the_function_is_no_difference(self):
        m = compiled("language").Model(seed=3)
        m.save(self.path)
        other = self.other_model('[train]\nfreeze = ["embedding"]\ninit = "gpt2"\nrecompute = "all"\n')
        other.load(self.path)
        np.testing.assert_array_equal(other.params["tok_emb.weight"], m.params["tok_emb.weight"])

    def test_training_goes_on_to_the_same_bits(self):
        for name in ("language", "partly"):
            for precision in ("f32", "f64"):
                module = compiled(name, precision)
                m = module.Model(seed=3, threads=2)
                for _ in range(3):
                    m.train_step(self.tokens, targets=self.tokens, lr=1e-2)
                m.seed, m.call = 2 ** 64 - 1, 12
                m.save(self.path, optimizer=True)
                losses = [m.train_step(self.tokens, targets=self.tokens, lr=1e-2) for _ in range(4)]
                resumed = module.Model(seed=77, threads=1)
                resumed.train_step(self.tokens, targets=self.tokens, lr=1e-1)  # moments of its own, that must go
                resumed.load(self.path)
                self.assertEqual((resumed.seed, resumed.step_count), (2 ** 64 - 1, 3))
                self.assertEqual([resumed.train_step(self.tokens, targets=self.tokens, lr=1e-2) for _ in range(4)], losses)
                for parameter in m.params:
                    np.testing.assert_array_equal(resumed.params[parameter], m.params[parameter])
                self.assertEqual((resumed.seed, resumed.call, resumed.step_count), (m.seed, m.call, m.step_count))

    def test_a_library_that_cannot_train_reads_a_checkpoint(self):
        m = compiled("language").Model(seed=3)
        m.train_step(self.tokens, targets=self.tokens)
        m.save(self.path, optimizer=True)
        reader = compiled("language", functions="infer").Model()
        reader.load(self.path)
        np.testing.assert_array_equal(reader.forward(self.tokens), m.forward(self.tokens))

    def test_precisions_convert(self):
        single, double = compiled("language", "f32").Model(seed=3), compiled("language").Model(seed=4)
        single.train_step(self.tokens, targets=self.tokens)
        single.save(self.path, optimizer=True)
        double.load(self.path)
        for name, array in single.params.items():
            np.testing.assert_array_equal(double.params[name], array)
        double.save(self.path)
        single.load(self.path)

    def test_special_numbers_stay(self):
        m = compiled("language", "f32").Model()
        table = m.params["tok_emb.weight"]
        table.view(np.uint32)[0, :6] = [0x7f800000, 0xff800000, 0x7fc12345, 0x7f800001, 1, 0x80000000]
        expected = table.view(np.uint32).copy()
        m.save(self.path)
        table[...] = 0
        m.load(self.path)
        np.testing.assert_array_equal(table.view(np.uint32), expected)

    def test_paths_of_any_kind_and_errors_of_files(self):
        import pathlib
        m = compiled("language").Model()
        path = pathlib.Path(self.folder.name) / "gew\u00f6hnlich"
        m.save(path)
        m.load(os.fsencode(path))
        self.assertRaises(FileNotFoundError, m.load, self.path)
        self.assertRaises(IsADirectoryError, m.load, self.folder.name)
        self.assertRaises(IsADirectoryError, m.save, self.folder.name)
        self.assertRaises(FileNotFoundError, m.save, os.path.join(self.folder.name, "none", "w"))
        self.assertRaises(OSError, m.save, "/dev/null")
        self.assertRaises(ValueError, m.load, "a\0b")
        self.assertRaises(TypeError, m.load, 5)
        self.assertEqual(os.listdir(self.folder.name), [path.name])

    def test_another_sessions_call_makes_it_wait(self):
        m = compiled("language").Model()
        m.save(self.path)
        seen = []

        other = m.session(threads=1)
        generate_with(compiled("language"), other, np.array([[1, 2]]), lambda: seen.append(self.state_of(m)))
        self.assertIn("a session of this model is running", seen[0])
        m.load(self.path)

    def state_of(self, m):
        try:
            m.load(self.path)
        except RuntimeError as error:
            return str(error)
        return "loaded"

    def test_hostile_files_take_neither_time_nor_memory(self):
        m = compiled("language").Model(seed=3)
        m.save(self.path)
        with open(self.path, "rb") as file:
            good = file.read()
        length, = struct.unpack("<Q", good[:8])
        header, data = good[8:8 + length], good[8 + length:]
        first = json.loads(header)["tok_emb.weight"]
        place = json.dumps(first["data_offsets"]).replace(" ", "").encode()
        shape = json.dumps(first["shape"]).replace(" ", "").encode()

        def changed(old, new):
            self.assertIn(old, header)
            text = header.replace(old, new, 1)
            return struct.pack("<Q", len(text)) + text + data

        mutations = [good[:n] for n in range(0, 8 + length, max(1, length // 40))] + [
            good[:-1], good + b"\0", b"", b"PK\3\4" + good[4:],
            struct.pack("<Q", 2 ** 63) + good[8:], struct.pack("<Q", 2 ** 25) + good[8:], struct.pack("<Q", 0) + good[8:],
            struct.pack("<Q", 2 ** 25 - 8) + b"{" + b'"":"' * (2 ** 23 - 4) + b" " * 7,
            struct.pack("<Q", 2 ** 25 - 8) + b'{"' + b"a" * (2 ** 25 - 10),
            struct.pack("<Q", 2 ** 25 - 8) + b"[" * (2 ** 25 - 8),
            changed(b'"F64"', b'"F65"'), changed(place, b"[1,2]"), changed(place, b"[0,1e3]"), changed(place, b"[-8,0]"),
            changed(place, b"[0,18446744073709551615]"), changed(shape, b"[NaN,1]"), changed(shape, b"[4294967296,4294967296]"),
            changed(shape, b"[" * 1000), changed(b"tok_emb.weight", b"tok_\xff\xfe.weight"),
            changed(b"tok_emb.weight", b"pos_emb.weight"), changed(b"tok_emb", b"tok_em"),
            changed(b'"format":"pt"', b'"format":["pt"]')]
        before = m.forward(self.tokens)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for content in mutations:
            self.put(content)
            start = time.perf_counter()
            self.assertRaises(ValueError, m.load, self.path)
            self.assertLess(time.perf_counter() - start, 1.0, content[:40])
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used, 100 * 1024)
        np.testing.assert_array_equal(m.forward(self.tokens), before)


def generate_with(module, session, tokens, inside):
    """Generates a token, and calls `inside` from within, as a C program's on_token may."""
    original = module._ON_TOKEN
    try:
        module._ON_TOKEN = lambda function: original(lambda *arguments: (inside(), function(*arguments))[1])
        session.generate(tokens, max_new=1)
    finally:
        module._ON_TOKEN = original


if __name__ == "__main__":
    run_tests()
