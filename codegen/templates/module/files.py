

class _Files:
    """Parameters in files: the safetensors format."""

    def load(self, path, strict=True):
        """Reads the parameters from a safetensors file, and the optimizer's state where it has one.

        F64, F32, F16 and BF16 are converted. All of the file is checked before the first number changes; views of
        `params` stay valid. A file that save() wrote is refused where its architecture differs in what shapes do not
        show (heads, activations, norms and the like), unless strict=False."""
        self._with_file(_api.load, path, strict)

    def save(self, path, optimizer=False):
        """Writes the parameters as a safetensors file, which takes the old one's place only once it is whole.

        optimizer=True: also the moments, `seed`, `call` and `step_count`, so that training goes on to the same bits."""
        self._with_file(_api.save, path, optimizer)

    def _with_file(self, function, path, flag):
        name = os.fsencode(path)
        if b"\0" in name:
            raise ValueError(f"path is {path!r}, which has a zero in it")
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("the session is busy: one thread at a time")
        try:
            status = function(self._model.address, name, int(bool(flag)))
            text = _api.model_message(self._model.address)
            if status == _FILE_TROUBLE:
                raise OSError(ctypes.get_errno(), text.decode("utf-8", "replace"))
            _check(status, text)
        finally:
            self._busy.release()
