#!/bin/bash
# weir convert: copies of every layout have the samples of their source; colours recorded as swapped, codecs, damaged
# frames, interruptions.
# Usage: WEIR_PROGRAM=build/release/weir tests/convert/test_convert.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

# sums DATA OUT: writes the checksums of all samples, in file order, to OUT.
sums() {
    "$weir" run "$1" --no-shuffle --batch-size 4 --num-workers 2 --num-epochs 1 --train-split 1 --checksums "$2" >/dev/null 2>"$work/err" </dev/null
}

# same SOURCE COPY: checks that both have the same samples.
same() {
    rm -f "$work/source.sums" "$work/copy.sums"
    sums "$1" "$work/source.sums"
    sums "$2" "$work/copy.sums"
    check "$2 has the samples of $1" cmp -s "$work/source.sums" "$work/copy.sums"
}

if ! "${python:=/usr/bin/python3}" -c 'import h5py, numpy' 2>/dev/null; then
    echo "no h5py: skipped"
    [ -n "${CI:-}" ] && exit 1
    exit 77
fi

for format in act act-jpeg agilex astrobench robotwin robomind robomimic; do
    source=$work/$format
    "$weir" synth "$source" --format "$format" --episodes 2 --steps 9 --size 32x24 >/dev/null || exit 1
    for to in hdf5 hdf5-vlen; do
        run 0 convert "$source" "$work/$format-$to" --to "$to"
        same "$source" "$work/$format-$to"
        check "no partial files of $format-$to are left" [ -z "$(find "$work" -name '*.partial*' -o -name '.*.hdf5*')" ]
    done
done
for format in act act-jpeg agilex astrobench robomimic; do
    run 0 convert "$work/$format" "$work/$format.weir" --to packed
    same "$work/$format" "$work/$format.weir"
    run 0 convert "$work/$format" "$work/$format.zarr" --to zarr --chunk-frames 4
    same "$work/$format" "$work/$format.zarr"
