#!/bin/bash
# Every layout: `weir synth` writes it, `weir info` and `weir run` recognise it without options. Then custom keys,
# uneven lengths, folders of several layouts, the index file, and errors for unreadable files.
# Usage: WEIR_PROGRAM=build/release/weir tests/datasets/test_layouts.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"

# sums DATA OPTION...: writes the checksums of a run with two workers to $work/sums.
sums() {
    run 0 run "$@" --batch-size 3 --num-workers 2 --checksums "$work/sums"
    check "checksums were written" [ -s "$work/sums" ]
}
same() { check "$1" cmp "$work/sums" "$work/$2"; }

# ---- each layout, without options ----
# format, layout in info, episodes, steps, cameras, kind of storage
while read -r format layout episodes steps cameras storage; do
    data=$work/$format
    "$weir" synth "$data" --format "$format" --episodes "$episodes" --steps "$steps" --size 48x32 >/dev/null || exit 1
    run 0 info "$data"
    out "layout: $layout"
    out "episodes: $episodes, $((episodes * steps)) steps, lengths min $steps median $steps max $steps"
    out "cameras: $cameras, $((cameras * episodes * steps)) frames"
    out "$storage"
    out "reading: 100.0 % of the frames by extents, 0.0 % through the HDF5 library (fallback)"
    bytes=$(find "$data" -type f -name '*.h*5' -printf '%s\n' | awk '{ s += $1 } END { print s }')
    size=$(python3 -c 'import sys; n = int(sys.argv[1]) / 1024; print(f"{n:.3g} KiB" if n < 1000 else f"{n / 1024:.3g} MiB")' "$bytes")
    out "files: $size;"
    sums "$data"
    cp "$work/sums" "$work/first"
    run 0 run "$data" --batch-size 3 --num-workers 0 --checksums "$work/sums"
    same "$format: the same on the consumer's thread" first
    out "fallbacks: 0 frames"
done <<'LAYOUTS'
act act 2 5 2 chunks of whole frames
act-jpeg act-plus-plus 2 5 2 padded rows
act-jpeg-nolen act-plus-plus 2 5 2 padded rows
astrobench astrobench 2 5 4 variable length (global heap)
agilex agilex 2 5 3 chunks of whole frames
robotwin robotwin 2 5 4 fixed strings
robomind robomind 2 5 3 variable length (global heap)
robomimic robomimic 3 5 2 contiguous
robomimic-gzip robomimic 3 5 2 deflate chunks of
libero libero 3 5 2 contiguous
isaaclab isaaclab 3 5 2 deflate chunks of
LAYOUTS

# ---- the same content, however it is stored ----
sums "$work/act-jpeg"
cp "$work/sums" "$work/first"
sums "$work/act-jpeg-nolen"
same "without compress_len the JPEGs are the same" first
sums "$work/robomimic"
cp "$work/sums" "$work/first"
sums "$work/robomimic-gzip"
same "compressed frames are the same" first

# ---- depth, on request ----
for format in agilex robomind; do
    run 0 info "$work/$format" --json
    no_out '"raw16"'
    no_out '"png16"'
done
run 0 info "$work/agilex" --cameras cam_high,depth_cam_high
out "depth_cam_high"
out "raw16"
run 0 info "$work/robomind" --cameras depth_camera_front
out "png16"
sums "$work/robomind" --cameras camera_front,depth_camera_front
check "a batch has a tensor of depth" grep -q depth "$work/sums"
run 1 run "$work/agilex" --cameras cam_high,depth_of_nothing
err "depth_of_nothing"
one_line

