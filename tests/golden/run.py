#!/usr/bin/env python3
"""Compares the output of commands on recorded inputs with the files in expected/. Usage:
WEIR_PROGRAM=build/release/weir tests/golden/run.py [--recorded PROGRAM] [--set-exact-output] [CASE...]

cases.txt has one line per case: its name, then the arguments of weir, which runs in inputs/. "&&" separates several
commands; the output of the last one counts. NAME = ARGUMENTS defines {NAME}. Each case runs at the widths of the head
line of its block.
    {work}/         an empty folder, in which commands with {work} run
    {out}           a file whose content is part of the output
    recorded ...    runs tests/tools/recorded.c instead
    session FILE    runs a script of sessions/, in which weir prints each call, its output and its exit status
    {each FILE}     each part of FILE in turn. A part begins with "=== NAME: OPTIONS", where "|" separates the options of
                    several runs. "\\r", "\\e" and "\\x00" in it are bytes, "\\c" ends a part without the newline, and a
                    line "+++" begins another file. "< BASE" in its first line is followed by changes to the last line of
                    BASE: members by name, elements by index, or "*" for all of them; "-" removes one.
Words in a head line: "times" replaces times and rates, and rounds other long fractions; "keys" keeps the paths of the
JSON's keys only, "heads" the first cell of each line, "verdict" the first paragraph.
--set-exact-output writes the expected files anew; read their diff before you commit it."""
import argparse
import base64
import concurrent.futures
import difflib
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "expected")
SESSION = """weir() {
    local status
    echo "$ weir $*"
    "${as[@]}" "$WEIR" "$@" 2>../errors </dev/null
    status=$?
    # without the progress that slow machines print
    sed '/^[a-z]*: [0-9]*\\/[0-9]* episodes, /d; s/^/stderr: /' ../errors
    [ $status -eq 0 ] || echo "exit status $status"
}
as=()
"""
SOURCES = {name: open(os.path.join(HERE, "../../analyze/page", name), encoding="utf-8").read()
           for name in ("page.css", "page.js")}
DIGESTS = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in SOURCES.items()}

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


def check_page(page):
    """What every page of any log must keep: no markup from its texts, and no figure outside a chart."""
    body = page[page.index("<main>"):page.index("<script>")]
    found = [bad for bad in ("nan", "inf", 'width="-', "M-", "\u202e") if re.search(rf"\b{bad}\b|{bad}\d", body)]
    return found + ["another script"] * (page.count("<script") != 1) + ["<img"] * ("<img" in page)


def normalise(text, replaced):
    text = re.sub(r"(weir_peak_memory_bytes) \d+", r"\1 N", text)
    for name, source in SOURCES.items():
        text = text.replace(source, name + "\n").replace(DIGESTS[name], f"digest of {name}")
    if replaced == "times":
        text = MEASURED.sub(r'"\1": N', text)
        text = re.sub(r"\d[\d.]* ?([mun]?s\b|[KMG]i?B/s|\w+/s|KiB in memory)", r"N \1", text)
        return re.sub(r"-?\d+\.\d{6,}(e-\d+)?", lambda digits: f"{float(digits[0]):.6g}", text)
    if replaced == "keys" and text.startswith("{"):
        found = {}
        keys(json.JSONDecoder().raw_decode(text)[0], "", found)
        return "".join(path + "\n" for path in found)
    if replaced == "verdict":
        return text.split("\n\n")[0] + "\n"
    if replaced == "heads":
        return "\n".join(re.findall(r"^  \S+(?: \S+)*?(?=  | yes|\n)", text, re.M)) + "\n"
    return text


ESCAPED = re.compile(rb"\\(r|e|c\n|x[0-9a-f]{2})")


def unescape(found):
    kind = found[1][:1]
    return bytes.fromhex(found[1][1:].decode()) if kind == b"x" else {b"r": b"\r", b"e": b"\x1b", b"c": b""}[kind]


def changed(value, change):
    if not isinstance(change, dict):
        return change
    if isinstance(value, list):
        for key, element in change.items():
            for i in range(len(value)) if key == "*" else [int(key)]:
                value[i:i + 1] = [changed(value[i] if i < len(value) else {}, element)]
        return value
    value = value or {}
    for key, member in change.items():
        value[key] = changed(value.get(key), member)
    return {key: member for key, member in value.items() if member != "-"}


