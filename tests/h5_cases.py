"""Small HDF5 datasets: every layout, every way of storing frames. Each case is (name, path, expectations): see cases()."""
import io
import os
import subprocess
import sys
import textwrap

import h5py
import numpy as np
from PIL import Image

STEPS, HEIGHT, WIDTH = 7, 12, 16


def random(seed):
    return np.random.default_rng(seed)


def raw_frames(seed=0, steps=STEPS, height=HEIGHT, width=WIDTH):
    """Smooth enough to be compressed, different everywhere."""
    frames = random(seed).integers(0, 6, (steps, height, width, 3))
    return (frames + np.arange(steps)[:, None, None, None] * 9 + np.arange(width)[None, None, :, None]).astype(np.uint8)


def jpeg(seed, width=WIDTH, height=HEIGHT):
    out = io.BytesIO()
    small = random(seed).integers(0, 255, (3, 4, 3)).astype(np.uint8)
    Image.fromarray(small).resize((width, height), Image.BICUBIC).save(out, "JPEG", quality=60 + seed % 40)
    return np.frombuffer(out.getvalue(), np.uint8)


def depth_png(seed):
    out = io.BytesIO()
    Image.fromarray(random(seed).integers(0, 5000, (HEIGHT, WIDTH)).astype(np.uint16)).save(out, "PNG")
    return np.frombuffer(out.getvalue(), np.uint8)


def add_state(file, steps=STEPS, seed=0, dtype="f4"):
    """qpos and action of the ACT family."""
    rows = random(seed + 50).uniform(-3, 3, (steps, 7))
    if np.dtype(dtype).kind in "iu":
        rows = np.round(rows * 30 + 100)
    file["observations/qpos"] = rows[:, :4].astype(dtype)
    file["action"] = rows[:, 4:].astype(dtype)


class Maker:
    def __init__(self, folder):
        self.folder, self.made = folder, 0

    def path(self, name="episode_0.hdf5"):
        self.made += 1
        folder = os.path.join(self.folder, f"case_{self.made}")
        os.makedirs(folder)
        return os.path.join(folder, name)

    def raw(self, name, expect=None, file_options=None, frames=None, fill=None, **storage):
        """One ACT episode with one camera of raw frames stored like this."""
        path = self.path()
        frames = raw_frames() if frames is None else frames
        with h5py.File(path, "w", **(file_options or {})) as file:
            add_state(file, len(frames))
            dataset = file.create_dataset(
                "observations/images/top", frames.shape, frames.dtype, fillvalue=fill, **storage
            )
            dataset[...] = frames
        return name, os.path.dirname(path), expect or {}

    def low_level(self, name, prepare, expect=None, written=range(STEPS), file_options=None):
        """The same, with a creation property list that prepare(list, file) fills."""
        path = self.path()
        frames = raw_frames()
        with h5py.File(path, "w", **(file_options or {})) as file:
            add_state(file)
            group = file.require_group("observations/images")
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            prepare(plist, path)
            space = h5py.h5s.create_simple(frames.shape)
            dataset = h5py.Dataset(h5py.h5d.create(group.id, b"top", h5py.h5t.STD_U8LE, space, dcpl=plist))
            for t in written:
                dataset[t] = frames[t]
        return name, os.path.dirname(path), expect or {}

    def edit(self, name, change, expect=None, **options):
        """An episode of contiguous raw frames, then whatever change(file, path) makes of it."""
        path = self.path(options.pop("file", "episode_0.hdf5"))
        with h5py.File(path, "w", **options) as file:
            add_state(file)
            change(file, path)
        return name, os.path.dirname(path), expect or {}


# ---- raw frames ----


