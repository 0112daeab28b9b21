#!/usr/bin/env python3
"""Compares weir report with torch's own tables and with averages_reference.py: compare_averages.py WEIR --data|--random
[--seed N]. --data uses the traces of ../shared/data, and is skipped without them. --random uses a trace of torch 2.15
with stacks, and random traces (only with averages_reference.py)."""
import argparse
import glob
import gzip
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import averages_reference as reference

FIELDS = ("count", "cpu_ns", "self_cpu_ns", "device_ns", "self_device_ns", "cpu_bytes", "self_cpu_bytes", "device_bytes",
          "self_device_bytes", "top_level")
SKIPPED = 77


def run(weir, *args):
    done = subprocess.run([weir, "report", *args], capture_output=True, text=True)
    assert done.returncode == 0, f"weir report {' '.join(args)}: {done.stderr}"
    return done.stdout


# ---- torch's tables ----

def cells(line):
    return [cell for cell in re.split(r"\s{2,}", line.strip()) if cell]


def is_tie(want, got):
    """Whether two times differ by 1 in the last digit: torch rounds a sum of floats, so halves may go either way."""
    w, g = (re.fullmatch(r"(-?\d+)\.(\d{3})(us|ms|s)", cell) for cell in (want, got))
    return w and g and w[3] == g[3] and abs(int(w[1] + w[2]) - int(g[1] + g[2])) == 1


def check_table(weir, trace, title, want, ties):
    args = [trace, "--sort-by", re.search(r"sort_by=(\w+)", title)[1], "--row-limit", re.search(r"limit=(\d+)", title)[1]]
    if title.startswith("group_by_input_shape"):
        args.append("--group-by-input-shape")
    got = run(weir, *args, "--wide").split("\n")
    start = next(i for i, line in enumerate(got) if line.startswith("-"))  # after the GPU's idle time
    got = got[start:start + len(want)]
    assert len(got) == len(want)
    for a, b in zip(want, got):
        if a == b:
            continue
        different = [(x, y) for x, y in zip(cells(a), cells(b)) if x != y]
        assert len(a) == len(b) and all(is_tie(x, y) for x, y in different), f"{title}:\n  torch {a}\n  weir  {b}"
        ties += [(cells(a)[0], x, y) for x, y in different]
    return len(want)


def check_tables(weir, trace, rounded=1):
    ties, lines, tables = [], 0, 0
    with open(trace.replace(".pt.trace.json.gz", ".tables.txt"), encoding="utf-8") as file:
        sections = file.read().split("## ")[1:]
    for section in sections:
        title, body = section.split("\n", 1)
        lines += check_table(weir, trace, title, body.rstrip("\n").split("\n"), ties)
        tables += 1
    assert tables >= 5 and lines > 100
    # The trace lacks the order in which torch added its floats (docs/internals/trace.md).
    assert len({tie[0] for tie in ties}) <= rounded, ties
    print(f"{os.path.basename(trace)}: {tables} tables, {lines} lines as torch printed them; rounded the other way: {ties}")


# ---- the reference ----

def key_of(row):
    return row["name"], row["device"], row["annotation"], row.get("shapes") or "[]", row.get("stack", "")


def check_reference(weir, trace, by_shape, by_stack):
    args = ["--json", "--row-limit", "-1"] + ["--group-by-input-shape"] * by_shape
    args += ["--group-by-stack", str(by_stack)] * bool(by_stack)
    got = json.loads(run(weir, trace, *args))["traces"][0]["averages"]
    want = reference.averages(reference.load(trace), by_shape, by_stack)
    rows = {key_of(row): row for row in got}
    assert len(rows) == len(got), "duplicate row"
    for row in want:
        if not by_shape:
            row["shapes"] = ""
        mine = rows.pop(key_of(row), None)
        assert mine, f"{trace}: no row {key_of(row)}"
        for field in FIELDS:
            assert mine[field] == row[field], f"{trace}: {key_of(row)}: {field}: {mine[field]}, reference {row[field]}"
    assert not rows, f"{trace}: extra rows: {list(rows)}"
    return len(want)


# ---- random traces ----

def nested(rng, start, end, depth, pid, tid, events):
    """Nested ranges, some equally long, some partially overlapping."""
    at = start
    while at < end and rng.random() < 0.9:
        length = rng.choice([0, 1, rng.randrange(1, max(2, end - at)), end - at])
        cat = rng.choice(["cpu_op", "cpu_op", "user_annotation", "loader_stage", "python_function", "cuda_runtime"])
        args = {}
        if cat in ("cpu_op", "user_annotation") or rng.random() < 0.5:
            args["External id"] = rng.randrange(1, 400)
        if cat == "cuda_runtime":
            args["correlation"] = rng.randrange(1, 400)
        if rng.random() < 0.5:
            args["Input Dims"] = rng.choice([[], [[]], [[8, 3, 4], [2]], [[[2, 2], [3]], []]])
        if rng.random() < 0.3:
            args["Call stack"] = ";".join(rng.choice(["a.c(1): f", "b.c(2): g", "main"]) for _ in range(rng.randrange(1, 4)))
        over = rng.randrange(0, 3) if rng.random() < 0.1 else 0
        name = rng.choice(["op", "op", "inner", "ProfilerStep#" + str(rng.randrange(9)), "aten::_version", "a name"])
        events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": at, "dur": length + over,
                       "args": args})
        if depth and length > 2:
            nested(rng, at, at + length, depth - 1, pid, tid, events)
        at += length + rng.randrange(0, 5)


