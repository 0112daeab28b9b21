#!/bin/bash
# weir verify: sound data of every layout has no findings; each damage to a copy yields one line and its exit status;
# the output is the same in every run and with any number of threads; --fast, --json, bad arguments.
# Usage: WEIR_PROGRAM=build/release/weir tests/pipeline/test_verify.sh
# shellcheck source=tests/tools/shell_checks.sh
. "$(dirname "$0")/../tools/shell_checks.sh"
python=/usr/bin/python3
if ! "$python" -c 'import h5py, numpy' 2>/dev/null; then
    echo "no h5py: skipped"
    [ -n "${CI:-}" ] && exit 1
    exit 77
fi

# findings LINE...: the last run printed exactly these findings, in this order.
findings() {
    grep -vE '^(lengths|checked|time|findings|datasets): |: lengths: ' "$work/out" >"$work/found"
    printf '%s\n' "$@" | sed '/^$/d' >"$work/expected"
    check "findings are as expected: $(diff "$work/expected" "$work/found" | head -n 6)" cmp -s "$work/expected" "$work/found"
}

# copy NAME: sets $data to a fresh copy of the sound dataset NAME.
copy() {
    data=$work/copy
    rm -rf "$data"
    cp -r "$work/$1" "$data"
}

# damage FILE: changes FILE with the Python on stdin, where f is the open file.
damage() {
    check "damaging $1" "$python" -c "import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
$(sed 's/^/    /')" "$data/$1"
}

# as_run: weir run fails on the damaged frame with the text of the first finding.
as_run() {
    local line
    line=$(head -n 1 "$work/found")
    run 1 run "$data" --num-workers 1 --no-shuffle --train-split 1 --batch-size 1
    err "weir run: $line"
}

# ---- sound data ----
for format in act act-jpeg act-jpeg-nolen astrobench agilex robotwin robomind robomimic robomimic-gzip libero isaaclab; do
    "$weir" synth "$work/$format" --format "$format" --episodes 2 --steps 40 --size 32x32 >/dev/null || exit 1
    for how in "" --fast; do
        # shellcheck disable=SC2086 # no option or one
        run 0 verify "$work/$format" $how
        findings
        out "findings: none"
        check "nothing on stderr" [ ! -s "$work/err" ]
    done
done

# ---- depth too, unless cameras are named ----
run 0 verify "$work/agilex"
cp "$work/out" "$work/all"
frames=$(sed -nE 's/^checked: .* ([0-9]+) frames, .* [KM]iB.*/\1/p' "$work/all")
run 0 verify "$work/agilex" --cameras cam_high
out "checked: 2 episodes, 80 frames"
check "depth cameras are checked ($frames frames)" [ "$frames" -gt 240 ]
run 0 verify "$work/agilex" --index "$work/index"
run 0 verify "$work/agilex" --index "$work/index"
out " $frames frames"
run 0 info "$work/agilex" --index "$work/index"
no_out raw16

# ---- frames ----
one=/observations/images/top
copy act-jpeg-nolen
damage episode_1.hdf5 <<'PY'
row = f['/observations/images/top'][3]
row[bytes(row).rindex(b'\xff\xd9') - 60:] = 0
f['/observations/images/top'][3] = row
PY
run 3 verify "$data"
count "^$data/episode_1.hdf5: $one\\[3\\]: " 1
out "2 episodes, 160 frames"
out "; 1 frame is unusable"
out "findings: 1 range of frames;"
findings "$(head -n 1 "$work/out")"
as_run
run 0 verify "$data" --fast

# Extraneous bytes before a marker, as many cameras write them: counted, or refused if that is requested.
copy act-jpeg-nolen
damage episode_0.hdf5 <<'PY'
frames = f['/observations/images/top'][:]
end = max(bytes(row).rindex(b'\xff\xd9') for row in frames)
rows = np.zeros((len(frames), end + 22), np.uint8)
for row, frame in zip(rows, frames):
    end = bytes(frame).rindex(b'\xff\xd9')
    row[:end], row[end:end + 20], row[end + 20:end + 22] = frame[:end], 0x55, (0xff, 0xd9)
del f['/observations/images/top']
f['/observations/images/top'] = rows
PY
run 0 verify "$data"
out "findings: none; 0 frames are unusable"
out "warnings: 40 JPEGs have a flaw, such as extraneous bytes"
run 0 run "$data" --num-epochs 1 --train-split 1 --json
out '"warned_frames":40'
out '"bad_frames":0'
run 3 verify "$data" --on-warning fail
out "extraneous bytes before marker 0xd9"
out "; 40 frames are unusable"
run 1 run "$data" --num-epochs 1 --on-warning fail
err "extraneous bytes before marker 0xd9"
run 0 convert "$data" "$work/flawed" --to hdf5
run 0 verify "$work/flawed"
out "warnings: 40 JPEGs"
run 1 convert "$data" "$work/unflawed" --to hdf5 --on-warning fail
err "extraneous bytes before marker 0xd9"