def chunk_storage(make):
    whole = {"storage": "chunks of whole frames"}
    shape = (STEPS, HEIGHT, WIDTH, 3)
    yield make.raw("contiguous", {"storage": "contiguous"})
    yield make.raw("a frame a chunk", whole, chunks=(1, *shape[1:]))
    yield make.raw("three frames a chunk", whole, chunks=(3, *shape[1:]))
    yield make.raw("chunks that cut frames", {"storage": "chunks of 2x5x7x1"}, chunks=(2, 5, 7, 1))
    for level in (1, 5, 9):
        yield make.raw(f"deflate {level}", {"storage": "deflate chunks"}, compression="gzip", compression_opts=level)
    yield make.raw("h5py's automatic chunks", {"storage": "deflate chunks"}, compression="gzip",
                   frames=raw_frames(3, 40, 60, 80))
    yield make.raw("shuffle", {"storage": "shuffle chunks"}, shuffle=True, chunks=(2, 5, 16, 3))
    yield make.raw("fletcher32", {"storage": "fletcher32 chunks"}, fletcher32=True, chunks=(3, 12, 16, 3))
    yield make.raw("shuffle, deflate, fletcher32", {"storage": "shuffle+deflate+fletcher32"}, compression="gzip",
                   shuffle=True, fletcher32=True)
    yield make.raw("lzf", {"storage": "lzf chunks"}, compression="lzf")
    yield make.raw("shuffle, lzf, fletcher32", {"storage": "shuffle+lzf+fletcher32"}, compression="lzf", shuffle=True,
                   fletcher32=True)
    if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        yield make.raw("szip", {"storage": "szip", "library": True}, compression="szip", chunks=(1, 12, 16, 3))
    yield make.raw("scale-offset", {"storage": "scale-offset", "library": True}, scaleoffset=0, chunks=(1, 12, 16, 3))
    for latest in ("earliest", "latest", "v110"):
        file_options = {"libver": latest}
        for growth, limits in {"": None, ", may grow": (None, *shape[1:]), ", may grow in two": (None, None, *shape[2:]),
                               ", may grow in height": (STEPS, None, *shape[2:]), ", with room": (99, 20, 20, 3)}.items():
            for filters, options in {"": {}, ", deflate": {"compression": "gzip"}}.items():
                yield make.raw(f"{latest}{growth}{filters}", {"storage": "2x5x16x3"}, file_options, maxshape=limits,
                               chunks=(2, 5, 16, 3), **options)
    latest = {"libver": "latest"}
    yield make.raw("single chunk", whole, latest, chunks=shape)
    yield make.raw("single deflate chunk", {"storage": "deflate chunks"}, latest, chunks=shape, compression="gzip")
    yield make.raw("a paged fixed array", whole, latest, frames=raw_frames(1, 1100, 2, 2), chunks=(1, 2, 2, 3))
    yield make.raw("a paged fixed array, deflate", {"storage": "deflate"}, latest, frames=raw_frames(1, 1100, 2, 2),
                   chunks=(1, 2, 2, 3), compression="gzip")
    yield make.raw("extensible array with super blocks", whole, latest, frames=raw_frames(1, 1100, 2, 2),
                   chunks=(1, 2, 2, 3), maxshape=(None, 2, 2, 3))
    for block in (512, 4096):
        yield make.raw(f"user block of {block}", {"storage": "contiguous"}, {"userblock_size": block})
        yield make.raw(f"user block of {block}, chunks", whole, {"userblock_size": block}, chunks=(1, *shape[1:]))
        yield make.raw(f"user block of {block}, deflate", {"storage": "deflate"}, {"userblock_size": block, **latest},
                       compression="gzip")


def special_storage(make):
    def chunked(rows, fill=None, deflate=False):
        def prepare(plist, _):
            plist.set_chunk((rows, HEIGHT, WIDTH, 3))
            if deflate:
                plist.set_deflate(3)
            if fill is not None:
                plist.set_fill_value(np.array(fill, np.uint8))

        return prepare

    def compact(plist, _):
        plist.set_layout(h5py.h5d.COMPACT)

    def external(plist, path):
        plist.set_external((path + ".raw").encode(), 32, h5py.h5f.UNLIMITED)

    def early(plist, _):
        plist.set_chunk((2, 5, 7, 3))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)

    def never(plist, _):
        plist.set_fill_value(np.array(33, np.uint8))

    yield make.low_level("compact", compact, {"storage": "compact", "library": True})
    yield make.low_level("external raw file", external, {"storage": "external raw files", "library": True})
    yield make.low_level("implicit chunk index", early, {"storage": "chunks of 2x5x7x3"}, file_options={"libver": "latest"})
    yield make.low_level("never written", never, {"storage": "never written", "library": True}, written=[])
    yield make.low_level("half of the chunks never written", chunked(1, 99), {"library": None}, written=[0, 2, 5])
    yield make.low_level("filtered chunks never written", chunked(2, 99, True), {"storage": "deflate"}, written=[0, 5])
    yield make.low_level("filtered chunks never written, zeros", chunked(2, None, True), {"storage": "deflate"},
                         written=[3])


