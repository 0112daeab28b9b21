"""Writes the chunk shapes that h5py chooses: h5py_chunks.py FILE. Exit status 77: no h5py.

A line of FILE contains the element's bytes, the rank, the dataset's shape and the chunk's shape.
"""
import sys

try:
    import h5py
    import numpy as np
except ImportError:
    sys.exit(77)

rng = np.random.default_rng(1)
shapes = [(n,) for n in range(1, 300)] + [(2 ** k + d,) for k in range(8, 40) for d in (-1, 0, 1)]
shapes += [(t, d) for t in (1, 2, 50, 104, 400, 999, 100000) for d in (1, 2, 3, 7, 14, 28, 29, 1000)]
shapes += [(t, h, w) for t in (1, 10, 400, 3000) for h, w in ((16, 16), (84, 84), (400, 640), (480, 640))]
shapes += [(t, h, w, 3) for t in (1, 2, 10, 104, 150, 300, 400, 3000) for h, w in
           ((16, 16), (17, 33), (64, 64), (84, 84), (128, 128), (256, 256), (480, 640), (720, 1280), (8192, 8192))]
shapes += [tuple(int(x) for x in np.exp(rng.uniform(0, 8, rng.integers(1, 5)))) for _ in range(3000)]

# The file is in memory, and unwritten chunks take no space.
with h5py.File("chunks", "w", driver="core", backing_store=False) as f, open(sys.argv[1], "w") as out:
    for n, shape in enumerate(shapes):
        for dtype in ("u1", "u2", "f4", "f8"):
            chunks = f.create_dataset(f"{n}_{dtype}", shape=shape, dtype=dtype, chunks=True).chunks
            print(np.dtype(dtype).itemsize, len(shape), *shape, *chunks, file=out)