copy act-jpeg-nolen
damage episode_0.hdf5 <<'PY'
f['/observations/images/top'][5:8] = 7
f['/observations/images/top'][9] = 0
PY
run 3 verify "$data"
count "^$data/episode_0.hdf5: $one\\[5\\.\\.7\\]: " 1
count "^$data/episode_0.hdf5: $one\\[9\\]: " 1
out "; 4 frames are unusable"
out "findings: 2 ranges of frames;"
grep -v '^checked\|^time' "$work/out" >"$work/slow"
run 3 verify "$data" --fast
grep -v '^checked\|^time' "$work/out" >"$work/fast"
check "--fast finds frames without a header" cmp "$work/slow" "$work/fast"

# another size
"$weir" synth "$work/small" --format act-jpeg-nolen --episodes 1 --steps 2 --size 24x16 >/dev/null || exit 1
copy act-jpeg-nolen
cp "$work/small/episode_0.hdf5" "$work/other.hdf5"
damage episode_1.hdf5 <<PY
with h5py.File('$work/other.hdf5') as g:
    other = g['$one'][0]
    row = f['$one'][39] * 0
    n = min(len(row), len(other))
    assert not other[n:].any()
    row[:n] = other[:n]
    f['$one'][39] = row
PY
for how in "" --fast; do
    # shellcheck disable=SC2086
    run 3 verify "$data" $how
    findings "$data/episode_1.hdf5: ${one}[39]: the image is 24x16, but the camera's first frame was 32x32 (\`weir info\` lists the sizes in a folder)"
    out "findings: 1 range of frames of another size;"
done

# bytes after the end of a JPEG or PNG do not matter
copy act-jpeg-nolen
damage episode_0.hdf5 <<'PY'
for t in range(40):
    row = f['/observations/images/top'][t]
    end = bytes(row).rindex(b'\xff\xd9') + 2
    row[end:] = t + 1
    f['/observations/images/top'][t] = row
PY
run 0 verify "$data"
findings
copy astrobench
damage "$(find "$data" -name '*.h5' -printf '%P\n' | sort | head -n 1)" <<'PY'
group = f['/observations']
for name in [n for n in group if n.startswith('depth')]:
    for t in range(3):
        group[name][t] = np.append(group[name][t], np.arange(50, dtype='u1'))
PY
run 0 verify "$data"
findings

# a chunk that cannot be unpacked makes its frames unusable
copy robomimic-gzip
file=$(find "$data" -name '*.hdf5')
check "damaging a chunk" "$python" - "$file" <<'PY'
import h5py, sys
with h5py.File(sys.argv[1]) as f:
    images = []
    f.visititems(lambda name, d: images.append(d) if isinstance(d, h5py.Dataset) and d.ndim == 4 else None)
    chunk = images[0].id.get_chunk_info(0)
    name, rows = images[0].name, images[0].chunks[0]