def elsewhere(make):
    frames = raw_frames()

    def other(path, **options):
        with h5py.File(path + ".other", "w") as file:
            file.create_dataset("there/frames", data=frames, **options)

    def external_link(file, path):
        other(path)
        file["observations/images/top"] = h5py.ExternalLink(os.path.basename(path) + ".other", "/there/frames")

    def external_group(file, path):
        with h5py.File(path + ".other", "w") as away:
            away["cameras/top"] = frames
        file["observations/images"] = h5py.ExternalLink(os.path.basename(path) + ".other", "/cameras")

    def virtual(file, path):
        other(path)
        layout = h5py.VirtualLayout(frames.shape, np.uint8)
        layout[...] = h5py.VirtualSource(path + ".other", "there/frames", frames.shape)
        file.require_group("observations/images").create_virtual_dataset("top", layout)

    def soft(file, _):
        file["elsewhere"] = frames
        file["observations/images/top"] = h5py.SoftLink("/elsewhere")

    def hard(file, _):
        file.create_dataset("elsewhere", data=frames, compression="gzip")
        file["observations/images/top"] = file["elsewhere"]

    def dangling(file, _):
        file["observations/images/top"] = frames
        file["observations/images/wrist"] = h5py.SoftLink("/nowhere")

    def without(file, _):
        file["observations/images/top"] = frames[:, :, :, :2]

    def float_frames(file, _):
        file["observations/images/top"] = frames.astype("f4")

    yield make.edit("external link", external_link, {"storage": "behind an external link", "library": True})
    yield make.edit("external link to a group", external_group, {"storage": "behind an external link", "library": True})
    yield make.edit("virtual dataset", virtual, {"storage": "virtual dataset", "library": True})
    yield make.edit("soft link", soft, {"storage": "contiguous"})
    yield make.edit("hard link", hard, {"storage": "deflate"})
    yield make.edit("dangling link", dangling, {"refused": ["/observations/images/wrist"]})
    yield make.edit("two channels", without, {"refused": ["/observations/images/top", "(steps, height, width, 3)"]})
    yield make.edit("frames of floats", float_frames, {"refused": ["/observations/images/top", "uint8"]})


def names_and_sizes(make):
    frames = raw_frames()

    def camera(name):
        def change(file, _):
            file["observations/images/" + name] = frames

        return change

    def far_away(vlen, **options):
        """A dataset of 5 GiB that takes no room on the disk, then the frames."""

        def change(file, _):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            space = h5py.h5s.create_simple((5 << 30,))
            h5py.h5d.create(file.id, b"hole", h5py.h5t.STD_U8LE, space, dcpl=plist)
            if vlen:
                add_vlen(file, "observations/images/top", **options)
            else:
                file.create_dataset("observations/images/top", data=frames, **options)

        return change

    yield make.edit("over 4 GiB", far_away(False), {"storage": "contiguous"})
    yield make.edit("over 4 GiB, chunks", far_away(False, chunks=(1, HEIGHT, WIDTH, 3)), {"storage": "whole frames"})
    yield make.edit("over 4 GiB, deflate", far_away(False, compression="gzip"), {"storage": "deflate"}, libver="latest")
    yield make.edit("over 4 GiB, variable length", far_away(True), {"storage": "variable length"})
    yield make.edit("names of any script", camera("腕_kamera_è"), {}, file="épisode_机器人_0.hdf5")
    yield make.edit("names with blanks", camera("top camera (left)"), {}, file="my episode 0.hdf5")
    yield make.edit("a file called .h5", camera("top"), {}, file="a.h5")
    for dtype in ("f2", "f4", "f8", ">f4", ">f8", "i4", ">i2", "u1", "i8"):
        path = make.path()
        with h5py.File(path, "w") as file:
            add_state(file, dtype=dtype)
            file["observations/images/top"] = frames
        yield f"state of {dtype}", os.path.dirname(path), {}


