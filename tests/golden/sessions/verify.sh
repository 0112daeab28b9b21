# shellcheck shell=bash disable=SC2034,SC2086,SC2154 # run.py defines weir and uses as
# weir verify: sound data of every layout has no findings, each damage to a copy has a line; the same with any number of
# threads.
one=/observations/images/top

# copy NAME: sets $data to a fresh copy of the sound dataset NAME.
copy() {
    data=copy
    rm -rf "$data"
    cp -r "$1" "$data"
}

# damage FILE: changes FILE with the Python on stdin, where f is the open file.
damage() {
    python3 -c "import sys, h5py, numpy as np
with h5py.File(sys.argv[1], 'r+') as f:
$(sed 's/^/    /')" "$data/$1"
}

synth() { "$WEIR" synth "$@" >/dev/null; }

# ---- sound data ----
for format in act act-jpeg act-jpeg-nolen astrobench agilex robotwin robomind robomimic robomimic-gzip libero isaaclab; do
    synth $format --format "$format" --episodes 2 --steps 40 --size 32x32
    for how in "" --fast; do
        weir verify $format $how
    done
done

# ---- depth too, unless cameras are named ----
weir verify agilex
weir verify agilex --cameras cam_high
weir verify agilex --index index
weir verify agilex --index index
weir info agilex --index index

# ---- frames ----
copy act-jpeg-nolen
damage episode_1.hdf5 <<'PY'
row = f['/observations/images/top'][3]
row[bytes(row).rindex(b'\xff\xd9') - 60:] = 0
f['/observations/images/top'][3] = row
PY
weir verify "$data"
"$WEIR" run "$data" --num-workers 1 --no-shuffle --train-split 1 --batch-size 1 2>&1 | grep '^weir run'
weir verify "$data" --fast

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
weir verify "$data"
"$WEIR" run "$data" --num-epochs 1 --train-split 1 --json 2>&1 | grep -oE '"(warned|bad)_frames":[0-9]*'
weir verify "$data" --on-warning fail
"$WEIR" run "$data" --num-epochs 1 --on-warning fail 2>&1 | grep -o 'extraneous bytes before marker 0xd9'
weir convert "$data" flawed --to hdf5
weir verify flawed
weir convert "$data" unflawed --to hdf5 --on-warning fail

copy act-jpeg-nolen
damage episode_0.hdf5 <<'PY'
f['/observations/images/top'][5:8] = 7
f['/observations/images/top'][9] = 0
PY
weir verify "$data"
weir verify "$data" --fast

# another size
synth small --format act-jpeg-nolen --episodes 1 --steps 2 --size 24x16
copy act-jpeg-nolen
cp small/episode_0.hdf5 other.hdf5
damage episode_1.hdf5 <<PY
with h5py.File('other.hdf5') as g:
    other = g['$one'][0]
    row = f['$one'][39] * 0
    n = min(len(row), len(other))
    assert not other[n:].any()
    row[:n] = other[:n]
    f['$one'][39] = row
PY
for how in "" --fast; do
    weir verify "$data" $how
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
weir verify "$data"
copy astrobench
damage "$(find "$data" -name '*.h5' -printf '%P\n' | sort | head -n 1)" <<'PY'
group = f['/observations']
for name in [n for n in group if n.startswith('depth')]:
    for t in range(3):
        group[name][t] = np.append(group[name][t], np.arange(50, dtype='u1'))
PY
weir verify "$data"

# a chunk that cannot be unpacked makes its frames unusable
copy robomimic-gzip
file=$(find "$data" -name '*.hdf5')
python3 - "$file" <<'PY'
import h5py, sys
with h5py.File(sys.argv[1]) as f:
    images = []
    f.visititems(lambda name, d: images.append(d) if isinstance(d, h5py.Dataset) and d.ndim == 4 else None)
    chunk = images[0].id.get_chunk_info(0)
