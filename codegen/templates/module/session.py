

# -- sessions and models -------------------------------------------------------------------------------------

class Session(_Calls, _Training, _Generation, _Editing, _Files):
    """Workspace, cache and random state for one thread at a time; any number of sessions share one model's weights.

    Inputs go by position or name, the same in every call: see INPUTS and OPTIONAL_INPUTS of this module.
    """

    def __init__(self, model, threads=0):
        self._model = model
        self._handle = _Handle(0, threads, model)
        self._busy = threading.Lock()
        self._edits = {}
        self.params = _Arrays(model, {name: shape for name, shape, _ in PARAMETERS}, _parameter)
        if "step" in ENTRIES:
            self.grads = _Arrays(model, {name: shape for name, shape, frozen in PARAMETERS if not frozen}, _gradient)

    def session(self, threads=0):
        """Another session on the same weights, for another thread."""
        return Session(self._model, threads)

    @property
    def taps(self):
        """The values that [debug] taps shows, by name, as the last call of this session has left them."""
        return _Taps(self, False)

    @property
    def tap_grads(self):
        """Their gradients, after backward, accumulate and vjp."""
        return _Taps(self, True)

    def __getattr__(self, name):
        if name in _REMOVED:
            raise AttributeError(f"the model {NAME} has no {name}: {_REMOVED[name]}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


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
if not _LOSSES:
    _REMOVED.update(dict.fromkeys(("loss", "backward", "accumulate", "train_step"),
                                  "it has no loss; train it with vjp and step"))
if not _PREDICTING:
    _REMOVED["logprobs"] = "its loss is no cross entropy" if _LOSSES else "it has no loss; train it with vjp and step"
if not _NAMED:
    _REMOVED["losses"] = "it has one head alone, and `loss` is its loss"
if KIND == "encoder":
    _REMOVED.update(dict.fromkeys(("reset_cache", "decode", "cache_lengths"), "an encoder has no cache"))
elif MAIN_HEAD < 0 or _HEADS[MAIN_HEAD].rows == "B":
    _REMOVED.update(dict.fromkeys(("reset_cache", "decode", "cache_lengths"), "no one head has an answer for each token"))
if KIND == "encoder" or HEAD != "lm" or MAIN_HEAD < 0:
    _REMOVED["generate"] = "it predicts no tokens" if HEAD != "lm" else "no head is the only language model"
if "merge" not in ENTRIES:
    _REMOVED["merge_lora"] = "it has no low-rank adapters"
if "step" not in ENTRIES:
    _REMOVED.update(dict.fromkeys(("grads", "backward", "accumulate", "vjp", "step", "train_step", "zero_grad"),
                                  _LEFT_OUT + "infer"))
if not {"last", "logprobs"} & set(ENTRIES):
    for _name in ("logprobs", "generate", "decode", "reset_cache", "cache_lengths"):
        _REMOVED.setdefault(_name, _LEFT_OUT + "train")
for _class in Session.__mro__[:-1]:
    for _name in _REMOVED:
        if _name in vars(_class):
            delattr(_class, _name)
