#!/bin/bash
# weir bench: trials are interleaved in rounds, copies are reused, the printed command is the one measured; JSON and
# CSV; bad arguments; Ctrl-C. analyze/test_bench.c tests the conclusions.
# Usage: WEIR_PROGRAM=build/release/weir tests/analyze/test_bench.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

data=$work/da\'ta
"$weir" synth "$data" --format act-jpeg --episodes 3 --steps 8 --size 48x32 --cameras top,wrist >/dev/null || exit 1
quick=(--min-seconds 0.01 --repeats 1)

# json NAME PYTHON: `found` is the JSON object, `cells` its cells by format and cache.
json() {
    check "$1" python3 - "$work/out" "$data" <<PY
import json, sys
with open(sys.argv[1], encoding="utf-8") as f:
    found = json.load(f)
data = sys.argv[2]
cells = {(c["format"], c["cache"]): c for c in found["cells"]}
$2
PY
}

# ---- settings only: nothing is copied ----
run 0 bench "$data" --formats as-is --num-workers 1,0 --cache warm "${quick[@]}" --json
check "no folder of copies" [ ! -e "$data.bench" ]
json "two settings, each also without reading" '
assert [c["cache"] for c in found["cells"]] == ["warm", "memory", "warm", "memory"]
warm = [c for c in found["cells"] if c["cache"] == "warm"]
assert [c["settings"]["num_workers"] for c in warm] == ["1", "0"] and warm[0]["used"]["num_workers"] == 1
for c in found["cells"]:
    rounds = [t["round"] for t in c["turns"]]
    assert rounds == list(range(len(rounds))) and 5 <= len(rounds) <= 6 and not c["error"], (rounds, c["error"])
    rate = c["images_per_s"]
    assert rate["least"] <= rate["low"] <= rate["median"] <= rate["high"] <= rate["most"]
    assert c["command"][:3] == ["weir", "run", data] and c["peak_rss_bytes"]["median"] > 0 and c["bound_by"]
    assert {"03b_image_decode", "08_wait_for_data"} & {s["name"] for s in c["stages"]}
    assert c["tie"] == (c["ratio"]["low"] <= 1 <= c["ratio"]["high"]) or abs(c["ratio"]["median"] - 1) <= 0.03
assert warm[0]["limit_fraction"]["n"] > 0 and found["cells"][1]["limit_fraction"] is None
assert "--io" in found["cells"][1]["command"] and found["cells"][1]["used"]["io"] == "null"
best = max(warm, key=lambda c: c["images_per_s"]["median"])
assert found["advice"]["command"] == best["command"], "the advice is the best measured cell"
assert found["warm"]["rounds"] == len(warm[0]["turns"]) and found["cold"]["rounds"] == 0'

# ---- copies: in a temporary folder ----
mkdir "$work/tmp"
export TMPDIR=$work/tmp
run 0 bench "$data" --formats hdf5:jpeg,as-is --cache warm "${quick[@]}" --json
err "copies: about "
err " in $work/tmp/weir-bench-"
err "; removed at the end (--work-dir DIR keeps them"
json "the copy was measured in the temporary folder" '
path = next(f["path"] for f in found["formats"] if f["name"] == "hdf5:jpeg")
assert path.startswith(found["copies"]["folder"] + "/") and found["copies"]["temporary"], (path, found["copies"])'
check "no folder beside the data" [ ! -e "$data.bench" ]
check "the copies are removed" [ -z "$(ls "$work/tmp")" ]
run 0 bench "$data" --formats hdf5:raw --cache warm "${quick[@]}"
check "and how to make the copy again" grep -qx -A 1 'The copies are removed now. To make this one:' "$work/out"
count '^weir convert .* DIR --to hdf5 --codec raw$' 1
check "the last line names no removed copy" grep -qE '^weir run DIR ' <(tail -n 1 "$work/out")
no_out "/weir-bench-"
run 0 bench "$data" --formats hdf5:raw,as-is --cache warm --max-copies 1K "${quick[@]}"
out "left out: hdf5:raw: the copies need up to 216 KiB, but may take only 1 KiB in $work/tmp/weir-bench-"
out "; use --work-dir DIR for another folder, --max-copies for more"
while read -r signal status; do
    : >"$work/err"
    "$weir" bench "$data" --formats hdf5:jpeg,hdf5:raw,as-is --min-seconds 0.05 --repeats 100 >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    until grep -q 'converting to ' "$work/err" || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
    check "$signal: there are copies" [ -n "$(ls "$work/tmp")" ]
    kill "-$signal" $pid
    wait $pid
    check "$signal: exit status $status (was $?)" [ $? -eq "$status" ]
    check "$signal: the copies are removed" [ -z "$(ls "$work/tmp")" ]
done <<'LIST'
INT 130
TERM 143
LIST

# ---- copies with --work-dir: made once, and reused ----
copies=$work/copies
run 0 bench "$data" --formats as-is,hdf5:jpeg,hdf5-vlen:jpeg --work-dir "$copies" --sample 2 "${quick[@]}"
err "converting to hdf5:jpeg: $copies/hdf5-jpeg-"
err "converting to hdf5-vlen:jpeg: "
for format in as-is hdf5:jpeg hdf5-vlen:jpeg; do
    count "^$format +warm +[0-9.]+K +[0-9]+ +[0-9]+-[0-9]+ +[0-9]+ +[56] " 1
    count "^$format +cold +[0-9.]+K +[0-9]+ +[0-9]+-[0-9]+ +[0-9]+ +[56] " 1
