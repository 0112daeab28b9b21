#!/usr/bin/env python3
"""Trains with frameworks without a watch, with the line weir.watch(loader), and by `python -m weir watch`; compares.

    tests/jobs/frameworks/check.py --python VENV/bin/python --pythonpath build/release/python [--weir build/release/weir]

A framework passes if the losses of the three are the same, and if both watched runs saw workers, items and batches and
gave a verdict. A framework that is not installed is skipped. Exit status 1: one failed; 77: all were skipped."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from judge import causes_of, find

# name: (program, module that must be installed, arguments)
PROGRAMS = {"accelerate": ("accelerate_loop.py", "accelerate", []), "lightning": ("lightning_loop.py", "lightning", []),
            "trainer": ("trainer_loop.py", "transformers", []), "act": ("act_loop.py", "h5py", ["--data", "ACT"]),
            "lerobot": ("lerobot_loop.py", "lerobot", []), "lerobot-video": ("lerobot_loop.py", "lerobot", ["--videos"])}
WAYS = ("plain", "line", "none")


def run(o, name, way, folder):
    """(losses, what the watch wrote or None) of one training. "none": no line is added."""
    program, _, arguments = PROGRAMS[name]
    arguments = [str(folder / "act") if a == "ACT" else a for a in arguments]
    script = [str(HERE / program), *arguments, "--steps", str(o.steps), "--num-workers", str(o.num_workers)]
    report = folder / f"{name}.{way}.json"
    env = dict(os.environ, PYTHONPATH=o.pythonpath, PYTHONWARNINGS="ignore", PYTHONDONTWRITEBYTECODE="1")
    if way == "line":
        script += ["--watch-line", "--log", str(report)]
    elif way == "none":
        script = ["-m", "weir", "watch", "--json", str(report), *script]
    done = subprocess.run([o.python, *script], env=env, capture_output=True, text=True, timeout=o.timeout)
    losses = [json.loads(line)["losses"] for line in done.stdout.splitlines() if line.startswith('{"losses"')]
    if done.returncode or not losses:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr[-1500:]}")
    return losses[0], last_report(report.read_text()) if report.exists() else None


def last_report(text):
    """The document of --json, or the table of a log that covers most batches."""
    try:
        return json.loads(text)
    except ValueError:
        tables = [line for line in map(json.loads, text.splitlines()) if line.get("type") == "stages"]
        return max(tables, key=lambda table: seen(table)[2], default=None)


def seen(document):
    """(workers, items, batches) in the document of a watch."""
    rows = {row.get("name", row.get("stage")): row for row in find(document, "stages") or []}
    count = lambda name: rows.get(name, {}).get("count", 0)
    return len(find(document, "workers") or []), count("01_getitem"), count("00_TOTAL_batch")


def check(o, name, folder):
    faults, losses = [], {}
    for way in WAYS:
        losses[way], document = run(o, name, way, folder)
        if way == "plain":
            continue
        if document is None:
            faults.append(f"{way}: no report")
            continue
        workers, items, batches = seen(document)
        causes = causes_of(document)
        print(f"{name:14} {way:6} {workers} workers, {items} items, {batches} batches, {' '.join(c[0] for c in causes)}", flush=True)
        if workers < o.num_workers or not items or not batches:
            faults.append(f"{way}: {workers} workers, {items} items, {batches} batches")
        if not find(document, "verdict"):
            faults.append(f"{way}: no verdict")
    for way in WAYS[1:]:
        if losses[way] != losses["plain"]:
            faults.append(f"{way}: losses {losses[way][:3]} instead of {losses['plain'][:3]}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pythonpath", default=os.environ.get("PYTHONPATH", ""))
    parser.add_argument("--weir", default=os.environ.get("WEIR_PROGRAM", "weir"))
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300)
    o = parser.parse_args()
    failed = checked = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name in [n for n in o.only.split(",") if n] or PROGRAMS:
            if subprocess.run([o.python, "-c", f"import torch, {PROGRAMS[name][1]}"], capture_output=True).returncode:
                print(f"{name}: skipped: {PROGRAMS[name][1]} is not installed")
                continue
            if name == "act" and not (folder / "act").exists():
                subprocess.run([o.weir, "synth", folder / "act", "--format", "act-jpeg", "--episodes", "6", "--steps", "40", "--size",
                                "128x96", "--cameras", "top,wrist"], check=True, stdout=subprocess.DEVNULL)
            checked += 1
            try:
                faults = check(o, name, folder)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                faults = [str(error)]
            failed += bool(faults)
            print(f"{name:14} {'passed' if not faults else 'FAILED: ' + '; '.join(faults)}", flush=True)
    print(f"{checked - failed} passed, {failed} failed")
    return 1 if failed else 0 if checked else 77


if __name__ == "__main__":
    sys.exit(main())
