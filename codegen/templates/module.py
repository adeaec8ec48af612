"""@NAME@: a transformer compiled by transformerc. Needs NumPy, and lib@NAME@.so beside this file.

    import @NAME@
    m = @NAME@.Model(seed=0, threads=0)

This file is generated; it carries no obligation of any licence, do with it what you like.
"""
import collections.abc
import ctypes
import os
import threading
import weakref

import numpy as np

# @CONSTANTS@

_INT32 = np.iinfo(np.int32)
_REAL = np.dtype(REAL)
_OWN = "tgt" if KIND == "encoder-decoder" else INPUTS[0]  # the tokens or vectors that T counts
_OWN_OPTIONAL = [n for n in OPTIONAL_INPUTS if n in ("mask", "lengths")]
_SOURCE_OPTIONAL = [n for n in OPTIONAL_INPUTS if n in ("src_mask", "src_lengths")]
_WORKSPACE = 16  # TC_MEMORY_WORKSPACE
_LEFT_OUT = "the library was compiled with --functions="


# -- the library ---------------------------------------------------------------------------------------------

class _Batch(ctypes.Structure):
    _fields_ = ([("size", ctypes.c_size_t)] + [(n, ctypes.c_int64) for n in "BTS"] + [(n, ctypes.c_void_p) for n in (
        "tokens", "src", "tgt", "x", "memory", "image", "types", "positions", "documents", "lengths", "src_lengths",
        "prefix", "mask", "src_mask", "targets", "weights")])


class _AdamW(ctypes.Structure):
    _fields_ = ([("size", ctypes.c_size_t)] + [(n, ctypes.c_double) for n in (
        "lr", "beta1", "beta2", "eps", "weight_decay", "clip", "count")] + [
            ("lr_scale", ctypes.c_void_p), ("decay", ctypes.c_void_p)])


class _Sampling(ctypes.Structure):
    _fields_ = ([("size", ctypes.c_size_t), ("max_new", ctypes.c_int64), ("temperature", ctypes.c_float),
                 ("top_p", ctypes.c_float)] + [(n, ctypes.c_int32) for n in ("top_k", "eos", "pad", "context")] + [
                    ("seed", ctypes.c_uint64), ("bos", ctypes.c_int32), ("first_row", ctypes.c_int64)])


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("seed", ctypes.c_uint64), ("threads", ctypes.c_int),
                ("memory_limit", ctypes.c_size_t)] + [(n, ctypes.c_void_p) for n in (
                    "alloc", "release", "parallel_for", "cancelled", "user")] + [
                        ("error", ctypes.c_void_p), ("error_size", ctypes.c_size_t)]


class _State(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(n, ctypes.c_uint64) for n in ("seed", "call", "step_count")] + [
        ("divisor", ctypes.c_double)] + [(n, ctypes.c_int32) for n in ("complete", "gradients", "moments")]


class _Cache(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t)] + [(n, ctypes.c_int64) for n in ("B", "capacity", "S")] + [
        ("lengths", ctypes.c_void_p)]


_ON_TOKEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
_pointer, _int, _int64, _double, _text = (ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_double,
                                          ctypes.c_char_p)


def _new(struct, **members):
    return struct(size=ctypes.sizeof(struct), **members)


def _function(result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)


