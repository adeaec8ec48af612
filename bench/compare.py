#!/usr/bin/python3
"""One table: compiled models beside PyTorch on the same shapes, beside this machine's peak and bandwidth of the same run.

    bench/compare.py [--quick] [--only ROW[,ROW]] [--rounds N] [--seconds X] [--threads N] [--without-torch]

Needs build/bin/transformerc (or --program). PyTorch is Debian's: apt-get install python3-torch libopenblas0-pthread; where
it is missing the table goes without. Every row is measured in rounds, the compiled library and PyTorch in turns, each in
a process of its own; the table shows medians. The peak is the best that any round of the row saw. Small models are
measured on one thread and on all; PyTorch's better figure counts, ours is that of all threads.
"""
import argparse
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Where a CPU has AVX-512, PyTorch's products run at half speed without; elsewhere they would be illegal instructions.
TORCH_WITH_AVX512 = {"OPENBLAS_CORETYPE": "SkylakeX", "ATEN_CPU_CAPABILITY": "avx512"}
PYTHON = "/usr/bin/python3"  # whose packages are Debian's
HOW_TO_INSTALL = "apt-get install python3-torch libopenblas0-pthread"


def has_avx512():
    with open("/proc/cpuinfo") as info:
        return any("avx512f" in line.split() for line in info)


class Model:
    def __init__(self, torch, path, batch, seq, what="step", small=False, source=False):
        self.torch, self.path, self.batch, self.seq = torch, path, batch, seq
        self.what, self.small, self.source = what, small, source

    @property
    def at(self):
        return f"B={self.batch},T={self.seq}" + (f",S={self.seq}" if self.source else "")


MODELS = {
    "gpt2-256": ("GPT-2 124M step, B=4 T=256", Model("gpt2", "examples/gpt2.toml", 4, 256)),
    "gpt2-64": ("GPT-2 124M step, B=4 T=64", Model("gpt2", "examples/gpt2.toml", 4, 64)),
    "gpt2-1024": ("GPT-2 124M step, B=1 T=1024", Model("gpt2", "examples/gpt2.toml", 1, 1024)),
    "llama": ("LLaMA-like step, B=4 T=256", Model("llama", "examples/llama.toml", 4, 256)),
    "nano": ("nano step, B=12 T=64", Model("nano", "examples/nano.toml", 12, 64, small=True)),
    "reverse": ("reverse step, B=64 T=8", Model("reverse", "examples/reverse.toml", 64, 8, small=True, source=True)),
    "gpt2-forward": ("GPT-2 forward, B=4 T=64", Model("gpt2", "examples/gpt2.toml", 4, 64, "forward")),
    "bert-forward": ("BERT-base forward, B=8 T=128",
                     Model("bert_hidden", "bench/models/bert_hidden.toml", 8, 128, "forward")),
    "bert-small": ("BERT-base forward, B=1 T=32",
                   Model("bert_hidden", "bench/models/bert_hidden.toml", 1, 32, "forward", small=True)),
    "vit-forward": ("ViT-B/16 forward, B=8", Model("vit", "bench/models/vit.toml", 8, 197, "forward")),
    "vit": ("ViT-B/16 step, B=8", Model("vit", "bench/models/vit.toml", 8, 197)),
}
SECOND_THREAD = ["gpt2-64", "llama", "nano", "reverse"]
FREEZING = ["--set", 'train.freeze=["embedding","layers.0-5"]']
RECOMPUTE = ["--set", 'train.recompute="all"']
QUICK = ["gpt2-64", "nano", "reverse", "bert-small", "second-thread", "decode"]
DENSE = ["--set", "ffn.moe.experts=0", "--set", "model.d_ff=2048"]  # of bench/models/moe.toml
OTHERS = ["second-thread", "decode", "products", "drift", "freezing", "recompute", "moe", "window", "grouped",
          "padding"]


