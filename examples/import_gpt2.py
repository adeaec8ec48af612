"""Turns GPT-2's weights as Hugging Face publishes them into a file for the library of `extends = "gpt2"`:

    python3 examples/import_gpt2.py model.safetensors gpt2.safetensors

`model.safetensors` is the file of that name at https://huggingface.co/gpt2 (or gpt2-medium, -large, -xl: then extend that
preset). Afterwards `gpt2.Model().load("gpt2.safetensors")`. Needs NumPy; another family takes another table of names, see
docs/weights.md.
"""
import json
import re
import struct
import sys

import numpy as np

# Of a layer: their name, ours, and whether they keep the matrix as [in, out].
LAYER = {"ln_1": ("norm1", False), "ln_2": ("norm2", False), "attn.c_attn": ("attn.{}", True), "attn.c_proj": ("attn.o", True),
         "mlp.c_fc": ("ffn.up", True), "mlp.c_proj": ("ffn.down", True)}
# lm_head is a copy of the table, if it is there: load accepts it. Trained apart it needs `[embedding] tie = false`.
OTHERS = {"wte": "tok_emb", "wpe": "pos_emb", "ln_f": "final_norm", "lm_head": "head"}
MASKS = (".attn.bias", ".attn.masked_bias")
DTYPES = {"F32": np.float32, "F16": np.float16, "F64": np.float64, "BF16": np.uint16}  # that is float32's upper half


def tensors(path):
    """name -> array, of a safetensors file."""
    with open(path, "rb") as file:
        content = file.read()
    length, = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    for name, tensor in header.items():
        if name.endswith(MASKS):
            continue
        dtype = tensor["dtype"]
        if dtype not in DTYPES:
            sys.exit(f"{path}: {name} is {dtype}, expected one of {', '.join(DTYPES)}")
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        array = np.frombuffer(content[begin:end], DTYPES[dtype]).reshape(tensor["shape"])
        yield name, (array.astype(np.uint32) << 16).view(np.float32) if dtype == "BF16" else array


def ours(name, array):
    """Our names for one of their tensors, with their parts of it."""
    part, _, kind = name.removeprefix("transformer.").rpartition(".")
    layer = re.fullmatch(r"h\.(\d+)\.(.+)", part)
    if part in OTHERS:
        yield f"{OTHERS[part]}.{kind}", array
    elif not layer or layer[2] not in LAYER:
        sys.exit(f"{name} is no tensor of GPT-2's")
    else:
        own, transposed = LAYER[layer[2]]
        array = array.T if transposed else array
        for letter, piece in zip("qkv", np.split(array, 3)) if "{}" in own else [("", array)]:
            yield f"layers.{layer[1]}.{own.format(letter)}.{kind}", piece


def write(path, arrays):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [offset, offset + 4 * array.size]}
        offset += 4 * array.size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array, np.float32).tobytes())


if __name__ == "__main__":
    source, target = sys.argv[1:]
    converted = {own: piece for name, array in tensors(source) for own, piece in ours(name, array)}
    write(target, converted)
    print(f"{target}: {sum(array.size for array in converted.values()):,} parameters")