class _Api(ctypes.Structure):
    """tc_api of @NAME@.h."""
    _fields_ = [
        ("abi", ctypes.c_uint32), ("build_id", ctypes.c_uint64), ("name", _text), ("description", _text),
        ("model_create", _function(_int, _pointer, _pointer)),
        ("model_destroy", _function(None, _pointer)),
        ("load", _function(_int, _pointer, _text, _int)),
        ("save", _function(_int, _pointer, _text, _int)),
        ("session_create", _function(_int, _pointer, _pointer, _pointer)),
        ("session_destroy", _function(None, _pointer)),
        ("reserve", _function(_int, _pointer, _int, _int64, _int64, _int64)),
        ("forward", _function(_int, _pointer, _pointer, _int, _pointer)),
        ("loss", _function(_int, _pointer, _pointer, _pointer)),
        ("logprobs", _function(_int, _pointer, _pointer, _pointer)),
        ("backward", _function(_int, _pointer, _pointer, _pointer)),
        ("accumulate", _function(_int, _pointer, _pointer, _pointer, _pointer)),
        ("vjp", _function(_int, _pointer, _pointer, _int, _pointer, _pointer)),
        ("step", _function(_int, _pointer, _pointer, _pointer)),
        ("train_step", _function(_int, _pointer, _pointer, _pointer, _pointer)),
        ("zero_grad", _function(_int, _pointer)),
        ("cache_reset", _function(_int, _pointer, _int64, _int64, _pointer)),
        ("decode", _function(_int, _pointer, _pointer, _pointer)),
        ("generate", _function(_int, _pointer, _pointer, _pointer, _ON_TOKEN, _pointer)),
        ("parameter", _function(_pointer, _pointer, _text)),
        ("gradient", _function(_pointer, _pointer, _text)),
        ("memory", _function(ctypes.c_size_t, _int, _int64, _int64, _int64, _int)),
        ("message", _function(_text, _pointer)),
        ("model_message", _function(_text, _pointer)),
        ("status_text", _function(_text, _int)),
        ("info", _function(_int, _pointer)),
        ("parameter_info", _function(_int, ctypes.c_int32, _pointer)),
        ("get_state", _function(_int, _pointer, _pointer)),
        ("set_state", _function(_int, _pointer, _pointer)),
        ("block", _function(_pointer, _pointer, _int)),
        ("moment", _function(_pointer, _pointer, _int, _text)),
        ("allocate", _function(_int, _pointer, _int, _int)),
        ("cache_state", _function(_int, _pointer, _pointer)),
        ("threads", _function(_int, _pointer)),
        ("profile", _function(_int64, _pointer, _int, _pointer, _int64)),
    ]


def _load_library():
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib@NAME@.so")
    path = os.environ.get("@NAME@_LIBRARY") or beside
    library = ctypes.CDLL(path)
    try:
        table = library["@NAME@_api"]
    except AttributeError:
        raise ImportError(f"{path} is not a library of the model @NAME@: it has no function @NAME@_api") from None
    table.restype, table.argtypes = ctypes.POINTER(_Api), [ctypes.c_uint64]
    api = table(BUILD_ID)
    if not api:
        raise ImportError(f"{path} and {os.path.abspath(__file__)} are not of one build: compile the model again, "
                          "and keep the files of one run together")
    return library, api.contents


_library, _api = _load_library()

_ERRORS = [None, ValueError, MemoryError, OSError, ValueError, OSError, RuntimeError, RuntimeError]  # by tc_status


def _check(status, message=None):
    if status:
        text = message or _api.status_text(status) or b""
        raise _ERRORS[status](text.decode("utf-8", "replace"))


class _Handle:
    """Owns the library's model or session. Whatever uses its memory refers to it, so that it goes last."""

    def __init__(self, seed, threads, model=None):
        error = ctypes.create_string_buffer(512)
        options = _new(_Options, seed=_integer("seed", seed, 0, 2 ** 64 - 1),
                       threads=_integer("threads", threads, 0, 2 ** 31 - 1))
        options.error, options.error_size = ctypes.addressof(error), len(error)
        handle = ctypes.c_void_p()
        if model is None:
            destroy = _api.model_destroy
            _check(_api.model_create(ctypes.byref(options), ctypes.byref(handle)), error.value)
        else:
            destroy = _api.session_destroy
            _check(_api.session_create(model.address, ctypes.byref(options), ctypes.byref(handle)),
                   _api.model_message(model.address))
        self.address = handle.value

        def release(address, model):  # a session's reference to its model lasts until the session is gone
            destroy(address)

        weakref.finalize(self, release, self.address, model).atexit = False


