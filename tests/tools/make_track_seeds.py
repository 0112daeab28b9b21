#!/usr/bin/env python3
"""Writes the seeds of fuzz_track: small HDF5 files with every kind of chunk index, filter and reference, each after 40
bytes that describe its dataset (see fuzz_track.c). Usage: tests/tools/make_track_seeds.py [DIR]; needs h5py."""
import os
import struct
import sys

import h5py
import numpy

CHUNKED, VLEN, DEFLATE, SHUFFLE, FLETCHER32, LZF = 1, 2, 4, 8, 16, 32
UNLIMITED = 0xFFFF


def head(dataset, flags, base):
    rank = len(dataset.shape)
    element = 16 if flags & VLEN else dataset.dtype.itemsize
    sizes = b""
    for d in range(4):
        size = chunk = most = 0
        if d < rank:
            size = dataset.shape[d]
            chunk = dataset.chunks[d] if dataset.chunks else 0
            most = UNLIMITED if dataset.maxshape[d] is None else dataset.maxshape[d]
        sizes += struct.pack("<HHH", size, chunk, most)
    address = h5py.h5o.get_info(dataset.id).addr
    offset = dataset.id.get_offset() if not dataset.chunks else None
    return struct.pack("<BBBx", flags, rank - 1, element - 1) + sizes + struct.pack(
        "<HxxII", base, address, offset if offset is not None else 0
    )


def write(folder, name, flags, libver="latest", base=0, shape=(7, 3, 4), dtype="u1", **options):
    path = os.path.join(folder, "scratch.h5")
    rng = numpy.random.default_rng(1)
    if flags & DEFLATE:
        options["compression"] = "gzip"
    if flags & LZF:
        options["compression"] = "lzf"
    if flags & SHUFFLE:
        options["shuffle"] = True
    if flags & FLETCHER32:
        options["fletcher32"] = True
    with h5py.File(path, "w", libver=libver, userblock_size=base) as file:
        if flags & VLEN:
            rows = file.create_dataset("x", shape, dtype=h5py.vlen_dtype(numpy.uint8), **options)
            for t in range(shape[0]):
                rows[t] = rng.integers(0, 255, 5 + t, dtype=numpy.uint8)
        else:
            file.create_dataset("x", data=rng.integers(0, 4, shape).astype(dtype), **options)
    with h5py.File(path) as file:
        described = head(file["x"], flags, base)
    with open(path, "rb") as file:
        contents = file.read().rstrip(b"\0") + b"\0" * 8
    os.remove(path)
    assert len(described) == 40, len(described)
    with open(os.path.join(folder, name), "wb") as seed:
        seed.write(described + contents)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "..", "fuzz", "corpus", "fuzz_track")
    os.makedirs(folder, exist_ok=True)
    chunks = {"chunks": (2, 3, 2)}
    grow = {"maxshape": (None, 3, 4)}
    write(folder, "btree1", CHUNKED, "earliest", **chunks)
    write(folder, "btree1_deflate", CHUNKED | DEFLATE | SHUFFLE, "earliest", base=512, dtype="<u2", **chunks)
    write(folder, "single", CHUNKED | DEFLATE, chunks=(7, 3, 4))
    write(folder, "fixed", CHUNKED, **chunks)
    write(folder, "fixed_lzf", CHUNKED | LZF | FLETCHER32, **chunks)
    write(folder, "fixed_paged", CHUNKED, shape=(1100,), chunks=(1,))
    write(folder, "extensible", CHUNKED, **chunks, **grow)
    write(folder, "extensible_deflate", CHUNKED | DEFLATE | FLETCHER32, **chunks, **grow)
    write(folder, "extensible_super", CHUNKED, shape=(300,), chunks=(1,), maxshape=(None,))
    write(folder, "extensible_second", CHUNKED, **chunks, maxshape=(7, None, 4))
    write(folder, "btree2", CHUNKED, **chunks, maxshape=(None, None, 4))
    write(folder, "btree2_deflate", CHUNKED | DEFLATE, **chunks, maxshape=(None, None, 4))
    write(folder, "btree2_deep", CHUNKED, shape=(20, 10), chunks=(1, 1), maxshape=(None, None))
    write(folder, "vlen", VLEN, shape=(6,))
    write(folder, "vlen_chunked", CHUNKED | VLEN, shape=(6,), chunks=(4,))
    write(folder, "vlen_deflate", CHUNKED | VLEN | DEFLATE, "earliest", base=512, shape=(6,), chunks=(4,))
    write(folder, "contiguous", 0)


main()
