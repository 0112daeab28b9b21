# shellcheck shell=bash disable=SC2086 # run.py defines weir
# Every layout: weir synth writes it, and weir info and weir run recognise it without options. Then custom keys, uneven
# lengths, folders of several layouts, the index file, and errors for unreadable files.

h5copy() {
    python3 -c 'import sys, h5py
with h5py.File(sys.argv[1]) as source, h5py.File(sys.argv[2], "a") as copy:
    source.copy(sys.argv[3], copy, sys.argv[4])' "$@"
}

synth() { "$WEIR" synth "$@" >/dev/null; }

# sums DATA OPTION...: writes the checksums of a run with two workers to the file sums.
sums() { "$WEIR" run "$@" --batch-size 3 --num-workers 2 --checksums sums >/dev/null 2>&1 || echo "weir run $*: status $?"; }

# ---- each layout, without options ----
for format in act act-jpeg act-jpeg-nolen astrobench agilex robotwin robomind robomimic robomimic-gzip libero isaaclab; do
    synth $format --format $format --episodes 2 --steps 5 --size 48x32
    weir info $format
    sums $format
    cp sums first
    "$WEIR" run $format --batch-size 3 --num-workers 0 --checksums sums 2>/dev/null | grep '^fallbacks'
    cmp sums first
done

# ---- the same content, however it is stored ----
sums act-jpeg
cp sums first
sums act-jpeg-nolen
cmp sums first
sums robomimic
cp sums first
sums robomimic-gzip
cmp sums first

# Depth is stored raw in one dataset and as PNG in the other. Actions differ.
for format in agilex robomind; do
    synth depth_$format --format $format --episodes 2 --steps 5 --size 48x32 --cameras top,left_wrist
    sums depth_$format --cameras depth_top,depth_left_wrist
    sed 's/ actions .*//' sums >depth_$format.sums
done
cmp depth_agilex.sums depth_robomind.sums
grep -c . depth_agilex.sums

# ---- depth, on request ----
for format in agilex robomind; do
    weir info $format --json
done
weir info agilex --cameras cam_high,depth_cam_high
weir info robomind --cameras depth_camera_front
sums robomind --cameras camera_front,depth_camera_front
grep -c depth sums
weir run agilex --cameras cam_high,depth_of_nothing

# ---- custom keys ----
sums act --qpos-keys observations/qpos --action-keys action --image-keys observations/images/top,observations/images/wrist
cp sums first
sums act
cmp sums first
weir info act --qpos-keys observations/qpos,observations/qvel --image-keys over=observations/images/top
weir info robomimic --qpos-keys obs/robot0_eef_pos --action-keys actions --image-keys obs/agentview_image
weir run act --qpos-keys observations/torque
weir run act --image-keys a,,b

# ---- several layouts in one folder ----
mkdir mixed
for format in act-jpeg act-jpeg-nolen; do
    synth "high-$format" --format $format --episodes 1 --steps 5 --size 48x32 --cameras cam_high
    cp "high-$format/episode_0.hdf5" "mixed/a_$format.hdf5"
done
weir info mixed --cameras cam_high
synth high-robotwin --format robotwin --episodes 1 --steps 5 --size 48x32 --cameras cam_high
cp high-robotwin/data/episode0.hdf5 mixed/c_2.hdf5
weir run mixed --cameras cam_high
rm mixed/c_2.hdf5
sums mixed --cameras cam_high
cp agilex/episode_0.hdf5 mixed/d.hdf5
weir run mixed --cameras cam_high
mv mixed/d.hdf5 mixed/0.hdf5 # the first file determines the cameras: three
weir run mixed

# ---- a camera whose name contains a comma ----
mkdir comma
cp high-act-jpeg/episode_0.hdf5 comma
h5copy high-act-jpeg/episode_0.hdf5 comma/episode_0.hdf5 /observations/images/cam_high "/observations/images/a,b"
weir info comma --cameras "a,b,cam_high"
weir info comma --cameras "cam_high,a,b"
weir info comma --cameras "a,b"
for to in hdf5:comma-copy packed:comma-copy.weir zarr:comma-copy.zarr; do
    weir convert comma "${to#*:}" --to "${to%:*}"
done
weir run comma --cameras "a,cam_high"

