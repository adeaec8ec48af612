"""Where a trained transformer looks: the cross-attention of the reversal model, drawn. Needs NumPy and nothing else.

    transformerc examples/reverse.toml --tap='decoder.layers.*.cross.weights' -o out
    python3 examples/attention_map.py out

To write the sequence backwards, digit t of the answer has to come from digit 7-t of the source: a head that reads it
there draws a diagonal that falls to the left.
"""
import sys

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else ".")
import reverse  # the compiled model

LENGTH, DIGITS, BOS = 8, 10, 10
STEPS, BATCH, UNSEEN = 1500, 32, 200
SHADES = " .:-=+*#%@"


def sequences(random, count):
    """Source, what the decoder is given, and what it should answer."""
    src = random.integers(DIGITS, size=(count, LENGTH))
    targets = src[:, ::-1]
    return src, np.hstack([np.full((count, 1), BOS), targets[:, :-1]]), targets


def train(model, random):
    for step in range(STEPS):
        src, tgt, targets = sequences(random, BATCH)
        rate = 1e-3 * min(1, (step + 1) / 50) * (1 - step / STEPS)
        loss = model.train_step(src, tgt, targets=targets, lr=rate)
    print(f"loss {loss:.4f} after {STEPS} steps")


def draw(weights):
    """Rows: digits of the answer; columns: of the source."""
    for row in weights:
        print("    " + "".join(2 * SHADES[min(int(w * len(SHADES)), len(SHADES) - 1)] for w in row))


def main():
    random = np.random.default_rng(1)
    model = reverse.Model(seed=1)
    train(model, random)
    src, tgt, targets = sequences(random, UNSEEN)
    right = model.forward(src, tgt).argmax(-1) == targets
    print(f"{100 * right.mean():.1f} % of the digits of {UNSEEN} unseen sequences are right")

    mirrored = LENGTH - 1 - np.arange(LENGTH)
    shares, maps = {}, {}
    for name, weights in model.taps.items():  # [B,H,T,S], as the forward has left them
        for head in range(weights.shape[1]):
            shares[name, head] = (weights[:, head].argmax(-1) == mirrored).mean()
            maps[name, head] = weights[:, head].mean(0)
    for (name, head), share in shares.items():
        print(f"{name} head {head}: the largest weight is on the mirrored digit in {100 * share:5.1f} % of all rows")
    best = max(shares, key=shares.get)
    print(f"{best[0]} head {best[1]}, mean weights:")
    draw(maps[best])
    return 0 if shares[best] > 0.5 and right.mean() > 0.99 else 1


if __name__ == "__main__":
    sys.exit(main())
