#!/usr/bin/env python3
"""Checks what a small input can demand: test_claims.py WEIR PARQUET_COLUMNS [--print] [TEST...].

Each row of ROWS is a small input that announces much to one parser. The program must end by itself with exit status 0
to 3, and may use BASE_BYTES + RATIO x the bytes that the input has on disk, and CPU_MAX_S. An error must not blame
the machine. docs/internals/architecture.md states the rule. --print prints what each row used. Skipped (77) without
h5py."""
import gzip
import http.server
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import zlib

try:
    import h5py
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

BASE_BYTES, RATIO = 256 << 20, 64  # as in docs/internals/architecture.md
CPU_MAX_S = 20  # the worst takes 3 s on an idle machine
GUARD_BYTES = 6 << 30  # protects the machine from a failing test
GIB = 1 << 30
VALUES = b"{}," * (4 << 20)  # 12 MiB that are 80 times as large as a tree

# ---- files ----


def write(path, *parts):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        for part in parts:
            if isinstance(part, int):  # a hole
                f.seek(part, os.SEEK_CUR)
                f.truncate(f.tell())
            else:
                f.write(part if isinstance(part, bytes) else part.encode())
    return path


def stored(paths):
    """Bytes on disk of files and folders."""
    files = [os.path.join(at, name) for path in paths for at, _, names in os.walk(path) for name in names]
    files += [path for path in paths if os.path.isfile(path)]
    return sum(min(os.stat(f).st_blocks * 512, os.path.getsize(f)) for f in files)


def png(width, height, n):
    """A PNG of n zero bytes of data."""
    out = b"\x89PNG\r\n\x1a\n"
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    for name, data in ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * n)), (b"IEND", b"")):
        out += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return out


PNG = png(8, 8, 8 * 25)

# ---- Parquet ----

BYTE, I32, I64, BINARY, LIST, STRUCT = 3, 5, 6, 8, 9, 12  # types of Thrift's compact protocol
INT64, FLOAT, TEXT = 2, 4, 6  # types of Parquet


def varint(n):
    out = b""
    while n >= 0x80:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def struct_of(*fields):
    """Encodes (id, type, value) fields: an integer, text, the bytes of a structure, or (type, [elements])."""
    out, last = b"", 0
    for number, kind, value in fields:
        out += bytes([number - last << 4 | kind])
        last = number
        if kind in (I32, I64):
            out += varint(value << 1)
        elif kind == BINARY:
            out += varint(len(value)) + value
        elif kind == LIST:
            out += bytes([0xF0 | value[0]]) + varint(len(value[1])) + b"".join(value[1])
        else:
            out += value
    return out + b"\0"


def page(n, stored_bytes, unpacked_bytes, encoding=0):
    header = struct_of((1, I32, n), (2, I32, encoding), (3, I32, 3), (4, I32, 3))
    return struct_of((1, I32, 0), (2, I32, unpacked_bytes), (3, I32, stored_bytes), (5, STRUCT, header))


def chunk(kind, values, at, size, codec=0, name=b"x"):
    meta = struct_of((1, I32, kind), (2, LIST, (I32, [varint(0)])), (3, LIST, (BINARY, [varint(len(name)) + name])),
                     (4, I32, codec), (5, I64, values), (6, I64, size), (7, I64, size), (9, I64, at))
    return struct_of((2, I64, at), (3, STRUCT, meta))


def element(name, kind=None, children=0, repetition=0):
    fields = [] if kind is None else [(1, I32, kind)]
    return struct_of(*fields, (3, I32, repetition), (4, BINARY, name), *([(5, I32, children)] if children else []))


def footer(schema, rows, chunks):
    group = struct_of((1, LIST, (STRUCT, chunks)), (2, I64, 1), (3, I64, rows))
    out = struct_of((1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, rows), (4, LIST, (STRUCT, [group])))
    return out + struct.pack("<I", len(out)) + b"PAR1"


INFO = {"codebase_version": "v2.1", "fps": 10, "total_episodes": 1, "total_frames": 10, "chunks_size": 1000,
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet", "video_path": None,
        "features": {"observation.state": {"dtype": "float32", "shape": [1], "names": None},
                     "action": {"dtype": "float32", "shape": [1], "names": None},
                     "observation.images.top": {"dtype": "image", "shape": [8, 8, 3], "names": None}}}
COLUMNS = (b"observation.state", b"action")


def lerobot(path, parquet=None, n=1, **texts):
    """Writes a dataset of version 2.1 with n episodes. parquet: parts of their files; texts: parts of files in meta/."""
    rows = 10
    info = dict(INFO, total_episodes=n, total_frames=n * rows)
    meta = {"info": json.dumps(info), "tasks": '{"task_index": 0, "task": "a"}\n',
            "episodes": "".join(f'{{"episode_index": {i}, "tasks": ["a"], "length": {rows}}}\n' for i in range(n))}
    for name in sorted(set(meta) | set(texts)):
        parts = texts.get(name, (meta.get(name),))
        write(f"{path}/meta/{name}.json{'' if name == 'info' else 'l'}", *parts)
    if parquet is None:
        parquet = pages_of(FLOAT, rows, page(rows, 4 * rows, 4 * rows) + b"\0\0\0\0" * rows)
    for i in range(n):
        write(f"{path}/data/chunk-000/episode_{i:06d}.parquet", *parquet)
    return [path]