# ---- custom keys ----
sums "$work/act" --qpos-keys observations/qpos --action-keys action --image-keys observations/images/top,observations/images/wrist
cp "$work/sums" "$work/first"
sums "$work/act"
same "keys equal to the layout's own" first
run 0 info "$work/act" --qpos-keys observations/qpos,observations/qvel --image-keys over=observations/images/top
out "state: /observations/qpos, /observations/qvel (10 steps, 28 dimensions)"
out "  over "
run 0 info "$work/robomimic" --qpos-keys obs/robot0_eef_pos --action-keys actions --image-keys obs/agentview_image
out "layout: custom-demos"
out "state: /data/demo_0/obs/robot0_eef_pos (15 steps, 3 dimensions)"
out "cameras: 1, 15 frames"
run 1 run "$work/act" --qpos-keys observations/torque
err "/observations/torque"
one_line
run 1 run "$work/act" --image-keys a,,b
err '--image-keys "a,,b" contains a name that is empty or too long'
one_line

# ---- several layouts in one folder ----
mkdir "$work/mixed"
for format in act-jpeg act-jpeg-nolen; do
    "$weir" synth "$work/high-$format" --format "$format" --episodes 1 --steps 5 --size 48x32 --cameras cam_high >/dev/null || exit 1
    cp "$work/high-$format/episode_0.hdf5" "$work/mixed/a_$format.hdf5"
done
run 0 info "$work/mixed" --cameras cam_high
out "layout: act-plus-plus"
"$weir" synth "$work/high-robotwin" --format robotwin --episodes 1 --steps 5 --size 48x32 --cameras cam_high >/dev/null || exit 1
cp "$work/high-robotwin/data/episode0.hdf5" "$work/mixed/c_2.hdf5"
run 1 run "$work/mixed" --cameras cam_high
err "c_2.hdf5: its colours are recorded as bgr, but in $work/mixed/a_act-jpeg-nolen.hdf5 as rgb"
rm "$work/mixed/c_2.hdf5"
sums "$work/mixed" --cameras cam_high
cp "$work/agilex/episode_0.hdf5" "$work/mixed/d.hdf5"
run 1 run "$work/mixed" --cameras cam_high
err "d.hdf5: is not of the same dataset as $work/mixed/a_act-jpeg-nolen.hdf5: sim: 0 instead of 1; the folder contains"
one_line
mv "$work/mixed/d.hdf5" "$work/mixed/0.hdf5" # the first file determines the cameras: three
run 1 run "$work/mixed"
err "a_act-jpeg-nolen.hdf5"
err "cam_left_wrist"
one_line

# ---- a camera whose name contains a comma ----
mkdir "$work/comma"
cp "$work/high-act-jpeg/episode_0.hdf5" "$work/comma"
if h5copy -i "$work/high-act-jpeg/episode_0.hdf5" -o "$work/comma/episode_0.hdf5" -s /observations/images/cam_high \
    -d "/observations/images/a,b" 2>"$work/err"; then
    run 0 info "$work/comma" --cameras "a,b,cam_high"
    out "cameras: 2, 10 frames"
    run 0 info "$work/comma" --cameras "cam_high,a,b"
    out "cameras: 2, 10 frames"
    run 0 info "$work/comma" --cameras "a,b"
    out "cameras: 1, 5 frames"
    for to in hdf5:comma-copy packed:comma-copy.weir zarr:comma-copy.zarr; do
        run 0 convert "$work/comma" "$work/${to#*:}" --to "${to%:*}"
    done
    run 1 run "$work/comma" --cameras "a,cam_high"
    err 'no camera "a"; it has'
    one_line
fi

# ---- uneven lengths ----
"$weir" synth "$work/long" --format act-jpeg --episodes 1 --steps 7 --size 48x32 >/dev/null || exit 1
mkdir "$work/ragged"
if h5copy -i "$work/act-jpeg/episode_0.hdf5" -o "$work/ragged/episode_0.hdf5" -s /observations -d /observations 2>"$work/err" &&
    h5copy -i "$work/long/episode_0.hdf5" -o "$work/ragged/episode_0.hdf5" -s /action -d /action; then
    run 1 run "$work/ragged"
    err "/action has 7 steps"
    err "has 5 steps"
    err "--allow-ragged"
    one_line
    run 0 info "$work/ragged" --allow-ragged
    out "ragged: 1 episodes cut to their shortest part; 2 rows of their longest parts are left out"
    out "episodes: 1, 5 steps"
    sums "$work/ragged" --allow-ragged --train-split 1