with open(sys.argv[1], 'r+b') as f:
    f.seek(chunk.byte_offset + chunk.size // 2)
    f.write(bytes(16))
print(name, rows, file=open(sys.argv[1] + '.chunk', 'w'))
PY
read -r name rows <"$file.chunk"
run 3 verify "$data"
count "^$file: $name\\[0(\\.\\.$((rows - 1)))?\\]: chunk 0 of its block: " 1
out "; $rows frames are unusable"

# ---- episodes ----
copy act-jpeg
damage episode_1.hdf5 <<'PY'
f['/observations/qpos'][4, 2] = np.nan
PY
run 3 verify "$data"
findings "$data/episode_1.hdf5: /observations/qpos[4][2]: is nan; repair it or remove the episode"
out "findings: 1 episode;"
out "checked: 1 episodes, 80 frames"

# placed FILE DATASET T DIMENSION: --json of the last damage has one finding, an episode at this place; none: null.
placed() {
    run 3 verify "$data" --json
    check "the finding is in $*" "$python" -c 'import json, sys
(found,) = (f for f in json.load(open(sys.argv[1]))["findings"] if f["unreadable"])
place = [found["kind"]] + ["none" if found[k] is None else str(found[k]) for k in ("file", "dataset", "t", "dimension")]
assert place == ["episode"] + sys.argv[2:], place
assert found["text"].startswith(found["file"] + ": "), found' "$work/out" "$@"
}
placed "$data/episode_1.hdf5" /observations/qpos 4 2
damage episode_1.hdf5 <<'PY'
f['/observations/qpos'][4, 2] = 0
f['/action'][3, 1] = np.inf
PY
placed "$data/episode_1.hdf5" /action 3 1
damage episode_1.hdf5 <<'PY'
f['/action'][3, 1] = 0
del f['/observations/images/top']
PY
placed "$data/episode_1.hdf5" none none none
rm "$data/episode_0.hdf5"
mkdir "$work/copy/a: b[1][2]:"
mv "$data/episode_1.hdf5" "$work/copy/a: b[1][2]:/"
cp "$work/act-jpeg/episode_0.hdf5" "$data"
: >"$work/copy/a: b[1][2]:/episode_1.hdf5"
placed "$data/a: b[1][2]:/episode_1.hdf5" none none none

copy act-jpeg
head -c 3000 "$work/act-jpeg/episode_1.hdf5" >"$data/episode_1.hdf5"
placed "$data/episode_1.hdf5" none none none
run 3 verify "$data"
count "^$data/episode_1.hdf5: " 1
out "findings: 1 episode;"
rm "$data/episode_0.hdf5"
run 3 verify "$data"
count "^$data/episode_1.hdf5: " 1
out "findings: 1 episode;"
out "checked: 0 episodes"
run 3 verify "$data/episode_1.hdf5"
out "findings: 1 episode;"

copy act-jpeg
damage episode_1.hdf5 <<'PY'
q = f['/observations/qpos'][:, :7]
del f['/observations/qpos']
f['/observations/qpos'] = q
PY
cp "$work/act-jpeg/episode_1.hdf5" "$data/episode_2.hdf5"
run 3 verify "$data"
findings "$data/episode_1.hdf5: state and actions have 7 and 14 dimensions, but in $data/episode_0.hdf5 they have 14 and 14"
placed "$data/episode_1.hdf5" none none none

copy act-jpeg
damage episode_1.hdf5 <<'PY'
q = f['/observations/qpos'][:37]
del f['/observations/qpos']
f['/observations/qpos'] = q
PY
run 3 verify "$data"
count "^$data/episode_1.hdf5: " 1
out "findings: 1 episode;"
placed "$data/episode_1.hdf5" none none none
run 0 verify "$data" --allow-ragged
findings "note: $data: 1 episodes cut to their shortest part, 3 rows of the longest left out"

# ---- no permission ----
if [ "$(id -u)" -eq 0 ]; then
    as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
else
    as_nobody=()
fi
# denied STATUS PATH: weir verify by a user without permission.
denied() {
    "${as_nobody[@]}" "$weir" verify "$2" >"$work/out" 2>"$work/err"
    status=$?
    check "verify exits with $1 (was $status)" [ "$status" -eq "$1" ]
}
copy act-jpeg
cp "$data/episode_0.hdf5" "$data/episode_2.hdf5"
mkdir "$data/locked" "$data/listed"
cp "$data/episode_0.hdf5" "$data/listed/episode_3.hdf5"
chmod 755 "$work"
chmod -R a+rX "$data"
denied 0 "$data"
chmod 0 "$data/episode_1.hdf5"
denied 1 "$data/episode_1.hdf5"
count "^$data/episode_1.hdf5: Permission denied" 1
out "findings: 1 path without read permission; 0 frames are unusable"
err "weir verify: 1 path without read permission could not be checked; run it as a user who may read the data"
one_line
chmod 0 "$data/locked"
chmod a-x "$data/listed"
: >"$data/episode_4.hdf5"
denied 1 "$data"
out "findings: 1 episode, 3 paths without read permission; 0 frames are unusable"
out "checked: 2 episodes"
denied 1 "$data/locked"
denied 1 "$data/listed/episode_3.hdf5"
chmod 755 "$data/locked" "$data/listed"

# ---- lines ----
copy act-jpeg
: >"$data/episode_2.hdf5"
env -u COLUMNS "$weir" verify "$data" >"$work/out"
count "^$data/episode_2.hdf5: not an HDF5 file; .*lists$" 1
COLUMNS=60 run 3 verify "$data"
count "^$data/episode_2.hdf5: not an HDF5 file; .*lists$" 0
COLUMNS=60 run 3 verify "$data" --wide
count "^$data/episode_2.hdf5: not an HDF5 file; .*lists$" 1

# ---- notes on readable data ----
copy act-jpeg-nolen
damage episode_0.hdf5 <<'PY'
images = f['/observations/images/top']
images[:] = np.tile(images[0], (40, 1))
PY
damage episode_1.hdf5 <<'PY'
images = f['/observations/images/top']
images[4:34] = np.tile(images[4], (30, 1))
PY
run 0 verify "$data"
findings "note: $data/episode_0.hdf5: ${one}[0..39]: all 40 frames of the episode are the same" \
    "note: $data/episode_1.hdf5: ${one}[4..33]: the same frame in 30 steps"
out "findings: 1 still camera, 1 repeated image;"
damage episode_1.hdf5 <<'PY'
f['/observations/images/top'][20] = f['/observations/images/top'][35]
PY
run 0 verify "$data" --cameras top
out "findings: 1 still camera;"
no_out "repeat"

copy act-jpeg
for episode in 0 1; do
    damage "episode_$episode.hdf5" <<'PY'
f['/action'][:, 5] = 0
f['/action'][:, 7:9] = -0.5
PY
done
run 0 verify "$data"
findings "note: $data: /action[:][5]: is 0 in all 80 steps" "note: $data: /action[:][7..8]: is -0.5 in all 80 steps"

copy act-jpeg
"$weir" synth "$work/short" --format act-jpeg --episodes 1 --steps 25 --size 32x32 >/dev/null || exit 1
cp "$work/short/episode_0.hdf5" "$data/episode_2.hdf5"
run 0 verify "$data"
out "lengths: min 25, median 40, max 40; 1 of 3 episodes differ from the median: $data/episode_2.hdf5 (25)"
findings

# ---- values far from all others ----
copy act-jpeg
damage episode_1.hdf5 <<'PY'
f['/action'][7, 3] = 1e9
f['/observations/qpos'][5:8, 0] = -1e9
f['/action'][9, 6] = 300
PY
run 0 verify "$data"
count "^note: $data/episode_1.hdf5: /observations/qpos\\[5\\]\\[0\\]: is -1e\\+09, but half of all values are between .* \\(3 such steps in the episode\\)$" 1
count "^note: $data/episode_1.hdf5: /action\\[7\\]\\[3\\]: is 1e\\+09, but half of all values are between [-0-9.e]+ and [-0-9.e]+$" 1
out "findings: 2 outliers;"
run 0 verify "$data" --json
check "JSON has step and dimension" "$python" -c 'import json, sys
found = json.load(open(sys.argv[1]))["findings"]
assert [(f["kind"], f["t"], f["dimension"], f["unreadable"], f["wrong"]) for f in found] == [
    ("outlier", 5, 0, False, False), ("outlier", 7, 3, False, False)], found' "$work/out"

# ---- chunks that are lost, or were never written ----
copy robomimic-gzip
file=$(find "$data" -name '*.hdf5')
check "leaving out chunks" "$python" - "$file" <<'PY'
import h5py, sys
with h5py.File(sys.argv[1], "r+") as f:
    for name, chunk, rows in (("obs/agentview_image", 1, (0, 5)), ("actions", 10, (0, 30))):
        key = "data/demo_1/" + name
        values = f[key][:]
        del f[key]
        written = f.create_dataset(key, values.shape, values.dtype, chunks=(chunk,) + values.shape[1:], compression="gzip")
        written[rows[0]:rows[1]] = values[rows[0]:rows[1]]
PY
for how in "" --fast; do
    # shellcheck disable=SC2086
    run 0 verify "$data" $how --cameras agentview_image
    count "^note: $file: /data/demo_1/obs/agentview_image\\[5\\.\\.39\\]: a chunk was never written or is lost; it reads as the fill value$" 1
    count "^note: .*: chunks of state or actions were never written, or are lost, in 1 of 2 episodes, the first is $file: /data/demo_1; their rows contain the fill value$" 1
done
if built_in zarr; then
    run 0 convert "$work/act" "$work/lost.zarr" --to zarr
    rm "$work/lost.zarr/data/top/"{5,6,45}.0.0.0 "$work/lost.zarr/data/action/0.0"
    run 0 verify "$work/lost.zarr" --cameras top
    count "^note: $work/lost.zarr: episode 0/data/top\\[5\\.\\.6\\]: a chunk was never written or is lost; it reads as the fill value$" 1
    count "^note: $work/lost.zarr: episode 1/data/top\\[5\\]: a chunk was never written" 1
    count "^note: $work/lost.zarr: chunks of state or actions were never written, or are lost, in 2 of 2 episodes, the first is $work/lost.zarr: episode 0; " 1
fi

# A sparse file that claims 42 million chunks: no index of 0.7 GB is allocated; the HDF5 library reads the frames.
copy act-jpeg
rm "$data/episode_1.hdf5"
damage episode_0.hdf5 <<'PY'
images = f['/observations/images']
del images['top'], f['/compress_len']
f.attrs['compress'] = False
images.create_dataset('top', (40, 1024, 2048, 3), 'u1', chunks=(1, 1, 2, 3))[0, 0, 0] = 7
PY
truncate -s 5G "$data/episode_0.hdf5"
run 0 info "$data" --cameras top
out "0.0 % of the frames by extents, 100.0 % through the HDF5 library"

# ---- errors name the episode within a file ----
run 0 convert "$work/act-jpeg" "$work/rlds" --to tfrecord
sed -i 's/"14"/"5"/' "$work/rlds/features.json"
run 3 verify "$work/rlds"
count "$work/rlds/[^ ]*: record 0: /steps/observation/state: 560 values in 40 steps, but features.json declares 5 per step; " 1

# ---- several datasets in a folder ----
mkdir "$work/many"
cp -r "$work/act" "$work/astrobench" "$work/robotwin" "$work/many"
data=$work/many
damage act/episode_0.hdf5 <<'PY'
f['/action'][:, 3] = 1
PY
echo "not HDF5" >"$data/robotwin/bad.hdf5"
run 3 verify "$data"
out "datasets: 3;"
out "$data/act: lengths: min 40, median 40, max 40"
count "^$data/robotwin/bad.hdf5: " 1
out "findings: 1 episode;"

# ---- the output is reproducible ----
copy robotwin
"$python" - "$data" <<'PY' || exit 1
import glob, random, sys
draw = random.Random(5)
for path in glob.glob(sys.argv[1] + '/**/*.hdf5', recursive=True):
    with open(path, 'r+b') as f:
        bytes_ = f.read()
        at = -1
        starts = []
        while (at := bytes_.find(b'\xff\xd8\xff', at + 1)) >= 0:
            starts.append(at)
        for at in draw.sample(starts, 25):
            f.seek(at + 700)
            f.write(b'\xff\xd9')
PY
run 3 verify "$data" --num-workers 1
grep -v '^time' "$work/out" >"$work/first"
check "there are findings to compare ($(grep -c 'rgb\[' "$work/first"))" [ "$(grep -c 'rgb\[' "$work/first")" -ge 10 ]
for workers in 1 2 4 auto; do
    run 3 verify "$data" --num-workers "$workers"
    grep -v '^time' "$work/out" >"$work/again"
    check "the same with $workers workers" cmp "$work/first" "$work/again"
done

# ---- JSON ----
run 3 verify "$data" --json
check "JSON has the findings of the text" "$python" - "$work/out" "$work/first" <<'PY'
import json, sys
told, lines = json.load(open(sys.argv[1])), open(sys.argv[2]).read().splitlines()
texts = [f["text"] for f in told["findings"]]
assert texts == lines[:len(texts)] and len(texts) == told["unreadable"] > 0, told
assert sum(f["frames"] for f in told["findings"]) == told["bad_frames"], told
assert all(f["text"].startswith(f["file"] + ": " + f["dataset"] + "[%d" % f["t"]) for f in told["findings"]), told
assert told["error"] is None and told["episodes"] == 2 and told["datasets"][0]["lengths"]["median"] == 40, told
PY
run 0 verify "$work/act" --json
check "JSON of sound data" "$python" -c 'import json, sys
told = json.load(open(sys.argv[1]))
assert told["findings"] == [] and told["frames"] == 160 and told["unreadable"] == told["wrong"] == 0, told' "$work/out"

# ---- invalid input ----
run 2 verify
run 2 verify a b
run 2 verify "$work/act" --num-workers 0
run 1 verify "$work/nowhere"
one_line
err "weir verify: $work/nowhere"
run 1 verify "$work/act" --cameras nose
one_line
err 'no camera "nose"'
run 1 verify "$work/nowhere" --json
one_line
check "errors are JSON, too" "$python" -c 'import json, sys
assert json.load(open(sys.argv[1]))["error"]' "$work/out"
"$python" - "$weir" "$work/act" >"$work/out" 2>"$work/err" <<'PY'
import os, resource, sys
os.closerange(3, 256)
resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))
os.execv(sys.argv[1], [sys.argv[1], "verify", sys.argv[2]])
PY
check "without descriptors it ends with 1" [ $? -eq 1 ]
one_line
err "ulimit -n"
no_out "findings"
finish
