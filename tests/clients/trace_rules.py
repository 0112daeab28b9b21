"""Checks the rules of a trace: trace_rules.py FILE. It covers the rules of PyTorch's torch/profiler/_trace_validator.py
that a C pipeline can break, and those that trace readers rely on. Prints violations; exit status 1 if there are any."""
import collections
import decimal
import gzip
import json
import re
import sys

RECORDS = ("cudaEventRecord", "cudaEventRecordWithFlags")
CLOCKS_US = 2  # max difference between the CPU's and the GPU's clock
FIRST_KEYS = ["schemaVersion", "deviceProperties"]


def read(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        text = f.read()
    return text.decode("utf-8"), json.loads(text, parse_float=decimal.Decimal)  # exact to the ns


def args(event):
    return event.get("args", {})


def end(event):
    return event["ts"] + event["dur"]


def check_file(text, trace):
    keys = list(trace)
    if keys[:2] != FIRST_KEYS or keys[-2:] != ["traceEvents", "traceName"]:
        yield f"keys in this order: {keys}"
    if trace["traceEvents"][-1]["name"] != "Record Window End":
        yield "the last event is not Record Window End"
    if not re.search(r'"rank":\s+\d+', text):
        yield "HolisticTraceAnalysis finds no rank"
    wrong = re.search(r'"(?:ts|dur)":\s*+(?!\d+\.\d{3}[,}])[^,}]*', text)
    if wrong:
        yield f"not in us with three decimals: {wrong[0]}"


def check_events(events):
    """Fields without which TensorBoard's plugin rejects the whole file."""
    for event in events:
        if "name" not in event or "ph" not in event:
            yield f"no name or phase: {event}"
        if event.get("ph") == "X" and ("cat" not in event or "dur" not in event):
            yield f"no category or duration: {event}"


def check_external_ids(ranges):
    seen = collections.Counter()
    for event in ranges:
        if event["cat"] in ("cpu_op", "user_annotation"):
            seen[args(event).get("External id")] += 1
    for number, count in seen.items():
        if number is None or count > 1:
            yield f"{count} operators or annotations with External id {number}"


def check_nesting(ranges):
    """Ranges of a row must be disjoint or nested: Perfetto and the plugin drop partially overlapping ones."""
    rows = collections.defaultdict(list)
    for event in ranges:
        if event["cat"] != "Trace":
            rows[event["pid"], event["tid"]].append(event)
    for row, there in rows.items():
        open_until = []
        for event in sorted(there, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"]:
                open_until.pop()
            if open_until and end(event) > open_until[-1]:
                yield f"{event['name']} at {event['ts']} on {row} extends past the enclosing range"
            open_until.append(end(event))


def check_flows(events):
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    for event in events:
        if event["ph"] == "f" and not starts.get(event["id"], 1e300) <= event["ts"]:
            yield f"flow {event['id']} ends at {event['ts']}, begins at {starts.get(event['id'])}"
    for number in set(starts) - {e["id"] for e in events if e["ph"] == "f"}:
        yield f"flow {number} has no end"


def check_causality(ranges):
    first = {}
    for event in ranges:
        number = args(event).get("External id")
        launch = event["cat"] == "cuda_runtime" and event["name"] == "cudaLaunchKernel"
        if number is not None and (launch or event["cat"] == "kernel"):
            first[launch, number] = min(first.get((launch, number), 1e300), event["ts"])
    for (launch, number), at in first.items():
        if not launch and at < first.get((True, number), -1e300):
            yield f"the first kernel of External id {number} begins before its launch"


def check_waits(ranges):
    records = {}
    for event in ranges:
        if event["cat"] in ("cuda_runtime", "cuda_driver") and event["name"].replace("_ptsz", "") in RECORDS:
            for key in ("External id", "correlation"):
                if args(event).get(key) is not None:
                    records[args(event)[key]] = min(records.get(args(event)[key], 1e300), event["ts"])
    for event in ranges:
        kind = args(event).get("cuda_sync_kind")
        record = args(event).get("wait_on_cuda_event_record_corr_id")
        if kind in ("Stream Wait Event", "Event Sync") and (record is None or record < 0):
            yield f"{kind} at {event['ts']} waits on record {record}"
        elif kind == "Stream Wait Event" and not records.get(record, 1e300) <= event["ts"]:
            yield f"{kind} at {event['ts']} waits on record {record}, at {records.get(record)}"


def check_stream_syncs(ranges):
    """Kernels of the stream must have ended when a Stream Sync ends. PyTorch's validator forbids running kernels at its
    start, which torch 2.11's own traces violate."""
    def where(event):
        return args(event).get("device"), args(event).get("stream")

    kernels = [event for event in ranges if event["cat"] == "kernel"]
    for event in ranges:
        if event["cat"] == "cuda_sync" and args(event).get("cuda_sync_kind") == "Stream Sync":
            for kernel in kernels:
                if where(kernel) == where(event) and kernel["ts"] < event["ts"] and end(event) + CLOCKS_US < end(kernel):
                    yield f"stream sync at {event['ts']} ends while {kernel['name']} runs"


def main():
    text, trace = read(sys.argv[1])
    events = trace["traceEvents"]
    faults = list(check_file(text, trace)) + list(check_events(events))
    if not faults:
        ranges = [event for event in events if event["ph"] == "X"]
        for check in (check_external_ids, check_nesting, check_causality, check_waits, check_stream_syncs):
            faults += check(ranges)
        faults += check_flows(events)
    print("\n".join(faults[:20]) or f"{len(events)} events, no rule broken")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
