"""Small models of each family learn one batch by heart.

    overfit_test.py --compiler build/bin/transformerc [EXAMPLE...]
"""
import argparse
import importlib.util
import os
import subprocess
import tempfile

import numpy as np

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
BATCH, SEQ, STEPS, LOSS = 4, 24, 250, 0.05
# Example -> what is set besides. A balancing loss is part of the loss and never 0.
FAMILIES = {"mixtral_small": ["ffn.moe.aux_loss=0.0"]}


def learn(compiler, name, folder):
    sets = [flag for key in FAMILIES[name] for flag in ("--set", key)]
    subprocess.run([compiler, os.path.join(EXAMPLES, name + ".toml"), *sets, "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.Model(seed=1)
    text = np.random.default_rng(1).integers(0, 256, (BATCH, SEQ + 1))
    for step in range(1, STEPS + 1):
        loss = model.train_step(text[:, :-1], targets=text[:, 1:], lr=2e-3)
        if loss < LOSS:
            return step, loss
    return None, loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("examples", nargs="*", default=sorted(FAMILIES))
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in options.examples:
            step, loss = learn(options.compiler, name, folder)
            failed |= step is None
            print(f"{name}: loss {loss:.4f}" + (f" after {step} steps" if step else f", expected below {LOSS}"))
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
