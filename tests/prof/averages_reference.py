#!/usr/bin/env python3
"""Reference for weir report: torch.profiler's key_averages() of a trace, computed slowly from the definitions.
averages_reference.py TRACE [--by-shape] [--by-stack N] prints a JSON array of rows, in ns and bytes.

Definitions (pytorch torch/autograd/profiler_util.py):
- The parent of a CPU range is the innermost range on its thread that contains it. Self time excludes children.
- An only child with its parent's name is merged into the parent.
- A range's device time is that of the activities with its External id, plus its children's.
- A range's memory is that of all events on any thread during the range.
- Python frames are ranges without rows if they name their callers (torch 2.15), ordinary ranges if the file names its
  host (2.13), and otherwise ignored (2.11)."""
import argparse
import gzip
import json
import re
from fractions import Fraction

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
CPU = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "loader_stage")
HIDDEN = ("profiler::_record_function_enter", "profiler::_record_function_enter_new", "profiler::_record_function_exit",
          "aten::is_leaf", "aten::output_nr", "aten::_version")


def ns(text):
    return int(Fraction(text) * 1000)


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return json.load(file, parse_float=str, parse_int=str)


def numbers(value):
    return [numbers(item) for item in value] if isinstance(value, list) else int(value)


class Range:
    def __init__(self, event, order):
        args = event.get("args", {})
        self.name = re.sub(r"^ProfilerStep#.*", "ProfilerStep*", event["name"])
        self.cat = event["cat"]
        self.device = self.cat in DEVICE
        self.annotation = self.cat in ("user_annotation", "gpu_user_annotation")
        self.start = ns(event["ts"])
        self.end = self.start + ns(event["dur"])
        if self.cat == "gpu_user_annotation":  # written 1 ns longer on either side
            self.start, self.end = self.start + 1, self.end - 1
        self.thread = (event["pid"], event["tid"])
        self.runtime = self.cat in ("cuda_runtime", "cuda_driver")
        self.linked = int(args.get("External id", 0)) if self.device or self.runtime else 0
        self.id = 0 if self.device else int(args.get("correlation" if self.runtime else "External id", 0))
        # torch prints a list of tensors as []
        self.shapes = [[] if shape and isinstance(shape, list) and isinstance(shape[0], list) else shape
                       for shape in numbers(args.get("Input Dims", []))]
        self.stack = args.get("Call stack", "").split(";") if args.get("Call stack") else []
        self.order = order
        self.parent = None
        self.children = []
        self.kernels = []
        self.cpu_bytes = self.device_bytes = 0
        self.memory_only = False

    def own(self, value):
        return value(self) - sum(value(child) for child in self.children)

    def own_time(self):
        """The time that no child covers; with Python frames, which overlap, minus the time of all children."""
        if self.frames:
            return self.own(lambda r: r.end - r.start)
        left, covered = self.end - self.start, self.start
        for child in sorted(self.children, key=lambda c: c.start):
            start = max(child.start, covered)
            if child.end > start:
                left -= child.end - start
                covered = child.end
        return left

    def device_ns(self):
        if self.device:
            return self.end - self.start
        return sum(k.end - k.start for k in self.kernels) + sum(child.device_ns() for child in self.children)


class Leftover(Range):
    """A memory event outside all ranges."""
    def __init__(self, event, order):
        super().__init__({**event, "dur": "0", "args": {}}, order)
        self.memory_only = True


def link(ranges):
    """Links kernels to callers by number alone, like torch: a call outside operators whose number equals an operator's
    also gets that operator's kernels. Calls of threads without operators belong to the main thread."""
    launched = {}
    for r in ranges:
        if r.linked and r.cat != "gpu_user_annotation":
            launched.setdefault(r.linked, []).append(r)
    threads = {r.thread for r in ranges if not r.device and not r.runtime}
    for r in ranges:
        if r.runtime and not r.linked and r.thread not in threads:
            r.thread = (r.thread[0], r.thread[0])
    callers = [r for r in ranges if r.id and not r.device and not r.linked]
    for r in sorted(callers, key=lambda r: not r.runtime):  # an operator's thread overrides a call's
        for other in launched.get(r.id, []):
            if other.device:
                r.kernels.append(other)
            else:
                other.thread = r.thread


