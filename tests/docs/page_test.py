"""Runs what a page of the documentation shows, in the page's order, in an empty folder.

    page_test.py README.md --source . --build build

    console   lines after "$ " are commands for one shell; the lines below are compared with what they print. A line "..."
              stands for any lines, "..." in a line for any text, and a number with a decimal point for any such number
    toml      a file, whose name is in the first line: "# NAME.toml"; cmake likewise
    c         a program in a file, whose name is in the first line: /* NAME.c ... */; or, without main, lines of a
              function, which FRAGMENTS below completes: compiled and run
    python    run
    cpp       an excerpt of the file that the first line names: "// ir/graph.h"
    text      not looked at
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile

MARK = "-- end of command --"
LANGUAGES = {"console", "toml", "cmake", "c", "python", "cpp", "text"}

# Around lines of C that are no program: what stands before and after them, and what they are linked with.
FRAGMENTS = {
    "README.md": ("""#include <stdio.h>
#include "reverse.h"
int main(void) {
  enum { B = 32, T = 8 };
  static int32_t src[B][T], tgt[B][T], next[B][T];
  const void *targets[] = {next};
  tc_model *model;
  tc_session *session;
  double loss = 0;
  for (int b = 0; b < B; ++b) {
    for (int t = 0; t < T; ++t) src[b][t] = next[b][T - 1 - t] = (7 * b + 3 * t) % 10;
    for (int t = 0; t < T; ++t) tgt[b][t] = t ? next[b][t - 1] : 10;
  }
""", """
  if (!(loss > 0 && loss < 0.5)) { printf("the loss is %f\\n", loss); return 1; }
  reverse_session_destroy(session);
  reverse_model_destroy(model);
  return 0;
}
""", "out/libreverse.a"),
}


def blocks_of(text):
    """(line, language, body) of every fenced block."""
    found = []
    for match in re.finditer(r"^```([a-z]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        found.append((text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)))
    return found


def commands_of(body):
    """(command, expected lines) of a console block. A command goes on where its line ends in a backslash."""
    result = []
    for line in body.splitlines():
        if result and result[-1][0].endswith("\\"):
            result[-1][0] += "\n" + line
        elif line.startswith("$ "):
            result.append([line[2:], []])
        else:
            result[-1][1].append(line)
    return result


def pattern_of(expected):
    """A regular expression for the lines that a command should print."""
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
            continue
        text = re.escape(line.rstrip()).replace(r"\.\.\.", ".*?")
        text = re.sub(r"\d+\\\.\d+", r"[0-9]+\\.[0-9]+", text)
        parts.append(re.sub(r"(?:\\ )+", r" +", text) + r" *\n")  # columns may be wider
    return re.compile("".join(parts))


class Page:
    def __init__(self, name, source, build, folder):
        self.name, self.source, self.folder = name, source, folder
        self.prepare(build)
        environment = dict(os.environ, HOME=folder, PATH=f"{folder}/.bin:{build}/bin:{os.environ['PATH']}", LC_ALL="C")
        self.shell = subprocess.Popen(["/bin/bash"], cwd=folder, env=environment, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")

    def prepare(self, build):
        """The folder as a clone in which scripts/quickstart.sh has run; python3 is one that has NumPy."""
        for entry in ("examples", "docs", "cmake"):
            os.symlink(os.path.join(self.source, entry), os.path.join(self.folder, entry))
        os.symlink(build, os.path.join(self.folder, "build"))
        os.mkdir(os.path.join(self.folder, ".bin"))
        python = os.path.join(self.folder, ".bin", "python3")
        with open(python, "w") as file:
            file.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        os.chmod(python, 0o755)

    def run(self, command):
        """What a command prints, and its status, in the page's one shell."""
        self.shell.stdin.write(f"{command}\nstatus=$?; echo; echo '{MARK}' $status\n")
        self.shell.stdin.flush()
        lines = []
        for line in self.shell.stdout:
            if line.startswith(MARK):
                if lines and lines[-1] == "\n":
                    lines.pop()
                return "".join(lines), int(line[len(MARK):])
            lines.append(line)
        raise AssertionError(f"the shell ended in: {command}\n{''.join(lines)}")

    def write(self, name, body):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(body)

    def need(self, command):
        output, status = self.run(command)
        assert status == 0, f"{command}\n{output}"

    def console(self, body):
        for command, expected in commands_of(body):
            output, status = self.run(command)
            # A command that shows an error says so by what it prints.
            assert status == 0 or any("error" in line for line in expected), f"status {status}\n$ {command}\n{output}"
            if expected:
                wanted = "\n".join(expected)
                assert pattern_of(expected).fullmatch(output + ("" if output.endswith("\n") else "\n")), \
                    f"$ {command}\n-- printed:\n{output}\n-- the page says:\n{wanted}"

    def toml(self, body):
        name = re.match(r"# (\S+\.toml)\n", body)
        assert name, "the first line must name the file: # NAME.toml"
        self.write(name.group(1), body)

    def cmake(self, body):
        name = re.match(r"# (\S+\.txt)\n", body)
        assert name, "the first line must name the file: # FOLDER/CMakeLists.txt"
        self.write(name.group(1), body)

    def c(self, body):
        if "int main(" in body:
            name = re.match(r"/\* (\S+\.c)\b", body)
            assert name, "the first line must name the file: /* NAME.c ... */"
            self.write(name.group(1), body)
            return
        before, after, library = FRAGMENTS[self.name]
        self.write("fragment.c", before + body + after)
        self.need(f"cc -std=c99 -O1 -Wall -Wextra -Werror -I{os.path.dirname(library)} fragment.c {library} "
                  "-lm -lpthread -o fragment && ./fragment")

    def python(self, body):
        self.write("fragment.py", body)
        self.need("PYTHONPATH=out python3 fragment.py")

    def cpp(self, body):
        first, excerpt = body.split("\n", 1)
        path = re.match(r"// (\S+)$", first)
        assert path, "the first line must name the file: // FOLDER/FILE"
        with open(os.path.join(self.source, path.group(1))) as file:
            words = " ".join(file.read().split())  # however the lines are broken
        assert " ".join(excerpt.split()) in words, f"{path.group(1)} does not have these lines:\n{excerpt}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    arguments = parser.parse_args()
    source, build = os.path.abspath(arguments.source), os.path.abspath(arguments.build)
    with open(os.path.join(source, arguments.page), encoding="utf-8") as file:
        blocks = blocks_of(file.read())
    assert any(language == "console" for _, language, _ in blocks), "the page has nothing to run"
    with tempfile.TemporaryDirectory() as folder:
        page = Page(arguments.page, source, build, folder)
        for line, language, body in blocks:
            where = f"{arguments.page}:{line}"
            assert language in LANGUAGES, f"{where}: a block of '{language}', which nobody checks"
            print(where, language, flush=True)
            if language == "text":
                continue
            try:
                getattr(page, language)(body)
            except AssertionError as error:
                print(f"{where}: {error}")
                return 1
        page.shell.stdin.close()
        page.shell.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