def image_pages(rows, at):
    """The pages of a column of images at an offset, its schema and its chunks."""
    values = struct.pack("<I", len(PNG)) + PNG, struct.pack("<I", 0)
    pages = [page(rows, rows * len(value), rows * len(value)) + rows * value for value in values]
    schema = [element(b"observation.images.top", children=2), element(b"bytes", TEXT), element(b"path", TEXT)]
    starts = at, at + len(pages[0])
    chunks = [chunk(TEXT, rows, start, len(p), name=name)
              for p, start, name in zip(pages, starts, (b"bytes", b"path"))]
    return b"".join(pages), schema, chunks


def pages_of(kind, rows, data, codec=0, values=None, hole=0, is_list=False):
    """The parts of a file whose two columns of numbers have the same pages."""
    size = len(data) + hole
    images, schema, image_chunks = image_pages(rows, 4 + size)
    schema = [element(b"schema", children=3)] + schema
    for name in COLUMNS:
        schema += [element(name, children=1), element(b"list", kind, repetition=2)] if is_list else [element(name, kind)]
    chunks = image_chunks + [chunk(kind, values or rows, 4, size, codec, name) for name in COLUMNS]
    return [b"PAR1", data, *([hole] if hole else []), images, footer(schema, rows, chunks)]


def parquet_names(path):
    """Many columns of a field with a long name."""
    n, name, data = 19990, b"n" * (1 << 20), page(10, 40, 40) + b"\0" * 40
    images, schema, image_chunks = image_pages(10, 4 + len(data))
    schema = [element(b"schema", children=4)] + schema + [element(name, children=n)] + [element(b"c", FLOAT)] * n
    schema += [element(c, FLOAT) for c in COLUMNS]
    chunks = image_chunks + [chunk(FLOAT, 10, 4, len(data), name=b"c")] * (n + 2)
    return lerobot(path, parquet=[b"PAR1", data, images, footer(schema, 10, chunks)])


def parquet_page_in_a_hole(path):
    size = (1 << 30) - 64
    return lerobot(path, parquet=pages_of(FLOAT, 10, page(10, size, size), hole=size))


def parquet_footer_in_a_hole(path):
    return lerobot(path, parquet=[b"PAR1", 255 << 20, struct.pack("<I", 250 << 20) + b"PAR1"])