else
    echo "skipped: uneven lengths need h5copy (hdf5-tools)"
fi

# ---- chunk amplification ----
run 0 info "$work/act"
no_out "chunk amplification"
"$weir" synth "$work/wide" --format robomimic-gzip --episodes 1 --steps 40 --size 48x32 >/dev/null || exit 1
run 0 info "$work/wide"
out "times its own bytes"
out "warning: an epoch of 40 frames in random order inflates"
run 0 info "$work/wide" --json
check "in JSON too" python3 - "$work/out" <<'PY'
import json, sys
camera = json.load(open(sys.argv[1]))["cameras"][0]
chunks = camera["chunk_amplification"]
assert chunks["warning"] and chunks["inflated"] > 4 and chunks["epoch_core_s"] > 0, chunks
assert chunks["epoch_inflated_bytes"] == round(chunks["inflated"] * 40 * 48 * 32 * 3), chunks
assert camera["storage"][0]["kind"].startswith("deflate chunks of ") and not camera["storage"][0]["library"]
PY

# ---- its measured cost, and batches in flight that share chunks ----
run 0 run "$work/act"
no_out "chunks: "
for prefetch in 1 40; do
    run 0 run "$work/wide" --batch-size 1 --num-workers 2 --prefetch "$prefetch" --log "$work/$prefetch.jsonl" \
        --checksums "$work/$prefetch.sums"
    out "chunks: "
done
check "sharing chunks does not change the batches" cmp "$work/1.sums" "$work/40.sums"
check "a larger prefetch unpacks less" python3 - "$work/1.jsonl" "$work/40.jsonl" <<'PY'
import json, sys
short, long = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
short, long = (next(line["chunks"] for line in lines if line["type"] == "stages" and line["final"]) for lines in (short, long))
assert short["frames"] == long["frames"] == 80, (short, long)
assert long["blocks"] < short["blocks"] <= short["frames"] and long["chunks"] < short["chunks"], (short, long)
for c in short, long:
    assert c["frame_bytes"] == 80 * 48 * 32 * 3 and c["unpacked_times"] == c["unpacked_bytes"] / c["frame_bytes"], c
    assert abs(c["read_times"] - c["read_bytes"] / c["stored_bytes"]) < 1e-9, c
PY
run 0 report "$work/40.jsonl"
out "chunks: "

# ---- the index file ----
for format in act-jpeg astrobench isaaclab; do
    sums "$work/$format"
    cp "$work/sums" "$work/first"
    for turn in first second; do
        sums "$work/$format" --index "$work/$format.index"
        same "$turn time with --index" first
    done
    out "first batch after"
    files=$(find "$work/$format" -type f -name '*.h*5' | wc -l)
    out "$files files, $files of them from the index file"
done
run 1 run "$work/act" --index "$work/sums"
err "exists and is not an index file; choose another file with --index"
one_line
run 1 info "$work/act" --index "$work/no/such/folder/index"
err "the index cannot be written"
one_line

# ---- unreadable files ----
mkdir "$work/odd"
printf 'not HDF5' >"$work/odd/episode_0.hdf5"
run 1 run "$work/odd"
err "episode_0.hdf5: not an HDF5 file"
one_line
head -c 3000 "$work/robomimic-gzip/"*.hdf5 >"$work/odd/episode_0.hdf5"
run 1 info "$work/odd"
err "is it incomplete"
one_line

# ---- a folder of several datasets ----
mkdir "$work/many"
for size in 48x32 64x48; do
    "$weir" synth "$work/many/$size" --format act-jpeg --episodes 2 --steps 5 --size $size >/dev/null || exit 1
