#!/bin/bash
# Kills weir convert at random moments: only a complete copy ever has the copy's name, rerunning the command resumes,
# and the result has the samples of an uninterrupted copy.
# Usage: WEIR_PROGRAM=build/release/weir tests/convert/kill_convert.sh [KILLS [FORMAT...]]   (default: 10 kills each)
# With DATA=FOLDER, that dataset is copied instead of a synthetic one, such as a LeRobot dataset; with FRAMES=jpeg:95 as
# well, its frames are encoded again. Copies are then compared with an uninterrupted one.
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"
kills=${1:-10}
shift
formats=("$@")
[ ${#formats[@]} -gt 0 ] || formats=(hdf5 hdf5-vlen lmdb packed tfrecord zarr)
RANDOM=16

suffix() {
    case $1 in packed) echo .weir ;; lmdb) echo .lmdb ;; zarr) echo .zarr ;; esac
}

sums() { "$weir" run "$1" --no-shuffle --batch-size 8 --num-workers 2 --num-epochs 1 --train-split 1 --checksums "$2" >/dev/null 2>"$work/err" </dev/null; }

# whole COPY: true if it has the samples of the source.
# shellcheck disable=SC2317 # called by check
whole() {
    rm -f "$work/copy.sums"
    sums "$1" "$work/copy.sums"
    cmp -s "$work/source.sums" "$work/copy.sums"
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }

source=${DATA:-$work/source}
[ -n "${DATA:-}" ] || "$weir" synth "$source" --format act-jpeg --episodes 12 --steps 20 --size 64x48 >/dev/null || exit 1
sums "$source" "$work/source.sums"
for format in "${formats[@]}"; do
    built_in "$format" || continue
    end=$(suffix "$format")
    codec=keep
    [ "$format" = zarr ] && codec=raw
    arguments=(--to "$format" --codec "$codec" --num-workers 2 --allow-narrowing)
    [ -z "${FRAMES:-}" ] || arguments=(--to "$format" --frames "$FRAMES" --num-workers 2 --allow-narrowing)
    start=$(now_ms)
    run 0 convert "$source" "$work/plain$end" "${arguments[@]}"
    took=$(($(now_ms) - start))
    [ -z "${DATA:-}" ] || sums "$work/plain$end" "$work/source.sums"
    check "$format: an uninterrupted copy is complete" whole "$work/plain$end"
    killed=0 resumed=0
    copy=$work/copy$end
    for ((i = 0; i < kills; i++)); do
        "$weir" convert "$source" "$copy" "${arguments[@]}" >"$work/out" 2>"$work/err" </dev/null &
        pid=$!
        ms=$((RANDOM % (took * 11 / 10 + 1)))
        sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
        kill -9 "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        status=$?
        if [ -e "$copy" ]; then
            check "$format: only a complete copy has the copy's name" whole "$copy"
            rm -rf "$copy" "$copy.partial"
        else
            killed=$((killed + 1))
            check "$format: without a copy it did not exit with 0" [ "$status" -ne 0 ]
        fi
    done
    [ -e "$copy" ] || run 0 convert "$source" "$copy" "${arguments[@]}"
    grep -q "interrupted" "$work/out" "$work/err" && resumed=1
    check "$format: the run after the last kill completes the copy" whole "$copy"
    check "$format: no partial copy is left" [ ! -e "$copy.partial" ]
    echo "$format: $killed of $kills runs were killed before their end ($took ms), the last one was resumed: $resumed"
    rm -rf "$copy" "$work/plain$end"
done
finish
