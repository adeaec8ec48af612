

class _Training:
    """Gradients and updates."""

    def backward(self, *inputs, targets, **named):
        """Clears the gradients, runs forward and backward; the mean loss. Gradients of the mean are left in `grads`."""
        return self._double(_api.backward, self._with_targets("backward", inputs, named, targets))

    def accumulate(self, *inputs, targets, **named):
        """Adds the gradients of the summed loss to `grads`; (sum, how many targets counted, or their weight).

        Of several heads, which divide by counts of their own, it adds the gradients of what `loss` gives: (loss, 1)."""
        given = self._with_targets("accumulate", inputs, named, targets)
        total, count = ctypes.c_double(), ctypes.c_double()
        self._call(_api.accumulate, given, ctypes.byref(total), ctypes.byref(count))
        return total.value, count.value if WEIGHTS else int(count.value)

    def step(self, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, decay="matrices", clip=1.0, count=None):
        """Divides the gradients by what was accumulated (or by `count`), clips their norm, updates by AdamW, clears.

        decay: "matrices" (rank 2 and more), "all", or a function of a parameter's name. clip: 0 or None is off.
        The norm after dividing, before clipping; 0 where there was nothing to divide by, and then nothing is done."""
        settings = self._adamw(lr, betas, eps, weight_decay, decay, clip, count)
        if count is not None and settings.count == 0:
            return 0.0
        return self._double(_api.step, ctypes.byref(settings))

    def train_step(self, *inputs, targets, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, decay="matrices",
                   clip=1.0, count=None, **named):
        """zero_grad, accumulate and step in one; the mean loss."""
        given = self._with_targets("train_step", inputs, named, targets)
        settings = self._adamw(lr, betas, eps, weight_decay, decay, clip, count)
        if count is not None and settings.count == 0:  # nothing to divide by: no update, as in step
            self.zero_grad()
            total, counted = self.accumulate(*inputs, targets=targets, **named)
            return total / counted if counted else 0.0
        return self._double(_api.train_step, given, ctypes.byref(settings))

    def zero_grad(self):
        """Clears the gradients, and the count of targets behind them."""
        self._call(_api.zero_grad)

    def merge_lora(self):
        """Adds each low-rank adapter to its weight and clears its B: the same outputs but for rounding."""
        self._call(_api.merge_lora)

    def vjp(self, grad_output, *inputs, training=False, **named):
        """Gradients of sum(output * grad_output): of the float inputs as a dict, of the parameters in `grads`.

        Of heads with names grad_output is a dict; a head that is not in it has none."""
        given = _Inputs("vjp", inputs, named)
        wanted, upstream = _by_head("grad_output", grad_output, _HEADS, complete=False), []
        for head in _HEADS:
            expected = given.output(head)
            array = _reals(head.label("grad_output"), wanted[head.name]) if head.name in wanted else np.zeros(expected, _REAL)
            if array.shape != expected:
                raise ValueError(f"{head.label('grad_output')} has shape {list(array.shape)}, expected {list(expected)}")
            upstream.append(array)
        floats = [n for n in ("x", "src", "tgt", "memory", "image") if n in INPUTS and _CONVERSIONS[n] is _reals]
        results = {n: _out(given.arrays[n].shape) for n in floats}
        self._call(_api.vjp, given, int(bool(training)), _pointers(upstream),
                   _pointers(list(results.values())))
        return results

    def _adamw(self, lr, betas, eps, weight_decay, decay, clip, count):
        try:
            beta1, beta2 = betas
        except (TypeError, ValueError):
            raise ValueError(f"betas is {betas!r}, expected two numbers") from None
        settings = _new(
            _AdamW, lr=_setting("lr", lr), beta1=_setting("betas", beta1, 1), beta2=_setting("betas", beta2, 1),
            eps=_setting("eps", eps), weight_decay=_setting("weight_decay", weight_decay),
            clip=0.0 if clip is None else _setting("clip", clip), count=0.0 if count is None else _setting("count", count))
        if decay != "matrices":
            if decay != "all" and not callable(decay):
                raise ValueError(f'decay is {decay!r}, expected "matrices", "all" or a function of a name')
            chosen = [decay == "all" or bool(decay(p[0])) for p in PARAMETERS]
            settings.chosen = np.array(chosen, np.uint8)  # kept with the struct that points to it
            settings.decay = settings.chosen.ctypes.data
        return settings