# ---- uneven lengths ----
synth long --format act-jpeg --episodes 1 --steps 7 --size 48x32
mkdir ragged
h5copy act-jpeg/episode_0.hdf5 ragged/episode_0.hdf5 /observations /observations
h5copy long/episode_0.hdf5 ragged/episode_0.hdf5 /action /action
weir run ragged
weir info ragged --allow-ragged
sums ragged --allow-ragged --train-split 1

# ---- chunk amplification ----
weir info act
synth wide --format robomimic-gzip --episodes 1 --steps 40 --size 48x32
weir info wide
weir info wide --json

# ---- its measured cost, and batches in flight that share chunks ----
"$WEIR" run act 2>/dev/null | grep -c "^chunks: "
for prefetch in 1 40; do
    "$WEIR" run wide --batch-size 1 --num-workers 2 --prefetch $prefetch --log $prefetch.jsonl --checksums $prefetch.sums \
        2>/dev/null | grep -o "^chunks: "
done
cmp 1.sums 40.sums
python3 - 1.jsonl 40.jsonl <<'PY'
import json, sys
short, long = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
short, long = (next(line["chunks"] for line in lines if line["type"] == "stages" and line["final"]) for lines in (short, long))
assert short["frames"] == long["frames"] == 80, (short, long)
assert long["blocks"] < short["blocks"] <= short["frames"] and long["chunks"] < short["chunks"], (short, long)
for c in short, long:
    assert c["frame_bytes"] == 80 * 48 * 32 * 3 and c["unpacked_times"] == c["unpacked_bytes"] / c["frame_bytes"], c
    assert abs(c["read_times"] - c["read_bytes"] / c["stored_bytes"]) < 1e-9, c
PY
"$WEIR" report 40.jsonl | grep -o "^chunks: "

# ---- the index file ----
for format in act-jpeg astrobench isaaclab; do
    sums $format
    cp sums first
    for _ in first second; do
        sums $format --index "$format.index"
        cmp sums first
    done
    "$WEIR" run $format --index $format.index 2>/dev/null | tr -s ' \n' ' ' | grep -o '[0-9]* files, [0-9]* of them from the index file'
done
weir run act --index sums
weir info act --index no/such/folder/index

# ---- unreadable files ----
mkdir odd
printf 'not HDF5' >odd/episode_0.hdf5
weir run odd
head -c 3000 robomimic-gzip/*.hdf5 >odd/episode_0.hdf5
weir info odd

# ---- a folder of several datasets ----
mkdir many
for size in 48x32 64x48; do
    synth "many/$size" --format act-jpeg --episodes 2 --steps 5 --size $size
done
synth many/twin --format robotwin --episodes 1 --steps 5 --size 48x32
weir info many
weir run many
rm -r many/twin
weir info many # the same except for image size
"$WEIR" run many --num-workers 0 --no-shuffle --train-split 1 2>&1 | grep '^weir run'
cp many/64x48/episode_1.hdf5 many/48x32/odd.hdf5
printf 'not HDF5' >many/48x32/broken.hdf5
weir info many
weir info many --on-error skip --json

# ---- a dataset has the same figures alone and next to another ----
mkdir beside
for size in 48x32 64x48; do
    synth "beside/$size" --format act-jpeg --episodes 3 --steps 40 --size $size
done
weir info beside
weir info beside/64x48

# ---- a camera missing in one episode ----
mkdir lacks lacks_first
synth three --format act-jpeg --episodes 4 --steps 5 --size 48x32 --cameras top,wrist
synth one --format act-jpeg --episodes 1 --steps 5 --size 48x32 --cameras top
cp three/*.hdf5 lacks
cp one/episode_0.hdf5 lacks/episode_2.hdf5
weir run lacks
weir info lacks
"$WEIR" run lacks --cameras top 2>/dev/null | grep '^errors'
"$WEIR" run lacks --on-error skip 2>/dev/null | grep '^errors'
cp three/*.hdf5 lacks_first
cp one/episode_0.hdf5 lacks_first/episode_0.hdf5
for command in info verify; do
    weir $command lacks_first # the first episode determines the cameras
done

# ---- a LeRobot dataset ----
mkdir -p lerobot/data/chunk-000 lerobot/videos/observation.images.top/chunk-000
: >lerobot/data/chunk-000/episode_000000.parquet
: >lerobot/videos/observation.images.top/chunk-000/episode_000000.mp4
for command in run info verify; do
    weir $command lerobot
done
weir run lerobot/data/chunk-000/episode_000000.parquet

# ---- compress_len in the order of the recorder's camera list: no note ----
weir info act-jpeg --json