done
/usr/bin/python3 "$(dirname "$0")/../clients/read_packed.py" "$work/act-jpeg.weir" "$work"/act-jpeg/*.hdf5 >"$work/out" 2>"$work/err"
status=$?
[ "$status" -eq 77 ] || check "a reader written from docs/internals/packed.md alone finds the source's frames" [ "$status" -eq 0 ]
for format in act agilex robomimic; do
    run 0 convert "$work/$format" "$work/$format-gzip" --to hdf5-gzip
    same "$work/$format" "$work/$format-gzip"
    run 0 convert "$work/$format-gzip" "$work/$format-back" --to hdf5
    same "$work/$format" "$work/$format-back"
done

for format in act-jpeg astrobench; do
    run 0 convert "$work/$format" "$work/$format-tfrecord" --to tfrecord
    same "$work/$format" "$work/$format-tfrecord"
    run 0 convert "$work/$format-tfrecord" "$work/$format-again" --to hdf5
    same "$work/$format" "$work/$format-again"
done
run 1 convert "$work/act" "$work/no" --to tfrecord
one_line

run 1 convert "$work/act" "$work/act-gzip" --to hdf5
err "weir convert: $work/act-gzip: exists"
one_line
for to in hdf5 packed zarr; do
    run 1 convert "$work/act" '' --to "$to"
    err "weir convert: the path of the copy is empty"
    one_line
done
run 1 convert "$work/act-jpeg" "$work/no" --to hdf5-gzip
one_line
# ---- red and blue recorded as swapped ----
# swapped ARGUMENT...: the copy recorded as bgr has the batches of its source with red and blue swapped.
swapped() {
    "$weir" run "$work/act-jpeg" "${settings[@]}" --color bgr --checksums "$work/source.sums" "$@" >/dev/null 2>"$work/err"
    "$weir" run "$work/bgr" "${settings[@]}" --color rgb --checksums "$work/copy.sums" "$@" >/dev/null 2>>"$work/err"
    check "bgr is honoured: $*" cmp -s "$work/source.sums" "$work/copy.sums"
    check "there are checksums" [ "$(grep -c . "$work/copy.sums")" -gt 3 ]
}
settings=(--no-shuffle --batch-size 4 --num-workers 2 --num-epochs 1 --train-split 1)
record() { "$python" -c 'import sys, h5py
h5py.File(sys.argv[1], "r+").attrs["weir_color"] = sys.argv[2]' "$1" "$2"; }
cp -r "$work/act-jpeg" "$work/bgr"
record "$work/bgr/episode_0.hdf5" bgr
run 1 run "$work/bgr"
err "recorded as"
one_line
record "$work/bgr/episode_1.hdf5" bgr
run 0 info "$work/bgr"
out "colors: red and blue of the frames are stored swapped"
run 0 info "$work/bgr" --json
out '"color": "bgr"'
swapped
swapped --dtype f32 --image-layout nchw
# Each colour keeps its mean: for the source, which is read as bgr, they are given in reverse.
"$weir" run "$work/act-jpeg" "${settings[@]}" --color bgr --dtype f32 --mean .3,.2,.1 --std 3,2,1 --checksums "$work/source.sums" >/dev/null 2>"$work/err"
"$weir" run "$work/bgr" "${settings[@]}" --dtype f32 --mean .1,.2,.3 --std 1,2,3 --checksums "$work/copy.sums" >/dev/null 2>>"$work/err"
check "means follow their colours" cmp -s "$work/source.sums" "$work/copy.sums"
swapped --index "$work/index"
swapped --index "$work/index"
if [ -n "${WEIR_FAKE_CUDA_MODULE:-}" ]; then
    export WEIR_CUDA_MODULE=$WEIR_FAKE_CUDA_MODULE
    swapped --device cuda
    swapped --device cuda --dtype f32 --image-layout nchw
    swapped --device cuda --decoder nvjpeg --dtype f16
    unset WEIR_CUDA_MODULE
fi

# ---- states keep their type, JPEGs their bytes, as read by h5py ----
"$python" - "$work/typed" <<'EOF'
import os, sys, h5py, numpy as np
os.mkdir(sys.argv[1])
random = np.random.default_rng(16)
jpegs = [h5py.File(f"{os.path.dirname(sys.argv[1])}/act-jpeg/episode_0.hdf5")["/observations/images/top"][t] for t in range(5)]
for e in range(2):
    with h5py.File(f"{sys.argv[1]}/episode_{e}.hdf5", "w") as f:
        f["/observations/qpos"] = random.standard_normal((5, 3)) / 3
        f["/action"] = random.integers(-2**31, 2**31, (5, 2)).astype("i4")
        f["/observations/images/top"] = np.stack(jpegs)
        f["/observations/images/top_depth"] = random.integers(0, 65536, (5, 8, 6)).astype("u2")
        f.attrs["task"] = "pick up the cup"
EOF
# identical COPY: h5py reads the same from COPY as from the source.
# shellcheck disable=SC2317 # called by check
identical() {
    "$python" - "$work/typed" "$1" <<'EOF' || return 1
import sys, h5py, numpy as np
for e in range(2):
    a, b = (h5py.File(f"{folder}/episode_{e}.hdf5") for folder in sys.argv[1:])
    for key in ("/observations/qpos", "/action", "/observations/images/top_depth"):
        assert a[key].dtype == b[key].dtype and a[key][()].tobytes() == b[key][()].tobytes(), key
    for x, y in zip(a["/observations/images/top"], b["/observations/images/top"]):
        assert bytes(x).rstrip(b"\0") == bytes(y).rstrip(b"\0") and bytes(y)[:2] == b"\xff\xd8"
    assert b.attrs["task"] == "pick up the cup"
EOF
}
for to in hdf5 hdf5-vlen; do
    run 0 convert "$work/typed" "$work/typed-$to" --to "$to"
    out "types      state float64, actions int32"
    check "$to: h5py reads the same" identical "$work/typed-$to"
done
for to in packed lmdb; do
    built_in $to || continue
    copy=$work/typed.$([ $to = packed ] && echo weir || echo lmdb)
    run 0 convert "$work/typed" "$copy" --to $to
    run 0 convert "$copy" "$work/typed-from-$to" --to hdf5
    check "by way of $to: h5py reads the same" identical "$work/typed-from-$to"
done
run 1 convert "$work/typed" "$work/no" --to tfrecord --codec png
err "float64"
err "--allow-narrowing"
one_line
check "a refused copy leaves nothing" [ ! -e "$work/no.partial" ]

# ---- other codecs ----
run 0 convert "$work/act-jpeg" "$work/as-raw" --to hdf5 --codec raw --chunk-frames 4
same "$work/act-jpeg" "$work/as-raw"
check "chunks of four frames" "$python" -c 'import sys, h5py
assert h5py.File(sys.argv[1])["/observations/images/top"].chunks[0] == 4' "$work/as-raw/episode_0.hdf5"
for to in hdf5 hdf5-vlen; do
    run 0 convert "$work/as-raw" "$work/as-png-$to" --to $to --codec png
    same "$work/act-jpeg" "$work/as-png-$to"
done
run 0 convert "$work/as-png-hdf5" "$work/png-gzip" --to hdf5-gzip --codec raw
same "$work/act-jpeg" "$work/png-gzip"
run 0 convert "$work/act" "$work/as-jpeg" --to hdf5 --codec jpeg --quality 80 --json
"$python" - "$work/out" "$work/act/episode_0.hdf5" "$work/as-jpeg/episode_0.hdf5" <<'EOF'
import io, json, sys, h5py, numpy as np
report = json.load(open(sys.argv[1]))
assert report["error"] is None and report["frames"] == 36 and report["reencoded"], report
assert 20 < report["psnr_worst_db"] <= report["psnr_mean_db"] < 60, report
EOF
check "the report has the PSNR" [ $? -eq 0 ]
run 0 convert "$work/act-jpeg" "$work/small" --to hdf5 --codec png --image-size 16x12
"$weir" run "$work/act-jpeg" "${settings[@]}" --image-size 16x12 --checksums "$work/source.sums" >/dev/null 2>"$work/err"
"$weir" run "$work/small" "${settings[@]}" --checksums "$work/copy.sums" >/dev/null 2>"$work/err"
check "frames are resized as by weir run --image-size" cmp -s "$work/source.sums" "$work/copy.sums"
run 1 convert "$work/act-jpeg" "$work/no" --to hdf5 --image-size 16x12
err "--codec raw|jpeg|png"
one_line
run 0 convert "$work/act-jpeg" "$work/said" --to hdf5 --color bgr
run 0 info "$work/said"
out "colors: red and blue of the frames are stored swapped"
run 0 convert "$work/said" "$work/put-right" --to hdf5 --codec raw
run 0 info "$work/put-right"
no_out "colors:"
settings+=(--color)
"$weir" run "$work/act-jpeg" "${settings[@]}" bgr --checksums "$work/source.sums" >/dev/null 2>"$work/err"
for copy in said put-right; do
    "$weir" run "$work/$copy" "${settings[@]}" rgb --checksums "$work/copy.sums" >/dev/null 2>"$work/err"
    check "$copy: red is red" cmp -s "$work/source.sums" "$work/copy.sums"
done

# ---- damaged frames ----
cp -r "$work/act-jpeg" "$work/bad"
"$python" -c 'import sys, h5py
with h5py.File(sys.argv[1], "r+") as f:
    f["/observations/images/top"][3, 200:600] = 0' "$work/bad/episode_1.hdf5"
run 1 convert "$work/bad" "$work/of-bad" --to hdf5
err "weir convert: $work/bad/episode_1.hdf5: /observations/images/top[3]: "
err "; repair or remove the frame, or use --on-error skip or substitute"
one_line
check "no copy with a bad frame" [ ! -e "$work/of-bad" ]
rm -rf "$work/of-bad.partial"
run 0 convert "$work/bad" "$work/of-bad" --to hdf5 --on-error skip
out "bad: $work/bad/episode_1.hdf5: /observations/images/top[3]: "
out "episodes   1; 1 left out"
check "one episode" [ "$(ls "$work/of-bad")" = episode_0.hdf5 ]
run 0 convert "$work/bad" "$work/of-bad-2" --to hdf5-vlen --on-error substitute
out "1 bad, 1 replaced"
check "the previous frame takes its place" "$python" -c 'import sys, h5py
top = h5py.File(sys.argv[1])["/observations/images/top"]
assert bytes(top[3]) == bytes(top[2]) != bytes(top[4])' "$work/of-bad-2/episode_1.hdf5"

# ---- interrupted ----
for number in 0 1; do
    check "the copy is the same for any number of threads" cmp -s "$work/act-jpeg-hdf5/episode_$number.hdf5" \
        <("$weir" convert "$work/act-jpeg" "$work/one-$number" --to hdf5 --num-workers 1 >/dev/null; cat "$work/one-$number/episode_$number.hdf5")
done
run 1 convert "$work/bad" "$work/later" --to hdf5
check "the finished part remains after an error" [ -e "$work/later.partial/later/episode_0.hdf5" ]
run 1 convert "$work/bad" "$work/later" --to hdf5-vlen
err "different options"
one_line
run 0 convert "$work/bad" "$work/later" --to hdf5 --on-error substitute
out "episodes   2, 1 of them from an interrupted run"
check "its folder is removed" [ ! -e "$work/later.partial" ]
mkdir "$work/mine.partial"
touch "$work/mine.partial/precious"
run 1 convert "$work/act" "$work/mine" --to hdf5
one_line
check "files of others remain" [ -e "$work/mine.partial/precious" ]

# ---- no room, and bad arguments ----
(ulimit -f 20; run 1 convert "$work/act" "$work/full" --to hdf5; one_line; exit $failed)
failed=$((failed + $?))
check "no copy if it does not fit" [ ! -e "$work/full" ]
run 2 convert "$work/act"
run 2 convert "$work/act" "$work/x"
err "--to FORMAT is missing"
run 1 convert "$work/act" "$work/x" --to floppy
err "choose one of hdf5, hdf5-vlen"
run 1 convert "$work/act" "$work/x" --to packed
err "use $work/x."
run 1 convert "$work/nowhere" "$work/x" --to hdf5
one_line
finish
