

# -- edits ---------------------------------------------------------------------------------------------------

class _Editing:
    """What a session changes of the values inside. Session.__init__ makes `_edits`, what is set by name."""

    def edit(self, name, *, replace=None, add=None, where=None):
        """From now on every call goes on with `replace` in place of the value `name`, or with `add` added to it; with
        `where`, an array of truth values, only where that is true. Arrays are copied, and broadcast as NumPy does to the
        shape that the value has in a call. What was set for that name is forgotten."""
        number = _edit_number(name)
        if (replace is None) == (add is None):
            raise TypeError("edit() takes either replace or add" + (", not both" if add is not None else ""))
        kind, how, value = ("replace", 1, replace) if add is None else ("add", 2, add)
        arrays = {kind: _numbers(kind, value)}
        if where is not None:
            arrays["where"] = _mask("where", where, "where the value is edited")
        given = {key: _given(key, array) for key, array in arrays.items()}
        self._call(_api.set_edit, number, how, ctypes.byref(given[kind]),
                   ctypes.byref(given["where"]) if where is not None else None)
        self._edits[name] = {key: np.array(array, bool if key == "where" else _REAL) for key, array in arrays.items()}
        for array in self._edits[name].values():
            array.flags.writeable = False  # to change them changes nothing in the library

    def clear_edits(self, name=None):
        """Values are again what the model computes: that one, or all."""
        self._call(_api.clear_edits, -1 if name is None else _edit_number(name))
        for known in list(self._edits) if name is None else [name]:
            self._edits.pop(known, None)

    @property
    def edits(self):
        """By the names of all values that can be edited: None, or the arrays that are set, by edit's arguments."""
        return {name: dict(self._edits[name]) if name in self._edits else None for name in EDITS}


def _edit_number(name):
    if name not in EDITS:
        raise KeyError(f"no value that can be edited is named {name!r}; EDITS lists them")
    return EDITS.index(name)


def _numbers(name, value):
    """Reals of any numbers: edits are often written as integers."""
    array = _array(name, value)
    return _reals(name, array if array.dtype.kind == "f" else array.astype(_REAL))


def _given(name, array):
    if array.ndim > 4:
        raise ValueError(f"{name} has {array.ndim} dimensions, expected at most 4")
    return _new(_Array, data=array.ctypes.data, shape=tuple(array.shape) + (1,) * (4 - array.ndim), rank=array.ndim)
