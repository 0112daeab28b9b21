#!/usr/bin/env python3
"""Compares weir report's GPU idle time with HolisticTraceAnalysis (HTA): compare_idle_hta.py WEIR [TRACE...]
TRACE: .json or .json.gz with one rank; default: the traces in $WEIR_DATA/traces with GPU activities. Run manually.
Needs: pip install HolisticTraceAnalysis 'pandas<3'. Exit status 0; 1: they differ; 77: no HTA or no trace.

HTA analyses one stream at a time, from its first activity to its last. So weir report gets one trace per stream, with
only its activities; its idle time minus the time before the first and after the last activity must be HTA's sum. weir
report divides HTA's "host wait" (the launch call started after the gap) among causes. HTA's "kernel wait" and "other"
contain all of weir's "between queued work" (the call had returned before the gap started)."""
import glob
import gzip
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings

SKIPPED = 77
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
NS_PER_ACTIVITY = 2  # HTA adds times as doubles in us


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def hta_idle(path):
    """{stream: {category: ns}}"""
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    from hta.trace_analysis import TraceAnalysis
    analysis = TraceAnalysis(trace_files={0: path}, trace_dir="/", include_last_profiler_step=True)
    rows, _ = analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    idle = {}
    for row in rows.itertuples():
        idle.setdefault(int(row.stream), {})[row.idle_category] = round(row.idle_time * 1000)
    return idle


def weir_idle(weir, trace, stream, folder):
    path = os.path.join(folder, "stream.pt.trace.json")
    kept = [e for e in trace["traceEvents"] if e.get("cat") not in DEVICE or e["args"].get("stream") == stream]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**trace, "traceEvents": kept}, file)
    done = subprocess.run([weir, "report", "--json", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    devices = json.loads(done.stdout)["traces"][0]["gpu_idle"]["devices"]
    assert len(devices) == 1, f"stream {stream} is on {len(devices)} devices"
    return devices[0], sum(e.get("cat") in DEVICE for e in kept)


def compare(weir, path, folder):
    trace, faults = load(path), 0
    print(path)
    for stream, hta in sorted(hta_idle(os.path.abspath(path)).items()):
        weir_device, n = weir_idle(weir, trace, stream, folder)
        between = weir_device["idle_ns"] - weir_device["before_first_ns"] - weir_device["after_last_ns"]
        queued = next(c["ns"] for c in weir_device["causes"] if c["cause"] == "between queued work")
        total, device_side = sum(hta.values()), hta.get("kernel_wait", 0) + hta.get("other", 0)
        allowed = NS_PER_ACTIVITY * n + 20  # HTA rounds each category to 10 ns
        good = abs(between - total) <= allowed and queued <= device_side + allowed
        faults += not good
        print(f"  stream {stream}: {n} activities, idle: weir {between / 1e3:.3f} us, HTA {total / 1e3:.3f} us; "
              f"queued: weir {queued / 1e3:.3f} us of HTA's {device_side / 1e3:.3f} us{'' if good else '  DIFFERENT'}")
    return faults


def has_gpu(path):
    return any(e.get("cat") in DEVICE for e in load(path)["traceEvents"])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    paths = sys.argv[2:] or [p for p in sorted(glob.glob(os.path.join(os.environ.get("WEIR_DATA", ""), "traces", "*.gz")))
                             if has_gpu(p)]
    try:
        import hta  # noqa: F401
    except ImportError:
        print("skipped: HolisticTraceAnalysis is not installed")
        return SKIPPED
    if not paths:
        print("skipped: no traces: name some, or set WEIR_DATA")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        faults = sum(compare(sys.argv[1], path, folder) for path in paths)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