# ---- encoded frames ----


def add_vlen(file, key, empty=(), encode=jpeg, **options):
    rows = file.create_dataset(key, (STEPS,), dtype=h5py.vlen_dtype(np.uint8), **options)
    for t in range(STEPS):
        if t not in empty:
            rows[t] = encode(t)
    return rows


def add_padded(file, name, lengths="f4", steps=STEPS, seed=0):
    blobs = [jpeg(seed + t) for t in range(steps)]
    rows = np.zeros((steps, max(map(len, blobs))), np.uint8)
    for t, blob in enumerate(blobs):
        rows[t, : len(blob)] = blob
    file["observations/images/" + name] = rows
    return np.array([[len(blob) for blob in blobs]], lengths) if lengths else None


def encoded(make):
    def padded(dtype, change_lengths=None):
        def change(file, _):
            lengths = add_padded(file, "top", dtype)
            if lengths is not None:
                if change_lengths:
                    change_lengths(lengths)
                file["compress_len"] = lengths

        return change

    def wrong(value):
        def change(lengths):
            lengths[0, 3] = value

        return change

    def vlen(**options):
        def change(file, _):
            add_vlen(file, "observations/images/top", **options)

        return change

    for dtype in ("f4", "f8", "i4", "u2"):
        yield make.edit(f"padded rows, lengths of {dtype}", padded(dtype), {"storage": "padded rows"})
    yield make.edit("padded rows, no lengths", padded(None), {"storage": "padded rows"})
    for value in (np.nan, np.inf, -1, 0, 1e9):
        yield make.edit(f"padded rows, a length of {value}", padded("f4", wrong(value)),
                        {"refused": ["/observations/images/top[3]", "compress_len"]})
    yield make.edit("variable length", vlen(), {"storage": "variable length"})
    yield make.edit("variable length, chunks", vlen(chunks=(3,)), {"storage": "variable length"})
    yield make.edit("variable length, deflate", vlen(chunks=(3,), compression="gzip"), {"storage": "variable length"})
    yield make.edit("variable length, deflate, user block", vlen(chunks=(2,), compression="gzip"),
                    {"storage": "variable length"}, libver="latest", userblock_size=512)
    yield make.edit("variable length, an empty frame", vlen(empty=[4]),
                    {"refused": ["/observations/images/top[4]", "the frame is empty"], "run_only": True})


def fixed_strings(make):
    def robotwin(add, **options):
        path = make.path("episode0.hdf5")
        with h5py.File(path, "w", **options) as file:
            file["joint_action/vector"] = random(1).uniform(-2, 2, (STEPS, 14))
            for c, camera in enumerate(("head_camera", "left_camera")):
                add(file.require_group(f"observation/{camera}"), [jpeg(10 * c + t) for t in range(STEPS)])
        return os.path.dirname(path)

    def strings(padding, **storage):
        def add(group, blobs):
            size = max(map(len, blobs)) + 3
            kind = h5py.h5t.C_S1.copy()
            kind.set_size(size)
            kind.set_strpad(padding)
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            if storage.get("chunk"):
                plist.set_chunk((storage["chunk"],))
            if storage.get("deflate"):
                plist.set_deflate(3)
            space = h5py.h5s.create_simple((STEPS,))
            dataset = h5py.h5d.create(group.id, b"rgb", kind, space, dcpl=plist)
            filler = b" " if padding == h5py.h5t.STR_SPACEPAD else b"\0"
            rows = np.array([blob.tobytes().ljust(size, filler) for blob in blobs], f"V{size}")
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, rows, mtype=kind)

        return add

    def opaque(group, blobs):
        size = max(map(len, blobs)) + 3
        group["rgb"] = np.array([blob.tobytes().ljust(size, b"\0") for blob in blobs], f"V{size}")

    def text(group, blobs):
        group.create_dataset("rgb", (STEPS,), dtype=h5py.string_dtype())

    kinds = {"NULLPAD": h5py.h5t.STR_NULLPAD, "NULLTERM": h5py.h5t.STR_NULLTERM, "SPACEPAD": h5py.h5t.STR_SPACEPAD}
    for name, padding in kinds.items():
        yield f"fixed strings, {name}", robotwin(strings(padding)), {"storage": "fixed strings", "layout": "robotwin"}
    nullpad = h5py.h5t.STR_NULLPAD
    yield "fixed strings in chunks", robotwin(strings(nullpad, chunk=3)), {"storage": "chunks of whole frames"}
    yield "fixed strings, deflate", robotwin(strings(nullpad, chunk=3, deflate=True)), {"storage": "deflate chunks of 3"}
    yield "opaque", robotwin(opaque), {"storage": "fixed strings"}
    yield "variable-length text", robotwin(text), {"refused": ["/observation/head_camera/rgb", "variable-length strings"]}


