"""The reversal example as a user would run it, from Python and from C: each must reverse every unseen sequence.

    examples_test.py --compiler build/bin/transformerc
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


def draws_attention(compiler, out):
    """In at least one head of the cross-attention the largest weight is mostly on the mirrored position."""
    subprocess.run([compiler, os.path.join(EXAMPLES, "reverse.toml"), "--tap=decoder.layers.*.cross.weights", "-o", out],
                   check=True)
    said = subprocess.run([sys.executable, os.path.join(EXAMPLES, "attention_map.py"), out], stdout=subprocess.PIPE,
                          text=True)
    print(said.stdout)
    return said.returncode == 0 and said.stdout.count("the largest weight is on the mirrored digit in") == 8


def loses_by_heads(compiler, out):
    """Without heads the loss rises; with all of them back it is what it was."""
    subprocess.run([compiler, os.path.join(EXAMPLES, "reverse.toml"), "--edit=*.attn", "--edit=*.cross", "-o", out], check=True)
    said = subprocess.run([sys.executable, os.path.join(EXAMPLES, "heads_off.py"), out], stdout=subprocess.PIPE, text=True)
    print(said.stdout)
    return said.returncode == 0 and said.stdout.count("the loss rises by") == said.stdout.count(" heads off, ") == 24


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    compiler = parser.parse_args().compiler
    cc = shutil.which("cc")
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([compiler, os.path.join(EXAMPLES, "reverse.toml"), "-o", out], check=True)
        programs = [[sys.executable, os.path.join(EXAMPLES, "reverse.py"), out]]
        if cc:
            program = os.path.join(out, "reverse")
            subprocess.run([cc, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", f"-I{out}",
                            os.path.join(EXAMPLES, "reverse.c"), os.path.join(out, "libreverse.a"), "-lm", "-lpthread",
                            "-o", program], check=True)
            programs.append([program])
        for program in programs:
            said = subprocess.run(program, stdout=subprocess.PIPE, text=True)
            print(said.stdout)
            if said.returncode != 0 or "100.0 % of 1000 unseen sequences reversed" not in said.stdout:
                return 1
        if not draws_attention(compiler, os.path.join(out, "tapped")):
            return 1
        if not loses_by_heads(compiler, os.path.join(out, "edited")):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
