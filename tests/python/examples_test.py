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
    return 0


if __name__ == "__main__":
    sys.exit(main())
