"""The small models that tests of the generated module share: descriptions, compiled as they are asked for."""
import importlib.util
import os
import subprocess
import sys
import tempfile
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


def run_tests():
    """The calling file's tests, with the compiler that --compiler names."""
    global COMPILER, FOLDER
    where = sys.argv.index("--compiler")
    COMPILER = os.path.abspath(sys.argv[where + 1])
    del sys.argv[where:where + 2]
    with tempfile.TemporaryDirectory() as FOLDER:
        unittest.main(verbosity=2, exit=False).result.wasSuccessful() or sys.exit(1)
