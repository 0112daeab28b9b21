#!/usr/bin/env python3
"""Compares Weir's Zarr support with zarr-python: tests/datasets/compare_zarr.py [WEIR [--all]]

Writes the same arrays as HDF5 with h5py and as Zarr v2 with zarr-python, in a folder and a zip, with every compressor,
some (--all: all) with every chunk size: `weir run --checksums` must be equal for both. Also reads the output of
`weir convert --to zarr` with zarr-python. tests/readers/setup.sh installs zarr 2, numcodecs, h5py and, for encoded
images, imagecodecs; WEIR_READERS_PYTHON names another Python. Exit status 77: a module is missing.
"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PYTHON = os.environ.get("WEIR_READERS_PYTHON", os.path.join(ROOT, "build", "readers-venv", "bin", "python"))
if os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(os.path.dirname(PYTHON), "..")):
    os.execv(PYTHON, [PYTHON, os.path.abspath(__file__)] + sys.argv[1:])
try:
    import h5py
    import numcodecs
    import numpy as np
    import zarr
    if not zarr.__version__.startswith("2."):
        raise ImportError(f"zarr {zarr.__version__} is not 2")
except ImportError as e:
    print(f"skipped: {e}; tests/readers/setup.sh installs what is needed, or WEIR_READERS_PYTHON names a Python that has it")
    sys.exit(77)
try:
    import imagecodecs
    import imagecodecs.numcodecs
    imagecodecs.numcodecs.register_codecs()
except ImportError:
    imagecodecs = None

WEIR = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "release", "weir")
LENGTHS = [23, 7, 31, 1, 40]  # no chunk size divides all their sums
ENDS = np.cumsum(LENGTHS)
H, W = 24, 32


def numbers():
    """The arrays of a replay buffer."""
    random = np.random.default_rng(3)
    n = int(ENDS[-1])
    x = np.linspace(0, 255, W)[None, None, :, None] + np.arange(n)[:, None, None, None] * 3
    image = ((x + random.integers(0, 9, (n, H, W, 3))) % 256).astype(np.uint8)
    return {
        "img": image,
        "state": random.normal(size=(n, 5)).astype(np.float32),
        "action": random.normal(size=(n, 2)).astype(np.float32),
    }


def checksums(path, *options):
    """A run's checksums, or its error line."""
    with tempfile.NamedTemporaryFile(mode="r", encoding="utf-8") as sums:
        ran = subprocess.run([WEIR, "run", path, "--batch-size", "8", "--num-epochs", "1", "--num-workers", "2", "--checksums", sums.name,
                              "--train-split", "1", "--no-shuffle", *options], capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            return f"exit {ran.returncode}: {ran.stderr.strip()}"
        return sums.read()


def write_hdf5(folder, arrays, cameras=("img",), jpegs=None):
    """Writes one file per episode, in ACT's layout."""
    os.makedirs(folder)
    begin = 0
    for number, end in enumerate(ENDS):
        with h5py.File(os.path.join(folder, f"episode_{number}.hdf5"), "w") as f:
            f.attrs["sim"] = True
            f["/observations/qpos"] = arrays["state"][begin:end]
            f["/action"] = arrays["action"][begin:end]
            for camera in cameras:
                if jpegs is None:
                    f[f"/observations/images/{camera}"] = arrays[camera][begin:end]
                    continue
                data = f.create_dataset(f"/observations/images/{camera}", (end - begin,), dtype=h5py.vlen_dtype(np.uint8))
                for t in range(begin, end):
                    data[t - begin] = np.frombuffer(jpegs[t], np.uint8)
        begin = int(end)
    return folder


def write_zarr(path, arrays, chunk=1, compressor=None, dtypes=None, separator=".", cut=None, **options):
    """Writes the arrays like diffusion_policy. cut: shape of chunks that contain parts of frames."""
    store = zarr.ZipStore(path, mode="w") if path.endswith(".zip") else zarr.DirectoryStore(path, dimension_separator=separator)
    root = zarr.group(store, overwrite=not path.endswith(".zip"))
    data, meta = root.create_group("data"), root.create_group("meta")
    for name, values in arrays.items():
        values = values.astype((dtypes or {}).get(name, values.dtype))
        images = values.ndim > 2
        rows = chunk if images else 50
        chunks = (rows,) + (cut if cut and images else values.shape[1:])
        data.create_dataset(name, data=values, chunks=chunks, compressor=compressor if images else options.get("low", compressor),
                            dimension_separator=separator)
    meta.create_dataset("episode_ends", data=ENDS.astype(np.int64), compressor=None)
    store.close()
    return path


def compressors():
    yield "none", None
    for level in (1, 9):
        yield f"zlib{level}", numcodecs.Zlib(level)
    yield "gzip", numcodecs.GZip(5)
    yield "zstd", numcodecs.Zstd(5)
    for name in ("lz4", "lz4hc", "zstd", "zlib", "blosclz"):
        for shuffle in (numcodecs.Blosc.NOSHUFFLE, numcodecs.Blosc.SHUFFLE, numcodecs.Blosc.BITSHUFFLE):
            yield f"blosc-{name}-{shuffle}", numcodecs.Blosc(cname=name, clevel=5, shuffle=shuffle)


class Test:
    def __init__(self, work):
        self.work, self.cases, self.failed, self.all = work, 0, 0, "--all" in sys.argv

    def equal(self, what, got, wanted):
        self.cases += 1
        if got != wanted or not got or got.startswith("exit"):
            self.failed += 1
            print(f"{what}: differs:\n{got[:300]}\nwanted:\n{wanted[:300]}")

    def true(self, what, is_so):
        self.cases += 1
        if not is_so:
            self.failed += 1
            print(f"false: {what}")

    def refused(self, what, got, wanted):
        self.cases += 1
        if not got.startswith("exit 1") or wanted not in got:
            self.failed += 1
            print(f"{what}: wanted a refusal with \"{wanted}\", got: {got[:300]}")

    def path(self, name):
        return os.path.join(self.work, name)


def compare_compressors(test, arrays, wanted):
    for name, compressor in compressors():
        for chunk in (1, 7, 100):
            for end in (".zarr", ".zarr.zip"):
                if not test.all and (chunk != 7 or end != ".zarr") and name not in ("none", "blosc-lz4-1", "zstd"):
                    continue
                path = write_zarr(test.path(f"c{end}"), arrays, chunk, compressor)
                test.equal(f"{name}, chunks of {chunk}, {end}", checksums(path), wanted)
                (shutil.rmtree if end == ".zarr" else os.remove)(path)


def compare_kinds(test, arrays, wanted):
    """Arrays with other separators, chunks, byte orders and types."""
    blosc = numcodecs.Blosc(cname="lz4")
    test.equal("names with slashes", checksums(write_zarr(test.path("slash.zarr"), arrays, 7, blosc, separator="/")), wanted)
    test.equal("chunks that cut frames", checksums(write_zarr(test.path("cut.zarr"), arrays, 7, blosc, cut=(10, 12, 3))), wanted)
    test.equal("chunks that cut frames, raw, zip", checksums(write_zarr(test.path("cut.zarr.zip"), arrays, 1, None, cut=(10, 12, 3))), wanted)
    big = {"state": ">f4", "action": ">f8"}
    test.equal("big-endian numbers", checksums(write_zarr(test.path("big.zarr"), arrays, 7, blosc, big)), wanted)
    for dtype in ("<f4", ">f4", "<f8"):
        path = write_zarr(test.path(f"float{dtype[1:]}{dtype[0] == '>'}.zarr"), arrays, 7, blosc, {"img": dtype})
        test.equal(f"pixels as {dtype}", checksums(path), wanted)
    ones = dict(arrays, img=arrays["img"].astype(np.float32) / 255)
    test.equal("pixels as floats to 1", checksums(write_zarr(test.path("one.zarr"), ones, 7, None)), wanted)
    signed = dict(arrays, img=arrays["img"].astype(np.float32) / 127.5 - 1)
    test.refused("pixels from -1 to 1", checksums(write_zarr(test.path("signed.zarr"), signed, 7, None)), "float pixels are from -1 to 1")
    renamed = test.path("replay_buffer")
    shutil.copytree(test.path("slash.zarr"), renamed)
    test.equal("a folder of another name", checksums(renamed), wanted)
    missing = write_zarr(test.path("missing.zarr"), dict(arrays, img=np.where(np.arange(len(arrays["img"]))[:, None, None, None] == 9, 0, arrays["img"])), 1, None)
    expect = checksums(missing)
    os.remove(os.path.join(missing, "data", "img", "9.0.0.0"))
    test.equal("a chunk that was never written", checksums(missing), expect)


def said(path, *options):
    """stderr of weir run."""
    return subprocess.run([WEIR, "run", path, "--batch-size", "8", "--num-epochs", "1", "--num-workers", "1", *options],
                          capture_output=True, text=True, check=False).stderr


def compare_orders(test, arrays, wanted):
    """Channels-first, gray and RGBA images."""
    blosc, image = numcodecs.Blosc(cname="lz4"), arrays["img"]
    alpha = np.concatenate([image, np.full(image.shape[:3] + (1,), 77, np.uint8)], axis=3)
    gray = image[..., 1]
    same = [("CHW", image.transpose(0, 3, 1, 2)), ("RGBA", alpha), ("RGBA, CHW", alpha.transpose(0, 3, 1, 2))]
    grays = [("gray", gray), ("gray, HW1", gray[..., None]), ("gray, 1HW", gray[:, None])]
    wanted_gray = checksums(write_hdf5(test.path("hdf5-gray"), dict(arrays, img=np.repeat(gray[..., None], 3, axis=3))))
    for name, values in same + grays:
        expect = wanted_gray if name.startswith("gray") else wanted
        cuts = [None, tuple(max(1, n // 2 + 1) for n in values.shape[1:]), tuple(2 for _ in values.shape[1:])]
        for i, (chunk, cut, codec, end) in enumerate(((1, None, None, ".zarr"), (7, None, blosc, ".zarr.zip"), (7, cuts[1], blosc, ".zarr"),
                                                      (3, cuts[2], None, ".zarr.zip"))):
            path = write_zarr(test.path(f"order{i}{end}"), dict(arrays, img=values), chunk, codec, cut=cut)
            test.equal(f"{name}, case {i}", checksums(path), expect)
            (shutil.rmtree if end == ".zarr" else os.remove)(path)
        if values.ndim == 4 and min(values.shape[1], values.shape[3]) > 1:
            for scale, dtype in ((1, ">f4"), (255, "<f2")):
                path = write_zarr(test.path("order.zarr"), dict(arrays, img=(values / scale).astype(dtype)), 7, blosc)
                test.equal(f"{name} as {dtype}", checksums(path), expect if scale == 1 else checksums(write_zarr(
                    test.path("flat.zarr"), dict(arrays, img=(image / scale).astype(dtype)), 7, blosc)))
                shutil.rmtree(path)


def compare_depth(test, arrays):
    """One-channel depth, whatever the channel's axis. Depth is read only if named."""
    depth = arrays["img"][..., 0].astype(np.uint16) * 200
    sums = []
    for name, values in (("HW", depth), ("HW1", depth[..., None]), ("1HW", depth[:, None])):
        path = write_zarr(test.path(f"depth{name}.zarr"), dict(arrays, front_depth=values), 7, None)
        sums.append(checksums(path, "--cameras", "img,front_depth"))
        test.true(f"depth as {name} is read", " depth " in sums[-1])
    test.equal("depth of HW1", sums[1], sums[0])
    test.equal("depth of 1HW", sums[2], sums[0])


def compare_left_out(test, arrays, wanted):
    """Unreadable cameras cause one line, or an error if named. The other cameras are unaffected."""
    image = arrays["img"]
    others = {"uint16 (steps, 24, 32, 3)": image.astype(np.uint16) * 257, "int8 (steps, 24, 32, 3)": (image // 2).astype(np.int8),
              "float32 (steps, 40, 40)": np.full((len(image), 40, 40), 0.5, np.float32),
              "uint16 (steps, 3, 24, 32)": image.astype(np.uint16).transpose(0, 3, 1, 2)}
    for about, values in others.items():
        path = write_zarr(test.path("other.zarr"), dict(arrays, wrist=values), 7, None)
        test.equal(f"next to {about}", checksums(path), wanted)
        lines = [line for line in said(path).splitlines() if "wrist" in line]
        test.true(f"one line about {about}, not {lines}", len(lines) == 1 and f"camera wrist is left out: {about}; images are read from" in lines[0])
        test.refused(f"{about}, named", checksums(path, "--cameras", "img,wrist"), f"camera wrist cannot be read: {about}")
        test.equal(f"{about}, another one named", checksums(path, "--cameras", "img"), wanted)
        test.refused(f"{about}, by its key", checksums(path, "--image-keys", "/data/wrist"), about)
        shutil.rmtree(path)
    longer = {name: np.concatenate([values, values[:3]]) for name, values in arrays.items()}
    path = write_zarr(test.path("longer.zarr"), longer, 7, None)
    test.equal("rows after the last episode", checksums(path), wanted)
    lines = [line for line in said(path).splitlines() if "episode_ends" in line]
    test.true(f"one line about rows after the last episode, not {lines}", len(lines) == 1 and "3 rows" in lines[0])


def compare_encoded(test, arrays, wanted):
    if imagecodecs is None:
        print("imagecodecs is not installed: encoded chunks are not compared")
        return
    doctor = subprocess.run([WEIR, "doctor"], capture_output=True, text=True, check=False).stdout.lower()
    for name, needs, options in (("Jpeg2k", "openjpeg", {"reversible": True, "level": 0}), ("Jpegxl", "libjxl", {"lossless": True})):
        if needs not in doctor:
            print(f"weir was built without {needs}: {name} is not compared")
            continue
        for end in (".zarr", ".zarr.zip"):
            path = write_zarr(test.path(f"{name}{end}"), arrays, 1, getattr(imagecodecs.numcodecs, name)(**options), low=None)
            test.equal(f"{name}, {end}", checksums(path), wanted)
    for name in ("Jpeg", "Png"):
        codec = getattr(imagecodecs.numcodecs, name)()
        for end in (".zarr", ".zarr.zip"):
            path = write_zarr(test.path(f"{name}{end}"), arrays, 1, codec, low=None)
            stored = [codec.encode(np.ascontiguousarray(frame)) for frame in arrays["img"]]
            hdf5 = write_hdf5(test.path(f"hdf5-{name}-{len(end)}"), arrays, jpegs=stored)
            test.equal(f"{name}, {end}", checksums(path), checksums(hdf5))


def convert(source, target, *options):
    ran = subprocess.run([WEIR, "convert", source, target, "--to", "zarr", *options], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(ran.stderr)
    return zarr.open(target, mode="r")


def compare_written(test, arrays):
    """Reads the output of weir convert with zarr-python, like diffusion_policy's ReplayBuffer.copy_from_path."""
    source = write_hdf5(test.path("source"), arrays)
    for chunk in (1, 7):
        target = test.path(f"written{chunk}.zarr")
        root = convert(source, target, "--chunk-frames", str(chunk))
        test.equal(f"written, chunks of {chunk}", checksums(target), checksums(source))
        test.true("episode_ends", root["meta"]["episode_ends"][:].tolist() == ENDS.tolist())
        test.true("data has three arrays", sorted(root["data"].array_keys()) == ["action", "img", "state"])
        for name, values in root["data"].arrays():
            test.true(f"{name} has one row per step", values.shape[0] == root["meta"]["episode_ends"][-1])
            test.true(f"{name} is equal in chunks of {chunk}", values.dtype == arrays[name].dtype and np.array_equal(values[:], arrays[name]))
        test.true("chunks", root["data"]["img"].chunks[0] == chunk)
    if imagecodecs is None:
        return
    for name in ("jpeg", "png"):
        encode, decode = getattr(imagecodecs, name + "_encode"), getattr(imagecodecs, name + "_decode")
        images = [encode(np.ascontiguousarray(frame)) for frame in arrays["img"]]
        root = convert(write_hdf5(test.path(f"{name}-source"), arrays, jpegs=images), test.path(f"{name}-written.zarr"))
        test.true(f"{name} is equal", all(np.array_equal(root["data"]["img"][i], decode(image)) for i, image in enumerate(images)))


def main():
    arrays = numbers()
    with tempfile.TemporaryDirectory() as work:
        test = Test(work)
        wanted = checksums(write_hdf5(test.path("hdf5"), arrays))
        compare_compressors(test, arrays, wanted)
        compare_kinds(test, arrays, wanted)
        compare_orders(test, arrays, wanted)
        compare_depth(test, arrays)
        compare_left_out(test, arrays, wanted)
        compare_encoded(test, arrays, wanted)
        compare_written(test, arrays)
        print(f"{test.cases} cases, {test.failed} failures")
        sys.exit(1 if test.failed else 0)


if __name__ == "__main__":
    main()