def made_up(rng):
    """Events of a random trace, and whether frames name their callers (torch 2.15)."""
    events, callers = [], rng.random() < 0.5
    pid = rng.randrange(100, 200)
    for tid in (pid, pid + 1, pid + 7):
        nested(rng, rng.randrange(50), 4000, 4, pid, tid, events)
    for _ in range(rng.randrange(60)):
        cat = rng.choice(["kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync"])
        events.append({"ph": "X", "cat": cat, "name": rng.choice(["k1", "k2"]), "pid": 0, "tid": 7,
                       "ts": rng.randrange(4000), "dur": rng.randrange(2, 90),
                       "args": {"External id": rng.randrange(1, 400), "stream": 7, "correlation": rng.randrange(1, 99)}})
    for _ in range(rng.randrange(80)):
        device = rng.randrange(2)
        events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": pid, "tid": pid,
                       "ts": rng.randrange(-100, 4300), "args": {"Device Type": device, "Device Id": device - 1, "Addr": 1,
                                                                 "Bytes": rng.randrange(-5000, 5000)}})
    for event in events:
        if event.get("cat") == "python_function" and callers:
            event["args"] = {"CallFrom": "train.py:7"}
    rng.shuffle(events)
    return events


def write(events, path, host=""):
    """Writes ts and dur in us with three decimals, like profilers; the events are in ns."""
    def us(ns):
        return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03}"
    base = 1_700_000_000_000_000_000  # Unix time, which a double cannot represent exactly
    lines = []
    for event in events:
        event = dict(event)
        times = f'"ts": {us(base + event.pop("ts"))}' + (f', "dur": {us(event.pop("dur"))}' if "dur" in event else "")
        lines.append(json.dumps(event)[:-1] + ", " + times + "}")
    with (gzip.open if path.endswith(".gz") else open)(path, "wt") as file:
        file.write('{"schemaVersion": 1, "profile_memory": 1,' + host + '\n"traceEvents": [\n' + ",\n".join(lines) + '\n], "traceName": "x"}')


def check_random(weir, seed, count):
    rows = 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(count):
            rng = random.Random(f"{seed} {i}")
            path = os.path.join(folder, "t.pt.trace.json" + ".gz" * rng.randrange(2))
            write(made_up(rng), path, rng.choice(["", '"host_name": "vm",']))
            for by_shape, by_stack in ((False, 0), (True, 0), (False, 2), (True, 1)):
                rows += check_reference(weir, path, by_shape, by_stack)
    assert rows > 10 * count
    print(f"{count} made-up traces, {rows} rows as the reference has them")


def check_hostile(weir):
    """Sizes at which a quadratic algorithm would exceed the test's time limit."""
    n = 100_000
    same_id = [{"ph": "X", "cat": "kernel" if i % 2 else "cpu_op", "name": "x", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5,
                "args": {"External id": 7}} for i in range(n)]
    threads = [{"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1, "tid": i, "ts": i, "dur": 5} for i in range(n)]
    steps = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 1, "ts": i, "dur": n}
             for i in range(n // 2)]
    with tempfile.TemporaryDirectory() as folder:
        for name, events in (("same_id", same_id), ("threads", threads), ("steps", steps)):
            path = os.path.join(folder, name + ".json")
            write(events, path)
            report = json.loads(run(weir, path, "--json"))["traces"][0]
            assert sum(row["count"] for row in report["averages"]) == len(events), name
    print("traces of one id, of many threads, of overlapping steps: read")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("--data", action="store_true")
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--count", type=int, default=40)
    args = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    if args.random:
        check_tables(args.weir, os.path.join(here, "torch-2.15/stacks.pt.trace.json.gz"), 3)
        check_reference(args.weir, os.path.join(here, "torch-2.15/stacks.pt.trace.json.gz"), True, 0)
        check_random(args.weir, args.seed, args.count)
        check_hostile(args.weir)
    if args.data:
        traces = sorted(glob.glob(os.path.join(here, "../../../shared/data/traces/*.pt.trace.json.gz")))
        if not traces:
            print("skipped: no traces in ../shared/data")
            sys.exit(SKIPPED)
        for trace in traces:
            check_tables(args.weir, trace)
            for by_shape in (False, True):
                check_reference(args.weir, trace, by_shape, 0)


if __name__ == "__main__":
    main()
