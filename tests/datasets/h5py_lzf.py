"""Writes an HDF5 file with chunks of h5py's lzf filter: h5py_lzf.py FILE. Exit status 77: no h5py.

/truth/NAME contains the values of /lzf/NAME, contiguous.
"""
import sys

try:
    import h5py
    import numpy as np
except ImportError:
    sys.exit(77)

rng = np.random.default_rng(1)


def values(kind, dtype, shape):
    n = int(np.prod(shape))
    if kind == "runs":  # much longer than the longest match
        flat = np.repeat(np.arange(n // 700 + 1), 700)[:n]
    elif kind == "periods":  # matches that overlap their source, at every short distance
        flat = np.concatenate([np.arange(400) % period for period in range(1, n // 400 + 2)])[:n]
    elif kind == "walk":
        flat = np.cumsum(rng.integers(-1, 2, n))
    elif kind == "far":  # matches at almost the format's max distance
        flat = np.tile(rng.integers(0, 256, 8192 - 100), n // 8000 + 1)[:n]
    else:  # "noise", stored uncompressed
        return rng.integers(0, 256, n * np.dtype(dtype).itemsize, dtype="u1").view(dtype).reshape(shape)
    return flat.astype(dtype).reshape(shape)


with h5py.File(sys.argv[1], "w") as f:
    for kind in ("runs", "periods", "walk", "far", "noise"):
        for dtype in ("u1", "u2", "i4", "i8"):
            for shape, chunks in (((20000,), (9001,)), ((61, 83, 3), (16, 64, 3)), ((50, 7), (1, 7))):
                for shuffle in (False, True):
                    for fletcher32 in (False, True):
                        data = values(kind, dtype, shape)
                        name = f"{kind}_{dtype}_{len(shape)}_{int(shuffle)}{int(fletcher32)}"
                        f.create_dataset("truth/" + name, data=data)
                        f.create_dataset("lzf/" + name, data=data, chunks=chunks, compression="lzf", shuffle=shuffle,
                                         fletcher32=fletcher32)
