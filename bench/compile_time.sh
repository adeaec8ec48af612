#!/bin/sh
# Compile time against depth: each model with 12 layers and with 96, all outputs; CPU seconds (user) of one run, best of
# five, peak memory and size of the shared library.
#   bench/compile_time.sh                                 examples/gpt2.toml; needs build/bin/transformerc
#   bench/compile_time.sh --cpu=x86-64-v3 MODEL.toml...   further flags go to transformerc
#   bench/compile_time.sh all                             gpt2, llama, nano and reverse of examples/
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
exec python3 - "$top" "$@" <<'EOF'
import os, subprocess, sys, tempfile

top = sys.argv[1]
flags = [word for word in sys.argv[2:] if word.startswith("--")]
models = [word for word in sys.argv[2:] if not word.startswith("--")]
example = lambda name: os.path.join(top, "examples", name + ".toml")
if models == ["all"]:
    models = [example(name) for name in ("gpt2", "llama", "nano", "reverse")]


def depth(model, layers):
    """Flags that make it as deep, in both halves where it has two."""
    two = "encoder-decoder" in open(model).read()
    keys = ["encoder_layers", "decoder_layers"] if two else ["layers"]
    return [word for key in keys for word in ("--set", f"model.{key}={layers}")]


def once(model, layers):
    with tempfile.TemporaryDirectory() as folder:
        command = [os.path.join(top, "build/bin/transformerc"), model, "-o", folder]
        command += depth(model, layers) + flags
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)} failed")
        size = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".so"))
        return used.ru_utime, used.ru_maxrss / 1024, size / 1e6


for model in models or [example("gpt2")]:
    seconds = {}
    text = []
    for layers in (12, 96):
        runs = [once(model, layers) for _ in range(5)]
        seconds[layers] = min(run[0] for run in runs)
        text.append(f"{layers} layers {seconds[layers]:.2f} s, {max(run[1] for run in runs):.0f} MiB, "
                    f".so {runs[0][2]:.2f} MB")
    print(f"{os.path.basename(model)}: {'; '.join(text)}; ratio {seconds[96] / seconds[12]:.2f}", flush=True)
EOF
