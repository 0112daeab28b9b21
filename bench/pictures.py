#!/usr/bin/env python3
"""Draws the pictures of README and docs/ from measured files, as SVG for light and dark pages:

    bench/pictures.py bars docs/pictures/act_step.json docs/pictures/act_step.svg
    bench/pictures.py timeline TRACE.json.gz docs/pictures/waiting_gpu.svg [--steps N]

bars: RESULTS is a file of bench/act_loaders.py --json; `machine`, if present, is printed below the bars.
timeline: TRACE is a trace of torch.profiler or `weir run --profile`; draws its first N steps (default 1): each GPU, the
thread of the training loop, and the loader's workers. Lengths are exact: a kernel shorter than a pixel is a faint line."""
import argparse
import gzip
import json
import statistics
import sys
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, ROW, GAP = 760, 150, 20, 22, 8
COLOURS = {  # class: light, dark
    "text": ("#1f2328", "#e6edf3"), "quiet": ("#59636e", "#9198a1"), "frame": ("#d1d9e0", "#3d444d"),
    "weir": ("#0969da", "#4493f8"), "peer": ("#8c959f", "#656c76"), "best": ("#1a7f37", "#3fb950"),
    "gpu": ("#1a7f37", "#3fb950"), "copy": ("#8250df", "#ab7df8"), "wait": ("#cf222e", "#f85149"),
    "forward": ("#0969da", "#4493f8"), "backward": ("#54aeff", "#79c0ff"), "optimizer": ("#bf8700", "#d29922"),
    "decode": ("#0969da", "#4493f8"), "read": ("#bf8700", "#d29922"), "other": ("#8c959f", "#656c76")}
LABELS = {"gpu": "kernels", "copy": "copies", "wait": "waiting", "forward": "forward", "backward": "backward",
          "optimizer": "optimiser", "decode": "decoding", "read": "reading", "other": "other work"}
SIDES = {"resident": ("one resident batch, repeated", "best"), "weir-cpu": ("weir.Loader, copied by torch", "weir"),
         "weir": ("weir.Loader(device=\"cuda\")", "weir"), "spdl": ("SPDL with OpenCV", "peer"),
         "h5py": ("h5py, OpenCV, DataLoader", "peer")}
LOOP = (("enumerate(Data", "wait"), ("20_train_forward_pass", "forward"), ("21_backward", "backward"),
        ("22_optimizer_step", "optimizer"), ("Optimizer.step", "optimizer"))
GPU = {"kernel": "gpu", "gpu_memcpy": "copy", "gpu_memset": "copy"}
# The stages that contain others; their time is drawn as that of the stages inside.
OUTER = ("00_", "03_", "03a_")


def rect(x, y, width, height, kind, title):
    return (f'<rect class="{kind}" x="{x:.3f}" y="{y}" width="{width:.3f}" height="{height}">'
            f"<title>{escape(title)}</title></rect>")


def text(x, y, words, kind="text", anchor="start"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def svg(height, title, parts, used):
    rules = ["\n".join(f".{kind}{{fill:{COLOURS[kind][dark]}}}" for kind in sorted(used)) for dark in (0, 1)]
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>text{{font:13px sans-serif}}\n{rules[0]}\n@media (prefers-color-scheme:dark){{\n{rules[1]}\n}}</style>",
        *parts, "</svg>", ""])


def bars(results):
    """One bar per loader: its median steps/s as a percentage of the resident batch, with a line from min to max."""
    turns = {name: [rate for rate, *_ in trials] for name, trials in results["turns"].items()}
    alone = statistics.median(turns["resident"])
    names = sorted((name for name in turns if name in SIDES), key=lambda name: -statistics.median(turns[name]))
    names.sort(key=lambda name: name != "resident")
    left, most = 230, max(max(rates) for rates in turns.values()) / alone
    scale = (WIDTH - left - 90) / most
    parts, y = [text(0, 16, "ACT training steps per second, by loader, relative to a batch that is already on the GPU")], 34
    for name in names:
        label, kind = SIDES[name]
        part, least, last = (value(turns[name]) / alone for value in (statistics.median, min, max))
        parts += [text(left - 8, y + 15, label, anchor="end"),
                  rect(left, y, part * scale, ROW, kind, f"{label}: {part:.1%} of resident"),
                  rect(left + least * scale, y + ROW / 2, (last - least) * scale, 1, "text", f"min {least:.1%}, max {last:.1%}"),
                  text(left + max(part, last) * scale + 6, y + 15, f"{100 * part:.0f} %")]
        y += ROW + GAP
    if results.get("machine"):
        parts.append(text(0, y + 12, results["machine"], "quiet"))
        y += 20
    return svg(y + 4, "Training ACT, end to end", parts, {SIDES[name][1] for name in names} | {"text", "quiet"})


