#!/usr/bin/env python3
"""bench/pictures.py draws what its input says: test_pictures.py WEIR. Bars are compared with the rates in
docs/pictures/act_step.json, timelines with a trace recorded here and, if present, with the GPU trace in ../shared/data
and its report. The pictures in docs/pictures are those that the script draws."""
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PICTURES = os.path.join(ROOT, "docs/pictures")
DATA = os.environ.get("WEIR_DATA", os.path.join(ROOT, "../shared/data"))
SVG = "{http://www.w3.org/2000/svg}"
failed = 0


def check(what, fine):
    global failed
    if not fine:
        print("FAIL:", what)
        failed += 1


def draw(*args, status=0):
    done = subprocess.run([sys.executable, f"{ROOT}/bench/pictures.py", *args], capture_output=True, text=True)
    check(f"pictures.py {' '.join(args)}: status {done.returncode}: {done.stderr}", done.returncode == status)
    return done.stderr


def rects(path):
    """Returns (class, x, width, title) of the titled rectangles of a picture. Fails if it is not well-formed XML."""
    return [(r.get("class"), float(r.get("x")), float(r.get("width")), r.find(SVG + "title").text)
            for r in xml.parse(path).getroot().iter(SVG + "rect") if r.find(SVG + "title") is not None]


def same(path, picture):
    with open(path, encoding="utf-8") as a, open(f"{PICTURES}/{picture}", encoding="utf-8") as b:
        check(f"docs/pictures/{picture} is what bench/pictures.py draws: run it again", a.read() == b.read())


def test_bars(work):
    draw("bars", f"{PICTURES}/act_step.json", f"{work}/bars.svg")
    same(f"{work}/bars.svg", "act_step.svg")
    with open(f"{PICTURES}/act_step.json", encoding="utf-8") as f:
        turns = {name: statistics.median(rate for rate, *_ in trials) for name, trials in json.load(f)["turns"].items()}
    found = [r for r in rects(f"{work}/bars.svg") if "of resident" in r[3]]
    expected = [turns["resident"], *sorted((rate for name, rate in turns.items() if name != "resident"), reverse=True)]
    check("one bar per loader", len(found) == len(expected))
    for (_, _, width, title), rate in zip(found, expected):
        check(f"{title}: its length is its rate", abs(width / found[0][2] - rate / expected[0]) < 1e-4)
        check(f"{title}: its label is its rate", f"{rate / expected[0]:.1%}" in title)
    with open(f"{work}/none.json", "w", encoding="utf-8") as f:
        f.write('{"turns": {}}')
    check("results without a resident batch are one line", "none.json" in draw("bars", f"{work}/none.json", f"{work}/x", status=1))


def step_of(trace):
    steps = [e for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep#") and e.get("cat") != "gpu_user_annotation"]
    return min(steps, key=lambda e: e["ts"])


def check_scale(picture, trace):
    """Every rectangle has the length and the place of its event."""
    found, step = rects(picture), step_of(trace)
    events = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
    pixels = 760 - 150 - 20
    drawn = [r for r in found if r[3].endswith(" us")]
    check("the timeline has events", len(drawn) > 3)
    for _, x, width, title in drawn:
        name, us = re.fullmatch(r"(.*): ([\d.]+) us", title, re.S).groups()
        at, length = step["ts"] + (x - 150) * step["dur"] / pixels, width * step["dur"] / pixels
        check(f"{title}: its length", abs(length - float(us)) < 0.06 + 0.001 * step["dur"] / pixels)
        check(f"{title}: is no event of the trace at {at}", any(
            e["name"] == name and abs(max(e["ts"], step["ts"]) - at) < 0.1 + 0.001 * step["dur"] / pixels for e in events))
    return found


def test_recorded(weir, work):
    subprocess.run([weir, "synth", f"{work}/data", "--episodes", "2", "--steps", "40", "--size", "320x240"], check=True,
                   capture_output=True)
    subprocess.run([weir, "run", f"{work}/data", "--step-ms", "1", "--num-workers", "1", "--profile", f"{work}/traces"], check=True,
                   capture_output=True)
    path = f"{work}/traces/{os.listdir(f'{work}/traces')[0]}"
    with gzip.open(path, "rt", encoding="utf-8") as f:
        trace = json.load(f)
    draw("timeline", path, f"{work}/run.svg")
    kinds = {kind for kind, *_ in check_scale(f"{work}/run.svg", trace)}
    check(f"waits, steps and decoding of weir run are drawn ({kinds})", {"wait", "forward", "decode"} <= kinds)
    trace["traceEvents"] = [e for e in trace["traceEvents"] if not e["name"].startswith("ProfilerStep#")]
    with open(f"{work}/no_step.json", "w", encoding="utf-8") as f:
        json.dump(trace, f)
    check("a trace without steps is one line", "no step" in draw("timeline", f"{work}/no_step.json", f"{work}/x", status=1))


def test_waiting(work):
    path = f"{PICTURES}/waiting_for_data.json.gz"
    draw("timeline", path, f"{work}/waiting.svg")
    same(f"{work}/waiting.svg", "waiting_for_data.svg")
    with gzip.open(path, "rt", encoding="utf-8") as f:
        check_scale(f"{work}/waiting.svg", json.load(f))


def test_gpu(weir, work):
    path = f"{DATA}/traces/torch_cuda.pt.trace.json.gz"
    if not os.path.exists(path):
        print("skipped: the GPU trace, which is not in", DATA)
        return
    draw("timeline", path, f"{work}/gpu.svg")
    same(f"{work}/gpu.svg", "waiting_gpu.svg")
    with gzip.open(path, "rt", encoding="utf-8") as f:
        check_scale(f"{work}/gpu.svg", json.load(f))
    report = subprocess.run([weir, "report", path, "--wide"], capture_output=True, text=True, check=True).stdout
    step = re.search(r"^ProfilerStep#2.*", report, re.M)[0]
    shares = [float(part) for part in re.findall(r"([\d.]+)%", step)]
    busy = float(re.search(r"GPU 0 busy ([\d.]+)%", xml.parse(f"{work}/gpu.svg").getroot().find(SVG + "title").text)[1])
    check(f"GPU busy {busy} %: kernels, copies and memsets of `{step}`", abs(busy - sum(shares[:3])) < 0.2)


def main():
    weir = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as work:
        test_bars(work)
        test_recorded(weir, work)
        test_waiting(work)
        test_gpu(weir, work)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
