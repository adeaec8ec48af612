"""Runs the snippets of docs/python.md, in order, on the description in it.

    docs_test.py --compiler build/bin/transformerc
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "python.md")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    compiler = os.path.abspath(parser.parse_args().compiler)
    with open(DOCS) as file:
        blocks = re.findall(r"^```(toml|python)\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7, f"only {len(blocks)} snippets found in {DOCS}"
    names = {}
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        os.chdir(folder)
        for language, text in blocks:
            if language == "toml":
                path = os.path.join(folder, "tiny.toml")
                with open(path, "w") as file:
                    file.write(text)
                subprocess.run([compiler, path, "-o", folder], check=True, stdout=subprocess.DEVNULL)
            else:
                print(text)
                exec(compile(text, DOCS, "exec"), names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
