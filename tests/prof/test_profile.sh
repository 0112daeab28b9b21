#!/bin/bash
# `weir run --profile` and `weir report TRACE`: the recorded events, every option, bad input, unwritable folders.
# Usage: WEIR_PROGRAM=build/release/weir tests/prof/test_profile.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

"$weir" synth "$work/data" --episodes 4 --steps 12 --size 64x48 --cameras top,wrist >/dev/null || exit 1
data=$work/data

# traces FOLDER N: FOLDER has N traces and nothing else.
traces() {
    check "$2 traces in $1" [ "$(find "$work/$1" -name '*.pt.trace.json.gz' | wc -l)" -eq "$2" ]
    check "nothing else in $1" [ "$(find "$work/$1" -type f | wc -l)" -eq "$2" ]
}

# trace NAME FOLDER PYTHON: `file` is the folder's first trace, `events` its events, `ranges` those of phase X.
trace() {
    check "$1" python3 - "$work/$2" <<PY
import glob, gzip, json, sys
path = sorted(glob.glob(sys.argv[1] + "/*.gz"))[0]
file = json.load(gzip.open(path))
events = file["traceEvents"]
ranges = [e for e in events if e["ph"] == "X" and e["cat"] != "Trace"]
named = lambda name: [e for e in events if e["name"] == name and e["ph"] in "XiCb"]
$3
PY
}

# ---- a run ----

run 0 run "$data" --batch-size 2 --step-ms 2 --prefetch 1 --profile "$work/a" --log "$work/log"
traces a 1
out 'profile: steps 2 to 4, '
out '# of Calls'
out '20_train_forward_pass'
trace "three steps, their waits, work and items" a '
steps = [e["name"] for e in ranges if e["name"].startswith("ProfilerStep#")]
assert steps == ["ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#4"], steps
waits = named("enumerate(DataLoader)#WeirLoader.__next__")
assert len(waits) == 3 and all(e["cat"] == "cpu_op" for e in waits)
assert len(named("20_train_forward_pass")) == 3
decodes = named("03b_image_decode")
assert decodes and all(e["cat"] == "loader_stage" for e in decodes)
assert {e["tid"] for e in decodes} & {e["tid"] for e in waits} == set(), "workers have tracks of their own"
works = {e["args"]["item"] for e in named("03a_read_one_camera") if e["args"].get("finished") != "false"}
links = {int(e["id"]) for e in named("wait_in_batch")}
assert len(works & links) >= 2, ("work and wait of an item are linked", works, links)
assert all(e["args"]["item"] for e in waits), "a wait says which frame it waited for"
names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
assert any("weir-w0" in n for n in names), names
assert not named("[memory]") and "record_shapes" not in file and "with_stack" not in file
assert not any("Input Dims" in e.get("args", {}) or "Call stack" in e.get("args", {}) for e in events)'
check "the log has the profile" python3 - "$work/log" <<'PY'
import json, os, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
(profile,) = [l for l in lines if l["type"] == "profile"]
(window,) = profile["windows"]
assert (window["first_step"], window["last_step"], window["dropped"], window["error"]) == (2, 4, 0, None), window
assert os.path.exists(window["path"]) and 0 <= window["data_wait"] <= 1 and window["seconds"] > 0.006
PY
run 0 report "$work/log"

# A thread samples the counters every millisecond, if it gets a core: takes several tries.
for i in 1 2 3 4 5 6 7 8 9 10; do
    run 0 run "$data" --batch-size 2 --step-ms 10 --profile "$work/counters.$i"
    trace "the names of the counters" "counters.$i" '
print(*sorted({e["name"] for e in events if e["ph"] == "C"}), sep="\n")' >"$work/counters"
    [ "$(wc -l <"$work/counters")" -ge 3 ] && break
done
for counter in "batches ready" "bytes in flight" "busy workers"; do
    check "$counter is a counter" grep -qxF "$counter" "$work/counters"