class _Memory:
    """An array of the library's, as NumPy wants to be told; the arrays made of it keep it, and so its owner, alive."""

    def __init__(self, owner, address, shape):
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": _REAL.str, "version": 3}


# -- arguments -----------------------------------------------------------------------------------------------

def _integer(name, value, least, most):
    try:
        number = value.__index__()
    except AttributeError:
        raise ValueError(f"{name} is {value!r}, expected an integer") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, expected {least} to {most}")
    return number


def _number(name, value):
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}, expected a number") from None


def _setting(name, value, limit=float("inf")):
    number = _number(name, value)
    if not 0 <= number < limit:
        expected = "a finite number of at least 0" if limit == float("inf") else f"at least 0 and less than {limit}"
        raise ValueError(f"{name} is {value!r}, expected {expected}")
    return number


def _array(name, value):
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} is not an array: {error}") from None
    if array.dtype.kind not in "biuf" and array.size:
        raise ValueError(f"{name} has dtype {array.dtype}, expected numbers in a rectangular array")
    return array


def _ids(name, value):
    """int32 of any integers. What does not fit stays out of every range: at a masked position nobody minds."""
    array = _array(name, value)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} has dtype {array.dtype}, expected integers")
    if not np.can_cast(array.dtype, np.int32) and array.size:
        low = max(_INT32.min, np.iinfo(array.dtype).min)
        array = np.clip(array, low, _INT32.max)
    return np.require(array, np.int32, ["C", "A"])  # unlike ascontiguousarray it gives no scalar a dimension


def _reals(name, value):
    array = _array(name, value)
    if array.dtype.kind != "f" and array.size:
        raise ValueError(f"{name} has dtype {array.dtype}, expected floats")
    with np.errstate(over="ignore"):  # too large for this precision is infinite, as everywhere
        return np.require(array, _REAL, ["C", "A"])


def _mask(name, value):
    array = _array(name, value)
    if array.dtype.kind != "b" and not ((array == 0) | (array == 1)).all():
        raise ValueError(f"{name} has values other than 0 and 1, expected 1 for every real token")
    return np.require(array, np.uint8, ["C", "A"])


def _ragged(value):
    """The rows of a list whose rows have different lengths; None: it is an ordinary array."""
    if not isinstance(value, (list, tuple)) or not value or any(np.ndim(_array("tokens", row)) != 1 for row in value):
        return None
    rows = [_ids(f"tokens[{i}]", row) for i, row in enumerate(value)]
    return rows if len({len(row) for row in rows}) > 1 else None


_CONVERSIONS = {"tokens": _ids, "types": _ids, "lengths": _ids, "src_lengths": _ids, "targets": _ids,
                "mask": _mask, "src_mask": _mask, "x": _reals, "memory": _reals,
                "src": _reals if SRC_VOCAB == 0 else _ids, "tgt": _reals if VOCAB == 0 else _ids}
_SHAPES = {"tokens": "BT", "x": "BTD", "src": "BS" if SRC_VOCAB else "BSD", "tgt": "BT" if VOCAB else "BTD",
           "memory": "BSD", "types": "BT", "mask": "BT", "src_mask": "BS", "lengths": "B", "src_lengths": "B",
           "targets": "B" if HEAD == "classifier" else "BT"}


class _Inputs:
    """One call's arrays, converted and of matching shapes; `batch` points into them."""

    def __init__(self, call, positional, named, expected=INPUTS, optional=OPTIONAL_INPUTS):
        self.arrays, self.sizes = {}, {}
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
        expected = [D_MODEL if c == "D" else self.sizes.get(c, c) for c in letters]
        if len(shape) != len(letters) or any(e not in (c, n) for c, e, n in zip(letters, expected, shape)):
            raise ValueError(f"{name} has shape {list(shape)}, expected [{','.join(map(str, expected))}]")
        for letter, size in zip(letters, shape):
            if size == 0:
                raise ValueError(f"{name} has shape {list(shape)}: {letter} is 0, expected at least 1")
            self.sizes[letter] = size

    def shape(self, letters):
        return tuple(OUT_WIDTH if c == "O" else D_MODEL if c == "D" else self.sizes[c] for c in letters)


