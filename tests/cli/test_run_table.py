#!/usr/bin/env python3
"""Compares the output of `weir run` with golden/run_table.txt. Numbers become "#"; lines that depend on the machine or
on chance (stages of waiting workers, the slowest calls, the verdict) are skipped. Usage:
WEIR_PROGRAM=build/release/weir tests/cli/test_run_table.py [--update]"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden", "run_table.txt")
OPTIONS = "--wide --num-workers 1 --num-epochs 2 --every 0 --step-ms 1 --on-error substitute".split()
MORE = "--no-shuffle --obs-history 2 --decode-cache 1M --crop wrist=40x24+16+8".split()  # more lines and rows
LEFT_OUT = re.compile(r"09[a-z]?_wait|另有 |spans of |  (?!# x )")
CUTS = [r"(profiler: .*CPU time) .*", r"(machine: # of # cores).*", r"(files by mean read time, .*\)):", r"(verdict:).*",
        r"(decode cache: .* used), .*", r"(.*\| )(?:warm|partly|cold): # % (cached)",
        r"(.*页缓存: #% )\(.*\)"]
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[num]?s)?(?![\w.]*[A-Za-z_]\w*_)(?=\W|GB|次|$)")


def normal(line):
    """Numbers, and columns without one, become "#"; runs of spaces become one."""
    name, space, rest = line.partition(" ")
    if re.match(r"\d+[a-z]?_", name):  # a stage's name starts with a number
        line = name + space + NUMBER.sub("#", rest)
    else:
        line = NUMBER.sub("#", line)
    line = re.sub(r"(?<= )-(?= {2}|$)", "#", line)
    line = re.sub(r"(?<=#)%(?= {2}|$)", "", line)  # an unknown share has no unit
    line = re.sub(r"# (bytes|[KMG]iB)\b", "# bytes", line)
    for cut in CUTS:
        line = re.sub(f"^{cut}$", lambda match: "".join(match.groups()) + " ...", line)
    return line


def table(program, data, *options):
    done = subprocess.run([program, "run", data, *OPTIONS, *options], capture_output=True, text=True, check=True)
    lines = [normal(line) for line in done.stdout.replace(data, "DATA").splitlines()]
    lines = [re.sub(r" +", " ", line).rstrip() for line in lines if not LEFT_OUT.match(line)]
    classic = sorted(line for line in lines if "总计: #" in line)  # sorted by name, not by total
    return [classic.pop(0) if "总计: #" in line else line for line in lines]


def damage(path):
    """Overwrites the first bytes of the middle JPEG."""
    with open(path, "r+b") as file:
        starts = [match.start() for match in re.finditer(b"\xff\xd8\xff", file.read())]
        file.seek(starts[len(starts) // 2])
        file.write(bytes(3))


def main():
    program = os.environ["WEIR_PROGRAM"]
    with tempfile.TemporaryDirectory() as work:
        data = os.path.join(work, "data")
        subprocess.run([program, "synth", data, *"--format act-jpeg --episodes 4 --steps 10 --size 64x48 "
                        "--cameras top,wrist".split()], check=True, stdout=subprocess.DEVNULL)
        damage(os.path.join(data, "episode_2.hdf5"))
        got = []
        for options in (MORE, ["--lang", "zh"]):
            got += [" ".join(["====", *options]), *table(program, data, *options)]
    if "--update" in sys.argv[1:]:
        with open(GOLDEN, "w", encoding="utf-8") as file:
            file.write("\n".join(got) + "\n")
        return 0
    with open(GOLDEN, encoding="utf-8") as file:
        wanted = file.read().splitlines()
    difference = list(difflib.unified_diff(wanted, got, "golden/run_table.txt", "weir run", lineterm=""))
    print("\n".join(difference) if difference else f"{len(got)} lines, 0 differ")
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
