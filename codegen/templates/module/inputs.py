

# -- a call's inputs -----------------------------------------------------------------------------------------

_CONVERSIONS = {"tokens": _ids, "types": _ids, "lengths": _ids, "src_lengths": _ids, "targets": _ids,
                "positions": _ids, "src_positions": _ids, "documents": _ids, "src_documents": _ids, "prefix": _ids,
                "mask": _mask, "src_mask": _mask, "x": _reals, "memory": _reals, "image": _reals,
                "src": _reals if SRC_VOCAB == 0 else _ids, "tgt": _reals if VOCAB == 0 else _ids}
_SHAPES = {"tokens": "BT", "x": "BTD", "src": "BS" if SRC_VOCAB else "BSD", "tgt": "BT" if VOCAB else "BTD",
           "memory": "BSD", "image": "Bchw", "types": "BT", "mask": "BT", "src_mask": "BS", "lengths": "B",
           "src_lengths": "B", "positions": "BT", "src_positions": "BS", "documents": "BT", "src_documents": "BS",
           "prefix": "B", "targets": "B" if HEAD == "classifier" else "BT"}
_FIXED = {"D": D_MODEL, "O": OUT_WIDTH, **dict(zip("chw", IMAGE))}  # sizes that no call changes, by letter


class _Inputs:
    """One call's arrays, converted and of matching shapes; `batch` points into them."""

    def __init__(self, call, positional, named, expected=INPUTS, optional=OPTIONAL_INPUTS):
        self.arrays, self.sizes = {}, {"T": MAX_SEQ} if IMAGE else {}  # patches settle T
        given = self.bind(call, positional, named, expected, optional)
        for name, value in given.items():
            array = _CONVERSIONS[name](name, value)
            self.match(name, array.shape)
            self.arrays[name] = array
        for mask, lengths in (("mask", "lengths"), ("src_mask", "src_lengths")):
            if mask in given and lengths in given:
                raise ValueError(f"{mask} and {lengths} are both given, expected one of them")
        self.batch = _new(_Batch, **{n: self.sizes.get(n, 0) for n in "BTS"})
        for name, array in self.arrays.items():
            if name == "targets":
                self.targets = (ctypes.c_void_p * 1)(array.ctypes.data)  # one pointer for each head
                self.batch.targets = ctypes.addressof(self.targets)
            else:
                setattr(self.batch, name, array.ctypes.data)
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

    def match(self, name, shape):
        """The first array to mention a letter gives its size; the others must agree."""
        letters = _SHAPES[name]
        expected = [_FIXED.get(c, self.sizes.get(c, c)) for c in letters]
        if len(shape) != len(letters) or any(e not in (c, n) for c, e, n in zip(letters, expected, shape)):
            raise ValueError(f"{name} has shape {list(shape)}, expected [{','.join(map(str, expected))}]")
        for letter, size in zip(letters, shape):
            if size == 0:
                raise ValueError(f"{name} has shape {list(shape)}: {letter} is 0, expected at least 1")
            self.sizes[letter] = size

    def shape(self, letters):
        return tuple(_FIXED[c] if c in _FIXED else self.sizes[c] for c in letters)


def _pointers(arrays):
    return (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))


def _out(shape):
    return np.empty(shape, _REAL)
