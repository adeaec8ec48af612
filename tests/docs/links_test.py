"""Links between the pages lead somewhere, to headings too; files that pages name in `code` exist; and what a page is to
describe it names: every operation, every pass, every function of the C interface.

    links_test.py --source .
"""
import argparse
import os
import re
import sys

PAGES = ["README.md", "CONTRIBUTING.md"]
# What a page may call `folder/file` without it being in the repository: what commands write.
WRITTEN = re.compile(r"^(build|out|app|bench/results|NAME|/|\.)|[*<{]|NAME|FAMILY|FILE")
FOLDERS = "frontend|ir|passes|codegen|runtime|tools|tests|examples|docs|scripts|cmake|bench"


def anchor_of(heading):
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def anchors_of(path):
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```$", "", file.read(), flags=re.MULTILINE | re.DOTALL)
    return {anchor_of(match) for match in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def complaints_of(page, source):
    with open(os.path.join(source, page), encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```$", "", file.read(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        full = os.path.join(source, os.path.dirname(page), path) if path else os.path.join(source, page)
        if not os.path.exists(full):
            yield f"{page}: {target} is not there"
        elif anchor and anchor not in anchors_of(full):
            yield f"{page}: {target}: no such heading"
    for name in re.findall(rf"`((?:{FOLDERS})/[\w./*<>{{}}-]+)`", text):
        if not WRITTEN.search(name) and not os.path.exists(os.path.join(source, name)):
            yield f"{page}: {name} is not there"


# Page, source file, what to find there.
NAMED = [
    ("docs/ir.md", "ir/ops.def", r'^TFC_[A-Z_]+\(\w+, "([a-z_.]+)"'),
    ("docs/compiler.md", "passes/pipeline.cpp", r'^    \{"([a-z-]+)"'),
    ("docs/c.md", "runtime/symbols.def", r"^TC_(?:API|CORE)\([\w \*]+, (\w+)"),
]


def unnamed(source):
    for page, file_name, pattern in NAMED:
        with open(os.path.join(source, page), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(source, file_name), encoding="utf-8") as file:
            names = re.findall(pattern, file.read(), re.MULTILINE)
        assert len(names) > 10, (file_name, names)
        for name in names:
            if not re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", text):
                yield f"{page} does not name {name} of {file_name}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    source = parser.parse_args().source
    pages = PAGES + sorted(f"docs/{name}" for name in os.listdir(os.path.join(source, "docs")) if name.endswith(".md"))
    found = [complaint for page in pages for complaint in complaints_of(page, source)]
    found += unnamed(source)
    print("\n".join(found) or f"{len(pages)} pages")
    assert len(pages) >= 8, pages
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
