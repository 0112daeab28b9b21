"""HDF5 storages of arrays and encoded frames, for the cases of tests/datasets/h5_cases.py.

A Storage writes values to group[name]. kind is the text that `weir info` must print; library, whether only the HDF5
library can read it.
"""
import dataclasses
import os
import re

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z


@dataclasses.dataclass(frozen=True)
class Storage:
    name: str
    write: object  # (group, name, values)
    kind: str  # regular expression
    library: bool = False  # None: only some frames need the library


def through_library(why):
    return "^only through the HDF5 library: " + re.escape(why) + "$"


def element_type(values):
    """(file type, array). Strings and opaque bytes are passed as such a pair."""
    if isinstance(values, tuple):
        return values
    return h5t.py_create(values.dtype), values


def create(group, name, values, chunks=None, maxshape=None, setup=None, write=True, **filters):
    """create_dataset with chunks and maxshape as functions of the shape. setup(plist, shape) sets properties that h5py
    cannot."""
    tid, array = element_type(values)
    shape = array.shape
    if setup:
        plist = h5p.create(h5p.DATASET_CREATE)
        setup(plist, shape)
        dataset = h5py.Dataset(h5d.create(group.id, name.encode(), tid, h5s.create_simple(shape), plist))
    else:
        dataset = group.create_dataset(name, shape, dtype=h5py.Datatype(tid), chunks=chunks and chunks(shape),
                                       maxshape=maxshape and maxshape(shape), **filters)
    if write:
        dataset.id.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(array), mtype=tid)
    return dataset


# ---- chunks, as functions of the shape ----


def rows(n):
    return lambda shape: (min(n, shape[0]),) + shape[1:]


