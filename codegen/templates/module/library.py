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
_OWN_OPTIONAL = [n for n in OPTIONAL_INPUTS if n in ("mask", "lengths", "positions", "documents", "prefix")]
_SOURCE_OPTIONAL = [n for n in OPTIONAL_INPUTS if n.startswith("src_")]
_WORKSPACE = 16  # TC_MEMORY_WORKSPACE
_LEFT_OUT = "the library was compiled with --functions="


# -- the library ---------------------------------------------------------------------------------------------

class _Batch(ctypes.Structure):
    _fields_ = ([("size", ctypes.c_size_t)] + [(n, ctypes.c_int64) for n in "BTS"] + [(n, ctypes.c_void_p) for n in (
        "tokens", "src", "tgt", "x", "memory", "image", "types", "positions", "documents", "lengths", "src_lengths",
        "prefix", "mask", "src_mask", "targets", "weights", "src_positions", "src_documents")])


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


class _Array(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * 4),
                ("rank", ctypes.c_int32)]


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
        ("load", ctypes.CFUNCTYPE(_int, _pointer, _text, _int, use_errno=True)),
        ("save", ctypes.CFUNCTYPE(_int, _pointer, _text, _int, use_errno=True)),
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
        ("head_info", _function(_int, ctypes.c_int32, _pointer)),
        ("merge_lora", _function(_int, _pointer)),
        ("losses", _function(_int, _pointer, _pointer, _pointer)),
        ("head_logprobs", _function(_int, _pointer, _pointer, _pointer)),
        ("tap_info", _function(_int, ctypes.c_int32, _pointer)),
        ("tap", _function(_int, _pointer, ctypes.c_int32, _int, _pointer)),
        ("edit_info", _function(_int, ctypes.c_int32, _pointer)),
        ("set_edit", _function(_int, _pointer, ctypes.c_int32, _int, _pointer, _pointer)),
        ("clear_edits", _function(_int, _pointer, ctypes.c_int32)),
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
_FILE_TROUBLE = 3  # TC_E_FILE: errno says more


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
