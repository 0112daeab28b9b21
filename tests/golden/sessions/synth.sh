# shellcheck shell=bash disable=SC2086 # run.py defines weir
# What the files of each layout that weir synth writes consist of. tests/datasets/synth_h5py.py checks their values.

list() {
    python3 - <<'PY'
import h5py, os


def show(name, item):
    kind = h5py.check_vlen_dtype(item.dtype) if isinstance(item, h5py.Dataset) else None
    if isinstance(item, h5py.Dataset):
        filters = [item.id.get_create_plist().get_filter(i) for i in range(item.id.get_create_plist().get_nfilters())]
        size = "S" if item.dtype.kind == "S" else f"{kind}*" if kind is not None else item.dtype
        # rows of JPEGs are as long as the longest one
        shape = (item.shape[0], "...") if len(item.shape) == 2 and "images" in name else item.shape
        chunks = item.chunks if shape == item.shape or item.chunks is None else (item.chunks[0], "...")
        print(f"  {name} {size} {shape} chunks {chunks}", *[(f[0], f[2]) for f in filters])
    for key, value in sorted(item.attrs.items()):
        text = value[:40] if isinstance(value, str) else value
        print(f"  {name}@{key} {type(value).__name__} {text!r}" if isinstance(text, str) else f"  {name}@{key} "
              f"{item.attrs.get_id(key).dtype} {text}")


for folder, _, files in sorted(os.walk("data")):
    for file in sorted(files):
        print(os.path.join(folder, file))
        if "1" in file or len(files) == 1:  # the second episode, or a file of all
            with h5py.File(os.path.join(folder, file)) as data:
                show("/", data)
                data.visititems(lambda name, item: None if "demo_0" in name else show(name, item))
PY
}

for format in act act-jpeg act-jpeg-nolen astrobench agilex robotwin robomind robomimic robomimic-gzip libero isaaclab; do
    echo "== $format"
    "$WEIR" synth data --format $format --episodes 3 --steps 5 --size 96x80 >/dev/null
    list
    rm -r data
done
echo "== one demo of one step"
"$WEIR" synth data --format robomimic --episodes 1 --steps 1 --size 16x16 --cameras top >/dev/null
list