# ---- depth ----


def depth(make):
    def agilex(dtype, **options):
        def change(file, _):
            file.attrs["compress"] = False
            file["observations/images/cam_high"] = raw_frames()
            frames = random(5).integers(0, 60000, (STEPS, HEIGHT, WIDTH)).astype(dtype)
            file.create_dataset("observations/images_depth/cam_high", data=frames, **options)

        return change

    def floats(file, _):
        file["observations/images/cam_high"] = raw_frames()
        file["observations/images_depth/cam_high"] = np.ones((STEPS, HEIGHT, WIDTH), "f4")

    both = {"cameras": ["cam_high", "depth_cam_high"], "layout": "agilex"}
    yield make.edit("depth, uint16", agilex("<u2"), both)
    yield make.edit("depth, chunks", agilex("<u2", chunks=(1, HEIGHT, WIDTH)), both)
    yield make.edit("depth, shuffle and deflate", agilex("<u2", compression="gzip", shuffle=True), both)
    yield make.edit("depth, chunks that cut", agilex("<u2", chunks=(2, 5, 7)), both)
    yield make.edit("depth, big-endian", agilex(">u2"), {**both, "library": True})
    yield make.edit("depth, floats", floats, {"refused": ["/observations/images_depth/cam_high", "uint16"],
                                             "cameras": ["depth_cam_high"]})
    path = make.path("episode_00_0000_expert.h5")
    with h5py.File(path, "w") as file:
        file["observations/joint_pos"] = random(1).uniform(-1, 1, (STEPS, 6)).astype("f4")
        file["action/joint_positions"] = random(2).uniform(-1, 1, (STEPS, 6)).astype("f4")
        add_vlen(file, "observations/rgb_main")
        add_vlen(file, "observations/depth_main", encode=depth_png)
    yield "depth, PNG", os.path.dirname(path), {"cameras": ["main", "depth_main"]}


# ---- lengths, keys, folders ----


def lengths_and_keys(make):
    def uneven(file, _):
        file["observations/images/top"] = raw_frames(0, STEPS - 2)

    def unknown(file, _):
        file["arm/state"] = random(3).uniform(-1, 1, (STEPS, 3))
        file["arm/gripper"] = random(4).uniform(-1, 1, STEPS)
        file["arm/command"] = random(4).uniform(-1, 1, (STEPS, 4))
        file["eyes/left"] = raw_frames(1)
        file.create_dataset("eyes/right", data=raw_frames(2), compression="lzf")

    yield make.edit("uneven lengths", uneven, {"refused": [f"has {STEPS} steps", f"has {STEPS - 2} frames", "--allow-ragged"]})
    yield make.edit("uneven lengths, cut", uneven, {"options": ["--allow-ragged"]})
    keys = {"qpos": ["arm/state", "arm/gripper"], "action": ["arm/command"], "image": ["eyes/right", "other=eyes/left"]}
    yield make.edit("a layout of one's own", unknown, {"keys": keys})
    yield make.edit("no layout", unknown, {"refused": ["no known layout", "--qpos-keys"]})
    path = make.path("demos.hdf5")
    with h5py.File(path, "w") as file:
        for k in (0, 1, 2, 10):
            steps = STEPS + k
            file[f"data/demo_{k}/actions"] = random(k).uniform(-1, 1, (steps, 5))
            file[f"data/demo_{k}/obs/arm/pos"] = random(k + 1).uniform(-1, 1, (steps, 3))
            file[f"data/demo_{k}/obs/grip"] = random(k + 2).uniform(-1, 1, (steps, 2))
            file[f"data/demo_{k}/obs/wrist/depth"] = random(k).integers(0, 999, (steps, HEIGHT, WIDTH)).astype("u2")
            file[f"data/demo_{k}/obs/wrist/rgb"] = raw_frames(k, steps)
            file[f"data/demo_{k}/obs/step"] = np.arange(steps)
    yield "demos with groups", os.path.dirname(path), {"layout": "robomimic"}
    yield "demos, depth", path, {"cameras": ["wrist/rgb", "wrist/depth"]}
    yield "demos, own keys", path, {"keys": {"qpos": ["obs/grip"], "action": ["actions"], "image": ["obs/wrist/rgb"]}}
    folder = os.path.dirname(make.path())
    for i, add in enumerate((raw_frames, None, None)):
        with h5py.File(f"{folder}/episode_{i}.hdf5", "w", libver="latest" if i else "earliest") as file:
            add_state(file, seed=i)
            if add:
                file.create_dataset("observations/images/top", data=add(), compression="gzip")
            elif i == 1:
                file["compress_len"] = add_padded(file, "top", seed=20)
            else:
                add_vlen(file, "observations/images/top")
    yield "raw and encoded episodes in one folder", folder, {}


