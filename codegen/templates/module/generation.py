

class _Generation:
    """The cache, and sampling from it."""

    def reset_cache(self, batch=None, capacity=None, **memory):
        """Empties the cache, for `batch` rows (by default the first decode's) of at most `capacity` tokens (by default
        MAX_SEQ). An encoder-decoder takes its source here: src or memory, and src_mask."""
        rows = 0 if batch is None else _integer("batch", batch, 1, 2 ** 31 - 1)
        slots = 0 if capacity is None else _integer("capacity", capacity, 1, 2 ** 31 - 1)
        if KIND == "encoder-decoder":
            source = _Inputs("reset_cache", (), memory, expected=INPUTS[:1], optional=_SOURCE_OPTIONAL)
        else:
            _Inputs.bind("reset_cache", (), memory, (), ())  # only None may be given
            source = None
        self._call(_api.cache_reset, rows, slots, source)

    def decode(self, *inputs, **named):
        """Cached forward of the next tokens [B,t] of every row; rows may bring fewer, padded right and masked."""
        given = _Inputs("decode", inputs, named, expected=[_OWN], optional=_OWN_OPTIONAL)
        output = _out(given.shape("BTO"))
        self._call(_api.decode, given, output.ctypes.data)
        return output

    def generate(self, *inputs, max_new=32, temperature=0.0, top_k=0, top_p=1.0, seed=0, eos=None, pad=0,
                 context="stop", bos=None, **named):
        """Prompts and up to `max_new` sampled tokens after each: [B,T+n]; of a list of rows of different lengths a list.

        temperature 0 takes the most probable token. `eos` ends a row and is part of it; shorter rows are padded with
        `pad`. context: what to do at MAX_SEQ: "stop", "slide" (go on with the last MAX_SEQ tokens) or "error".
        An encoder-decoder: generate(src=..., bos=1) gives [B,1+n], from bos on."""
        if context not in ("stop", "slide", "error"):
            raise ValueError(f'context is {context!r}, expected "stop", "slide" or "error"')
        settings = _new(
            _Sampling, max_new=_integer("max_new", max_new, 0, 2 ** 31 - 1),
            temperature=_number("temperature", temperature), top_p=_number("top_p", top_p),
            top_k=_integer("top_k", top_k, 0, _INT32.max),
            eos=-1 if eos is None else _integer("eos", eos, 0, VOCAB - 1),
            pad=_integer("pad", pad, _INT32.min, _INT32.max), context=("stop", "slide", "error").index(context),
            seed=_integer("seed", seed, 0, 2 ** 64 - 1))
        if KIND != "encoder-decoder":
            if bos is not None:
                raise TypeError("generate() got bos, which only an encoder-decoder takes")
            rows = _ragged(inputs[0] if inputs else named.get(_OWN))
            if rows is not None:
                return self._generate_rows(rows, settings, inputs[1:], named)
            given = _Inputs("generate", inputs, named, expected=[_OWN], optional=_OWN_OPTIONAL)
        else:
            given = _Inputs("generate", inputs, named, expected=INPUTS[:1], optional=[_OWN, *OPTIONAL_INPUTS])
            if _OWN in given.arrays and bos is not None:
                raise TypeError("generate() got bos and tgt, expected one of them")
            if _OWN not in given.arrays:
                if bos is None:
                    raise TypeError("generate() lacks bos, the token to begin with")
                start = np.full((given.sizes["B"], 1), _integer("bos", bos, 0, VOCAB - 1), np.int32)
                given = _Inputs("generate", (), {**given.arrays, _OWN: start},
                                expected=INPUTS, optional=OPTIONAL_INPUTS)
        new = self._generate(given, settings)
        added = np.full((len(new), max(map(len, new))), pad, np.int32)
        for row, more in enumerate(new):
            added[row, :len(more)] = more
        return np.concatenate([given.arrays[_OWN], added], axis=1)

    def _generate(self, given, settings):
        """Lists of each row's new tokens."""
        new = [[] for _ in range(given.sizes["B"])]

        def on_token(user, row, token):
            new[row].append(token)
            return 0

        self._call(_api.generate, given, ctypes.byref(settings), _ON_TOKEN(on_token), None)
        return new

    def _generate_rows(self, rows, settings, inputs, named):
        """Of rows of different lengths: together under a mask, one by one where the model declares none."""
        if inputs or set(named) - {_OWN}:
            raise TypeError("generate() of rows of different lengths takes no other inputs")
        if not any(len(row) for row in rows) or min(map(len, rows)) == 0:
            raise ValueError(f"{_OWN} has an empty row: T is 0, expected at least 1")
        lengths = np.array([len(row) for row in rows], np.int32)
        lengths_input = next((n for n in ("mask", "lengths") if n in _OWN_OPTIONAL), None)
        if lengths_input:
            padded = np.zeros((len(rows), lengths.max()), np.int32)
            real = np.arange(padded.shape[1]) < lengths[:, None]
            padded[real] = np.concatenate(rows)
            masked = {lengths_input: real if lengths_input == "mask" else lengths}
            new = self._generate(_Inputs("generate", (padded,), masked, [_OWN], _OWN_OPTIONAL), settings)
        else:
            new = []
            for settings.first_row, row in enumerate(rows):  # each draws as it would among the others
                new += self._generate(_Inputs("generate", (row[None],), {}, [_OWN], []), settings)
        return [np.concatenate([row, np.array(more, np.int32)]) for row, more in zip(rows, new)]

    @property
    def cache_lengths(self):
        """How many tokens of each row the cache holds, [B]."""
        cache = _new(_Cache)
        _check(_api.cache_state(self._handle.address, ctypes.byref(cache)))
        if not cache.lengths:
            return np.zeros(0, np.int32)
        return np.array((ctypes.c_int32 * cache.B).from_address(cache.lengths), np.int32)
