

# -- taps ----------------------------------------------------------------------------------------------------

class _Taps(collections.abc.Mapping):
    """name -> what the session's last call has left of a tapped value, or of its gradient: an array of one's own.

    A name of TAPS of which that call has left nothing is not among the keys; to ask for it is a RuntimeError."""

    def __init__(self, session, gradients):
        self._session, self._gradients = session, int(gradients)

    def _find(self, name):
        array = _new(_Array)
        self._session._call(_api.tap, TAPS.index(name), self._gradients, ctypes.byref(array))
        return _Memory(self._session, array.data, tuple(array.shape[:array.rank]))

    def __getitem__(self, name):
        if name not in TAPS:
            raise KeyError(name)
        return np.array(np.asarray(self._find(name)))

    def __contains__(self, name):
        return any(name == known for known in self)

    def __iter__(self):
        for name in TAPS:
            try:
                self._find(name)
            except RuntimeError:
                continue
            yield name

    def __len__(self):
        return sum(1 for _ in self)  # list() would ask for the length
