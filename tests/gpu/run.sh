#!/bin/bash
# Everything that needs a bigger machine than CI's, in one go: the program starts there, yields the same batches for
# every number of workers, and scales, compared with the machine's own limits.
#
#     cmake --preset portable && cmake --build --preset portable      (where the -dev packages are)
#     tests/gpu/run.sh build/portable                                 (there: needs only libhdf5 1.10 and glibc)
#
# Full logs go to $OUT (default /tmp/weir-gpu); the last lines are a short table. Takes about 6 minutes on 16 cores, 5
# more with PEERS=1 (other loaders; needs a Python with h5py, torch and OpenCV). ROUNDS=1 TURN_S=0.2 makes a quick run.
set -euo pipefail
build=${1:?usage: tests/gpu/run.sh BUILD_FOLDER}
out=${OUT:-/tmp/weir-gpu}
rounds=${ROUNDS:-7} turn_s=${TURN_S:-1.5}
weir=$build/weir
limits=("$build/bench/limits" --rounds "$rounds" --seconds "$turn_s")
mkdir -p "$out"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

head_line() { echo "== $* (at $SECONDS s)"; }

head_line "the program starts"
"$weir" --version | tee "$out/version.txt"
"$weir" doctor | tee "$out/doctor.txt"

head_line "datasets"
synth() { "$weir" synth "$@" >>"$out/synth.txt" 2>&1 || { tail -5 "$out/synth.txt"; return 1; }; }
: >"$out/synth.txt"
synth "$data/act-jpeg" --format act-jpeg --episodes 6 --steps 40 --cameras top,left,right,low
synth "$data/q50" --format act-jpeg --quality 50 --episodes 6 --steps 40 --cameras top,left,right,low
synth "$data/act" --format act --episodes 3 --steps 30 --cameras top,wrist
synth "$data/astrobench" --format astrobench --episodes 4 --steps 40 --size 512x512

head_line "the same batches for every number of workers"
for format in act-jpeg act astrobench; do
    for workers in 0 1 2 7 16 64; do
        "$weir" run "$data/$format" --num-workers $workers --num-epochs 2 --checksums "$data/$format.$workers" \
            >"$out/$format-$workers.txt" 2>&1 || { tail -5 "$out/$format-$workers.txt"; exit 1; }
        cmp "$data/$format.0" "$data/$format.$workers"
    done
    echo "$format: equal for 0 1 2 7 16 64 workers, $(wc -l <"$data/$format.0") batches," \
        "sha256 $(sha256sum "$data/$format.0" | cut -c1-16)" | tee -a "$data/equal.txt"
done

head_line "a run with a 20 ms step"
"$weir" run "$data/act-jpeg" --num-epochs 3 --step-ms 20 --log "$out/run.jsonl" 2>&1 | tee "$out/run.txt"

head_line "raw frames: copying only"
"$weir" run "$data/act" --num-epochs 40 --every 40 --train-split 1 2>&1 | tee "$out/raw-frames.txt" | tail -25

head_line "cost of the timers"
"$build/bench/prof" --threads 1,2,auto | tee "$out/prof.txt"

head_line "cost of timing and recording in a whole run"
python3 bench/run_cost.py "$weir" "$data/act-jpeg" --rounds "$rounds" --epochs 8 --workers 1,auto | tee "$out/run-cost.txt"

head_line "limits: 640x480, quality 95, from 1 worker to all cores"
"${limits[@]}" --data "$data/act-jpeg" --workers 1,2,4,8,auto | tee "$out/limits-q95.txt"
head_line "limits: f32, planar"
"${limits[@]}" --data "$data/act-jpeg" --workers auto --formats f32-nchw | tee "$out/limits-f32.txt"
head_line "limits: quality 50"
"${limits[@]}" --data "$data/q50" --workers 1,auto --formats u8,f32-nchw | tee "$out/limits-q50.txt"
head_line "hand-off"
"$build/bench/handoff" --data "$data/act-jpeg" | tee "$out/handoff.txt"
if [ "${PEERS:-0}" = 1 ]; then
    head_line "other loaders"
    bench/peers/run.py --weir "$weir" --limits "$build/bench/limits" --no-install --rounds 4 --seconds 0.4 --data "$data/peers" \
        --json "$out/peers.json" | tee "$out/peers.txt"
fi

head_line "summary"
cat "$data/equal.txt"
grep -E 'two clock reads| zone,| lap' "$out/prof.txt"
cat "$out/run-cost.txt"
grep -E 'PASS|MISS|next,' "$out/handoff.txt"
for result in q95 f32 q50; do
    echo "-- limits-$result"
    sed -n '/^workers/,$p' "$out/limits-$result.txt" | grep -v '^$'
done
echo "done in $SECONDS s; logs in $out"
