#!/usr/bin/env python3
"""Compares the output of commands on recorded inputs with the files in expected/. Usage:
WEIR_PROGRAM=build/release/weir tests/golden/run.py [--set-exact-output] [CASE...]

cases.txt has one line per case: its name, then the arguments of weir, which runs in inputs/. "&&" separates several
commands; the output of the last one counts. NAME = ARGUMENTS defines {NAME}. Each case runs at the widths of the head
line of its block. {work} is an empty folder, and {out} a file whose content is part of the output. In blocks with the
word "times", the values of keys that are times are replaced, and other numbers rounded; with "keys", only the paths of
the JSON's keys remain.
--set-exact-output writes the expected files anew; read their diff before you commit it."""
import concurrent.futures
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected")


MEASURED = re.compile(r'"(\w*(?:_s|seconds|per_second|index_bytes))": -?[0-9][0-9.e+-]*')


def cases():
    """Yields (name, columns, what is replaced, the arguments of each command)."""
    widths, replaced, common = [], None, {}
    for line in open(os.path.join(HERE, "cases.txt"), encoding="utf-8"):
        line = line.split("#")[0].strip()
        if line.startswith("["):
            words = line.strip("[]").split()
            widths = [w for w in words if w.isdigit()]
            replaced = next((w for w in words if not w.isdigit()), None)
        elif re.match(r"\w+ = ", line):
            name, arguments = line.split(" = ", 1)
            common["{" + name + "}"] = arguments
        elif line:
            for key, arguments in common.items():
                line = line.replace(key, arguments)
            name, arguments = line.split(":", 1)
            for columns in widths:
                yield (f"{name}.{columns}" if len(widths) > 1 else name), columns, replaced, arguments.split("&&")


def keys(value, path, found):
    """Adds the paths of all members to found, in their order. Objects of a list are merged."""
    for name, member in value.items() if isinstance(value, dict) else []:
        found.setdefault(f"{path}.{name}")
        if name != "others_cores":  # null after a very short run
            keys(member, f"{path}.{name}", found)
    for element in value if isinstance(value, list) else []:
        keys(element, path + "[]", found)


def normalise(text, replaced):
    if replaced == "times":
        text = MEASURED.sub(r'"\1": N', text)
        return re.sub(r"-?\d+\.\d{6,}(e-\d+)?", lambda digits: f"{float(digits[0]):.6g}", text)
    if replaced == "keys" and text.startswith("{"):
        found = {}
        keys(json.JSONDecoder().raw_decode(text)[0], "", found)
        return "".join(path + "\n" for path in found)
    return text


def output(program, columns, replaced, commands):
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "out.html")
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": columns, "TMPDIR": work,
                       "HOME": work, "WEIR_CUDA_MODULE": "/nonexistent"}
        for command in commands:
            arguments = [a.replace("{out}", out).replace("{work}", work) for a in shlex.split(command)]
            done = subprocess.run([program, *arguments], env=environment, timeout=120, cwd=os.path.join(HERE, "inputs"),
                                  stdin=subprocess.DEVNULL, capture_output=True)
        parts = [done.stdout.decode(), "".join("stderr: " + line for line in done.stderr.decode().splitlines(True))]
        if os.path.exists(out):
            parts.append(open(out, encoding="utf-8").read())
        if replaced == "keys":
            del parts[1:]
        text = normalise("".join(parts).replace(out, "OUT").replace(work, "WORK"), replaced)
        if text.startswith("{"):  # JSON: one member per line, for the diff
            text = re.sub(r',(?=["{])', ",\n", text)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return text.replace(version, "VERSION") + f"exit status {done.returncode}\n"


def compare(program, case, write):
    """Returns the difference from the expected file as text."""
    name, columns, replaced, commands = case
    got = output(program, columns, replaced, commands)
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
                                        "weir " + commands[-1].strip(), n=1))


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
