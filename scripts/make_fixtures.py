#!/usr/bin/python3
"""Makes tests/fixtures/: what PyTorch computes in float64 for small models, beside their descriptions.

Run with a Python that has PyTorch (Debian: apt-get install python3-torch, then /usr/bin/python3). The test suite only
reads the files. With names of modules of fixtures/ it makes theirs alone. Every NAME.toml has a NAME.npz with these
arrays:

  param/P        parameters under transformerc's names          in/I      inputs (masks: True is a real token)
  output         what forward gives (arbitrary where masked)    real      which rows of the output are real
  upstream       gradient handed to vjp, or                     targets   with `loss`, the mean over those that count
                 (then `upstream` is the loss's, where there are float inputs)
  grad/P         gradient of every parameter that moves                    input_grad/I   of every float input
  after/P        parameters after STEPS AdamW steps on the same batch, settings in adamw/lr, ...
  dropout/seed   with dropout: calls 0, 1, ... draw from this seed; gradients are those of call 0, whose loss is
                 dropout/loss, and the steps those of calls 1 to STEPS; output and loss are without

Of a model with named heads output, real, targets and weights (of the targets, where there are some) are of each head:
output.HEAD and so on, and losses.HEAD its own mean loss.
"""
import importlib
import os
import sys

import torch

from fixtures.common.fixture import FOLDER


def main(names):
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    modules = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
    os.makedirs(FOLDER, exist_ok=True)
    for name in names or sorted(file[:-3] for file in os.listdir(modules) if file.endswith(".py")):
        for make in importlib.import_module(f"fixtures.{name}").MAKERS:
            torch.manual_seed(20240607)
            make()


if __name__ == "__main__":
    main(sys.argv[1:])