def zstd_of(n):
    """A frame of n zeros, in runs of 128 KiB."""
    run = 128 << 10
    sizes = [run] * (n // run) + ([n % run] if n % run else [])
    blocks = [struct.pack("<I", size << 3 | 1 << 1 | (i == len(sizes) - 1))[:3] + b"\0"
              for i, size in enumerate(sizes)]
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", n) + b"".join(blocks)


def parquet_zeros(path):
    size = 1000 << 20
    packed = zstd_of(size)
    return lerobot(path, parquet=pages_of(FLOAT, 10, page(10, len(packed), size) + packed, codec=6))


def parquet_empty_texts(path):
    """Values of no bytes, each of which takes 16 bytes of memory."""
    n = 60 << 20
    packed = zstd_of(4 * n)
    data = page(n, len(packed), 4 * n) + packed
    schema = [element(b"schema", children=1), element(b"x", TEXT)]
    return [write(f"{path}/x.parquet", b"PAR1", data, footer(schema, n, [chunk(TEXT, n, 4, len(data), 6)]))]


def dictionary_page():
    header = struct_of((1, I32, 1), (2, I32, 0))
    return struct_of((1, I32, 2), (2, I32, 4), (3, I32, 4), (7, STRUCT, header)) + b"\0" * 4


def sized(data):
    return struct.pack("<I", len(data)) + data


def parquet_runs(path):
    """Pages with lists of one run each."""
    n, pages = (1 << 26) - 1, 600
    first = sized(varint(1 << 1) + b"\0" + varint((n - 1) << 1) + b"\1") + sized(varint(n << 1) + b"\1")
    rest = sized(varint(n << 1) + b"\1") + sized(varint(n << 1) + b"\1")
    values = b"\1" + varint(n << 1) + b"\0"
    data = dictionary_page()
    for levels in [first] + [rest] * (pages - 1):
        size = len(levels) + len(values)
        data += page(n, size, size, encoding=8) + levels + values
    return lerobot(path, parquet=pages_of(FLOAT, 10, data, values=n * pages, is_list=True))


# ---- JSON ----


def info_values(path):
    return lerobot(path, info=(json.dumps(INFO)[:-1], ', "x": [', VALUES[:-1], "]}"))


def info_hole(path):
    return lerobot(path, info=(json.dumps(INFO), GIB - (1 << 20)))


def episodes_line(path):
    return lerobot(path, episodes=('{"episode_index": 0, "tasks": [', VALUES[:-1], '], "length": 10}\n'))


def episodes_lines(path):
    return lerobot(path, episodes=('{"episode_index": 0, "tasks": ["a"], "length": 10}\n', b"{}\n" * (1 << 20)))


def episodes_hole(path):
    return lerobot(path, episodes=('{"episode_index": 0, "tasks": ["a"], "length": 10}\n', GIB - (1 << 20)))


def tasks_line(path):
    return lerobot(path, tasks=('{"task_index": 0, "task": "a", "x": [', VALUES[:-1], "]}\n"))


def episodes_rows(path):
    """An episode that is longer than its file."""
    rows = 1 << 30
    return lerobot(path, info=(json.dumps(dict(INFO, total_frames=rows)),),
                   episodes=(f'{{"episode_index": 0, "tasks": ["a"], "length": {rows}}}\n',))


def episodes_files(path):
    """Episodes whose files do not exist."""
    n = 1 << 16
    lines = "".join(f'{{"episode_index":{i},"length":10,"tasks":[]}}\n' for i in range(n))
    return lerobot(path, info=(json.dumps(dict(INFO, total_episodes=n, total_frames=10 * n)),), episodes=(lines,))


def stats_line(path):
    return lerobot(path, episodes_stats=('{"episode_index": 0, "stats": {"action": {"x": [', VALUES[:-1], "]}}}\n"))


def result_values(path):
    """The output of --json of a run."""
    return [write(f"{path}/result.json", '{"schema": 1, "report": {}, "x": [', VALUES[:-1], "]}")]


def log_values(path):
    return [write(f"{path}/log.jsonl", b'{"type": "run", "x": [' + VALUES[:(1 << 20) - 64] + b"{}]}\n")]


def log_hole(path):
    return [write(f"{path}/log.jsonl", '{"type": "run"}\n', 64 * GIB, "\n", 64 * GIB)]


# ---- traces ----


def trace_events(path):
    event = b'{"ph":"X","ts":0,"dur":0,"cat":"cpu_op"},'
    text = b'{"traceEvents":[' + event * (6 << 20) + event[:-1] + b"]}"
    return [write(f"{path}/trace.json.gz", gzip.compress(text, 6))]


def trace_blank(path):
    return [write(f"{path}/trace.json.gz", gzip.compress(b'{"traceEvents":[' + b" " * (600 << 20) + b"]}", 1))]


def trace_values(path):
    return [write(f"{path}/trace.json", '{"traceEvents":[{"ph":"X","ts":0,"dur":0,"args":{"x":[', VALUES[:-1],
                  "]}}]}")]


# ---- Zarr, RLDS ----


def zarray(shape, chunks, dtype="<f4", **more):
    return json.dumps(dict({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "compressor": None,
                            "fill_value": 0, "order": "C", "filters": None}, **more))


def zarr(path, rows=10, zattrs=("{}",), chunk_rows=10):
    root = f"{path}/x.zarr"
    write(f"{root}/.zgroup", '{"zarr_format": 2}')
    write(f"{root}/.zattrs", *zattrs)
    for name, width in (("state", 2), ("action", 2)):
        write(f"{root}/data/{name}/.zarray", zarray([rows, width], [chunk_rows, width]))
        write(f"{root}/data/{name}/0.0", b"\0" * 80)
    for group in ("data", "meta"):
        write(f"{root}/{group}/.zgroup", '{"zarr_format": 2}')
    write(f"{root}/meta/episode_ends/.zarray", zarray([1], [1], "<i8"))
    write(f"{root}/meta/episode_ends/0", struct.pack("<q", rows))
    return [root]


def zarr_rows(path):
    return zarr(path, rows=1 << 24, chunk_rows=1)


def zarr_zeros(path, written=True):
    """Numbers that are packed 1000 to 1, or not there."""
    rows = 1 << 26
    root, = zarr(path, rows=rows)
    packed = zlib.compress(b"\0" * (8 * rows), 9) if written else None
    for name in ("state", "action"):
        write(f"{root}/data/{name}/.zarray", zarray([rows, 2], [rows, 2], compressor={"id": "zlib", "level": 9}))
        os.remove(f"{root}/data/{name}/0.0")
        if written:
            write(f"{root}/data/{name}/0.0", packed)
    return [root]


def zarr_absent(path):
    return zarr_zeros(path, written=False)


def zarr_attributes(path):
    return zarr(path, zattrs=('{"x": [', VALUES[:(1 << 20) - 64], "{}]}"))


def deflated(n):
    """n zeros, a multiple of 1 MiB, packed by zlib."""
    pack = zlib.compressobj(9)
    head = pack.compress(b"") + pack.flush(zlib.Z_FULL_FLUSH)
    part = pack.compress(b"\0" * (1 << 20)) + pack.flush(zlib.Z_FULL_FLUSH)
    return head + part * (n >> 20) + b"\3\0" + struct.pack(">I", n % 65521 << 16 | 1)


def zarr_image(path, packed, compressor, shape=(1023, 512, 683, 3), chunk_shape=None):
    """A store with one chunk of images, of 1 GiB if no shape is given."""
    rows = shape[0]
    root, = zarr(path, rows=min(rows, 1 << 20), chunk_rows=min(rows, 1 << 20))
    for name in ("state", "action"):
        write(f"{root}/data/{name}/0.0", b"\0" * (8 * min(rows, 1 << 20)))
    write(f"{root}/data/img/.zarray", zarray(list(shape), list(chunk_shape or shape), "|u1", compressor=compressor))
    write(f"{root}/data/img/0.0.0.0", packed)
    return [root]


def zarr_zlib(path):
    return zarr_image(path, deflated(GIB), {"id": "zlib", "level": 9}, (1024, 512, 512, 4))


def zarr_zstd(path):
    return zarr_image(path, zstd_of(GIB - (1 << 20)), {"id": "zstd", "level": 1}, (1023, 512, 512, 4))


def zarr_blosc(path):
    size = GIB - (1 << 20)
    part = 1 << 20
    starts = b"".join(struct.pack("<I", 16 + 4 * 1023) for _ in range(1023))
    block = zstd_of(part)
    body = starts + struct.pack("<I", len(block)) + block
    head = bytes([2, 1, 4 << 5 | 0x10, 1]) + struct.pack("<3I", size, part, 16 + len(body))
    return zarr_image(path, head + body, {"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 0, "blocksize": 0},
                      (1023, 512, 512, 4))


def zarr_hole(path):
    """A chunk that is a hole of 1 GiB."""
    root, = zarr_image(path, b"", {"id": "zlib", "level": 9}, (80, 512, 640, 3))
    write(f"{root}/data/img/0.0.0.0", GIB)
    return [root]


def zarr_overflow(path):
    """Sizes whose product is 2 to the power of 64, and more."""
    side = 1 << 31
    return zarr_image(path, b"\0" * 64, None, (10, side, side, 4), (1, side, side, 4))


def zarr_metadata(path):
    """Consolidated metadata of a million arrays."""
    root, = zarr(path)
    entry = '"data/%d/.zarray":{},'
    entries = "".join(entry % i for i in range(1 << 20))
    write(f"{root}/.zmetadata", '{"zarr_consolidated_format":1,"metadata":{', entries, '".zgroup":{"zarr_format":2}}}')
    return [root]


def zip_names(path):
    """A directory of a million empty members."""
    n = 1 << 20
    entry = b"PK\1\2" + b"\0" * 24 + struct.pack("<H", 8) + b"\0" * 16
    directory = b"".join(entry + b"a/%06x" % i for i in range(n))
    end = b"PK\5\6" + struct.pack("<4H2IH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    end64 = b"PK\6\6" + struct.pack("<Q2H2I4Q", 44, 45, 45, 0, 0, n, n, len(directory), 30)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, 30 + len(directory), 1)
    return [write(f"{path}/x.zarr.zip", b"PK\3\4" + b"\0" * 26, directory, end64, locator, end)]


def zip_directory(path):
    """A central directory in a hole."""
    entries = 1 << 24
    size = 46 * entries
    end = b"PK\5\6" + struct.pack("<4H2IH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    end64 = b"PK\6\6" + struct.pack("<Q2H2I4Q", 44, 45, 45, 0, 0, entries, entries, size, 0)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, size, 1)
    return [write(f"{path}/x.zarr.zip", size, end64, locator, end)]


def features_values(path):
    """Values in a file beside a valid record."""
    lerobot(f"{path}/data")
    command = [WEIR, "convert", f"{path}/data", f"{path}/rlds", "--to", "tfrecord"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    write(f"{path}/rlds/features.json", '{"featuresDict": {"features": {}}, "x": [', VALUES[:(4 << 20) - 256], "{}]}")
    return [f"{path}/rlds"]


def crc(data):
    table = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = c >> 1 ^ 0x82F63B78 if c & 1 else c >> 1
        table.append(c)
    c = 0xFFFFFFFF
    for byte in data:
        c = table[(c ^ byte) & 255] ^ c >> 8
    return c ^ 0xFFFFFFFF


def masked_crc(data):
    c = crc(data)
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord_hole(path):
    """A record of 1 GiB in a hole."""
    length = struct.pack("<Q", GIB - 64)
    return [os.path.dirname(write(f"{path}/rlds/x.tfrecord-00000-of-00001", length, masked_crc(length), GIB - 64,
                                  b"\0" * 4))]


def tfrecord_features(path):
    """An example of empty features."""
    count = 400_000
    feature = b"\x0a\x00"
    features = feature * count
    example = b"\x0a" + varint(len(features)) + features
    length = struct.pack("<Q", len(example))
    return [os.path.dirname(write(f"{path}/rlds/x.tfrecord-00000-of-00001", length, masked_crc(length), example,
                                  b"\0" * 4))]


# ---- MP4 ----


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I", len(body) + 8) + kind + body


def table(kind, *words):
    return box(kind, struct.pack(f">{len(words) + 1}I", 0, *words))


def mp4(path, n, sizes, ctts=(), moov_hole=0):
    """A LeRobot dataset whose video has n samples. sizes: the box stsz; moov_hole: bytes of a hole in the index."""
    video = {"dtype": "video", "shape": [8, 8, 3], "names": ["height", "width", "channels"]}
    info = INFO | {"video_path": "videos/{video_key}_{episode_index}.mp4"}
    info["features"] = INFO["features"] | {"observation.images.top": video}
    lerobot(path, info=(json.dumps(info),))
    entry = box(b"av01", b"\0" * 24, struct.pack(">2H", 8, 8), b"\0" * 50, box(b"av1C", b"\x81\0\x0c\0"))
    stbl = box(b"stbl", box(b"stsd", struct.pack(">2I", 0, 1), entry),
               table(b"stts", 1, n, 100), ctts and table(b"ctts", len(ctts) // 2, *ctts) or b"", table(b"stsc", 1, 1, n, 1),
               table(b"stco", 1, 4096), sizes)
    handler = box(b"hdlr", b"\0" * 8, b"vide", b"\0" * 13)
    media = box(b"mdia", table(b"mdhd", 0, 0, 1000, 0), handler, box(b"minf", stbl))
    moov = table(b"mvhd", 0, 0, 1000, 0) + box(b"trak", media)
    hole = struct.pack(">I", moov_hole + 8) + b"free" if moov_hole else b""
    head = box(b"ftyp", b"isom\0\0\2\0isom") + struct.pack(">I", 8 + len(moov) + len(hole) + moov_hole) + b"moov" + moov + hole
    write(f"{path}/videos/observation.images.top_0.mp4", head, moov_hole, struct.pack(">I", 0) + b"mdat", 4 * GIB)
    return [path]


def mp4_samples(path):
    """Samples of one size, in a hole, that are not presented in the order of the file."""
    n = 400 << 20
    return mp4(path, n, table(b"stsz", 8, n), (1, 0, 1, 150, n - 2, 0))


def mp4_sample(path):
    """A sample of 3 GiB in a hole."""
    return mp4(path, 10, table(b"stsz", 0, 10, *[3 * GIB] + [1] * 9))


def mp4_index(path):
    """An index of 250 MiB with a hole."""
    return mp4(path, 10, table(b"stsz", 0, 10, *[1] * 10), moov_hole=250 << 20)


# ---- HDF5 and images ----


def hdf5(path, rows=4, images=None, chunk_rows=1, empty=False):
    """ACT's layout; images: bytes of each frame."""
    os.makedirs(path, exist_ok=True)
    with h5py.File(f"{path}/episode_0.hdf5", "w") as f:
        for name in ("action", "observations/qpos"):
            if empty:
                f.create_dataset(name, (rows, 2), "f4", chunks=(chunk_rows, 2))
            else:
                f[name] = np.zeros((rows, 2), "f4")
        if empty:
            f.create_dataset("observations/images/top", (rows, 8, 8, 3), "u1", chunks=(chunk_rows, 8, 8, 3))
        else:
            width = len(images)
            f["observations/images/top"] = np.frombuffer(images * rows, "u1").reshape(rows, width)
    return [path]


def hdf5_zeros(path, rows=1 << 24, width=2, cameras=1, image_rows=1 << 14, kind="f4"):
    """Numbers that are packed 1000 to 1."""
    chunk_rows = 1 << 20
    os.makedirs(path)
    packed = zlib.compress(b"\0" * (np.dtype(kind).itemsize * width * chunk_rows), 9)
    with h5py.File(f"{path}/episode_0.hdf5", "w") as f:
        for name in ("action", "observations/qpos"):
            d = f.create_dataset(name, (rows, width), kind, chunks=(chunk_rows, width), compression="gzip")
            for i in range(0, rows, chunk_rows):
                d.id.write_direct_chunk((i, 0), packed)
        for i in range(cameras):
            f.create_dataset(f"observations/images/{i}", (rows, 8, 8, 3), "u1", chunks=(image_rows, 8, 8, 3))
    return [path]


def hdf5_rows(path):
    """Frames that do not exist, whose numbers are few enough to be read."""
    return hdf5_zeros(path, rows=1 << 22, width=1, image_rows=1)


def hdf5_bytes(path):
    """Numbers of one byte, which are converted to larger ones."""
    return hdf5_zeros(path, width=1, image_rows=1, kind="u1")


def hdf5_cameras(path):
    """Tables of chunks that do not exist."""
    return hdf5_zeros(path, rows=1 << 22, width=1, cameras=32, image_rows=1)


def hdf5_numbers_in_a_hole(path):
    rows = 1 << 24
    os.makedirs(path)
    with h5py.File(f"{path}/episode_0.hdf5", "w") as f:
        for name in ("action", "observations/qpos"):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
            f.require_group("observations")
            h5py.h5d.create(f.id, name.encode(), h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((rows, 2)), plist)
        f.create_dataset("observations/images/top", (rows, 8, 8, 3), "u1", chunks=(1 << 14, 8, 8, 3))
    return [path]


def png_size(path):
    return hdf5(path, images=png(60000, 60000, 1000))


def jpeg_size(path):
    tables = b"\xff\xdb\0\x43\0" + b"\1" * 64
    frame = b"\xff\xc0\0\x11\x08" + struct.pack(">2H", 60000, 60000) + b"\3\1\x22\0\2\x11\0\3\x11\0"
    codes = b"".join(b"\xff\xc4\0\x14" + bytes([kind]) + b"\1" + b"\0" * 15 + b"\0" for kind in (0, 0x10))
    scan = b"\xff\xda\0\x0c\3\1\0\2\0\3\0\0\x3f\0"
    return hdf5(path, images=b"\xff\xd8" + tables + frame + codes + scan + b"\0" * 64 + b"\xff\xd9")


def hdf5_fill(path):
    """Rows that were never written, more than memory can hold."""
    rows = 1 << 40
    os.makedirs(path)
    with h5py.File(f"{path}/episode_0.hdf5", "w") as f:
        for name in ("action", "observations/qpos"):
            f[name] = np.zeros((4, 2), "f4")
        f.create_dataset("observations/images/top", (rows, 8, 8, 3), "u1", chunks=(1, 8, 8, 3))
    return [path]


def hdf5_fill_all(path):
    return hdf5(path, rows=1 << 40, empty=True)


def hdf5_chunk(path, rows=1024, height=512, width=680):
    """A chunk of about 1 GiB of black frames."""
    size = rows * height * width * 3
    chunk = (rows, height, width, 3)
    os.makedirs(path)
    with h5py.File(f"{path}/episode_0.hdf5", "w") as f:
        for name in ("action", "observations/qpos"):
            f[name] = np.zeros((rows, 2), "f4")
        d = f.create_dataset("observations/images/top", chunk, "u1", chunks=chunk, compression="gzip")
        d.id.write_direct_chunk((0, 0, 0, 0), deflated(size))
    return [path]


def hdf5_black(path):
    """Black frames in one chunk of 75 MiB, which is valid."""
    return hdf5_chunk(path, rows=80, height=512, width=640)


def hdf5_texts(path, patch):
    """Frames of variable length in an HDF5 file that patch changes; it gets a bytearray."""
    os.makedirs(path)
    name = f"{path}/episode_0.hdf5"
    with h5py.File(name, "w") as f:
        for numbers in ("action", "observations/qpos"):
            f.create_dataset(numbers, (40, 2), "f4", chunks=(1, 2))[:] = 1
        d = f.create_dataset("observations/images/top", (40,), h5py.vlen_dtype(np.uint8), chunks=(1,))
        for i in range(40):
            d[i] = np.frombuffer(PNG, "u1")
        for i in range(200):
            f.attrs[f"a{i}"] = i
    with open(name, "rb") as f:
        data = bytearray(f.read())
    patch(data)
    write(name, bytes(data))
    return [path]


def places(data, mark):
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def hdf5_chunk_hole(path):
    """A packed chunk that is a hole of 1 GiB."""
    hdf5_black(path)
    name = f"{path}/episode_0.hdf5"
    with open(name, "rb") as f:
        data = bytearray(f.read())
    for at in places(data, b"TREE"):
        if data[at + 4] == 1:  # its first key has 48 bytes
            struct.pack_into("<I", data, at + 24, GIB - 1)
            struct.pack_into("<Q", data, at + 72, len(data))
    struct.pack_into("<Q", data, 40, len(data) + GIB)  # the end of the file
    write(name, bytes(data), GIB)
    return [path]


def hdf5_heap(path):
    """Objects in the heap that announce gigabytes."""
    def patch(data):
        for at in places(data, b"GCOL"):
            data[at + 24:at + 32] = struct.pack("<Q", 3 * GIB)
    return hdf5_texts(path, patch)


def hdf5_heap_size(path):
    def patch(data):
        for at in places(data, b"GCOL"):
            data[at + 8:at + 16] = struct.pack("<Q", 3 * GIB)
    return hdf5_texts(path, patch)


def hdf5_trees(path, kind):
    """Nodes of B-trees that refer to themselves."""
    def patch(data):
        for at in places(data, b"TREE"):
            if data[at + 4] == kind:
                key = 8 if kind == 0 else 24
                data[at + 5] = 1
                for child in range(data[at + 6]):
                    where = at + 24 + key + child * (8 + key)
                    data[where:where + 8] = struct.pack("<Q", at)
    return hdf5_texts(path, patch)


def hdf5_groups(path):
    return hdf5_trees(path, 0)


def hdf5_chunks(path):
    return hdf5_trees(path, 1)


def hdf5_header(path):
    """Continuations of object headers that refer to themselves."""
    def patch(data):
        for at in places(data, struct.pack("<2H", 0x10, 16)):
            where = struct.unpack_from("<2Q", data, at + 8)
            if data[at + 4:at + 8] == b"\0\0\0\0" and sum(where) <= len(data):
                data[at + 8:at + 24] = struct.pack("<2Q", at, 24)
    return hdf5_texts(path, patch)


def hdf5_messages(path):
    """An object header with many messages."""
    os.makedirs(path)
    with h5py.File(f"{path}/episode_0.hdf5", "w") as f:
        for i in range(2000):
            f.attrs.create(f"{i:05d}", 1, dtype="i1")
        for name in ("action", "observations/qpos"):
            f[name] = np.zeros((4, 2), "f4")
        f["observations/images/top"] = np.zeros((4, 8, 8, 3), "u1")
    return [path]


# ---- LMDB and packed files ----


def lmdb(path, values, file_bytes=0, cameras=(), child=None):
    """An LMDB file of two levels. values: (key, bytes of a value or (first page, length)); child: the page to which
    the root refers, if not to leaves."""
    page_bytes = 32768
    numbers = {"dtype": "float32", "dim": 2}
    schema = {"version": 1, "cameras": [{"name": c, "codec": "jpeg"} for c in cameras], "qpos": numbers,
              "action": numbers}
    leaves, nodes, used = [], [], 16
    values = [(b"dataset", json.dumps(schema).encode())] + values
    for key, value in values:
        is_long = isinstance(value, tuple)
        length = value[1] if is_long else len(value)
        node = struct.pack("<I2H", length, is_long, len(key)) + key
        node += struct.pack("<Q", value[0]) if is_long else value
        node += b"\0" * (len(node) & 1)
        if used + len(node) + 2 > page_bytes:
            leaves.append(nodes)
            nodes, used = [], 16
        nodes.append((key, node))
        used += len(node) + 2
    leaves.append(nodes)

    def page_of(number, flags, nodes):
        upper, at = page_bytes, []
        for node in nodes:
            upper -= len(node)
            at.append(upper)
        head = struct.pack("<Q4H", number, 0, flags, 16 + 2 * len(nodes), upper) + struct.pack(f"<{len(at)}H", *at)
        return head + b"\0" * (upper - len(head)) + b"".join(reversed(nodes))

    branches = [struct.pack("<I2H", child or 3 + i, 0, len(nodes[0][0])) + nodes[0][0] + b"\0" * (len(nodes[0][0]) & 1)
                for i, nodes in enumerate(leaves)]
    pages = [page_of(2, 1, branches)]
    pages += [page_of(3 + i, 2, [node for _, node in nodes]) for i, nodes in enumerate(leaves)]
    metas = []
    last = max(file_bytes // page_bytes, 2 + len(pages)) - 1
    for transaction in (0, 1):
        meta = struct.pack("<2I2Q", 0xBEEFC0DE, 1, 0, 1 << 40)
        meta += struct.pack("<I2H5Q", page_bytes, 0, 0, *[0] * 4, (1 << 64) - 1)
        meta += struct.pack("<I2H7Q", 0, 0, 2, 1, len(leaves), 0, len(values), 2, last, transaction)
        head = struct.pack("<Q4H", transaction, 0, 8, 0, 0) + meta
        metas.append(head + b"\0" * (page_bytes - len(head)))
    data = b"".join(metas + pages)
    return [write(f"{path}/x.mdb", data, *([file_bytes - len(data)] if file_bytes else []))]


def lmdb_itself(path):
    return lmdb(path, [(b"e00000000/qpos", b"\0" * 80)], child=2)


def lmdb_overflow(path):
    """A value of 2 GiB that the file does not have."""
    return lmdb(path, [(b"e00000000/action", b"\0" * 80), (b"e00000000/qpos", (4, 1 << 31))])


def lmdb_hole(path):
    """Numbers in a hole."""
    size, first = 400 << 20, 64
    return lmdb(path, [(b"e00000000/action", (first, size)), (b"e00000000/qpos", (first + size // 32768 + 1, size))],
                file_bytes=GIB)


def lmdb_pages(path):
    """A hole of 8 TiB, of pages that no value uses."""
    return lmdb(path, [(b"e00000000/action", b"\0" * 80), (b"e00000000/qpos", b"\0" * 80)], file_bytes=1 << 43)


def lmdb_episodes(path):
    """Episodes of one key each, of as many cameras as there may be."""
    return lmdb(path, [(b"e%08d/qpos" % i, b"") for i in range(100_000)], cameras=[str(i) for i in range(32)])


def lmdb_numbers(path):
    return lmdb(path, [(b"e%08d/%s" % (i, key), b"\0" * 8) for i in range(50_000) for key in (b"action", b"qpos")])


def packed(path, n, index, records=(), records_bytes=0, crc_of_index=None):
    """A packed file of n episodes. records, index: parts; an integer is a hole."""
    at = 4096 + records_bytes
    head = bytearray(4096)
    head[:8] = b"\x89WEIR\r\n\x1a"
    struct.pack_into("<4I3Q2I", head, 8, 1, 0, 0, n, at, at + 16 * n, 4096, crc_of_index or 0, 0)
    struct.pack_into("<4s4s2I", head, 56, b"<f4", b"<f4", 2, 2)
    struct.pack_into("<I", head, 12, crc(bytes(head)))
    return [write(f"{path}/x.weir", bytes(head), *records, *index)]


def packed_index(path):
    n = (1 << 31) - 3
    return packed(path, n, [16 * n])


def packed_empty(path):
    """Episodes whose records have no bytes."""
    index = struct.pack("<2Q", 4096, 0) * 100_000
    return packed(path, 100_000, [index], crc_of_index=crc(index))


def packed_record(path):
    """A record whose texts are 1 GiB of a hole."""
    size = GIB - 4096
    head = b"WEIRepis" + struct.pack("<2I2Q2IQ", 0, 0, size, 0, 1, 2, 64) + struct.pack("<4f", *[0] * 4)
    index = struct.pack("<2Q", 4096, size)
    return packed(path, 1, [index], [head, size - len(head)], size, crc(index))


# ---- small formats ----


def config_hole(path):
    return [write(f"{path}/run.conf", "batch_size 4\n", GIB)] + lerobot(f"{path}/data")


def index_hole(path):
    lerobot(f"{path}/data")
    subprocess.run([WEIR, "info", f"{path}/data", "--index", f"{path}/index"], check=True, stdout=subprocess.DEVNULL)
    with open(f"{path}/index", "rb") as f:
        head = f.read(64)
    return [f"{path}/data", write(f"{path}/index", head, 3 * GIB)]


def list_values(path):
    return [write(f"{path}/served/index.json", "[", VALUES[:-1], "]")]


def list_names(path):
    return [write(f"{path}/served/index.json", "[", b'"a.hdf5",' * (1 << 19), '"b.hdf5"]')]


# ---- the table ----


def weir(*arguments):
    """The command of a row; @0 is its first path."""
    return lambda paths: [WEIR] + [paths[int(a[1:])] if a.startswith("@") else a for a in arguments]


def served(paths):
    return [WEIR, "info", "URL"]


INFO_ROWS = (parquet_names, parquet_page_in_a_hole, parquet_footer_in_a_hole, parquet_zeros, parquet_runs, info_values,
             info_hole, episodes_line, episodes_lines, episodes_hole, tasks_line, episodes_rows, episodes_files,
             zarr_rows, zarr_zeros, zarr_absent, zarr_attributes, hdf5_zeros, hdf5_cameras, hdf5_numbers_in_a_hole,
             hdf5_bytes, zip_directory, features_values, tfrecord_hole, tfrecord_features, hdf5_rows,
             mp4_samples, mp4_sample, mp4_index, hdf5_fill, hdf5_fill_all, hdf5_heap, hdf5_heap_size, hdf5_groups,
             hdf5_chunks, hdf5_header, hdf5_messages, hdf5_chunk, hdf5_chunk_hole, zarr_zlib, zarr_zstd, zarr_blosc,
             zarr_overflow, zarr_hole, zarr_metadata, zip_names, lmdb_itself, lmdb_overflow, lmdb_hole, lmdb_pages, lmdb_episodes, lmdb_numbers,
             packed_index, packed_empty, packed_record)
RUN = ("--batch-size", "2", "--num-workers", "1", "--max-batches", "100")
ROWS = [(make, weir("info", "@0")) for make in INFO_ROWS]
ROWS += [(make, weir("run", "@0", *RUN)) for make in (parquet_names, png_size, jpeg_size, hdf5_rows, tasks_line,
                                                         mp4_sample, hdf5_fill, hdf5_chunk, hdf5_black, hdf5_heap,
                                                         hdf5_heap_size, zarr_zlib, zarr_zstd, zarr_blosc,
                                                         zarr_hole)]
ROWS += [(make, weir("verify", "@0")) for make in (stats_line, parquet_runs)]
ROWS += [(make, weir("report", "@0")) for make in (log_values, log_hole, trace_events, trace_blank, trace_values)]
ROWS += [(result_values, weir("compare", "@0", "@0")), (config_hole, weir("run", "@1", "--config", "@0", *RUN)),
         (index_hole, weir("run", "@0", "--index", "@1", *RUN)), (list_values, served), (list_names, served),
         (parquet_empty_texts, lambda paths: [COLUMNS_TOOL, paths[0], "0", str(60 << 20)])]


def serve(folder):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=folder)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_MAX_S, CPU_MAX_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (GUARD_BYTES, GUARD_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def measure(command, log):
    """Returns the exit status, the peak memory and the CPU time of a command."""
    with open(log, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   preexec_fn=limits)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_maxrss << 10, used.ru_utime + used.ru_stime


class Claims(unittest.TestCase):
    def check(self, make, command):
        folder = tempfile.mkdtemp(prefix="claims-")
        server = None
        try:
            paths = make(folder + "/in")
            words = command(paths)
            if "URL" in words:
                server = serve(os.path.dirname(paths[0]))
                words[words.index("URL")] = f"http://127.0.0.1:{server.server_address[1]}/index.json"
            code, memory, seconds = measure(words, folder + "/out")
            with open(folder + "/out", errors="replace") as f:
                said = f.read()
            disk = stored(paths)
        finally:
            if server:
                server.shutdown()
            shutil.rmtree(folder)
        last = said.strip().splitlines()[-1:] or [""]
        if PRINT:
            print(f"{make.__name__:26} {words[1][:8]:8} exit {code:3} {memory >> 20:5} MiB of {(BASE_BYTES + RATIO * disk) >> 20:5}"
                  f" {seconds:5.1f} s, {disk:9} bytes | {last[0][-150:]}", flush=True)
        codes = (0,) if make is hdf5_black else (0, 1, 2, 3)
        self.assertIn(code, codes, f"{-code if code < 0 else code}: {said[-500:]}")
        self.assertLess(seconds, CPU_MAX_S)
        self.assertLessEqual(memory, BASE_BYTES + RATIO * disk, said[-500:])
        self.assertNotIn("out of memory", said)


def add(make, command):
    words = command(["path"] * 2)
    name = words[1] if words[0] == WEIR else "columns"
    setattr(Claims, f"test_{make.__name__}_{name}", lambda self: self.check(make, command))


if __name__ == "__main__":
    PRINT = "--print" in sys.argv
    WEIR, COLUMNS_TOOL = (os.path.abspath(path) for path in sys.argv[1:3])
    for row in ROWS:
        add(*row)
    unittest.main(argv=[sys.argv[0]] + [a for a in sys.argv[3:] if a != "--print"])