def clipped(events, begin, end):
    """Returns (kind, begin, end, name) of the events inside the interval, by start."""
    inside = [(kind, max(at, begin), min(at + length, end), name) for kind, at, length, name in events]
    return sorted((event for event in inside if event[2] > event[1]), key=lambda event: event[1:3])


def stage_kind(name):
    if name.startswith("09"):
        return "wait"
    return "decode" if name.startswith("03b") else "read" if name.startswith("03c") else "other"


def rows_of(events, begin, end):
    """Returns (name, events) of each row: GPUs, the loop's thread, workers. Empty rows are left out."""
    step = next(event for event in events if event["name"].startswith("ProfilerStep#") and event["cat"] != "gpu_user_annotation")
    gpus, workers, loop = {}, {}, []
    for event in events:
        cat, name, at, length = event["cat"], event["name"], event["ts"], event["dur"]
        if cat in GPU:
            gpus.setdefault(event["pid"], []).append((GPU[cat], at, length, name))
        elif cat == "loader_stage" and event["tid"] != step["tid"] and not name.startswith(OUTER):
            workers.setdefault(event["tid"], []).append((stage_kind(name), at, length, name))
        elif event["tid"] == step["tid"] and cat in ("user_annotation", "cpu_op", "loader_stage"):
            loop += [(kind, at, length, name) for prefix, kind in LOOP if name.startswith(prefix)][:1]
    rows = [(f"GPU {number}", rows) for number, rows in sorted(gpus.items())] + [("training loop", loop)]
    rows += [(f"worker {number}", rows) for number, (_, rows) in enumerate(sorted(workers.items()))]
    return [(name, found) for name, row in rows if (found := clipped(row, begin, end))]


def busy_time(row):
    """Returns the time covered by any event of the row. Events must be sorted by start."""
    total, reached = 0, float("-inf")
    for _, begin, end, _ in row:
        total += max(end - max(begin, reached), 0)
        reached = max(reached, end)
    return total


def timeline(trace, count):
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "cat" in event]
    steps = sorted((event["ts"], event["ts"] + event["dur"]) for event in events
                   if event["name"].startswith("ProfilerStep#") and event["cat"] != "gpu_user_annotation")[:count]
    if not steps:
        raise ValueError("the trace contains no step (ProfilerStep#N): record it with a schedule and call step()")
    begin, end = steps[0][0], steps[-1][1]
    rows, scale, used = rows_of(events, begin, end), (WIDTH - LEFT - RIGHT) / (end - begin), {"text", "quiet", "frame"}
    parts, y = [], 34
    for name, row in rows:
        parts += [text(LEFT - 8, y + 15, name, anchor="end"), f'<rect class="frame" x="{LEFT}" y="{y + ROW}" width="{WIDTH - LEFT - RIGHT}" height="1"/>']
        parts += [rect(LEFT + (at - begin) * scale, y, (to - at) * scale, ROW, kind, f"{what}: {to - at:.1f} us")
                  for kind, at, to, what in row]
        used |= {kind for kind, *_ in row}
        y += ROW + GAP
    gpus = [f"{name} busy {busy_time(row) / (end - begin):.1%}" for name, row in rows if name.startswith("GPU")]
    waits = sum(to - at for name, row in rows if name == "training loop" for kind, at, to, _ in row if kind == "wait")
    devices = [device["name"] for device in trace.get("deviceProperties", [])]
    head = f"{len(steps)} training step{'s' * (len(steps) > 1)}, {(end - begin) / 1000:.3f} ms: " + ", ".join(
        gpus + [f"waiting for data {waits / (end - begin):.1%}"]) + (f" ({devices[0]})" if gpus and devices else "")
    x = LEFT
    for kind in (kind for kind in LABELS if kind in used):
        parts += [rect(x, y + 4, 12, 12, kind, LABELS[kind]), text(x + 17, y + 15, LABELS[kind], "quiet")]
        x += 32 + 7 * len(LABELS[kind])
    return svg(y + 24, head, [text(0, 16, head), *parts], used)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=("bars", "timeline"))
    p.add_argument("input")
    p.add_argument("output")
    p.add_argument("--steps", type=int, default=1, help="steps of the trace to draw")
    o = p.parse_args()
    try:
        with (gzip.open if o.input.endswith(".gz") else open)(o.input, "rt", encoding="utf-8") as f:
            data = json.load(f)
        picture = bars(data) if o.kind == "bars" else timeline(data, o.steps)
    except (OSError, ValueError, KeyError, EOFError) as e:
        sys.exit(f"pictures.py: {o.input}: {e}")
    with open(o.output, "w", encoding="utf-8") as f:
        f.write(picture)


if __name__ == "__main__":
    main()
