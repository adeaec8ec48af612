

# -- parameters and gradients --------------------------------------------------------------------------------

def _parameter(model, name):
    return _api.parameter(model.address, name.encode())


def _gradient(model, name):
    address = _api.gradient(model.address, name.encode())
    if not address:  # nothing has been trained yet: they are zeros
        _check(_api.allocate(model.address, 1, 0), _api.model_message(model.address))
        address = _api.gradient(model.address, name.encode())
    return address


class _Arrays(collections.abc.Mapping):
    """name -> live, writable view of a parameter or gradient. Assigning to a name copies, with a shape check."""

    def __init__(self, model, shapes, address_of):
        self._model, self._shapes, self._address_of = model, shapes, address_of

    def __getitem__(self, name):
        if name not in self._shapes:
            raise KeyError(name)
        return np.asarray(_Memory(self._model, self._address_of(self._model, name), self._shapes[name]))

    def __setitem__(self, name, value):
        view, array = self[name], _array(name, value)
        if array.shape != view.shape:
            raise ValueError(f"{name} has shape {list(view.shape)}, got an array of {list(array.shape)}")
        view[...] = array

    def __iter__(self):
        return iter(self._shapes)

    def __len__(self):
        return len(self._shapes)