with open(sys.argv[1], 'r+b') as f:
    f.seek(chunk.byte_offset + chunk.size // 2)
    f.write(bytes(16))
PY
weir verify "$data"

# ---- episodes ----
copy act-jpeg
damage episode_1.hdf5 <<'PY'
f['/observations/qpos'][4, 2] = np.nan
PY
weir verify "$data"

weir verify "$data" --json
damage episode_1.hdf5 <<'PY'
f['/observations/qpos'][4, 2] = 0
f['/action'][3, 1] = np.inf
PY
weir verify "$data" --json
damage episode_1.hdf5 <<'PY'
f['/action'][3, 1] = 0
del f['/observations/images/top']
PY
weir verify "$data" --json
rm "$data/episode_0.hdf5"
mkdir "copy/a: b[1][2]:"
mv "$data/episode_1.hdf5" "copy/a: b[1][2]:/"
cp act-jpeg/episode_0.hdf5 "$data"
: >"copy/a: b[1][2]:/episode_1.hdf5"
weir verify "$data" --json

copy act-jpeg
head -c 3000 act-jpeg/episode_1.hdf5 >"$data/episode_1.hdf5"
weir verify "$data" --json
weir verify "$data"
rm "$data/episode_0.hdf5"
weir verify "$data"
weir verify "$data/episode_1.hdf5"

copy act-jpeg
damage episode_1.hdf5 <<'PY'
q = f['/observations/qpos'][:, :7]
del f['/observations/qpos']
f['/observations/qpos'] = q
PY
cp act-jpeg/episode_1.hdf5 "$data/episode_2.hdf5"
weir verify "$data"
weir verify "$data" --json

copy act-jpeg
damage episode_1.hdf5 <<'PY'
q = f['/observations/qpos'][:37]
del f['/observations/qpos']
f['/observations/qpos'] = q
PY
weir verify "$data"
weir verify "$data" --json
weir verify "$data" --allow-ragged

# ---- no permission ----
if [ "$(id -u)" -eq 0 ]; then
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi
copy act-jpeg
cp "$data/episode_0.hdf5" "$data/episode_2.hdf5"
mkdir "$data/locked" "$data/listed"
cp "$data/episode_0.hdf5" "$data/listed/episode_3.hdf5"
chmod 755 .. .
chmod -R a+rX "$data"
weir verify "$data"
chmod 0 "$data/episode_1.hdf5"
weir verify "$data/episode_1.hdf5"
chmod 0 "$data/locked"
chmod a-x "$data/listed"
: >"$data/episode_4.hdf5"
weir verify "$data"
weir verify "$data/locked"
weir verify "$data/listed/episode_3.hdf5"
chmod 755 "$data/locked" "$data/listed"
as=()

# ---- lines ----
copy act-jpeg
: >"$data/episode_2.hdf5"
(unset COLUMNS && weir verify "$data")
COLUMNS=60 weir verify "$data"
COLUMNS=60 weir verify "$data" --wide

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
weir verify "$data"
damage episode_1.hdf5 <<'PY'
f['/observations/images/top'][20] = f['/observations/images/top'][35]
PY
weir verify "$data" --cameras top

copy act-jpeg
for episode in 0 1; do
    damage "episode_$episode.hdf5" <<'PY'
f['/action'][:, 5] = 0
f['/action'][:, 7:9] = -0.5
PY
done
weir verify "$data"

copy act-jpeg
synth short --format act-jpeg --episodes 1 --steps 25 --size 32x32
cp short/episode_0.hdf5 "$data/episode_2.hdf5"
weir verify "$data"

# ---- values far from all others ----
copy act-jpeg
damage episode_1.hdf5 <<'PY'
f['/action'][7, 3] = 1e9
f['/observations/qpos'][5:8, 0] = -1e9
f['/action'][9, 6] = 300
PY
weir verify "$data"
weir verify "$data" --json

# ---- chunks that are lost, or were never written ----
copy robomimic-gzip
file=$(find "$data" -name '*.hdf5')
python3 - "$file" <<'PY'
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
    weir verify "$data" $how --cameras agentview_image
done
weir convert act lost.zarr --to zarr
rm "lost.zarr/data/top/"{5,6,45}.0.0.0 lost.zarr/data/action/0.0
weir verify lost.zarr --cameras top

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
weir info "$data" --cameras top

# ---- errors name the episode within a file ----
weir convert act-jpeg rlds --to tfrecord
sed -i 's/"14"/"5"/' rlds/features.json
weir verify rlds

# ---- several datasets in a folder ----
mkdir many
cp -r act astrobench robotwin many
data=many
damage act/episode_0.hdf5 <<'PY'
f['/action'][:, 3] = 1
PY
echo "not HDF5" >"$data/robotwin/bad.hdf5"
weir verify "$data"

# ---- the output is reproducible ----
copy robotwin
python3 - "$data" <<'PY' 
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
weir verify "$data" --num-workers 1
"$WEIR" verify "$data" --num-workers 1 | grep -v '^time' >one
for workers in 2 4 auto; do
    cmp one <("$WEIR" verify "$data" --num-workers "$workers" | grep -v '^time')
done

# ---- JSON ----
weir verify "$data" --json
weir verify act --json

# ---- invalid input ----
weir verify
weir verify a b
weir verify act --num-workers 0
weir verify nowhere
weir verify act --cameras nose
weir verify nowhere --json
python3 - "$WEIR" act 2>&1 <<'PY'
import os, resource, sys
os.closerange(3, 256)
resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))
os.execv(sys.argv[1], [sys.argv[1], "verify", sys.argv[2]])
PY
echo "exit status $?"
