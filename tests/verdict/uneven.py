"""A dataset in ACT's layout whose cameras differ in size: uneven.py FOLDER."""
import io
import sys
from pathlib import Path

import h5py
import numpy
from PIL import Image

folder = Path(sys.argv[1])
folder.mkdir()
random = numpy.random.default_rng(0)
for n in range(6):
    with h5py.File(folder / f"episode_{n}.hdf5", "w") as file:
        file["observations/qpos"] = random.random((30, 14))
        file["action"] = random.random((30, 14))
        file.attrs["compress"] = True
        for name, size in [("cam_high", (1280, 960)), ("cam_wrist", (128, 96))]:
            rows = []
            for _ in range(30):
                small = Image.fromarray(random.integers(0, 255, (12, 16, 3), dtype=numpy.uint8))
                out = io.BytesIO()
                small.resize(size).save(out, "JPEG", quality=90)
                rows.append(out.getvalue())
            longest = max(map(len, rows))
            data = numpy.zeros((30, longest), numpy.uint8)
            for i, row in enumerate(rows):
                data[i, : len(row)] = numpy.frombuffer(row, numpy.uint8)
            file[f"observations/images/{name}"] = data
