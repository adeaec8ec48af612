

# -- heads ---------------------------------------------------------------------------------------------------

class _Head:
    """An output with its loss. `rows`: the letters of what has a target, tokens, source tokens or sequences."""

    def __init__(self, name, kind, loss, rows, width):
        self.name, self.kind, self.loss, self.rows, self.width = name, kind, loss, rows, width

    def label(self, array):
        return f"{array}.{self.name}" if self.name else array


_HEADS = [_Head(*head) for head in HEADS]
_NAMED = bool(_HEADS[0].name)  # [head.NAME] in the description: arrays are then dicts by name
_LOSSES = [head for head in _HEADS if head.loss != "none"]
_PREDICTING = [head for head in _HEADS if head.loss == "cross_entropy"]


def _by_head(array, value, heads, complete=True):
    """Of a dict by name, or of the only head's array: {name: array}. `complete`: of all these heads."""
    if not _NAMED:
        return {"": value}
    if not isinstance(value, collections.abc.Mapping):
        raise ValueError(f"{array} is no dict: this model has the heads " + ", ".join(head.name for head in heads))
    names = [head.name for head in heads]
    for name in value:
        if name not in names:
            raise ValueError(f"{array} has '{name}', expected " + (", ".join(names) or "nothing"))
    given = {name: value[name] for name in names if value.get(name) is not None}
    for name in names:
        if complete and name not in given:
            raise ValueError(f"{array} lacks the head '{name}'")
    return given


def _plain(by_head):
    return by_head if _NAMED else by_head[""]
