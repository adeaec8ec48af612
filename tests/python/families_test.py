"""Each family trains: every description of examples/small learns one batch by heart, to a loss under 0.05.

    families_test.py --compiler build/bin/transformerc
"""
import os
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

from small_models import imported

COMPILER = None
SMALL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "small")
NAMES = sorted(name[:-5] for name in os.listdir(SMALL) if name.endswith(".toml"))
B, T = 4, 16
STEPS, GOAL = 400, 0.05


def batch_of(module, m):
    """Random inputs and targets for every input that a model of these families may have."""
    draw = np.random.default_rng(11)
    ids = {"tokens": module.VOCAB, "src": module.SRC_VOCAB, "tgt": module.VOCAB, "types": len(m.params.get("type_emb.weight", []))}
    inputs = {name: draw.integers(ids[name], size=(B, T)) for name in module.INPUTS if name in ids}
    if "types" in inputs:  # two sentences
        inputs["types"] = np.broadcast_to(np.arange(T) >= T // 2, (B, T)).astype(np.int32) % ids["types"]
    if "image" in module.INPUTS:
        inputs["image"] = draw.normal(size=(B, *module.IMAGE))
    if module.HEAD == "classifier":
        return inputs, draw.integers(module.OUT_WIDTH, size=B)
    own = inputs["tgt" if "tgt" in inputs else "tokens"]
    return inputs, np.roll(own, -1, axis=1)


class Families(unittest.TestCase):
    def overfits(self, name):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([COMPILER, os.path.join(SMALL, name + ".toml"), "--emit=so,python", "-o", folder], check=True,
                           stdout=subprocess.DEVNULL)
            module = imported(name, os.path.join(folder, name + ".py"))
        m = module.Model(seed=1)
        inputs, targets = batch_of(module, m)
        first = loss = m.loss(**inputs, targets=targets)
        start = time.perf_counter()
        for step in range(STEPS):
            m.train_step(**inputs, targets=targets, lr=3e-3, weight_decay=0.0)
            if step % 20 == 19:
                loss = m.loss(**inputs, targets=targets)
                if loss < GOAL:
                    break
        print(f"{name}: {first:.3f} -> {loss:.4f} in {step + 1} steps, {time.perf_counter() - start:.1f} s")
        self.assertGreater(first, 0.5)
        self.assertLess(loss, GOAL)


for _name in NAMES:
    setattr(Families, "test_" + _name, lambda self, name=_name: self.overfits(name))

if __name__ == "__main__":
    where = sys.argv.index("--compiler")
    COMPILER = os.path.abspath(sys.argv[where + 1])
    del sys.argv[where:where + 2]
    unittest.main()
