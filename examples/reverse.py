"""Teaches a small transformer to write a sequence of digits backwards. Needs NumPy and nothing else.

    transformerc examples/reverse.toml -o out      # writes out/reverse.py and out/libreverse.so
    python3 examples/reverse.py out
"""
import math
import sys
import time

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else ".")
import reverse  # the compiled model, not this file

LENGTH, DIGITS, BOS = 8, 10, 10  # tokens 0 to 9 are the digits, 10 begins a sequence, 11 is not needed here
EPOCHS, TRAINING, UNSEEN, BATCH = 20, 2048, 1000, 32
WARMUP, PEAK_LR = 50, 1e-3


def distinct_sequences(random, count):
    """Rows of random digits, no two alike: what is tested on was never trained on."""
    rows = np.unique(random.integers(DIGITS, size=(count + 1000, LENGTH)), axis=0)
    return random.permutation(rows)[:count]


def forced(src):
    """The two sides of teacher forcing: what the decoder is given, and what it should answer."""
    targets = src[:, ::-1]
    tgt = np.hstack([np.full((len(src), 1), BOS), targets[:, :-1]])  # the targets, shifted right by one
    return tgt, targets


def learning_rate(step, steps):
    return PEAK_LR * min(1, (step + 1) / WARMUP) * (1 + math.cos(math.pi * step / steps)) / 2


def train(model, random, src, test_src):
    (tgt, targets), (test_tgt, test_targets) = forced(src), forced(test_src)
    steps, step = EPOCHS * (TRAINING // BATCH), 0
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for rows in random.permutation(TRAINING).reshape(-1, BATCH):
            losses.append(model.train_step(src[rows], tgt[rows], targets=targets[rows], lr=learning_rate(step, steps)))
            step += 1
        right = model.forward(test_src, test_tgt).argmax(-1) == test_targets
        print(f"epoch {epoch:2}   loss {np.mean(losses):.4f}   token accuracy {100 * right.mean():6.2f} %", flush=True)


def main():
    random = np.random.default_rng(1)
    model = reverse.Model(seed=1)
    parameters = sum(view.size for view in model.params.values())
    print(f"{parameters:,} parameters, {TRAINING} training sequences, {EPOCHS} epochs")
    began = time.time()
    src, test_src, new_src = np.split(distinct_sequences(random, TRAINING + 2 * UNSEEN), [TRAINING, TRAINING + UNSEEN])
    train(model, random, src, test_src)
    print(f"trained in {time.time() - began:.1f} s")

    written = model.generate(src=new_src, bos=BOS, max_new=LENGTH)[:, 1:]
    for row in range(3):
        print(f"{new_src[row]} -> {written[row]}")
    exact = (written == new_src[:, ::-1]).all(axis=1).mean()
    print(f"{100 * exact:.1f} % of {UNSEEN} unseen sequences reversed")
    return 0 if exact == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
