

# -- a call's inputs -----------------------------------------------------------------------------------------

_CONVERSIONS = {"tokens": _ids, "types": _ids, "lengths": _ids, "src_lengths": _ids,
                "positions": _ids, "src_positions": _ids, "documents": _ids, "src_documents": _ids, "prefix": _ids,
                "mask": _mask, "src_mask": _mask, "x": _reals, "memory": _reals, "image": _reals,
                "src": _reals if SRC_VOCAB == 0 else _ids, "tgt": _reals if VOCAB == 0 else _ids}
_SHAPES = {"tokens": "BT", "x": "BTD", "src": "BS" if SRC_VOCAB else "BSD", "tgt": "BT" if VOCAB else "BTD",
           "memory": "BSD", "image": "Bchw", "types": "BT", "mask": "BT", "src_mask": "BS", "lengths": "B",
           "src_lengths": "B", "positions": "BT", "src_positions": "BS", "documents": "BT", "src_documents": "BS",
           "prefix": "B", "targets": None, "weights": None}  # of the last two: by head
_FIXED = {"D": D_MODEL, **dict(zip("chw", IMAGE))}  # sizes that no call changes, by letter


class _Inputs:
    """One call's arrays, converted and of matching shapes; `batch` points into them."""

    def __init__(self, call, positional, named, expected=INPUTS, optional=OPTIONAL_INPUTS):
        self.arrays, self.sizes = {}, {"T": MAX_SEQ} if IMAGE else {}  # patches settle T
        given = self.bind(call, positional, named, expected, optional)
        self.targets, self.weights = {}, {}
        for name, value in given.items():
            if name in ("targets", "weights"):
                continue
            array = _CONVERSIONS[name](name, value)
            self.match(name, array.shape)
            self.arrays[name] = array
        for mask, lengths in (("mask", "lengths"), ("src_mask", "src_lengths")):
            if mask in given and lengths in given:
                raise ValueError(f"{mask} and {lengths} are both given, expected one of them")
        self.batch = _new(_Batch, **{n: self.sizes.get(n, 0) for n in "BTS"})
        for name, array in self.arrays.items():
            setattr(self.batch, name, array.ctypes.data)
        if "targets" in given:
            self.bind_targets(given["targets"], _PREDICTING if call == "logprobs" else _LOSSES)
        if "weights" in given:
            self.bind_weights(given["weights"])
        self._as_parameter_ = ctypes.c_void_p(ctypes.addressof(self.batch))  # so that ctypes passes the whole object

    @staticmethod
    def bind(call, positional, named, expected, optional):
        names = [*expected, *optional]
        if len(positional) > len(names):
            raise TypeError(f"{call}() got {len(positional)} inputs by position, expected at most {len(names)}: "
                            + ", ".join(names))
        given = dict(zip(names, positional))
        for name, value in named.items():
            if value is None and name in _SHAPES:  # None is as good as not given, whatever the model declares
                continue
            if name not in names:
                raise TypeError(f"{call}() got an input '{name}' that this model does not declare; it takes "
                                + (", ".join(names) or "none"))
            if name in given:
                raise TypeError(f"{call}() got the input '{name}' twice, by position and by name")
            given[name] = value
        given = {name: value for name, value in given.items() if value is not None}
        for name in expected:
            if name not in given:
                raise TypeError(f"{call}() lacks the input '{name}'")
        return given

    def bind_targets(self, value, heads):
        given = _by_head("targets", value, heads if _NAMED else _LOSSES)
        for head in heads:
            label, classes = head.label("targets"), head.loss == "cross_entropy"
            array = (_ids if classes else _reals)(label, given[head.name])
            if not classes and head.width == 1 and array.ndim == len(head.rows):
                array = array[..., None]
            self.match(label, array.shape, head.rows if classes else head.rows + "N", head.width)
            self.targets[head.name] = array
        self.batch.targets = self.pointers(self.targets)

    def bind_weights(self, value):
        for name, array in _by_head("weights", value, _LOSSES, complete=False).items():
            head = next(head for head in _LOSSES if head.name == name)
            array = _reals(head.label("weights"), array)
            self.match(head.label("weights"), array.shape, head.rows)
            self.weights[name] = array
        self.batch.weights = self.pointers(self.weights)

    def pointers(self, arrays):
        """One pointer for each head."""
        pointers = (ctypes.c_void_p * len(_HEADS))(
            *(arrays[head.name].ctypes.data if head.name in arrays else None for head in _HEADS))
        self.kept = [*getattr(self, "kept", ()), pointers]
        return ctypes.addressof(pointers)

    def match(self, name, shape, letters=None, width=None):
        """The first array to mention a letter gives its size; the others must agree. N: the head's width."""
        letters = letters or _SHAPES[name]
        expected = [{**_FIXED, "N": width}.get(c) or self.sizes.get(c, c) for c in letters]
        if len(shape) != len(letters) or any(e not in (c, n) for c, e, n in zip(letters, expected, shape)):
            raise ValueError(f"{name} has shape {list(shape)}, expected [{','.join(map(str, expected))}]")
        for letter, size in zip(letters, shape):
            if size == 0:
                raise ValueError(f"{name} has shape {list(shape)}: {letter} is 0, expected at least 1")
            self.sizes[letter] = size

    def shape(self, letters, width=OUT_WIDTH):
        return tuple(width if c == "O" else _FIXED[c] if c in _FIXED else self.sizes[c] for c in letters)

    def output(self, head):
        return self.shape(head.rows + "O", head.width)


def _pointers(arrays):
    return (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))


def _out(shape):
    return np.empty(shape, _REAL)
