"""Cases of tests/datasets/compare_h5py.py beyond the product of layouts and storages: names, links, lengths, large
files, many chunks, custom keys, the index file, active writers."""
import functools
import io
import os
import struct
import subprocess
import sys

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z
from PIL import Image

import h5_storage
from compare_h5py import Difference, compare, run_weir
from h5_cases import (CUSTOM, DEPTH, Case, Style, bind, depth_frames, jpegs, put_array, raw_frames, write_act,
                      write_agilex, write_astrobench, write_custom, write_demos, write_robomind, write_robotwin)
from reference import Options

RAW = put_array(raw_frames, h5_storage.simple())
VLEN = put_array(jpegs, h5_storage.variable())
GZIP = put_array(raw_frames, h5_storage.simple(chunks=h5_storage.cut(3, 2, 2, 1), compression=4))
STRINGS = put_array(lambda steps, seed: h5_storage.strings(h5t.STR_NULLPAD, b"\0", jpegs(steps, seed)),
                    h5_storage.simple())
PADDED = put_array(lambda steps, seed: h5_storage.padded(jpegs(steps, seed)), h5_storage.simple())
DEPTH_VLEN = put_array(lambda steps, seed: pngs(depth_frames(steps, seed)), h5_storage.variable())


def pngs(frames):
    return [encoded(frame, "PNG") for frame in frames]


def encoded(pixels, form, **options):
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, form, **options)
    return data.getvalue()


# ---- frames of variable length ----


def with_holes(group, name, steps, seed):
    """Frames that were never written, and an empty one."""
    frames = jpegs(steps, seed)
    frames[1] = frames[4] = None
    frames[3] = b""
    h5_storage.variable()(group, name, frames)


def of_all_sizes(group, name, steps, seed):
    """Objects smaller than a heap's window and larger than its collection, written last to first."""
    noise = np.random.default_rng(7).integers(0, 256, (200, 300, 3), dtype=np.uint8)
    frames = [encoded(noise[:30, :46], "JPEG", quality=1 + 9 * (t % 11)) + b"\0" * (900 * t * t) for t in range(steps)]
    dataset = group.create_dataset(name, (steps,), dtype=h5py.vlen_dtype(np.uint8))
    for t in reversed(range(steps)):
        dataset[t] = np.frombuffer(frames[t], np.uint8)


def gray_and_color(group, name, steps, seed):
    frames = jpegs(steps, seed)
    frames[::2] = [encoded(np.asarray(Image.open(io.BytesIO(f)).convert("L")), "JPEG") for f in frames[::2]]
    h5_storage.variable()(group, name, frames)


def color_pngs(group, name, steps, seed):
    h5_storage.variable()(group, name, pngs(raw_frames(steps, seed)))


def vlen_cases():
    style = dict(kind=h5_storage.VLEN)
    return [
        Case("vlen: frames that are empty", bind(write_robomind, Style(with_holes)), "robomind", skip=True, **style),
        Case("vlen: an empty frame ends the run", bind(write_robomind, Style(with_holes)), "robomind",
             error=r"(front|wrist)\[[134]\]: the frame is empty", refused_by=("run",)),
        Case("vlen: frames of all sizes", bind(write_astrobench, Style(of_all_sizes)), "astrobench", **style),
        Case("vlen: frames of all sizes, user block", bind(
            write_robomind, Style(of_all_sizes, file=dict(userblock_size=1024))), "robomind", **style),
        Case("vlen: grey and colour", bind(write_act, Style(gray_and_color)), "act", **style),
        Case("vlen: colour PNGs", bind(write_act, Style(color_pngs)), "act", **style),
    ]


# ---- padded rows ----


def with_lengths(lengths, depth=False):
    """act-plus-plus, with compress_len computed from the JPEGs' lengths."""

    def last(f, episode):
        images = f["observations/images"]
        if depth:
            steps = images["front"].shape[0]
            images["front_depth"] = depth_frames(steps, ("front_depth", episode))
        rows = []
        for name in sorted(images):
            if images[name].ndim == 2:
                rows.append([len(bytes(row).rstrip(b"\0")) for row in images[name]])
            elif depth:
                rows.append([0] * len(images[name]))
        f["compress_len"] = lengths(np.array(rows, float))

    return bind(functools.partial(write_act, compress=True), Style(PADDED, last=last))


