

# -- calls, training, generation: what a session is made of ----------------------------------------------------

class _Calls:
    """How a session calls the library, and what needs no parameters."""

    def _call(self, function, *arguments):
        if not self._busy.acquire(blocking=False):
            raise RuntimeError("the session is busy: one thread at a time; session() makes another on the same weights")
        try:
            _check(function(self._handle.address, *arguments), _api.message(self._handle.address))
        finally:
            self._busy.release()

    def _double(self, function, *arguments):
        result = ctypes.c_double()
        self._call(function, *arguments, ctypes.byref(result))
        return result.value

    def _with_targets(self, call, inputs, named, targets):
        return _Inputs(call, inputs, {**named, "targets": targets}, expected=[*INPUTS, "targets"],
                       optional=[*OPTIONAL_INPUTS, "weights"] if WEIGHTS else OPTIONAL_INPUTS)

    def forward(self, *inputs, last=False, **named):
        """The model's output: logits [B,T,V], hidden states [B,T,D] (last=True: of each row's last token, [B,V], [B,D]),
        class logits or numbers; of heads with names a dict."""
        if last and "last" not in ENTRIES:
            raise TypeError("forward() got last=True, but " + (
                _LEFT_OUT + "train" if HEAD in ("lm", "none") and MAIN_HEAD >= 0 else
                "a classifier answers once for a row" if HEAD == "classifier" else
                "no language model or hidden states are the only ones of their kind here"))
        given = _Inputs("forward", inputs, named)
        if last:
            outputs = {_HEADS[MAIN_HEAD].name: _out(given.shape("BO"))}
        else:
            outputs = {head.name: _out(given.output(head)) for head in _HEADS}
        self._call(_api.forward, given, int(bool(last)), _pointers(list(outputs.values())))
        return _plain(outputs)

    def loss(self, *inputs, targets, **named):
        """The mean loss over the targets that count; of several heads the sum of theirs, each times its loss_weight."""
        return self._double(_api.loss, self._with_targets("loss", inputs, named, targets))

    @property
    def losses(self):
        """The mean loss of each head in the last loss, backward, accumulate or train_step of this session."""
        sums, counts = (ctypes.c_double * len(_HEADS))(), (ctypes.c_double * len(_HEADS))()
        self._call(_api.losses, ctypes.addressof(sums), ctypes.addressof(counts))
        means = {head.name: s / n if n > 0 else 0.0 for head, s, n in zip(_HEADS, sums, counts)}
        return {head.name: means[head.name] for head in _LOSSES}

    def logprobs(self, *inputs, targets, **named):
        """The log-probability of each target, 0 where it does not count; of heads with names a dict."""
        given = self._with_targets("logprobs", inputs, named, targets)
        outputs = {head.name: _out(given.shape(head.rows)) for head in _PREDICTING}
        self._call(_api.head_logprobs, given,
                   (ctypes.c_void_p * len(_HEADS))(*(outputs[head.name].ctypes.data if head.name in outputs else None
                                                     for head in _HEADS)))
        return _plain(outputs)

    def workspace_bytes(self, entry, B, T=None, S=None):
        """Exact bytes of this session's workspace for a call of that size, before anything runs. entry: see ENTRIES."""
        if T is None and IMAGE:
            T = MAX_SEQ
        if entry not in ENTRIES:
            raise ValueError(f"entry is {entry!r}, expected one of {', '.join(ENTRIES)}")
        sizes = [_integer(n, v, 1, 2 ** 31 - 1) for n, v in (("B", B), ("T", T), ("S", T if S is None else S))]
        count = _api.memory(_WORKSPACE + ENTRIES[entry], *sizes, _api.threads(self._handle.address))
        if count == 2 ** (8 * ctypes.sizeof(ctypes.c_size_t)) - 1:
            given = ", ".join(f"{n} {v}" for n, v in zip("BTS" if KIND == "encoder-decoder" else "BT", sizes))
            limit = f"; T may be at most {MAX_SEQ} (max_seq)" if 0 < MAX_SEQ < max(sizes[1:]) else ""
            raise ValueError(f"no call of {entry} takes {given}{limit}")
        return count
