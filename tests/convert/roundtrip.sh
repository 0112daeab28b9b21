#!/bin/bash
# Round trips: converts a dataset to every format of weir convert and back to HDF5, and compares the samples; weir
# convert itself compares every number and every frame. Formats that cannot hold encoded frames get decoded ones.
# Usage: WEIR_PROGRAM=build/release/weir tests/convert/roundtrip.sh [DATA...]   (default: small synthetic datasets)
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"
formats=(hdf5 hdf5-vlen hdf5-gzip lmdb packed tfrecord zarr)

suffix() {
    case $1 in packed) echo .weir ;; lmdb) echo .lmdb ;; zarr) echo .zarr ;; esac
}

# types: prints the state and action types that the last run reported.
types() { sed -nE 's/^numbers +//p' "$work/out"; }

sums() {
    rm -f "$2"
    "$weir" run "$1" --no-shuffle --batch-size 8 --num-workers 2 --num-epochs 1 --train-split 1 --split all --checksums "$2" >/dev/null 2>"$work/err" </dev/null
}

trip() {
    local data=$1 format=$2 to back=$work/back codec=keep
    to=$work/there$(suffix "$2")
    rm -rf "$work/there"* "$back"*
    # If the format cannot hold the data, the error names the option to add: first for frames, then for numbers.
    local narrow=()
    for _ in 1 2 3; do
        "$weir" convert "$data" "$to" --to "$format" --split all --allow-ragged --codec $codec "${narrow[@]}" \
            >"$work/out" 2>"$work/err" </dev/null && break
        if grep -q -- "--codec" "$work/err"; then
            codec=raw
            [ "$format" = tfrecord ] && codec=png
        fi
        grep -q -- "--allow-narrowing" "$work/err" && narrow=(--allow-narrowing)
    done
    check "$data becomes $format" [ -e "$to" ]
    local there
    there=$(types)
    run 0 convert "$to" "$back" --to hdf5
    check "$data, $format: numbers come back as $there (are $(types))" [ "$(types)" = "$there" ]
    sums "$data" "$work/a.sums"
    sums "$to" "$work/b.sums"
    sums "$back" "$work/c.sums"
    if [ ${#narrow[@]} -eq 0 ] || cmp -s "$work/a.sums" "$work/b.sums"; then
        check "$data, $format: the copy has the samples of the source" cmp -s "$work/a.sums" "$work/b.sums"
    fi
    check "$data, $format: so does the copy back" cmp -s "$work/b.sums" "$work/c.sums"
    check "there are samples" [ -s "$work/a.sums" ]
    echo "$data -> $format (codec $codec${narrow[*]:+, ${narrow[*]}}) -> hdf5: $there"
}

data=("$@")
if [ ${#data[@]} -eq 0 ]; then
    for layout in robotwin robomimic; do
        "$weir" synth "$work/$layout" --format "$layout" --episodes 2 --steps 7 --size 32x32 >/dev/null || exit 1
        data+=("$work/$layout")
    done
fi
for source in "${data[@]}"; do
    for format in "${formats[@]}"; do
        built_in "$format" && trip "$source" "$format"
    done
done
finish