done

# ---- the measured data wait equals the trace's ----

# Takes the best of several tries: the core may be lost between the two clock reads.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    run 0 run "$data" --batch-size 4 --step-ms 3 --max-batches 9 --profile "$work/share" --schedule wait=1,active=6,repeat=1 --json
    off=$(python3 - "$work/out" "$weir" <<'PY'
import json, subprocess, sys
window = json.load(open(sys.argv[1]))["profile"]["windows"][0]
report = json.loads(subprocess.run([sys.argv[2], "report", "--json", window["path"]], capture_output=True).stdout)
steps = report["traces"][0]["steps"]
assert [s["number"] for s in steps] == list(range(1, 7))
assert report["traces"][0]["gpu_idle"]["devices"] == []
share = sum(s["parts_ns"]["DataLoader"] for s in steps) / sum(s["ns"] for s in steps)
print(abs(share - window["data_wait"]))
PY
    )
    python3 -c "exit($off >= 0.01)" && break
done
check "the DataLoader share of the trace is the data wait that weir measured, except for $off" python3 -c "assert $off < 0.01"

# ---- the options ----

# More steps than prefetched batches: some are decoded within the window, however late the workers get a core.
run 0 run "$data" --batch-size 4 --step-ms 1 --profile "$work/b" --record-shapes --profile-memory --with-stack --worker-ops \
    --schedule skip_first=2,wait=1,warmup=1,active=4,repeat=1 --sort-by count --row-limit 3
traces b 1
out 'Input Shapes'
out 'Self CPU Mem'
check "three rows" [ "$(grep -c '%  ' "$work/out")" -ge 3 ]
trace "shapes, stacks, memory, workers' operators" b '
assert [e["name"] for e in ranges if e["name"].startswith("ProfilerStep#")] == [f"ProfilerStep#{n}" for n in range(4, 8)]
assert file["record_shapes"] == file["with_stack"] == file["profile_memory"] == 1
decodes = [e for e in named("03b_image_decode") if e["args"].get("finished") != "false"]
assert decodes and all(e["cat"] == "cpu_op" for e in decodes)
assert all(e["args"]["Input Dims"] == [[48, 64, 3]] and e["args"]["Input type"] == ["unsigned char"] for e in decodes)
for e in decodes: # inlining differs between compilers
    frames = e["args"]["Call stack"].split(";")
    assert any(f.startswith("worker.c(") for f in frames), frames
    assert not any(f.startswith(("tracks.c(", "stacks.c(")) for f in frames), frames
(first, *_) = [e for e in named("20_train_forward_pass")]
assert first["args"]["Input Dims"][0] == [4, 2, 48, 64, 3], first
memory = [e["args"] for e in named("[memory]")]
assert memory and all(m["Device Id"] == -1 and 0 <= m["Total Allocated"] <= m["Total Reserved"] for m in memory)
assert sum(m["Bytes"] > 0 for m in memory) == 4'
"$weir" synth "$work/depth" --format agilex --episodes 2 --steps 6 --size 64x48 >/dev/null 2>&1
run 0 run "$work/depth" --cameras cam_high,depth_cam_high --dtype f32 --batch-size 2 --step-ms 1 --profile "$work/types" --record-shapes \
    --schedule wait=0,warmup=1,active=2