def _pointers(arrays):
    return (ctypes.c_void_p * max(1, len(arrays)))(*(a.ctypes.data for a in arrays))


def _out(shape):
    return np.empty(shape, _REAL)


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


# -- sessions and models -------------------------------------------------------------------------------------

class Session:
    """Workspace, cache and random state for one thread at a time; any number of sessions share one model's weights.

    Inputs go by position or name, the same in every call: see INPUTS and OPTIONAL_INPUTS of this module.
    """

    def __init__(self, model, threads=0):
        self._model = model
        self._handle = _Handle(0, threads, model)
        self._busy = threading.Lock()
        self.params = _Arrays(model, {name: shape for name, shape, _ in PARAMETERS}, _parameter)
        if "step" in ENTRIES:
            self.grads = _Arrays(model, {name: shape for name, shape, frozen in PARAMETERS if not frozen}, _gradient)

    def session(self, threads=0):
        """Another session on the same weights, for another thread."""
        return Session(self._model, threads)

    def forward(self, *inputs, last=False, **named):
        """The model's output: logits [B,T,V], hidden states [B,T,D] (last=True: of each row's last token, [B,V], [B,D]),
        or class logits."""
        if last and "last" not in ENTRIES:
            why = "a classifier answers once for a row" if HEAD == "classifier" else _LEFT_OUT + "train"
            raise TypeError(f"forward() got last=True, but {why}")
        given = _Inputs("forward", inputs, named)
        output = _out(given.shape("BO" if last or HEAD == "classifier" else "BTO"))
        self._call(_api.forward, given, int(bool(last)), _pointers([output]))
        return output

    def loss(self, *inputs, targets, **named):
        """The mean loss over the targets that count."""
        return self._double(_api.loss, self._with_targets("loss", inputs, named, targets))

    def logprobs(self, *inputs, targets, **named):
        """The log-probability of each target, 0 where it does not count."""
        given = self._with_targets("logprobs", inputs, named, targets)
        output = _out(given.arrays["targets"].shape)
        self._call(_api.logprobs, given, output.ctypes.data)
        return output

    def backward(self, *inputs, targets, **named):
        """Clears the gradients, runs forward and backward; the mean loss. Gradients of the mean are left in `grads`."""
        return self._double(_api.backward, self._with_targets("backward", inputs, named, targets))

    def accumulate(self, *inputs, targets, **named):
        """Adds the gradients of the summed loss to `grads`; (sum, how many targets counted)."""
        given = self._with_targets("accumulate", inputs, named, targets)
        total, count = ctypes.c_double(), ctypes.c_double()
        self._call(_api.accumulate, given, ctypes.byref(total), ctypes.byref(count))
        return total.value, int(count.value)

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

    def vjp(self, grad_output, *inputs, training=False, **named):
        """Gradients of sum(output * grad_output): of the float inputs as a dict, of the parameters in `grads`."""
        given = _Inputs("vjp", inputs, named)
        upstream = _reals("grad_output", grad_output)
        expected = given.shape("BO" if HEAD == "classifier" else "BTO")
        if upstream.shape != expected:
            raise ValueError(f"grad_output has shape {list(upstream.shape)}, expected {list(expected)}")
        floats = [n for n in ("x", "src", "tgt", "memory") if n in INPUTS and _CONVERSIONS[n] is _reals]
        results = {n: _out(given.arrays[n].shape) for n in floats}
        self._call(_api.vjp, given, int(bool(training)), _pointers([upstream]),
                   _pointers(list(results.values())))
        return results

    # -- generation ------------------------------------------------------------------------------------------

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
        if _OWN_OPTIONAL:
            padded = np.zeros((len(rows), lengths.max()), np.int32)
            real = np.arange(padded.shape[1]) < lengths[:, None]
            padded[real] = np.concatenate(rows)
            masked = {"mask": real} if "mask" in _OWN_OPTIONAL else {"lengths": lengths}
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

    # -- the rest --------------------------------------------------------------------------------------------

    def workspace_bytes(self, entry, B, T, S=None):
        """Exact bytes of this session's workspace for a call of that size, before anything runs. entry: see ENTRIES."""
        if entry not in ENTRIES:
            raise ValueError(f"entry is {entry!r}, expected one of {', '.join(ENTRIES)}")
        sizes = [_integer(n, v, 1, 2 ** 31 - 1) for n, v in (("B", B), ("T", T), ("S", T if S is None else S))]
        count = _api.memory(_WORKSPACE + ENTRIES[entry], *sizes, _api.threads(self._handle.address))
        if count == 2 ** (8 * ctypes.sizeof(ctypes.c_size_t)) - 1:
            given = ", ".join(f"{n} {v}" for n, v in zip("BTS" if KIND == "encoder-decoder" else "BT", sizes))
            limit = f"; T may be at most {MAX_SEQ} (max_seq)" if 0 < MAX_SEQ < max(sizes[1:]) else ""
            raise ValueError(f"no call of {entry} takes {given}{limit}")
        return count

    def load(self, path, strict=True):
        raise NotImplementedError("not supported yet: load of parameters from a file; assign to m.params[name]")

    def save(self, path, optimizer=False):
        raise NotImplementedError("not supported yet: save of parameters to a file; see np.savez(path, **m.params)")

    @property
    def taps(self):
        raise NotImplementedError("not supported yet: taps of values inside the model")

    tap_grads = taps

    def __getattr__(self, name):
        if name in _REMOVED:
            raise AttributeError(f"the model {NAME} has no {name}: {_REMOVED[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _with_targets(self, call, inputs, named, targets):
        return _Inputs(call, inputs, {**named, "targets": targets}, expected=[*INPUTS, "targets"])

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


def _state(name, most, text):
    """A property of the model's state, kept by the library."""
    def read(self):
        state = _new(_State)
        _check(_api.get_state(self._model.address, ctypes.byref(state)))
        return state

    def get(self):
        return getattr(read(self), name)

    def put(self, value):
        state = read(self)
        setattr(state, name, _integer(name, value, 0, most))
        _check(_api.set_state(self._model.address, ctypes.byref(state)), _api.model_message(self._model.address))

    return property(get, put, doc=text)


Session.seed = _state("seed", 2 ** 64 - 1, "what dropout draws from")
Session.call = _state("call", 2 ** 64 - 1, "how many calls with dropout there were")
Session.step_count = _state("step_count", 2 ** 63 - 1, "how many optimizer steps there were")


class Model(Session):
    """Parameters, initialised from `seed`, and a first session on them with `threads` threads (0: all cores)."""

    def __init__(self, seed=0, threads=0):
        super().__init__(_Handle(seed, threads), threads)


# What this model cannot do is not there.
_REMOVED = {}
if HEAD == "none":
    _REMOVED.update(dict.fromkeys(("loss", "logprobs", "backward", "accumulate", "train_step"),
                                  "it has no loss; train it with vjp and step"))
if KIND == "encoder":
    _REMOVED.update(dict.fromkeys(("reset_cache", "decode", "cache_lengths"), "an encoder has no cache"))
if KIND == "encoder" or HEAD != "lm":
    _REMOVED["generate"] = "it predicts no tokens"
if "step" not in ENTRIES:
    _REMOVED.update(dict.fromkeys(("grads", "backward", "accumulate", "vjp", "step", "train_step", "zero_grad"),
                                  _LEFT_OUT + "infer"))
if not {"last", "logprobs"} & set(ENTRIES):
    for _name in ("logprobs", "generate", "decode", "reset_cache", "cache_lengths"):
        _REMOVED.setdefault(_name, _LEFT_OUT + "train")
for _name in _REMOVED:
    if hasattr(Session, _name):
        delattr(Session, _name)