def spoiled(value):
    def lengths(rows):
        rows[1, 2] = value
        return rows.astype("f4")

    return lengths


def lengths_cases():
    kind, name = "^padded rows$", "act-plus-plus"
    out = [Case(f"compress_len: {dtype}", with_lengths(lambda rows, d=dtype: rows.astype(d)), name, kind)
           for dtype in ("f4", "f8", ">f4", "i4", ">u8")]
    out += [Case("compress_len: with rows for depth", with_lengths(lambda rows: rows.astype("f4"), True), name,
                 kind="^(padded rows|contiguous)$", options=Options(cameras=("wrist", "front_depth", "front")))]
    out += [Case("compress_len: fractions", with_lengths(lambda rows: (rows + 0.75).astype("f4")), name, kind)]
    out += [Case("compress_len: in the order of the recorder", with_lengths(lambda rows: rows[::-1].astype("f4")),
                 name, kind)]
    for text, value in (("nan", np.nan), ("infinite", np.inf), ("too long", 1e6), ("too short", 5), ("zero", 0),
                        ("negative", -3)):
        out += [Case(f"compress_len: {text}", with_lengths(spoiled(value)), name, kind)]
    out += [Case("compress_len: too few rows", with_lengths(lambda rows: rows[:1].astype("f4")), name, kind),
            Case("compress_len: too few columns", with_lengths(lambda rows: rows[:, 1:].astype("f4")), name, kind)]
    return out


# ---- large files, many chunks ----


