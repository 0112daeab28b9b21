#!/bin/bash
# Everything that wants a bigger machine than CI's, in one go: correctness over many workers, scaling, limits.
#
#     cmake --preset portable && cmake --build --preset portable      (on a machine with the -dev packages)
#     tests/gpu/run.sh build/portable                                 (on the big one: needs libhdf5 1.10 and glibc only)
#
# Full logs go to $OUT (default /tmp/weir-gpu); the last lines are a short table. Takes about six minutes.
set -euo pipefail
build=$1
out=${OUT:-/tmp/weir-gpu}
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
weir=$build/weir
mkdir -p "$out"

echo "== the program starts"
"$weir" --version | tee "$out/version.txt"
"$weir" doctor | tee "$out/doctor.txt"

echo "== datasets"
"$weir" synth "$data/act-jpeg" --format act-jpeg --episodes 6 --steps 60 --cameras top,left,right,low 2>/dev/null
"$weir" synth "$data/act" --format act --episodes 3 --steps 30 --cameras top,wrist 2>/dev/null
"$weir" synth "$data/astrobench" --format astrobench --episodes 4 --steps 40 --size 512x512 2>/dev/null
"$weir" synth "$data/q50" --format act-jpeg --quality 50 --episodes 6 --steps 60 --cameras top,left,right,low 2>/dev/null

echo "== the same batches for every number of workers"
for format in act-jpeg act astrobench; do
    for workers in 0 1 2 7 16 64; do
        "$weir" run "$data/$format" --num-workers $workers --num-epochs 2 --checksums "$out/$format.$workers" \
            >"$out/$format.$workers.txt" 2>&1
        cmp "$out/$format.0" "$out/$format.$workers"
    done
    echo "$format: equal ($(wc -l <"$out/$format.0") batches, $(sha256sum "$out/$format.0" | cut -c1-16))"
done
rm -f "$out"/act-jpeg.* "$out"/act.* "$out"/astrobench.*

echo "== a run with a 20 ms step"
"$weir" run "$data/act-jpeg" --num-epochs 3 --step-ms 20 --log "$out/run.jsonl" | tee "$out/run.txt"

echo "== limits"
"$build/bench/limits" --data "$data/act-jpeg" --workers 1,2,4,8,auto --rounds 7 --seconds 1.5 | tee "$out/limits-q95.txt"
"$build/bench/limits" --data "$data/q50" --workers 1,auto --rounds 7 --seconds 1.5 | tee "$out/limits-q50.txt"
"$weir" run "$data/act" --num-epochs 40 --every 0 | tee "$out/raw-frames.txt"

echo "== summary"
grep -h -A9 '^workers' "$out/limits-q95.txt" "$out/limits-q50.txt"