done
"$weir" synth "$work/many/twin" --format robotwin --episodes 1 --steps 5 --size 48x32 >/dev/null || exit 1
run 0 info "$work/many"
out "datasets: 3, in 5 files"
no_out "not opened"
count "^$work/many/(48x32|64x48|twin/data/episode0.hdf5)\$" 3
count '^episodes: 2, 10 steps' 2
count '^  top +48x32 ' 1
count '^  top +64x48 ' 1
run 1 run "$work/many"
err "the folder contains several datasets: \`weir info $work/many\` lists them"
one_line
rm -r "$work/many/twin"
run 0 info "$work/many" # the same except for image size
out "datasets: 2, in 4 files"
run 1 run "$work/many"
err "the image is 64x48, but the camera's first frame was 48x32 (\`weir info\` lists the sizes in a folder)"
cp "$work/many/64x48/episode_1.hdf5" "$work/many/48x32/odd.hdf5"
printf 'not HDF5' >"$work/many/48x32/broken.hdf5"
run 1 info "$work/many"
out "not opened: 1"
out "  $work/many/48x32/broken.hdf5: not an HDF5 file"
out "shares its folder with other datasets: 3 files, the first is $work/many/48x32/odd.hdf5"
err "1 files or folders cannot be opened"
one_line
run 0 info "$work/many" --on-error skip --json
check "it is JSON" python3 -m json.tool "$work/out" /dev/null
count '"(files|datasets|not_opened)":' 3
count '"layout": "act-plus-plus"' 2

# ---- a dataset has the same figures alone and next to another ----
mkdir "$work/beside"
for size in 48x32 64x48; do
    "$weir" synth "$work/beside/$size" --format act-jpeg --episodes 3 --steps 40 --size $size >/dev/null || exit 1
done
run 0 info "$work/beside"
cp "$work/out" "$work/both"
run 0 info "$work/beside/64x48"
grep 'bytes/frame' "$work/out" >"$work/alone"
check "bytes per frame are counted" grep -q 'in [0-9]* frames read' "$work/alone"
check "they equal those in the whole folder" grep -qxFf "$work/alone" "$work/both"

# ---- a camera missing in one episode ----
mkdir "$work/lacks" "$work/lacks_first"
"$weir" synth "$work/three" --format act-jpeg --episodes 4 --steps 5 --size 48x32 --cameras top,wrist >/dev/null || exit 1
"$weir" synth "$work/one" --format act-jpeg --episodes 1 --steps 5 --size 48x32 --cameras top >/dev/null || exit 1
cp "$work/three"/*.hdf5 "$work/lacks"
cp "$work/one/episode_0.hdf5" "$work/lacks/episode_2.hdf5"
run 1 run "$work/lacks"
err "$work/lacks/episode_2.hdf5: no camera \"wrist\"; it has top; choose cameras that all episodes have (--cameras)"
one_line
run 0 info "$work/lacks"
out "not a single dataset: $work/lacks/episode_2.hdf5: no camera \"wrist\"; it has top"
run 0 run "$work/lacks" --cameras top
run 0 run "$work/lacks" --on-error skip
out "episodes left out"
cp "$work/three"/*.hdf5 "$work/lacks_first"
cp "$work/one/episode_0.hdf5" "$work/lacks_first/episode_0.hdf5"
for command in info verify; do
    run 0 $command "$work/lacks_first" # the first episode determines the cameras
    out "camera wrist of $work/lacks_first/episode_1.hdf5 is left out: the first episode, $work/lacks_first/episode_0.hdf5, has"
done

# ---- a LeRobot dataset ----
mkdir -p "$work/lerobot/data/chunk-000" "$work/lerobot/videos/observation.images.top/chunk-000"
: >"$work/lerobot/data/chunk-000/episode_000000.parquet"
: >"$work/lerobot/videos/observation.images.top/chunk-000/episode_000000.mp4"
for command in run info verify; do
    run 1 $command "$work/lerobot"
    err "but Parquet and MP4 files; if it is a LeRobot dataset, its meta/info.json or its list of episodes is missing"
    one_line
done
run 1 run "$work/lerobot/data/chunk-000/episode_000000.parquet"
err "episode_000000.parquet: is a Parquet file; choose the folder of its LeRobot dataset"
one_line

# ---- compress_len in the order of the recorder's camera list: no note ----
run 0 info "$work/act-jpeg" --json
count '"notes": \[\]' 1

finish