def parts(file):
    """Yields (name, options of a run, content) of each part of a file."""
    text = open(os.path.join(HERE, "inputs", file), encoding="utf-8", newline="").read()
    for part in re.split(r"^=== ", text, flags=re.M)[1:]:
        head, content = part.split("\n", 1)
        name, options = head.split(":", 1)
        if content.startswith("< "):
            base, change = content[2:].split("\n", 1)
            lines = open(os.path.join(HERE, "inputs", base), encoding="utf-8").read().splitlines()
            lines[-1] = json.dumps(changed(json.loads(lines[-1]), json.loads(change)))
            content = "\n".join(lines) + "\n"
        for each in options.split("|"):
            yield f"{name}:{each}".rstrip(), each, ESCAPED.sub(unescape, content.encode())


def run(programs, columns, replaced, commands, files):
    inputs = os.path.join(HERE, "inputs")
    with tempfile.TemporaryDirectory() as work:
        out = os.path.join(work, "out.html")
        for name, content in files.items():
            with open(os.path.join(work, name), "wb") as file:
                file.write(content)
        environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": columns, "TMPDIR": work,
                       "HOME": work, "WEIR_CUDA_MODULE": "/nonexistent"}
        if commands[0].startswith(" session "):
            script = open(os.path.join(HERE, "sessions", commands[0].split()[1]), encoding="utf-8").read()
            os.mkdir(os.path.join(work, "session"))
            environment.update(WEIR=programs[0], PATH="/usr/bin:" + environment["PATH"])
            done = subprocess.run(["bash", "-c", SESSION + script], env=environment, timeout=600, capture_output=True,
                                  stdin=subprocess.DEVNULL, cwd=os.path.join(work, "session"))
        for command in [c for c in commands if not c.startswith(" session ")]:
            arguments = [a.replace("{out}", out).replace("{work}/", "") for a in shlex.split(command)]
            program = programs[arguments[0] == "recorded"]
            done = subprocess.run([program, *arguments[arguments[0] == "recorded":]], env=environment, timeout=600,
                                  cwd=work if any("{work}" in c for c in commands) else inputs,
                                  stdin=subprocess.DEVNULL, capture_output=True)
        texts = [done.stdout.decode(), "".join("stderr: " + line for line in done.stderr.decode().splitlines(True))]
        if os.path.exists(out):
            texts.append(open(out, encoding="utf-8").read())
        if replaced == "keys":
            del texts[1:]
        pages = re.findall(r"<!doctype html>.*?</html>", "".join(texts), re.S)
        bad = [f"the page contains {found}\n" for page in pages for found in check_page(page)]
        text = "".join(bad) + normalise("".join(texts).replace(out, "OUT").replace(work, "WORK"), replaced)
        if text.startswith("{"):  # JSON: one member per line, for the diff
            text = re.sub(r',(?=["{])', ",\n", text)
    return text + f"exit status {done.returncode}\n"


def output(programs, columns, replaced, commands):
    each = re.search(r"\{each (\S+)\}", commands[-1])
    if not each:
        return run(programs, columns, replaced, commands, {})
    found = []
    for name, options, content in parts(each[1]):
        files = {f"part{i or ''}": file for i, file in enumerate(content.split(b"+++\n"))}
        last = commands[-1].replace(each[0], " ".join("{work}/" + file for file in files)) + options
        found.append(f"=== {name}\n" + run(programs, columns, replaced, [*commands[:-1], last], files))
    return "".join(found)


def compare(programs, case, write):
    """Returns the difference from the expected file as text."""
    name, columns, replaced, commands = case
    got = output(programs, columns, replaced, commands)
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
    parser = argparse.ArgumentParser()
    weir = os.path.abspath(os.environ["WEIR_PROGRAM"])
    parser.add_argument("--recorded", default=os.path.join(os.path.dirname(weir), "tests/recorded"))
    parser.add_argument("--set-exact-output", action="store_true", dest="write")
    parser.add_argument("case", nargs="*")
    args = parser.parse_args()
    programs, named, write = [weir, os.path.abspath(args.recorded)], args.case, args.write
    chosen = [c for c in cases() if not named or any(c[0] == n or c[0].rsplit(".", 1)[0] == n for n in named)]
    has_h5py = subprocess.run(["/usr/bin/python3", "-c", "import h5py"], capture_output=True).returncode == 0
    if not has_h5py and not os.environ.get("CI"):
        skipped = [c[0] for c in chosen if c[3][0].startswith(" session ")]
        print("no h5py: skipped", *skipped)
        chosen = [c for c in chosen if c[0] not in skipped]
    if not chosen:
        sys.exit("no such case")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        differences = [d for d in pool.map(lambda case: compare(programs, case, write), chosen) if d]
    unused = set() if named else {f[:-4] for f in os.listdir(EXPECTED)} - {c[0] for c in cases()}
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