trace "types of a batch's tensors" types '
(first, *_) = named("20_train_forward_pass")
assert first["args"]["Input type"] == ["float", "unsigned short", "float", "float", "unsigned char"], first'
run 0 report "$work"/b/*.gz --export-stacks "$work/stacks" --group-by-stack 3
out 'Source Location'
check "stacks for flamegraph.pl" grep -qE '^[^ ]+;[^ ]+ [0-9]+$' "$work/stacks"
run 0 report "$work"/b/*.gz "$work"/a/*.gz --top-level-events-only
out 'This report only display top-level ops statistics'

# Two steps are long enough to write a trace even on a busy machine; windows that outrun the writer are dropped.
run 0 run "$data" --batch-size 4 --profile "$work/c" --schedule wait=1,active=1,repeat=0 --num-epochs 2 --num-workers 0 --step-ms 30
check "a trace of every other step" [ "$(find "$work/c" -name '*.gz' | wc -l)" -ge 8 ]
run 0 run "$data" --batch-size 4 --step-ms 5 --profile "$work/d" --schedule wait=20ms,active=20ms,repeat=1
traces d 1
run 0 run "$data" --batch-size 4 --profile "$work/e" --schedule wait=1000,active=1
out 'profile: nothing was recorded, because the run had only '

# The final call, at which the loader has no more batches, is not a step.
run 0 run "$data" --batch-size 4 --profile "$work/f" --schedule active=3
out 'profile: steps 9 to 11, '
no_out 'step 12'
traces f 4

# ---- bad input ----

cat >"$work/escape.json" <<'JSON'
{"schemaVersion": 1, "record_shapes": 1, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "a\u001b[31mb", "pid": 1, "tid": 1, "ts" : 1, "dur": 2,
 "args": {"Call stack": "x\u001b]0;t\u0007.c(1): f", "Input Dims": [["\u009b31m"]]}}]}
JSON
run 0 report "$work/escape.json" --group-by-stack 3 --group-by-input-shape
check "nothing steers the terminal" lacks "$work/out" "$(printf '\033')"
check "nor with C1" lacks "$work/out" "$(printf '\302\233')"

usage() {
    local words=$1
    shift
    run 2 run "$data" "$@"
    one_line
    err "$words"
}
usage "--schedule: 'often' is not one of" --profile "$work/x" --schedule often
usage "a schedule needs active=N" --profile "$work/x" --schedule wait=1
for word in warmup repeat skip_first skip_first_wait; do
    usage "$word=1s: only wait and active accept a time" --profile "$work/x" --schedule "active=1,$word=1s"
done
run 0 run --help-all
out "wait and active take a time as well: wait=5 is 5 steps, wait=5s all steps of 5 seconds"
usage "'speed' is not a sort key; use one of self_cpu_time_total" --profile "$work/x" --sort-by speed
usage "add --profile DIR" --with-stack
usage "--no-timing" --profile "$work/x" --no-timing
check "nothing was made" [ ! -e "$work/x" ]

: >"$work/file"
run 1 run "$data" --batch-size 4 --profile "$work/file/folder"
err "$work/file/folder"
one="$(grep -c 'weir run: profile:' "$work/err")"
check "one line about the folder (are $one)" [ "$one" -eq 1 ]
out 'not written'
out 'whole run: epoch 1 of 1'

run 2 report "$work"/a/*.gz --sort-by speed
err "is not a sort key"
run 2 report "$work/log" --export-stacks "$work/y"
err "is a log"
run 2 report "$work"/a/*.gz "$work/log"
err "is not a trace"
head -c 2000 "$work"/a/*.gz >"$work/cut.pt.trace.json.gz"
run 1 report "$work/cut.pt.trace.json.gz"
one_line
err 'cut.pt.trace.json.gz: at byte'
zcat "$work"/a/*.gz | head -c 9000 >"$work/cut.json"
run 1 report "$work/cut.json"
one_line
err 'the file is truncated here'
echo '{"schemaVersion": 1, "traceName": "x"}' >"$work/none.json"
run 1 report "$work/none.json"
err 'contains no events'

# ---- the stand-in GPU; ranges for Nsight ----

WEIR_CUDA_MODULE=/nowhere run 0 run "$data" --batch-size 2 --nvtx
err "profile: NVTX ranges are not shown: WEIR_CUDA_MODULE=/nowhere cannot be loaded"
no_out "profile:"
run 2 run "$data" --nvtx --no-timing
err "--nvtx: requires timings, but --no-timing disables them"
if [ -n "${WEIR_FAKE_CUDA_MODULE:-}" ]; then
    export WEIR_CUDA_MODULE=$WEIR_FAKE_CUDA_MODULE
    run 0 run "$data" --batch-size 2 --num-epochs 2 --step-ms 3 --dtype f32 --image-layout nchw --device cuda \
        --decoder turbo --profile "$work/gpu" --schedule wait=1,warmup=1,active=12,repeat=1 --nvtx --sort-by cuda_time_total \
        --log "$work/gpu.log"
    traces gpu 1
    check "nothing was amiss" [ "$(grep -c 'profile:' "$work/err")" -eq 0 ]
    out "Self CUDA %"
    out "Self CUDA time total: "
    out "of total"
    check "the log has the GPU's idle time in the traced steps" grep -q '"gpu_idle": *{"traced_s"' "$work/gpu.log"
    trace "kernels, copies and waits, joined with their callers" gpu '
kernels = [e for e in ranges if e["cat"] == "kernel"]
copies = [e for e in ranges if e["cat"] == "gpu_memcpy"]
calls = {e["args"]["correlation"]: e for e in ranges if e["cat"] == "cuda_runtime"}
assert {"busy", "prepare"} == {e["name"] for e in kernels} - {"clock_samples"}, {e["name"] for e in kernels}
assert copies and all(e["args"]["memory bandwidth (GB/s)"] > 0 for e in copies), copies
owners = {e["args"]["External id"]: e for e in ranges if e["cat"] in ("cpu_op", "loader_stage") and "External id" in e["args"]}
found = 0
for e in kernels + copies:
    call = calls.get(e["args"]["correlation"])
    if call is None:
        continue
    assert e["ts"] >= call["ts"] and e["args"].get("External id") == call["args"].get("External id"), (e, call)
    owner = owners.get(call["args"].get("External id"))
    assert owner is None or owner["tid"] == call["tid"], (owner, call)
    found += owner is not None
assert found >= 3, (found, len(kernels))
busy = [e for e in kernels if e["name"] == "busy" and e["args"]["correlation"] in calls]
assert busy and all(owners[e["args"]["External id"]]["name"] == "20_train_forward_pass" for e in busy), busy
assert file["deviceProperties"][0]["name"] == "stand-in" and file["cupti_version"] == 130001
flows = [sum(e["ph"] == p for e in events) for p in "sf"]
assert flows[0] == flows[1] > 0, flows'
    out "clocks inside prepare: "
    grep -A 6 "^clocks inside" "$work/out" >"$work/clocks"
    trace "stages lie in their blocks, and blocks in their kernels" gpu '
stages = [e for e in ranges if e["cat"] == "gpu_stage"]
blocks = [e for e in stages if "block" in e["args"]]
kernels = {e["args"]["correlation"]: e for e in ranges if e["cat"] == "kernel" and e["name"] == "prepare"}
def inside(e, around):
    return around["ts"] <= e["ts"] and e["ts"] + e["dur"] <= around["ts"] + around["dur"] + 1e-4
assert blocks and all(inside(e, kernels[e["args"]["launch"]]) for e in blocks), blocks
for e in stages:
    assert e["pid"] == 0 and e["tid"] >= 1000000000 and not {"stream", "correlation", "External id"} & set(e["args"]), e
    assert any(inside(e, b) and e["tid"] == b["tid"] for b in blocks), e
assert {e["name"] for e in stages} == {"prepare", "value_table", "read_pixels", "store_values"}, stages
assert any(e["args"]["name"] == "clocks inside kernels 0" for e in events if e["name"] == "thread_name")'
    run 0 report --export-clocks "$work/clocks.csv" "$work"/gpu/*.gz
    grep -A 6 "^clocks inside" "$work/out" >"$work/clocks-again"
    check "the run's table equals the report's" cmp "$work/clocks" "$work/clocks-again"
    check "the table as CSV" python3 - "$work/clocks.csv" <<'PY'
import csv, sys
all_rows = list(csv.DictReader(open(sys.argv[1])))
rows = [r for r in all_rows if not r["iteration"]]
assert [r["stage"] for r in rows] == ["value_table", "read_pixels", "store_values"], rows
assert abs(sum(float(r["share"]) for r in rows) - 1) < 1e-4 and rows[0]["globaltimer_step_ns"] == "32", rows
assert all(int(r["min_ticks"]) <= float(r["mean_ticks"]) <= int(r["max_ticks"]) for r in rows), rows
laps = [r for r in all_rows if r["iteration"]]
for r in rows:  # by iteration they are the same ticks
    mine = [x for x in laps if (x["kernel"], x["stage"]) == (r["kernel"], r["stage"])]
    assert sum(int(x["ticks"]) for x in mine) == int(r["ticks"]) and len(mine) == int(r["laps"]), (r, mine)
    assert abs(sum(float(x["mean_ns"]) for x in mine) - float(r["mean_ns"]) * len(mine)) < 0.01 * len(mine), (r, mine)
assert len({(x["launch"], x["block"], x["iteration"], x["stage"]) for x in laps}) == len(laps), laps
assert {x["block"] for x in laps} == {"0"} and {x["laps"] for x in laps} == {"1"}, laps
PY
    run 2 report --export-clocks "$work/clocks.csv" "$work/gpu.log"
    err "--export-clocks are for traces"
    run 2 report --export-clocks "$work/clocks.csv" "$work"/gpu/*.gz "$work"/gpu/*.gz
    err "--export-clocks accepts only one trace at a time"
    run 1 report --export-clocks /nowhere/clocks.csv "$work"/gpu/*.gz
    err "/nowhere/clocks.csv: cannot be written"
    run 0 report --export-clocks "$work/none.csv" "$work"/a/*.gz
    err "has no kernels with clocks inside"
    check "then the CSV has only a header" [ "$(grep -c ^kernel,stage, "$work/none.csv") $(wc -l <"$work/none.csv")" = "1 1" ]
    run 0 report "$work"/gpu/*.gz
    out "GPU 0 "
    out "of total"
    run 0 report --json "$work"/gpu/*.gz
    check "the causes of idle time add up" python3 - "$work/out" <<'PY'
import json, sys
(trace,) = json.load(open(sys.argv[1]))["traces"]
(clocks,) = trace["kernel_clocks"]
assert clocks["kernel"] == "prepare" and clocks["launches"] > 0 and clocks["lap_ticks"] == sum(s["ticks"] for s in clocks["stages"])
(device,) = trace["gpu_idle"]["devices"]
assert device["wall_ns"] == device["busy_ns"] + device["idle_ns"] > 0 and device["kernels_per_step"] > 0, device
assert sum(c["ns"] for c in device["causes"]) == device["idle_ns"], device
PY
    # A small prefetch and slow decoding: some thread is always waiting for the decoder.
    WEIR_FAKE_JPEG=frame_ns=3000000 run 0 run "$data" --batch-size 2 --num-epochs 2 --prefetch 2 --device cuda \
        --decoder nvjpeg --profile "$work/jpeg" --schedule wait=2,warmup=1,active=4,repeat=1
    trace "waits for decoding are not the loop's" jpeg '
waits = named("enumerate(DataLoader)#WeirLoader.__next__")
(loop,) = {e["tid"] for e in ranges if e["name"].startswith("ProfilerStep#")}
assert waits and {e["tid"] for e in waits} == {loop}, waits
decoding = named("09d_wait_for_gpu_decode")
assert decoding and all(e["cat"] == "loader_stage" and e["tid"] != loop for e in decoding), decoding'
    WEIR_FAKE_CUDA=fail=lost:40 run 1 run "$data" --batch-size 2 --device cuda --profile "$work/lost"
    unset WEIR_CUDA_MODULE
fi

finish