# ---- refusals ----


def refusals(make):
    def filtered(code):
        def prepare(plist, _):
            plist.set_chunk((1, HEIGHT, WIDTH, 3))
            plist.set_filter(code, h5py.h5z.FLAG_OPTIONAL, ())

        return prepare

    for code, name in {32001: "blosc", 32015: "zstd", 32004: "lz4", 32008: "bitshuffle", 31999: "unknown"}.items():
        if not h5py.h5z.filter_avail(code):
            yield make.low_level(f"filter {code}", filtered(code),
                                 {"refused": ["/observations/images/top", str(code), name, "h5repack"]})


class LiveWriter:
    """A file that another process holds open for writing while it is looked at."""

    def __init__(self, path, swmr):
        program = textwrap.dedent(f"""
            import h5py, numpy, sys
            file = h5py.File({path!r}, "w", libver="latest")
            file["observations/qpos"] = numpy.zeros((5, 3)); file["action"] = numpy.zeros((5, 3))
            images = file.create_dataset("observations/images/top", (5, 8, 8, 3), "u1", chunks=(1, 8, 8, 3), maxshape=(None, 8, 8, 3))
            images[...] = 3
            file.flush()
            if {swmr}: file.swmr_mode = True
            print("ready", flush=True)
            sys.stdin.read()
        """)
        self.process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def end(self):
        self.process.communicate()


def live(make):
    for swmr in (False, True):
        path = make.path()
        writer = LiveWriter(path, swmr)
        yield f"being written{', SWMR' if swmr else ''}", path, {"refused": ["episode_0.hdf5", "not being written"]}
        writer.end()


# ---- layouts ----

FORMATS = {
    "act": "act", "act-jpeg": "act-plus-plus", "act-jpeg-nolen": "act-plus-plus", "astrobench": "astrobench",
    "agilex": "agilex", "robotwin": "robotwin", "robomind": "robomind", "robomimic": "robomimic",
    "robomimic-gzip": "robomimic", "libero": "libero", "isaaclab": "isaaclab",
}


def layouts(folder, weir):
    for name, layout in FORMATS.items():
        path = os.path.join(folder, name)
        arguments = ["synth", path, "--format", name, "--episodes", "3", "--steps", "6", "--size", "40x32"]
        status, _, errors = weir(*arguments)
        assert status == 0, errors
        yield f"synth {name}", path, {"layout": layout}


def cases(folder, weir):
    """Yields (name, path, expectations): storage: a word of weir info's; library: whether frames go through the HDF5
    library (None: either); refused: words of the one error line (run_only: of weir run alone); layout; cameras, keys and
    options for weir."""
    make = Maker(folder)
    yield from layouts(folder, weir)
    for group in (chunk_storage, special_storage, elsewhere, names_and_sizes, encoded, fixed_strings, depth,
                  lengths_and_keys, refusals, live):
        yield from group(make)