def cut(*parts):
    """Divides dimension i into parts[i] chunks; the last may extend past the edge."""
    return lambda shape: tuple(max(1, -(-n // part)) for n, part in zip(shape, parts))


def whole(shape):
    return shape


def tiny(shape):
    """Many chunks, so that the fixed array has pages."""
    return (1,) * (len(shape) - 1) + (-(-shape[-1] // 3),)


# ---- unusual storages ----


def simple(**options):
    return lambda group, name, values: create(group, name, values, **options)


def compact(group, name, values):
    create(group, name, values, setup=lambda plist, shape: plist.set_layout(h5d.COMPACT))


def implicit(group, name, values):
    """Contiguous chunks, all allocated at creation: no index."""

    def setup(plist, shape):
        plist.set_chunk(cut(3, 2, 2, 1)(shape))
        plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)

    create(group, name, values, setup=setup)


def nbit(group, name, values):
    """Only as many bits as the values need, so that n-bit packs them."""

    def setup(plist, shape):
        plist.set_chunk(rows(2)(shape))
        plist.set_filter(h5z.FILTER_NBIT, 0)

    tid, array = element_type(values)
    tid = tid.copy()
    tid.set_precision(int(array.max()).bit_length())
    create(group, name, (tid, array), setup=setup)


def some_rows(**options):
    """Some chunks are never written and read as the fill value."""

    def write(group, name, values):
        tid, array = element_type(values)
        dataset = create(group, name, values, write=False, **options)
        for t in range(2, len(array), 3):
            space = dataset.id.get_space()
            space.select_hyperslab((t,) + (0,) * (array.ndim - 1), (1,) + array.shape[1:])
            dataset.id.write(h5s.create_simple((1,) + array.shape[1:]), space, array[t:t + 1].copy(), mtype=tid)

    return write


def never(**options):
    return lambda group, name, values: create(group, name, values, write=False, **options)


def grown(chunks, maxshape, **filters):
    """Appends row by row to a growing dataset, like recorders."""

    def write(group, name, values):
        tid, array = element_type(values)
        dataset = group.create_dataset(name, (0,) + array.shape[1:], dtype=h5py.Datatype(tid),
                                       chunks=chunks(array.shape), maxshape=maxshape(array.shape), **filters)
        for t in range(len(array)):
            dataset.resize(t + 1, axis=0)
            space = dataset.id.get_space()
            space.select_hyperslab((t,) + (0,) * (array.ndim - 1), (1,) + array.shape[1:])
            dataset.id.write(h5s.create_simple((1,) + array.shape[1:]), space, array[t:t + 1].copy(), mtype=tid)

    return write


def skipped_filters(group, name, values):
    """Chunks that skip their filters, as HDF5 writes them when deflate gains nothing."""
    tid, array = element_type(values)
    dataset = create(group, name, values, chunks=rows(1), compression="gzip")
    for t in range(0, len(array), 2):
        dataset.id.write_direct_chunk((t,) + (0,) * (array.ndim - 1), array[t].tobytes(), 1)


def beside(group, name, suffix):
    """A path next to the group's file that is not an episode's name."""
    stem = os.path.splitext(group.file.filename)[0] + group.name.replace("/", "_") + "_" + name.replace("/", "_")
    return stem + suffix


def external_raw(group, name, values):
    tid, array = element_type(values)
    path, half = beside(group, name, ".raw"), array.nbytes // 2
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_external(path.encode(), 7, half)
    plist.set_external((path + "2").encode(), 0, array.nbytes - half)
    dataset = h5d.create(group.id, name.encode(), tid, h5s.create_simple(array.shape), plist)
    dataset.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(array), mtype=tid)


def external_link(group, name, values):
    path = beside(group, name, ".other")
    with h5py.File(path, "w") as f:
        create(f, "there", values)
    group[name] = h5py.ExternalLink(os.path.basename(path), "/there")


def soft_link(group, name, values):
    hidden = group.file.require_group("hidden" + group.name.replace("/", "_"))
    create(hidden, name, values, chunks=rows(1))
    group[name] = h5py.SoftLink(f"{hidden.name}/{name}")


def hard_link(group, name, values):
    hidden = group.file.require_group("hidden" + group.name.replace("/", "_"))
    create(hidden, name, values)
    group[name] = hidden[name]


def virtual(group, name, values):
    tid, array = element_type(values)
    half = len(array) // 2
    layout = h5py.VirtualLayout(array.shape, array.dtype)
    for part, (first, last) in enumerate(((0, half), (half, len(array)))):
        path = beside(group, name, f".part{part}")
        with h5py.File(path, "w") as f:
            create(f, "there", array[first:last])
        layout[first:last] = h5py.VirtualSource(path, "there", (last - first,) + array.shape[1:])
    group.create_virtual_dataset(name, layout)


# ---- the list ----

FRAMES, CUT = "^chunks of whole frames$", r"^chunks of \d+x"
HOLES = "^chunks of whole frames$|^only through the HDF5 library: never written$"
LEVELS = range(1, 10)


def filtered(*names):
    return "^" + re.escape("+".join(names)) + r" chunks of \d+"


def arrays():
    """Storages of arrays of any rank."""
    out = [
        Storage("contiguous", simple(), "^(contiguous|padded rows|fixed strings)$"),
        Storage("one frame a chunk", simple(chunks=rows(1)), FRAMES),
        Storage("four frames a chunk", simple(chunks=rows(4)), FRAMES),
        Storage("cut frames", simple(chunks=cut(3, 2, 3, 2)), CUT),
        Storage("cut one frame", simple(chunks=cut(99, 2, 1, 3)), CUT),
        Storage("tiny chunks", simple(chunks=tiny), CUT),
        Storage("shuffle", simple(chunks=cut(3, 2, 2, 2), shuffle=True), filtered("shuffle")),
        Storage("fletcher32", simple(chunks=rows(1), fletcher32=True), filtered("fletcher32")),
        Storage("fletcher32 cut", simple(chunks=cut(2, 3, 2, 1), fletcher32=True), filtered("fletcher32")),
        Storage("shuffle gzip fletcher32", simple(chunks=cut(3, 2, 2, 2), compression=4, shuffle=True, fletcher32=True),
                filtered("shuffle", "deflate", "fletcher32")),
        Storage("lzf", simple(chunks=cut(3, 2, 2, 2), compression="lzf"), filtered("lzf")),
        Storage("shuffle lzf fletcher32",
                simple(chunks=rows(3), compression="lzf", shuffle=True, fletcher32=True),
                filtered("shuffle", "lzf", "fletcher32")),
        Storage("automatic chunks gzip", simple(compression="gzip"), filtered("deflate")),
        Storage("filters skipped", skipped_filters, filtered("deflate")),
        Storage("some frames", some_rows(chunks=rows(1)), HOLES, library=None),
        Storage("some frames filled", some_rows(chunks=rows(1), fillvalue=37), HOLES, library=None),
        Storage("some blocks", some_rows(chunks=cut(9, 2, 2, 1), compression=1), filtered("deflate")),
        Storage("some blocks filled", some_rows(chunks=cut(9, 2, 2, 1), fillvalue=201), CUT),
        Storage("compact", compact, through_library("compact"), library=True),
        Storage("external raw files", external_raw, through_library("external raw files"), library=True),
        Storage("external link", external_link, through_library("behind an external link"), library=True),
        Storage("soft link", soft_link, FRAMES),
        Storage("hard link", hard_link, "^(contiguous|padded rows|fixed strings)$"),
        Storage("grows in one dimension", grown(rows(2), lambda s: (None,) + s[1:]), FRAMES),
        Storage("grows in one dimension, cut", grown(cut(4, 2, 2, 1), lambda s: (None,) + s[1:]), CUT),
        Storage("grows in one dimension, gzip",
                grown(rows(1), lambda s: (None,) + s[1:], compression=4), filtered("deflate")),
        Storage("single chunk", simple(chunks=whole), FRAMES),
        Storage("single chunk gzip", simple(chunks=whole, compression=2), filtered("deflate")),
        Storage("implicit", implicit, CUT),
    ]
    return out + [Storage(f"gzip {level}", simple(chunks=cut(3, 2, 2, 1), compression=level), filtered("deflate"))
                  for level in LEVELS]


def numbers():
    """Storages of numbers only: type-dependent filters, fill values, virtual datasets."""
    out = [
        Storage("virtual", virtual, through_library("virtual dataset"), library=True),
        Storage("scale-offset", simple(chunks=rows(2), scaleoffset=0), through_library("scale-offset"), library=True),
        Storage("n-bit", nbit, through_library("n-bit"), library=True),
        Storage("never written", never(), through_library("never written"), library=True),
        Storage("never written, filled", never(fillvalue=9), through_library("never written"), library=True),
        Storage("never written, cut", never(chunks=cut(3, 2, 2, 1), fillvalue=9), CUT),
        Storage("grows in two dimensions",
                simple(chunks=cut(3, 2, 2, 1), maxshape=lambda s: (None, None) + s[2:]), CUT),
        Storage("grows in two dimensions, gzip",
                simple(chunks=cut(3, 2, 2, 1), maxshape=lambda s: (None, None) + s[2:], compression=4),
                filtered("deflate")),
    ]
    if szip_writes():
        out.append(Storage("szip", simple(chunks=rows(2), compression="szip"), through_library("szip"), library=True))
    return out


def szip_writes():
    return h5z.filter_avail(h5z.FILTER_SZIP) and h5z.get_filter_info(h5z.FILTER_SZIP) & h5z.FILTER_CONFIG_ENCODE_ENABLED


# ---- encoded frames ----


def padded(frames):
    longest = max(map(len, frames)) + 5
    return np.array([np.frombuffer(frame.ljust(longest, b"\0"), np.uint8) for frame in frames])


def strings(strpad, pad, frames):
    """(type, array) of fixed-length strings; the type's size includes a terminating zero."""
    longest = max(map(len, frames)) + 3
    tid = h5t.C_S1.copy()
    tid.set_size(longest)
    tid.set_strpad(strpad)
    return tid, np.array([np.void(frame.ljust(longest, pad)) for frame in frames])


def opaque(frames):
    longest = max(map(len, frames))
    return h5t.py_create(np.dtype(f"V{longest}")), np.array([np.void(f.ljust(longest, b"\0")) for f in frames])


def variable(**options):
    def write(group, name, frames):
        chunks = options.get("chunks")
        dataset = group.create_dataset(name, (len(frames),), dtype=h5py.vlen_dtype(np.uint8),
                                       **{**options, "chunks": chunks and chunks((len(frames),))})
        for t, data in enumerate(frames):
            if data is not None:
                dataset[t] = np.frombuffer(data, np.uint8)

    return write


VLEN = r"^variable length \(global heap\)$"


def encoded():
    """Storages of encoded frames (a list of bytes). A chunk of strings always contains whole frames."""
    as_array = {
        "strings padded with zeros": lambda frames: strings(h5t.STR_NULLPAD, b"\0", frames),
        "strings ended by a zero": lambda frames: strings(h5t.STR_NULLTERM, b"\0", frames),
        "strings padded with blanks": lambda frames: strings(h5t.STR_SPACEPAD, b" ", frames),
        "opaque": opaque,
    }
    out = [
        Storage("vlen", variable(), VLEN),
        Storage("vlen one a chunk", variable(chunks=rows(1)), VLEN),
        Storage("vlen four a chunk", variable(chunks=rows(4)), VLEN),
        Storage("vlen gzip", variable(chunks=rows(4), compression="gzip"), VLEN),
        Storage("vlen shuffle gzip", variable(chunks=rows(3), compression=9, shuffle=True), VLEN),
        Storage("vlen lzf", variable(chunks=rows(5), compression="lzf"), VLEN),
        Storage("vlen grows", variable(chunks=rows(2), maxshape=(None,)), VLEN),
    ]
    for form, convert in as_array.items():
        for storage in arrays():
            if "some" in storage.name or storage.name[:5] == "gzip " and storage.name != "gzip 6":
                continue  # missing frames are not JPEGs; one gzip level is enough
            out.append(dataclasses.replace(
                storage, name=f"{form}, {storage.name}", kind=FRAMES if storage.kind == CUT else storage.kind,
                write=lambda group, name, frames, s=storage, c=convert: s.write(group, name, c(frames))))
    return out


def padded_rows():
    """Storages of uint8 rows (steps, bytes), each a JPEG followed by zeros."""
    return [dataclasses.replace(s, name=f"padded rows, {s.name}",
                                write=lambda group, name, frames, s=s: s.write(group, name, padded(frames)))
            for s in arrays() + numbers() if "some" not in s.name and "never" not in s.name]
