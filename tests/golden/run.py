#!/usr/bin/env python3
"""Compares the output of commands on recorded inputs with the files in expected/. Usage:
WEIR_PROGRAM=build/release/weir tests/golden/run.py [--set-exact-output] [CASE...]

cases.txt has one line per case: its name, then the arguments of weir, which runs in inputs/. Each case runs at the
widths of the head line of its block. {out} is a file that the command writes; its content is part of the output.
--set-exact-output writes the expected files anew; read their diff before you commit it."""
import concurrent.futures
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected")


def cases():
    """Yields (name, columns, arguments)."""
    widths = []
    for line in open(os.path.join(HERE, "cases.txt"), encoding="utf-8"):
        line = line.split("#")[0].strip()
        if line.startswith("["):
            widths = line.strip("[]").split()
        elif line:
            name, arguments = line.split(":", 1)
            for columns in widths:
                yield (f"{name}.{columns}" if len(widths) > 1 else name), columns, shlex.split(arguments)


def output(program, columns, arguments):
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "out.html")
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": columns, "TMPDIR": work,
                       "HOME": work}
        done = subprocess.run([program, *(a.replace("{out}", out) for a in arguments)], env=environment, timeout=120,
                              cwd=os.path.join(HERE, "inputs"), stdin=subprocess.DEVNULL, capture_output=True)
        parts = [done.stdout.decode(), "".join("stderr: " + line for line in done.stderr.decode().splitlines(True))]
        if os.path.exists(out):
            parts.append(open(out, encoding="utf-8").read())
        text = "".join(parts).replace(out, "OUT")
        if text.startswith("{"):  # JSON: one member per line, for the diff
            text = re.sub(r',(?=["{])', ",\n", text)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return text.replace(version, "VERSION") + f"exit status {done.returncode}\n"


def compare(program, case, write):
    """Returns the difference from the expected file as text."""
    name, columns, arguments = case
    got = output(program, columns, arguments)
    path = os.path.join(EXPECTED, name + ".txt")
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(got)
        return ""
    try:
        wanted = open(path, encoding="utf-8").read()
    except FileNotFoundError:
        return f"expected/{name}.txt does not exist; make it with --set-exact-output\n"
    return "".join(difflib.unified_diff(wanted.splitlines(True), got.splitlines(True), f"expected/{name}.txt",
                                        "weir " + shlex.join(arguments), n=1))


def main():
    program = os.path.abspath(os.environ["WEIR_PROGRAM"])
    write = "--set-exact-output" in sys.argv
    named = [a for a in sys.argv[1:] if not a.startswith("--")]
    chosen = [c for c in cases() if not named or any(c[0] == n or c[0].rsplit(".", 1)[0] == n for n in named)]
    if not chosen:
        sys.exit("no such case")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        differences = [d for d in pool.map(lambda case: compare(program, case, write), chosen) if d]
    unused = set() if named else {f[:-4] for f in os.listdir(EXPECTED)} - {c[0] for c in chosen}
    if write:
        for name in unused:
            os.remove(os.path.join(EXPECTED, name + ".txt"))
    else:
        differences += [f"expected/{name}.txt: no such case\n" for name in sorted(unused)]
    print("".join(differences), end="")
    print(f"{len(chosen)} outputs, {len(differences)} differ")
    return bool(differences)


if __name__ == "__main__":
    sys.exit(main())