done
count '^format +bounded by +longest stages: total, calls, mean +\(of the median trial\)' 1
check "the recommendation comes first" grep -qE '^(Keep|Convert to|No format|No recommendation:) ' <(head -n 1 "$work/out")
command=$(tail -n 1 "$work/out")
check "the last line runs by itself: $command" bash -c "PATH=$(dirname "$weir"):\$PATH; ${command//--seconds 0.01/--seconds 0.01 --every 0}" >/dev/null
check "a sample of two episodes" [ "$(find "$copies" -name '*.hdf5' | wc -l)" -eq 4 ]
find "$copies" -type f -exec stat -c '%n %i %Y' {} + | sort >"$work/before"
run 0 bench "$data" --formats hdf5:jpeg,as-is --work-dir "$copies" --sample 2 --cache cold "${quick[@]}" --csv
check "nothing is converted again" lacks "$work/err" converting
find "$copies" -type f -exec stat -c '%n %i %Y' {} + | sort | cmp -s - "$work/before"
check "the copies are unchanged" [ $? -eq 0 ]
check "CSV: one line per cell, with the header's columns" python3 - "$work/out" <<'PY'
import csv, sys
with open(sys.argv[1], newline="") as f:
    rows = list(csv.DictReader(f))
assert [(r["format"], r["cache"]) for r in rows] == [("hdf5:jpeg", "cold"), ("as-is", "cold")], rows
for r in rows:
    assert None not in r and float(r["images_per_s_least"]) <= float(r["images_per_s"]) <= float(r["images_per_s_most"])
    assert r["bound_by"] and r["tie"] in "01" and int(r["turns"]) in (5, 6) and r["limit_fraction"] == ""
assert float(rows[1]["ratio"]) == 1
PY
touch "$data/episode_0.hdf5"
run 0 bench "$data" --formats as-is,hdf5:jpeg --work-dir "$copies" --sample 2 --cache warm --step-ms 2 "${quick[@]}" --json
err "converting to hdf5:jpeg" # the source has changed
json "with a step there is a data wait, and no limit" '
assert [c["cache"] for c in found["cells"]] == ["warm", "warm"]
assert all("--step-ms" in c["command"] and 0 <= c["data_wait_fraction"]["median"] <= 1 for c in found["cells"])'

# ---- unusable work folders and bad arguments are refused ----
touch "$work/a file"
run 1 bench "$data" --formats hdf5:jpeg --work-dir "$work/a file" "${quick[@]}"
err "cannot be created: "
one_line
run 2 bench "$data" --formats hdf5:jpeg --work-dir "$data/copies" "${quick[@]}"
err "--work-dir is inside"
one_line
refused() {
    local why=$1
    shift
    run 2 bench "$@"
    err "$why"
    one_line
}
refused "--num-workers: 'two' must be a number" "$data" --num-workers two
refused "--cache: 'hot' is neither" "$data" --cache hot
refused "unknown format nothing" "$data" --formats nothing:raw
refused "--formats: 'hdf5:gif' is neither" "$data" --formats hdf5:gif
refused "hdf5-gzip cannot store jpeg frames" "$data" --formats hdf5-gzip:jpeg
refused "'as-is' is listed twice" "$data" --formats as-is,as-is
refused "--json and --csv" "$data" --json --csv
refused "nowhere" "$data" --io nowhere
refused "nothing" "$data" --decoder nothing
refused "--device" "$data" --device gpu
run 1 bench "$work/none"
err "weir bench: "
one_line

# ---- no room for copies, and a file system in memory ----
# in_memory SIZE ARGUMENT...: runs weir bench with its work folder on a tmpfs of this size.
in_memory() {
    local size=$1
    shift
    mkdir -p "$work/memory"
    # shellcheck disable=SC2016 # expanded by the inner shell
    unshare -rm bash -c 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && "$@"' - "$size" "$work/memory" "$weir" bench \
        "$data" --work-dir "$work/memory/copies" "$@" "${quick[@]}" >"$work/out" 2>"$work/err" </dev/null
}
if unshare -rm mount -t tmpfs none "$work" 2>/dev/null; then
    in_memory 32k --formats as-is,hdf5:jpeg --cache warm
    check "a copy without room is left out (was $?)" [ $? -eq 0 ]
    out "left out: hdf5:jpeg: the copies need up to "
    out ", but may take only 28.8 KiB in $work/memory/copies (32 KiB free); use --work-dir DIR for another folder"
    out "no other format was measured."
    in_memory 10m --formats hdf5:jpeg --cache cold
    check "and measured if there is room (was $?)" [ $? -eq 0 ]
    out "not cold: hdf5:jpeg: 100 % remains in the page cache, because its file system is in memory"
    err "/copies, in memory (tmpfs); kept"
    out "cold: the copies were in memory (tmpfs), so their rates are not those of a disk; use --work-dir"
else
    echo "skipped: lack of room for copies: no tmpfs can be mounted here"
fi

# ---- Ctrl-C: the table so far ----
rm -f "$work/err" # left by the previous run
"$weir" bench "$data" --formats as-is --cache warm --min-seconds 0.05 --repeats 100 --max-minutes 1 >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until grep -q ' formats, ' "$work/err" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -INT $pid
wait $pid
check "exit status 130 (was $?)" [ $? -eq 130 ]
out "(interrupted); "
rm -f "$work/err"
"$weir" bench "$data" --formats as-is --cache warm --min-seconds 0.05 --repeats 100 --max-minutes 1 >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until grep -q ' formats, ' "$work/err" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
kill -TERM $pid
wait $pid
check "SIGTERM: exit status 143 (was $?)" [ $? -eq 143 ]
out "(interrupted); "

finish