def median(values):
    return sorted(values)[len(values) // 2]


class Runner:
    """Starts the measured programs; what the machine could do at best is kept from run to run."""

    def __init__(self, options):
        self.options = options
        self.peak = self.peak_one = self.bandwidth = 0.0
        self.torch_version = None

    def compiled(self, path, at, figures, threads=None, more=()):
        threads = self.options.threads if threads is None else threads
        command = [self.options.program, "bench", os.path.join(TOP, path), "--at", at, "--json",
                   f"--seconds={self.options.seconds}", f"--threads={threads}", f"--figures={figures}", *more]
        done = subprocess.run(command, capture_output=True, text=True, cwd=TOP)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        found = json.loads(done.stdout)
        machine = found["machine"]
        self.peak_one = max(self.peak_one, machine["flops_one_thread"])
        if found["threads"] > 1 or self.options.threads == 1:
            self.peak = max(self.peak, machine["flops"])
            self.bandwidth = max(self.bandwidth, machine["read_bytes"])
        return found

    def torch(self, model, threads):
        """Seconds, or None without PyTorch."""
        if self.options.without_torch:
            return None
        command = [PYTHON, os.path.join(TOP, "bench", "torch_step.py"), model.torch, "--batch", str(model.batch), "--seq",
                   str(model.seq), "--threads", str(threads), "--what", model.what, "--seconds",
                   str(self.options.seconds)]
        fast = TORCH_WITH_AVX512 if has_avx512() else {}
        environment = dict(os.environ, **fast, OPENBLAS_NUM_THREADS=str(threads))
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        found = json.loads(done.stdout)
        self.torch_version = found["version"]
        return found["seconds"]


def print_line(*cells):
    widths = [30, 10, 10, 10, 9, 11, 10]
    text = f"{cells[0]:<{widths[0]}}"
    for cell, width in zip(cells[1:], widths[1:]):
        text += f"{cell:>{width}}"
    print(text.rstrip(), flush=True)


def measure_model(runner, name, model):
    counts = sorted({1, runner.options.threads}) if model.small else [runner.options.threads]
    ours, theirs = [], {count: [] for count in counts}
    for _ in range(runner.options.rounds):
        found = runner.compiled(model.path, model.at, model.what)
        figure = found["figures"][0]
        ours.append(figure["seconds"])
        work, tokens = figure["flops"] * figure["seconds"], figure["tokens_per_second"] * figure["seconds"]
        for count in counts:
            seconds = runner.torch(model, count)
            if seconds:
                theirs[count].append(seconds)
    seconds = median(ours)
    rate = work / seconds
    best = min((median(times) for times in theirs.values() if times), default=None)
    print_line(name, f"{1e3 * seconds:.2f}", f"{tokens / seconds:.0f}", f"{rate / 1e9:.1f}",
               f"{100 * rate / runner.peak:.1f} %", f"{1e3 * best:.2f}" if best else "-",
               f"{best / seconds:.2f} x" if best else "-")
    if model.what == "step":
        print(f"{'':<30}training workspace {found['bytes']['training workspace'] / 1e6:.1f} MB", flush=True)


def compiled_seconds(runner, rounds, *calls):
    """Medians of several calls of `compiled`, measured in turns."""
    times = [[] for _ in calls]
    for _ in range(rounds):
        for found, (path, at, figures, threads, more) in zip(times, calls):
            found.append(runner.compiled(path, at, figures, threads, more)["figures"][0]["seconds"])
    return [median(found) for found in times]


def second_thread(runner):
    for name in SECOND_THREAD if not runner.options.quick else SECOND_THREAD[2:]:
        title, model = MODELS[name]
        one, two = compiled_seconds(runner, runner.options.rounds, (model.path, model.at, "step", 1, ()),
                                    (model.path, model.at, "step", 2, ()))
        print(f"second thread, {title}: {1e3 * one:.2f} ms -> {1e3 * two:.2f} ms, {one / two:.2f} x", flush=True)


def decode(runner):
    shares, speeds, rates = [], [], []
    for _ in range(runner.options.rounds):
        found = runner.compiled("examples/gpt2.toml", "B=1,T=64", "decode")
        figure = found["figures"][0]
        shares.append(figure["bytes_read"] / found["machine"]["read_bytes"])
        speeds.append(figure["tokens_per_second"])
        rates.append(figure["bytes_read"])
    print(f"decode, GPT-2 124M, B=1, {runner.options.threads} threads: {median(speeds):.1f} tokens/s, weights read at "
          f"{median(rates) / 1e9:.1f} GB/s, {100 * median(shares):.1f} % of the read bandwidth of the same run",
          flush=True)


def products(runner):
    """Products of a training step of GPT-2 with two layers on one thread, as they run there: packing, epilogues, cold
    caches. nt: X W^T, nn: dY W, tn: dY^T X."""
    for rows in (256, 1024):
        totals = {}
        for _ in range(runner.options.rounds):
            found = runner.compiled("examples/gpt2.toml", f"B=1,T={rows}", "step", 1,
                                    ("--kernels", "--set", "model.layers=2"))
            for record in found["kernels"][0]["records"]:
                if not record["kernel"].startswith("product{"):
                    continue
                form = record["kernel"].split('form = "')[1][:2]
                flops, seconds = totals.get(form, (0.0, 0.0))
                totals[form] = flops + record["flops"], seconds + record["seconds"]
        shares = [f"{form} {flops / seconds / 1e9:.1f} GFLOP/s ({100 * flops / seconds / runner.peak_one:.1f} %)"
                  for form, (flops, seconds) in sorted(totals.items(), reverse=True)]
        print(f"products in GPT-2's step, {rows} rows, one thread: {', '.join(shares)} of "
              f"{runner.peak_one / 1e9:.1f} GFLOP/s", flush=True)


def drift(runner):
    early, late = [], []
    for _ in range(runner.options.rounds):
        figures = runner.compiled("examples/nano.toml", "B=12,T=64", "drift")["figures"]
        early.append(figures[0]["seconds"])
        late.append(figures[1]["seconds"])
    print(f"nano: step 10 {1e3 * median(early):.2f} ms, step 1000 {1e3 * median(late):.2f} ms, "
          f"{100 * (median(late) / median(early) - 1):+.1f} %", flush=True)


def freezing(runner):
    path, at = "examples/bert.toml", "B=8,T=128"
    whole, part = compiled_seconds(runner, runner.options.rounds, (path, at, "step", None, ()),
                                   (path, at, "step", None, FREEZING))
    print(f"BERT-base classifier step, B=8 T=128: {1e3 * whole:.2f} ms; embedding and layers 0 to 5 frozen "
          f"{1e3 * part:.2f} ms, {part / whole:.2f} of it", flush=True)


def recompute(runner):
    path, at, workspace = "examples/gpt2.toml", "B=4,T=256", "training workspace"
    calls = [(path, at, "step", None, ()), (path, at, "step", None, RECOMPUTE)]
    none, everything = compiled_seconds(runner, runner.options.rounds, *calls)
    sizes = [runner.compiled(*call)["bytes"][workspace] / 1e6 for call in calls]
    print(f"GPT-2 124M step, B=4 T=256: {1e3 * none:.0f} ms in {sizes[0]:.1f} MB of workspace; recompute = \"all\" "
          f"{1e3 * everything:.0f} ms, {everything / none:.2f} x, in {sizes[1]:.1f} MB", flush=True)


def experts(runner):
    """Forward and backward, without the optimizer, whose work grows with all parameters."""
    path, at = "bench/models/moe.toml", "B=4,T=512"

    def seconds(threads, more):
        found = runner.compiled(path, at, "step", threads, ("--kernels", *more))
        return sum(record["seconds"] for record in found["kernels"][0]["records"])

    rounds = [[seconds(*call) for call in ((2, ()), (2, DENSE), (1, ()))] for _ in range(runner.options.rounds)]
    moe, dense, one = (median(times) for times in zip(*rounds))
    print(f"8 experts, 2 for a token, {at}: forward and backward {1e3 * moe:.1f} ms, dense of equal active work "
          f"{1e3 * dense:.1f} ms, {moe / dense:.2f} x; second thread {one / moe:.2f} x", flush=True)


def window(runner):
    """As many tokens in one row as in four: with a window a token costs the same in both."""
    path, more = "examples/llama.toml", ("--set", "attention.window=256")
    for figure in ("forward", "step"):
        short, long = compiled_seconds(runner, runner.options.rounds, (path, "B=4,T=512", figure, None, more),
                                       (path, "B=1,T=2048", figure, None, more))
        print(f"LLaMA-like with a window of 256, {figure} of 2048 tokens: T=512 {1e3 * short:.0f} ms, T=2048 "
              f"{1e3 * long:.0f} ms, {long / short:.2f} x the cost per token", flush=True)


def grouped(runner):
    path, at = "examples/llama.toml", "B=1,T=1024"
    calls = [(path, at, "step", None, ("--set", f"model.kv_heads={heads}")) for heads in (8, 2)]
    every, few = compiled_seconds(runner, runner.options.rounds, *calls)
    print(f"LLaMA-like step, {at}: 8 key heads {1e3 * every:.0f} ms, 2 {1e3 * few:.0f} ms, {few / every:.2f} of it",
          flush=True)


def padding(runner):
    for name, path, figures in [("forward", "bench/models/bert_hidden.toml", "forward,padded"),
                                ("step", "examples/bert.toml", "step,padded-step")]:
        whole, half = [], []
        for _ in range(runner.options.rounds):
            found = runner.compiled(path, "B=8,T=128", figures)["figures"]
            whole.append(found[0]["seconds"])
            half.append(found[1]["seconds"])
        print(f"BERT-base {name}, B=8 T=128: {1e3 * median(whole):.0f} ms; half of all positions padding "
              f"{1e3 * median(half):.0f} ms, {median(half) / median(whole):.2f} of it", flush=True)


def torch_is_there():
    try:
        return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few rows, one round, half a second each")
    parser.add_argument("--only", help="rows, with commas: " + " ".join([*MODELS, *OTHERS]))
    parser.add_argument("--rounds", type=int, help="default 3")
    parser.add_argument("--seconds", type=float, help="how long each figure is measured in each round (default 3)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--program", default=os.path.join(TOP, "build", "bin", "transformerc"))
    parser.add_argument("--without-torch", action="store_true")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (0.5 if options.quick else 3)
    known = [*MODELS, *OTHERS]
    options.rows = options.only.split(",") if options.only else QUICK if options.quick else known
    for row in options.rows:
        if row not in known:
            parser.error(f"unknown row '{row}'; there are {' '.join(known)}")
    if not os.access(options.program, os.X_OK):
        parser.error(f"there is no {options.program}: build first (scripts/quickstart.sh), or give --program")
    if not options.without_torch and not torch_is_there():
        print(f"PyTorch is not installed, so its columns stay empty: {HOW_TO_INSTALL}\n", file=sys.stderr)
        options.without_torch = True
    return options


def main():
    options = parse()
    runner = Runner(options)
    print_line("", "ms", "tokens/s", "GFLOP/s", "of peak", "PyTorch ms", "ratio")
    others = {"second-thread": second_thread, "decode": decode, "products": products, "drift": drift,
              "freezing": freezing, "recompute": recompute, "moe": experts, "window": window,
              "grouped": grouped, "padding": padding}
    for row in options.rows:
        if row in MODELS:
            measure_model(runner, *MODELS[row])
        else:
            others[row](runner)
    print(f"\n{options.threads} threads, peak {runner.peak / 1e9:.1f} GFLOP/s (one thread {runner.peak_one / 1e9:.1f}), read "
          f"bandwidth {runner.bandwidth / 1e9:.1f} GB/s, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds of "
          f"{options.seconds:g} s" + (f", PyTorch {runner.torch_version}" if runner.torch_version else ""))


if __name__ == "__main__":
    main()