def nest(ranges):
    for thread in {r.thread for r in ranges if not r.device}:
        stack = []
        mine = [r for r in ranges if r.thread == thread and not r.device]
        for r in sorted(mine, key=lambda r: (r.start, -r.end)):
            while stack and (r.start >= stack[-1].end or r.end > stack[-1].end):
                stack.pop()
            if stack:
                r.parent = stack[-1]
                stack[-1].children.append(r)
            stack.append(r)


def merge_same_names(ranges):
    while True:
        gone = set()
        for r in ranges:
            if r.parent and r.parent.name == r.name and len(r.parent.children) == 1:
                r.parent.children = r.children
                r.parent.kernels = r.kernels
                for child in r.children:
                    child.parent = r.parent
                gone.add(r)
        if not gone:
            return ranges
        ranges = [r for r in ranges if r not in gone]


def add_memory(ranges, events):
    leftovers = []
    for order, e in enumerate(events):
        if e.get("name") != "[memory]" or e.get("ph") != "i":
            continue
        at, size = ns(e["ts"]), int(e["args"]["Bytes"])
        where = "cpu_bytes" if int(e["args"]["Device Type"]) == 0 else "device_bytes"
        hit = [r for r in ranges if not r.device and r.start <= at <= r.end]
        if not hit:
            hit = [Leftover({**e, "cat": "cpu_op"}, len(events) + order)]
            leftovers += hit
        for r in hit:
            setattr(r, where, getattr(r, where) + size)
    return leftovers


def load(path):
    file = read(path)
    events = file["traceEvents"]
    hidden = any(e.get("cat") == "python_function" and "CallFrom" in e.get("args", {}) for e in events)
    shown = CPU + DEVICE + ("python_function",) * (hidden or "host_name" in file)
    ranges = [Range(e, i) for i, e in enumerate(events)
              if e.get("ph") == "X" and e.get("cat") in shown and e["name"] not in HIDDEN]
    ranges.sort(key=lambda r: (r.start, -r.end))
    link(ranges)
    ranges += add_memory(ranges, events)
    ranges.sort(key=lambda r: (r.start, -r.end))
    nest(ranges)
    for r in ranges:
        r.hidden = hidden and r.cat == "python_function"
        r.frames = hidden or "host_name" in file
    return merge_same_names(ranges)


def averages(ranges, by_shape, by_stack):
    rows = {}
    for r in ranges:
        if r.hidden:
            continue
        key = (r.name, r.device, r.annotation, json.dumps(r.shapes) if by_shape else "", tuple(r.stack[:by_stack]))
        row = rows.setdefault(key, {
            "name": r.name, "device": r.device, "annotation": r.annotation,
            "shapes": json.dumps(r.shapes) if by_shape else "", "stack": ";".join(r.stack[:by_stack]),
            "top_level": r.parent is None,
            "count": 0, "cpu_ns": 0, "self_cpu_ns": 0, "device_ns": 0, "self_device_ns": 0, "cpu_bytes": 0,
            "self_cpu_bytes": 0, "device_bytes": 0, "self_device_bytes": 0})
        row["count"] += 1
        row["device_ns"] += r.device_ns()
        if r.device:
            row["self_device_ns"] += r.device_ns()
            continue
        row["cpu_ns"] += r.end - r.start
        row["self_cpu_ns"] += r.own_time()
        row["self_device_ns"] += r.own(lambda x: x.device_ns())
        row["cpu_bytes"] += r.cpu_bytes
        row["self_cpu_bytes"] += r.own(lambda x: x.cpu_bytes)
        row["device_bytes"] += r.device_bytes
        row["self_device_bytes"] += r.own(lambda x: x.device_bytes)
    return list(rows.values())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("--by-shape", action="store_true")
    parser.add_argument("--by-stack", type=int, default=0)
    args = parser.parse_args()
    print(json.dumps(averages(load(args.trace), args.by_shape, args.by_stack), indent=1))


if __name__ == "__main__":
    main()
