

class _Files:
    """Parameters in files."""

    def load(self, path, strict=True):
        raise NotImplementedError("not supported yet: load of parameters from a file; assign to m.params[name]")

    def save(self, path, optimizer=False):
        raise NotImplementedError("not supported yet: save of parameters to a file; see np.savez(path, **m.params)")
