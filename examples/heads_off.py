"""Which heads a trained transformer needs: the reversal model, with heads switched off. Needs NumPy and nothing else.

    transformerc examples/reverse.toml --edit='*.attn' --edit='*.cross' -o out
    python3 examples/heads_off.py out

The heads' results stand side by side in the columns of such a value, [B,T,H*E], before the product that joins them: zeros in
a head's columns are that head switched off. One at a time hardly any is missed; so they go one after the other too, the least
missed first, until the model cannot do without the next one.
"""
import sys

import numpy as np

from attention_map import UNSEEN, reverse, sequences, train  # reverse: the compiled model

HEADS = 4
HEAD_OF_COLUMN = np.arange(reverse.D_MODEL) // (reverse.D_MODEL // HEADS)


def switch_off(model, heads):
    """These and no others: pairs of a value's name and a head's number."""
    model.clear_edits()
    for name in {name for name, _ in heads}:
        model.edit(name, replace=0, where=np.isin(HEAD_OF_COLUMN, [head for other, head in heads if other == name]))


def main():
    random = np.random.default_rng(1)
    model = reverse.Model(seed=1)
    train(model, random)
    src, tgt, targets = sequences(random, UNSEEN)

    def loss_without(heads):
        switch_off(model, heads)
        return model.loss(src, tgt, targets=targets)

    whole = loss_without([])
    rises = {(name, head): loss_without([(name, head)]) - whole for name in reverse.EDITS for head in range(HEADS)}
    for (name, head), rise in rises.items():
        print(f"{name} without head {head}: the loss rises by {rise:.1e}")

    print(f"one after the other, from a loss of {whole:.1e}:")
    off = []
    for name, head in sorted(rises, key=rises.get):
        off.append((name, head))
        loss = loss_without(off)
        right = 100 * (model.forward(src, tgt).argmax(-1) == targets).mean()
        print(f"{len(off):2} heads off, the last one head {head} of {name}: loss {loss:.1e}, {right:5.1f} % of the digits right")
    return 0 if loss > 1 > 100 * whole and loss_without([]) == whole else 1


if __name__ == "__main__":
    sys.exit(main())
