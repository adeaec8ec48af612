"""Teaches a small Vision Transformer to tell circles, squares, crosses and triangles. Needs NumPy and nothing else.

    transformerc examples/vit.toml -o out      # writes out/vit.py and out/libvit.so
    python3 examples/vit.py out
"""
import math
import sys
import time

import numpy as np

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else ".")
import vit  # the compiled model, not this file

FIGURES = ("circle", "square", "cross", "triangle")
SIZE = vit.IMAGE[1]
STEPS, BATCH, UNSEEN, WARMUP, PEAK_LR = 600, 32, 500, 40, 2e-3


def drawings(random, count):
    """[count, 1, SIZE, SIZE] outlines of any size at any place, in noise, and which figure each is."""
    kinds = random.integers(len(FIGURES), size=count)
    radius = random.uniform(4, 6, (count, 1, 1))
    centre = radius + 1 + random.random((2, count, 1, 1)) * (SIZE - 2 * radius - 3)
    pixels = np.arange(SIZE)
    y, x = pixels[:, None] - centre[0], pixels[None, :] - centre[1]
    distances = np.stack([np.hypot(x, y), np.maximum(abs(x), abs(y)), radius + np.minimum(abs(x - y), abs(x + y)),
                          np.maximum(y, 2 * abs(x) - y)], 1)  # from the figure: on it where equal to the radius
    distance = distances[np.arange(count), kinds] - radius
    inside = np.maximum(abs(x), abs(y)) <= radius + 1
    images = (abs(distance) < 1.2) * inside + 0.1 * random.standard_normal((count, SIZE, SIZE))
    return images[:, None], kinds


def main():
    random = np.random.default_rng(1)
    model = vit.Model(seed=1)
    print(f"{sum(view.size for view in model.params.values()):,} parameters, {STEPS} steps of {BATCH} drawings")
    test_images, test_kinds = drawings(random, UNSEEN)
    began, losses = time.time(), []
    for step in range(STEPS):
        images, kinds = drawings(random, BATCH)
        lr = PEAK_LR * min(1, (step + 1) / WARMUP) * (1 + math.cos(math.pi * step / STEPS)) / 2
        losses.append(model.train_step(images, targets=kinds, lr=lr))
        if (step + 1) % 100 == 0:
            right = model.forward(test_images).argmax(-1) == test_kinds
            print(f"step {step + 1:3}   loss {np.mean(losses[-100:]):.4f}   right {100 * right.mean():5.1f} %", flush=True)
    print(f"trained in {time.time() - began:.1f} s")
    right = model.forward(test_images).argmax(-1) == test_kinds
    print(f"{100 * right.mean():.1f} % of {UNSEEN} unseen drawings told apart")
    return 0 if right.mean() > 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
