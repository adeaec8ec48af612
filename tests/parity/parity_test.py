"""Compiles every description of tests/fixtures and compares with what PyTorch computed in float64.

    parity_test.py --compiler build/bin/transformerc --precision f64 [FIXTURE...]

Outputs and input gradients at real positions (masked ones must be zero), losses, every parameter's gradient, and the
parameters after ten AdamW steps.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile

import numpy as np

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
TOLERANCE = {"f64": 1e-10, "f32": 1e-5}
FLOOR = 1e-3  # of the model's greatest gradient: smaller tensors are rounding noise (a key bias's gradient is zero)
COSINE = 0.999999
AFTER_STEPS = 1e-5


class Comparison:
    """One model's measurements; keeps the worst error and every failure."""

    def __init__(self, tolerance, floor):
        self.tolerance, self.floor = tolerance, floor
        self.worst, self.failures = 0.0, []

    def require(self, fine, what):
        if not fine:
            self.failures.append(what)

    def tensor(self, name, found, expected):
        if found.shape != expected.shape:
            self.failures.append(f"{name} has shape {found.shape}, expected {expected.shape}")
            return
        found = found.astype(np.float64)
        magnitude = np.abs(expected).max()
        error = np.abs(found - expected).max() / max(magnitude, self.floor)
        self.worst = max(self.worst, error)
        self.require(error <= self.tolerance, f"{name}: error {error:.3g}, tolerance {self.tolerance:.0e}")
        if magnitude > self.floor:
            cosine = np.sum(found * expected) / np.sqrt(np.sum(found ** 2) * np.sum(expected ** 2))
            self.require(cosine > COSINE, f"{name}: cosine {cosine:.9f}")


def load(compiler, name, precision, folder):
    description = os.path.join(FIXTURES, name + ".toml")
    subprocess.run([compiler, description, f"--precision={precision}", "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def group(data, prefix):
    return {key[len(prefix):]: data[key] for key in data.files if key.startswith(prefix)}


def of_heads(data, name):
    """The array of that name, or a dict with one for each head; None where there is none."""
    return data[name] if name in data.files else group(data, name + ".") or None


def compare(module, data, tolerance):
    inputs, gradients = group(data, "in/"), group(data, "grad/")
    has_loss = "loss" in data.files
    call = {"targets": of_heads(data, "targets"), "weights": of_heads(data, "weights"), **inputs} if has_loss else {}
    result = Comparison(tolerance, FLOOR * max(np.abs(g).max() for g in gradients.values()))

    model = module.Model(seed=1, threads=2)
    drops = "dropout/seed" in data.files
    if drops:
        model.seed, model.call = int(data["dropout/seed"]), 0
    for mine, theirs in ((model.params, group(data, "param/")), (model.grads, gradients)):
        result.require(set(mine) == set(theirs), f"parameters differ: {sorted(set(mine) ^ set(theirs))}")
    for name, value in group(data, "param/").items():
        model.params[name] = value

    outputs, expected_outputs, reals = (x if isinstance(x, dict) else {"": x} for x in (
        model.forward(**inputs), of_heads(data, "output"), of_heads(data, "real")))
    for head, expected in expected_outputs.items():
        real = reals[head]
        result.tensor(f"output {head}", outputs[head][real], expected[real])
        result.require(not outputs[head][~real].any(), f"the output {head} at masked positions is not zero")

    if has_loss:
        result.tensor("loss", np.array([model.loss(**call)]), data["loss"].reshape(1))
        for head, expected in group(data, "losses.").items():
            result.tensor(f"loss of {head}", np.array([model.losses[head]]), expected.reshape(1))
        again = model.backward(**call)
        expected = data["dropout/loss"] if drops else data["loss"]
        result.tensor("backward's loss", np.array([again]), expected.reshape(1))
        input_gradients = None
    else:
        input_gradients = model.vjp(data["upstream"], training=drops, **inputs)
    for name, expected in gradients.items():
        result.tensor(f"gradient of {name}", model.grads[name], expected)
    if input_gradients is None and "upstream" in data.files:
        input_gradients = model.vjp(data["upstream"], **inputs)
    for name, expected in group(data, "input_grad/").items():
        result.tensor(f"gradient of the input {name}", input_gradients[name], expected)

    settings = group(data, "adamw/")
    adamw = dict(lr=settings["lr"], betas=(settings["beta1"], settings["beta2"]), eps=settings["eps"],
                 weight_decay=settings["weight_decay"], clip=settings["clip"])
    for _ in range(int(settings["steps"])):
        if has_loss:
            model.train_step(**call, **adamw)
        else:
            model.vjp(data["upstream"], training=drops, **inputs)
            model.step(**adamw)
    for name, expected in group(data, "after/").items():
        error = np.abs(model.params[name] - expected).max()
        result.require(error <= AFTER_STEPS, f"{name} after ten steps: error {error:.3g}")
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--precision", choices=sorted(TOLERANCE), required=True)
    parser.add_argument("fixtures", nargs="*")
    options = parser.parse_args()
    names = options.fixtures or sorted(f[:-5] for f in os.listdir(FIXTURES) if f.endswith(".toml"))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                module = load(options.compiler, name, options.precision, folder)
                result = compare(module, np.load(os.path.join(FIXTURES, name + ".npz")), TOLERANCE[options.precision])
                worst, failures = f"worst error {result.worst:.2e}", result.failures
            except Exception as error:  # one model's failure does not hide the others
                worst, failures = "", [f"{type(error).__name__}: {error}"]
            print(f"{'FAILED' if failures else 'ok':7}{name:36}{worst}", flush=True)
            for failure in failures:
                print(f"         {failure}")
            failed += bool(failures)
    print(f"{len(names) - failed} of {len(names)} models agree with PyTorch in {options.precision}")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
