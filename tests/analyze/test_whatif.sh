#!/bin/bash
# weir whatif: the ladder, predictions and the check as a table and as JSON, the log and weir report; unavailable
# predictions; bad arguments; Ctrl-C; no leftover files. Trials are as short as possible, so figures need only exist; on
# a busy machine time may run out first, and lines report that. analyze/test_model.c tests the predictions.
# Usage: WEIR_PROGRAM=build/release/weir tests/analyze/test_whatif.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

data=$work/da\'ta
"$weir" synth "$data" --format act-jpeg --episodes 4 --steps 12 --size 128x96 --cameras top,wrist >/dev/null || exit 1
export TMPDIR=$work/temporary-files-in-a-folder-with-a-long-name
mkdir "$TMPDIR"
left_behind() { check "the temporary folder is empty: $(ls "$TMPDIR")" [ -z "$(ls "$TMPDIR")" ]; }

# ---- the table, its log, and weir report of the log ----
run 0 whatif "$data" --step-ms 0.5 --num-workers 2 --check --max-minutes 0.05 --log "$work/whatif.jsonl"
count '[0-9]+ workers, prefetch [0-9]+, batches of [0-9]+, [0-9]+ usable cores' 1
no_time='left out: no time was left'
count '^as it is +[0-9]+ +1\.00x ' 1
count "^everything cached +([0-9]+ +[0-9.]+x |$no_time)" 1
count '^no copy to the GPU +left out: batches stay on the CPU' 1
count '^4 workers +[0-9.]+x ' 1
count '^half-size frames +[0-9.]+x .*--image-size 64x48$' 1
count '^stored as packed:raw +[0-9.]+x ' 1
count '^a step of 0.25 ms +[0-9.]+x ' 1
left_behind
cp "$work/out" "$work/printed"
run 0 report "$work/whatif.jsonl"
check "weir report prints it again" cmp -s "$work/out" "$work/printed"
check "the log has one line with these members" python3 - "$work/whatif.jsonl" "$data" <<'PY'
import json, math, sys
with open(sys.argv[1], encoding="utf-8") as f:
    lines = f.readlines()
assert len(lines) == 1
found = json.loads(lines[0])
assert found["type"] == "whatif" and found["data"] == sys.argv[2] and found["checked"] and not found["interrupted"]
assert found["config"]["num_workers"] == 2 and found["num_workers"] == 2 and found["images_per_s"] > 0
no_time = "no time was left"
assert found["ladder"][0]["ratio"] == 1 and {r["name"] for r in found["ladder"] if r.get("left_out", no_time) == no_time} == {
    "as it is", "no I/O", "no decoding", "everything cached"}, found["ladder"]
changes = {c["name"]: c for c in found["changes"]}
assert all(c["predicted"] is None or 0 < c["predicted"] < math.inf for c in changes.values())
checked = [c for c in changes.values() if "error" in c]
assert checked or any("time ran out" in (c["why"] or "") for c in changes.values()), changes
for c in checked:
    assert c["turns"] > 0 and c["measured_low"] <= c["measured"] <= c["measured_high"]
    assert abs(c["error"] - (c["predicted"] / c["measured"] - 1)) < 1e-6 and c["noisy"] == (abs(c["noise"]) > 0.05)
errors = found["errors"]
assert errors["pairs"] + errors["noisy"] == len(checked), (errors, len(checked))
assert changes["4 workers"]["flag"] == "--num-workers 4" and found["verdict"][0].startswith("verdict: ")
PY
run 0 report "$work/whatif.jsonl" --json
check "and as JSON" python3 -c '
import json, sys
assert json.load(open(sys.argv[1]))["runs"][0]["whatif"]["changes"]' "$work/out"

# ---- cold, on the main thread, floats ----
run 0 whatif "$data" --cold --num-workers 0 --dtype f32 --max-minutes 0.05 --json
check "cold, on the main thread" python3 -c '
import json, sys
found = json.load(open(sys.argv[1]))
names = {c["name"] for c in found["changes"]}
assert found["cold"] and found["num_workers"] == 0 and not found["checked"]
assert "page cache warm" in names and "images as bytes, not floats" in names, names' "$work/out"
left_behind

# ---- copies go to TMPDIR, however long its name, or to /tmp if it is empty ----
TMPDIR=$TMPDIR/none run 0 whatif "$data" --num-workers 1 --max-minutes 0.05 --wide
count "^stored as packed:(jpeg|raw)  no prediction: $TMPDIR/none/weir-whatif-[^ ]+: cannot be created: No such file or directory; set TMPDIR to " 2
TMPDIR='' run 0 whatif "$data" --num-workers 1 --max-minutes 0.05
count '^stored as packed:raw +[0-9.]+x ' 1

# ---- on the stand-in GPU ----
fake=$(dirname "$weir")/tests/libweir_fake_cuda.so
if [ -e "$fake" ]; then
    WEIR_CUDA_MODULE=$fake run 0 whatif "$data" --device cuda --decoder turbo --step-ms 0.5 --max-minutes 0.05
    count "^no copy to the GPU +([0-9]+ +[0-9.]+x |$no_time)" 1
    count '^JPEGs decoded by nvjpeg +[0-9.]+x .*--decoder nvjpeg$' 1
fi

# ---- bad arguments and data ----
refused() {
    local status=$1 why=$2
    shift 2
    run "$status" whatif "$@"
    err "$why"
}
refused 2 "unknown option --num-epochs" "$data" --num-epochs 3
refused 2 "nowhere" "$data" --io nowhere
refused 2 "nothing" "$data" --decoder nothing
refused 2 "--device" "$data" --device gpu
refused 2 "bf16" "$data" --dtype bf16
refused 2 "must be from 0.05 to 100000 minutes" "$data" --max-minutes 0
refused 1 "weir whatif: " "$work/none"
one_line
refused 1 "is a part of the dataset" "$data" --log "$data/episode_0.hdf5"
one_line
refused 1 "cannot be written" "$data" --log "$work/none/log.jsonl"
one_line
refused 1 "nosuch" "$data" --cameras nosuch
one_line
if built_in zarr; then # every chunk is a file
    "$weir" convert "$data" "$work/z.zarr" --to zarr >/dev/null
    chunk=$(find "$work/z.zarr" -name 0.0.0.0 | head -n 1)
    sum=$(sha256sum "$chunk")
    refused 1 "is a part of the dataset" "$work/z.zarr" --log "$chunk"
    one_line
    check "the chunk is unchanged" [ "$(sha256sum "$chunk")" = "$sum" ]
fi

# ---- Ctrl-C: the results so far ----
rm -f "$work/err"
"$weir" whatif "$data" --check --step-ms 5 >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until grep -q 'measuring the ladder' "$work/err" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -INT $pid
wait $pid
check "exit status 130 (was $?)" [ $? -eq 130 ]
out "interrupted: "
left_behind

# ---- a closed terminal and repeated Ctrl-C while a copy exists: it is removed ----
"$weir" whatif "$data" --num-workers 1 >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until [ -n "$(find "$TMPDIR" -path '*/weir-whatif-*/*')" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
for signal in HUP INT INT TERM TERM HUP; do kill -$signal $pid; done
wait $pid
status=$?
check "the exit status is of one of the signals (was $status)" grep -qxE "129|130|143" <<<"$status"
out "interrupted: "
left_behind

finish
