#!/bin/bash
# Opening at scale: time to the first batch, with and without a saved index, and the cost of a look-up.
#
#     tests/gpu/scale.sh build/portable      (ROUNDS=5; data goes to $TMPDIR; logs and the table to $OUT)
set -euo pipefail
build=${1:?usage: tests/gpu/scale.sh BUILD_FOLDER}
out=${OUT:-/tmp/weir-scale} rounds=${ROUNDS:-5}
weir=$build/weir
mkdir -p "$out"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
"$weir" --version
nproc

synth() { "$weir" synth "$@" >>"$out/synth.txt" 2>&1 || { tail -5 "$out/synth.txt"; exit 1; }; }
synth "$data/thousand" --format act-jpeg --episodes 1000 --steps 20 --size 64x48 --cameras top,left,right
synth "$data/ten-thousand" --format astrobench --episodes 10000 --steps 8 --size 64x48 --cameras main,left
synth "$data/hundred" --format astrobench --episodes 100 --steps 8 --size 64x48 --cameras main,left
synth "$data/chunks" --format act --episodes 1 --steps 40000 --size 16x16 --cameras top,left,right
synth "$data/gzip" --format robomimic-gzip --episodes 8 --steps 60 --size 320x240
du -sh "$data"/*

median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# field NAME FIELD: the median of FIELD in the logs of NAME.
field() { sed -n "s/.*\"type\": *\"start\".*\"$2\": *\([0-9.e-]*\).*/\1/p" "$out/$1".*.jsonl | median; }
open_once() { # NAME DATA ROUND OPTION...
    local name=$1 set=$2 round=$3
    shift 3
    "$weir" run "$data/$set" --max-batches 1 --batch-size 8 "$@" --log "$out/$name.$round.jsonl" >"$out/$name.$round.txt" 2>&1
}

rm -f "$out"/*.jsonl
for ((round = 0; round < rounds; round++)); do # interleaved
    for set in thousand ten-thousand hundred chunks; do
        rm -f "$data/$set.index"
        open_once "$set" "$set" "$round"
        open_once "$set-first" "$set" "$round" --index "$data/$set.index"
        open_once "$set-second" "$set" "$round" --index "$data/$set.index"
    done
done
printf '%-28s %10s %14s\n' "opening, medians of $rounds" "index, s" "first batch, s"
for set in thousand ten-thousand hundred chunks; do
    for kind in "" -first -second; do
        printf '%-28s %10s %14s\n' "$set$kind" "$(field "$set$kind" index_s)" "$(field "$set$kind" first_batch_s)"
    done
done
find "$data" -name '*.index' -printf '%s bytes %f\n'

echo "per sample: one epoch of every sample"
for set in hundred ten-thousand; do
    "$weir" run "$data/$set" --batch-size 8 --train-split 1 --wide >"$out/epoch-$set.txt" 2>&1
    grep -E "^epoch|^01_file_cache|^00_TOTAL" "$out/epoch-$set.txt"
done
(ulimit -n 256 && "$weir" run "$data/ten-thousand" --batch-size 8 --train-split 1 --wide 2>&1 | grep -E "^epoch|^01_file_cache|^errors")

echo "compressed chunks: images/s by workers"
for workers in 1 2 4 8 16; do
    "$weir" run "$data/gzip" --num-workers $workers --num-epochs 8 --every 8 --train-split 1 >"$out/gzip-$workers.txt" 2>&1
    echo "$workers workers: $(sed -n 's/^epoch 8.*| \([0-9.]* images\/s\).*/\1/p' "$out/gzip-$workers.txt")"
done