def beyond_4_gib(f):
    """Moves everything that follows past 2^32, without using disk space."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    plist.set_fill_time(h5d.FILL_TIME_NEVER)
    h5d.create(f.id, b"nothing", h5t.STD_U8LE, h5s.create_simple((9 << 29,)), plist)


def small(group, name, steps, seed, chunks, **options):
    """Thousands of frames of 2x3."""
    frames = raw_frames(1, seed)[0, :2, :3] ^ (np.arange(steps)[:, None, None, None] * 37 % 256).astype(np.uint8)
    h5_storage.simple(chunks=chunks, **options)(group, name, frames)


def many(latest=True, **options):
    return Style(functools.partial(small, **options), steps=(1500,), cameras=("front",),
                 file=dict(libver="latest") if latest else {})


def size_cases():
    out = []
    for text, file in (("", {}), (", latest", dict(libver="latest")), (", user block", dict(userblock_size=512))):
        for layout, write, put in (("act", write_act, RAW), ("robomimic", write_demos, GZIP),
                                   ("robomind", write_robomind, VLEN), ("robotwin", write_robotwin, STRINGS)):
            style = Style(put, file=file, first=beyond_4_gib, steps=(5,))
            out.append(Case(f"{layout}: beyond 4 GiB{text}", bind(write, style), layout))
    return out + chunk_cases()


def chunk_cases():
    out = []
    one = h5_storage.rows(1)
    cut = h5_storage.cut(1500, 2, 1, 1)
    endless = dict(maxshape=lambda s: (None,) + s[1:])
    endless_twice = dict(maxshape=lambda s: (None, None) + s[2:])
    room = dict(maxshape=lambda s: (2000, 5, 5, 3))
    for text, options in (("B-tree", dict(chunks=one, latest=False)),
                          ("B-tree, gzip", dict(chunks=one, latest=False, compression=1)),
                          ("fixed array with pages", dict(chunks=one)),
                          ("fixed array with pages, cut", dict(chunks=cut)),
                          ("fixed array with room", dict(chunks=cut, **room)),
                          ("fixed array with room, gzip", dict(chunks=cut, compression=1, **room)),
                          ("fixed array with pages, gzip", dict(chunks=cut, compression=1)),
                          ("extensible array", dict(chunks=one, **endless)),
                          ("extensible array, cut", dict(chunks=cut, **endless)),
                          ("extensible array, gzip", dict(chunks=cut, compression=1, **endless)),
                          ("B-tree 2", dict(chunks=one, **endless_twice)),
                          ("B-tree 2, gzip", dict(chunks=cut, compression=1, **endless_twice))):
        out.append(Case(f"many chunks: {text}", bind(write_act, many(**options)), "act", "chunks of"))
    return out


# ---- names and links ----


def in_folder(name, write, style):
    def make(folder):
        path = os.path.join(folder, name)
        os.makedirs(path)
        return write(path, style)

    return make


def write_renamed(write, style, name):
    """A dataset of one file, renamed and passed by path."""

    def make(folder):
        write(folder, style)
        path = os.path.join(folder, name)
        os.rename(os.path.join(folder, style.stem + "0.hdf5"), path)
        return path

    return make


def dangling(group, name, steps, seed):
    group[name] = h5py.SoftLink("/nowhere/at/all") if name == "wrist" else raw_frames(steps, seed)


def dangling_external(group, name, steps, seed):
    group[name] = h5py.ExternalLink("nowhere.other", "/x") if name == "wrist" else raw_frames(steps, seed)


def of_other_size(group, name, steps, seed):
    frames = raw_frames(steps, seed)
    group[name] = frames[:, :7] if name == "wrist" else frames


def many_members(f):
    for i in range(60):  # more than a group's header can store
        f[f"observations/extra_{i}"] = i
        f.attrs[f"note {i}"] = "x" * 50


def name_cases():
    unicode_style = Style(RAW, cameras=("größe", "相机", "рука"), stem="épisode_")
    return [
        Case("names that are not ASCII", in_folder("данные 数据", write_act, unicode_style), "act"),
        Case("names that are not ASCII, latest", in_folder("ü", write_demos, Style(
            VLEN, cameras=("größe", "相机"), file=dict(libver="latest"))), "robomimic"),
        Case("cameras that are not ASCII, by name", bind(write_act, unicode_style), "act",
             options=Options(cameras=("рука", "größe"), obs_history=2)),
        Case("keys that are not ASCII", bind(write_act, unicode_style), "act",
             options=Options(image_keys=("линза=observations/images/相机",))),
        Case("one file", write_renamed(write_act, Style(RAW, steps=(9,)), "no_suffix"), "act"),
        Case("groups of many members", bind(write_act, Style(RAW, first=many_members)), "act"),
        Case("groups of many members, latest", bind(write_act, Style(
            RAW, first=many_members, file=dict(libver="latest", track_order=True))), "act"),
        Case("cameras of two sizes", bind(write_act, Style(of_other_size)), "act", options=Options(obs_history=2)),
        Case("depth of two sizes", bind(write_agilex, Style(RAW, lambda g, name, steps, seed: g.create_dataset(
            name, data=depth_frames(steps, seed)[:, :5 + len(name)]), cameras=("a", "bcd"))), "agilex",
             options=Options(cameras=("depth_a", "bcd", "depth_bcd"))),
        Case("a soft link to nowhere", bind(write_act, Style(dangling)), "act", error="wrist"),
        Case("an external link to nowhere", bind(write_act, Style(dangling_external)), "act", error="wrist"),
    ]


# ---- lengths, folders of several layouts, keys ----


def cut_camera(group, name, steps, seed):
    group[name] = raw_frames(steps - 2 if name == "wrist" else steps, seed)


def write_mixed(folder):
    """Raw and encoded episodes of one robot in one folder."""
    write_act(folder, Style(RAW, stem="a_"))
    write_act(folder, Style(lambda g, name, steps, seed: h5_storage.simple()(g, name, h5_storage.padded(
        [encoded(f, "JPEG") for f in raw_frames(steps, seed)])), stem="b_"))
    write_agilex(folder, Style(put_array(raw_frames, h5_storage.simple(
        chunks=h5_storage.cut(2, 2, 2, 1), compression="gzip", shuffle=True)), stem="c_"))
    return folder


def narrow(root, episode):
    """Actions as wide as agilex's state, so that the folder's episodes agree."""
    del root["action"]
    root["action"] = np.random.default_rng(episode).normal(size=root["observations/qpos"].shape)


def write_mixed_layouts(folder):
    write_act(folder, Style(RAW, stem="a_", last=narrow))
    write_act(folder, Style(lambda g, name, steps, seed: h5_storage.variable(compression="gzip")(
        g, name, [encoded(f, "JPEG") for f in raw_frames(steps, seed)]), stem="b_", last=narrow))
    write_agilex(folder, Style(GZIP, stem="c_"))
    return folder


def mixed_cases():
    ragged = bind(write_act, Style(cut_camera))
    demo_keys = Options(qpos_keys=("obs/gripper", "obs/robot0_eef_pos"), action_keys=("actions",),
                        image_keys=("eye=obs/wrist",))
    return [
        Case("raw and encoded episodes in one folder", write_mixed_layouts, "act", options=Options(obs_history=2)),
        Case("episodes whose actions differ in width", write_mixed, "act", error="5.*7|7.*5", refused_by=("run",)),
        Case("uneven lengths are refused", ragged, "act", error="has 11 .* has 9 "),
        Case("uneven lengths are cut", ragged, "act", options=Options(allow_ragged=True, obs_history=3)),
        Case("keys: of no layout", bind(write_custom, Style(RAW)), "custom", options=CUSTOM),
        Case("keys: of no layout, missing", bind(write_custom, Style(RAW)), "custom", error="no known layout"),
        Case("keys: of no layout, one file", write_renamed(write_custom, Style(GZIP, steps=(8,)), "x.hdf5"), "custom",
             options=CUSTOM),
        Case("keys: demos", bind(write_demos, Style(GZIP)), "custom-demos", options=demo_keys),
        Case("keys: state alone", bind(write_agilex, Style(RAW)), "agilex",
             options=Options(qpos_keys=("action", "observations/qpos"))),
        Case("keys: actions alone", bind(write_agilex, Style(RAW)), "agilex", options=Options(action_keys=("action",))),
        Case("keys: cameras alone, depth among them", bind(write_agilex, Style(RAW)), "agilex", options=Options(
            image_keys=("observations/images_depth/wrist", "eye=observations/images/front"))),
        Case("keys: groups called rgb", bind(write_robotwin, Style(STRINGS)), "robotwin", options=Options(
            image_keys=("observation/wrist/rgb",))),
        Case("all cameras, depth between them", bind(write_robomind, Style(VLEN, DEPTH_VLEN)), "robomind",
             options=Options(cameras=DEPTH[::-1], obs_history=2)),
    ]


# ---- unknown filters ----


def write_unknown_filter(folder):
    """Replaces deflate's name and number with zstd's."""
    write_act(folder, Style(GZIP, steps=(5,)))
    path = os.path.join(folder, "episode_0.hdf5")
    with open(path, "rb") as f:
        data = f.read()
    deflate = b"\x01\x00\x08\x00\x01\x00\x01\x00deflate\x00"
    if deflate not in data:
        raise AssertionError("the filter's message is not where it was")
    with open(path, "wb") as f:
        f.write(data.replace(deflate, b"\x0f\x7d\x08\x00\x00\x00\x01\x00zstd\x00\x00\x00\x00"))
    return folder


def optional_filter(number):
    """A filter in the pipeline that every chunk skips."""

    def setup(plist, shape):
        plist.set_chunk(h5_storage.rows(1)(shape))
        plist.set_filter(number, h5z.FLAG_OPTIONAL, ())

    return put_array(raw_frames, h5_storage.simple(setup=setup))


def filter_cases():
    out = [Case("a filter that is not there", write_unknown_filter, "act", error=r"filter 32015 \(zstd\)")]
    for number, name in ((32001, "blosc"), (32004, "lz4"), (32008, "bitshuffle"), (31999, "unknown")):
        if not h5z.filter_avail(number):
            out.append(Case(f"a filter that is not there: {name}", bind(write_act, Style(optional_filter(number))),
                            "act", error=rf"/observations/images/front: .*filter {number} \({name}\).*h5repack"))
    return out


# ---- types that cannot be images ----


def text(group, name, steps, seed):
    group.create_dataset(name, (steps,), dtype=h5py.string_dtype())


def float_depth(group, name, steps, seed):
    group[name] = np.ones((steps, 5, 7), "f4")


def odd_bits(group, name, steps, seed):
    """6-bit numbers in the middle of a byte."""
    tid = h5t.STD_U8LE.copy()
    tid.set_precision(6)
    tid.set_offset(1)
    h5_storage.create(group, name, (tid, raw_frames(steps, seed)))


def write_short_compact(folder):
    """A compact state whose header stores one byte less than its shape needs."""

    def compact_state(f, episode):
        values = f["action"][()]
        del f["action"]
        h5_storage.compact(f, "action", values)

    write_act(folder, Style(RAW, steps=(5,), last=compact_state))
    path = os.path.join(folder, "episode_0.hdf5")
    with h5py.File(path, "r") as f:
        values = f["action"][()].tobytes()
    with open(path, "rb") as f:
        data = f.read()
    stored = struct.pack("<H", len(values)) + values
    if data.count(stored) != 1:
        raise AssertionError("the compact data is not where it was")
    with open(path, "wb") as f:
        f.write(data.replace(stored, struct.pack("<H", len(values) - 1) + values))
    return folder


def type_cases():
    return [
        Case("variable-length text", bind(write_robotwin, Style(text)), "robotwin",
             error="/observation/front/rgb: contains variable-length strings"),
        Case("depth of floats", bind(write_agilex, Style(RAW, float_depth)), "agilex",
             options=Options(cameras=("depth_front",)), error="/observations/images_depth/front: .*uint16"),
        Case("grey frames", bind(write_act, Style(lambda g, name, steps, seed: g.create_dataset(
            name, data=raw_frames(steps, seed)[..., 0]))), "act", error="/observations/images/front: has rank 3"),
        Case("pixels of six bits", bind(write_act, Style(odd_bits)), "act", error="/observations/images/front: "),
        Case("compact data that is too short", write_short_compact, "act", error="/action: contains fewer bytes"),
        Case("names with blanks", in_folder("my episodes", write_act, Style(
            RAW, cameras=("top camera (left)",), stem="episode no. ")), "act"),
    ]


# ---- cases with several runs ----


def with_index(weir, folder):
    """The index is written, then read, then partly reused after one file changes."""
    data, index = os.path.join(folder, "data"), os.path.join(folder, "index")
    os.mkdir(data)
    write_act(data, Style(GZIP))
    lines = compare(weir, data, Options(), more=("--index", index))
    with open(index, "rb") as f:
        written = f.read()
    lines += compare(weir, data, Options(obs_history=3), more=("--index", index))
    with open(index, "rb") as f:
        if f.read() != written:
            raise Difference("the index was rewritten, although nothing had changed")
    other = os.path.join(folder, "other")
    os.mkdir(other)
    write_act(other, Style(put_array(lambda steps, seed: raw_frames(steps, ("other", *seed)), h5_storage.simple())))
    os.replace(os.path.join(other, "episode_1.hdf5"), os.path.join(data, "episode_1.hdf5"))
    lines += compare(weir, data, Options(), more=("--index", index))
    with open(index, "rb") as f:
        if f.read() == written:
            raise Difference("the index was not rewritten, although a file had changed")
    return lines + compare(weir, data, Options(), more=("--index", index))


WRITER = """
import sys, h5py, numpy as np
f = h5py.File(sys.argv[1], "w", libver="latest")
put = lambda key, shape: f.create_dataset(key, (5, *shape), maxshape=(None, *shape), chunks=(1, *shape), dtype="f4")
state = [put("observations/qpos", (3,)), put("action", (3,))]
for d in state: d[...] = np.arange(15).reshape(5, 3)
shape = (8, 9, 3)
images = f.create_dataset("observations/images/front", (5, *shape), "u1", chunks=(1, *shape), maxshape=(None, *shape))
images[...] = np.arange(5 * 8 * 9 * 3).reshape(images.shape) % 251
if sys.argv[2] == "swmr": f.swmr_mode = True
f.flush()
print("ready", flush=True)
sys.stdin.read()
"""


def with_writer(mode):
    def run(weir, folder):
        path = os.path.join(folder, "episode_0.hdf5")
        with subprocess.Popen([sys.executable, "-c", WRITER, path, mode], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as writer:
            try:
                if writer.stdout.readline() != b"ready\n":
                    raise Difference("the writer did not start")
                for command in ("info", "run"):
                    said = run_weir(weir, [command, folder], status=1)
                    if len(said.splitlines()) != 1 or "being written" not in said:
                        raise Difference(f"weir {command} on a file that is being written printed: {said}")
            finally:
                writer.stdin.close()
        return compare(weir, folder, Options())  # the file is complete now

    return run


def scripts():
    return [
        Case("index: written, read, changed", None, "act", script=with_index),
        Case("a writer is at work", None, "act", script=with_writer("plain")),
        Case("a writer is at work, SWMR", None, "act", script=with_writer("swmr")),
    ]


def all_special():
    return (vlen_cases() + lengths_cases() + size_cases() + name_cases() + mixed_cases() + filter_cases() +
            type_cases() + scripts())
