"""Datasets that read and transform with the libraries that weir.watch knows, for watch_library_tests.py.

    watch_libraries.py FOLDER NAME...    runs each under weir.watch, with files that the libraries write themselves, and
                                         prints NAME and why, for those whose library is not installed; FOLDER/NAME.jsonl is
                                         the log of the others"""
import importlib
import io
import os
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import weir

ITEMS, BATCH = 16, 4
OPEN, READ, IMAGE, VIDEO = "02_open", "03_read", "03b_image_decode", "03j_video_decode"
PICTURE = np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)
ROWS = {}


class Row:
    """make    prepares files in a folder, and returns what a dataset calls with each index
    needs   modules
    stages  name -> calls per item
    file    name of the only file in the table of files, or None"""

    def __init__(self, make, needs, stages, file):
        self.make, self.needs, self.stages, self.file = make, needs, stages, file


def row(needs, stages, file=None):
    def add(make):
        ROWS[make.__name__] = Row(make, needs.split(), stages, file)
        return make
    return add


class Items(Dataset):
    def __init__(self, item):
        self.item = item

    def __len__(self):
        return ITEMS

    def __getitem__(self, i):
        self.item(i)
        return torch.tensor(i)


def picture(path):
    from PIL import Image
    Image.fromarray(PICTURE).save(path)
    return path


# ---- files of arrays ----

def hdf5(path):
    import h5py
    with h5py.File(path, "w") as file:
        file["x"] = np.zeros((ITEMS, 8))
    return path


@row("h5py", {OPEN: 2, READ: 2}, "x.hdf5")
def h5py_file(folder):
    import h5py
    path = hdf5(folder + "/x.hdf5")

    def item(i):
        with h5py.File(path, "r") as file:
            return file["x"][i]
    return item


@row("h5py", {OPEN: 2, READ: 2}, "x.hdf5")
def h5py_read_direct(folder):
    from h5py import File
    path = hdf5(folder + "/x.hdf5")

    def item(i):
        with File(path, "r") as file:
            file["x"].read_direct(np.zeros((ITEMS, 8)))
    return item


@row("zarr", {READ: 1}, "x.zarr")
def zarr_array(folder):
    import zarr
    path = folder + "/x.zarr"
    array = zarr.open(path, mode="w", shape=(ITEMS, 8), chunks=(1, 8), dtype="f4")
    array[:] = 1
    array = zarr.open(path, mode="r")
    return lambda i: array[i]


@row("numpy", {READ: 1}, "x.npy")
def numpy_load(folder):
    np.save(folder + "/x.npy", PICTURE)
    return lambda i: np.load(folder + "/x.npy")


@row("numpy", {READ: 1}, "x.raw")
def numpy_fromfile(folder):
    PICTURE.tofile(folder + "/x.raw")
    return lambda i: np.fromfile(folder + "/x.raw", np.uint8)


@row("torch", {READ: 1}, "x.pt")
def torch_load(folder):
    torch.save(torch.zeros(3), folder + "/x.pt")
    return lambda i: torch.load(folder + "/x.pt")


@row("pandas", {READ: 1}, "x.csv")
def pandas_csv(folder):
    import pandas
    pandas.DataFrame({"a": [1, 2]}).to_csv(folder + "/x.csv")
    return lambda i: pandas.read_csv(folder + "/x.csv")


@row("pyarrow pyarrow.parquet", {READ: 1}, "x.parquet")
def pyarrow_table(folder):
    import pyarrow
    from pyarrow import parquet
    parquet.write_table(pyarrow.table({"a": [1, 2]}), folder + "/x.parquet")
    return lambda i: parquet.read_table(folder + "/x.parquet")


# ---- images ----

@row("cv2 PIL", {IMAGE: 1}, "x.png")
def cv2_imread(folder):
    import cv2
    path = picture(folder + "/x.png")
    return lambda i: cv2.imread(path)


@row("cv2 PIL", {IMAGE: 1, READ: 1, "05_transform cv2.resize": 1}, "x.png")
def cv2_imdecode(folder):
    import cv2
    globals()["my_imdecode"] = cv2.imdecode  # as in a module with `from cv2 import imdecode`
    path = picture(folder + "/x.png")

    def item(i):
        with open(path, "rb") as file:
            data = file.read()
        return cv2.resize(my_imdecode(np.frombuffer(data, np.uint8), 1), (8, 8))  # noqa: F821
    return item


@row("PIL", {IMAGE: 1, READ: 1}, "x.png")
def pil_lazy(folder):
    from PIL import Image
    path = picture(folder + "/x.png")
    return lambda i: np.asarray(Image.open(path))


@row("PIL", {IMAGE: 1}, None)
def pil_eager(folder):
    from PIL import Image
    with open(picture(folder + "/x.png"), "rb") as file:
        data = file.read()

    def item(i):
        image = Image.open(io.BytesIO(data))
        image.load()
        image.load()
        image.convert("L")
    return item


@row("torchvision PIL", {IMAGE: 1}, "x.png")
def torchvision_read(folder):
    import torchvision
    path = picture(folder + "/x.png")
    return lambda i: torchvision.io.read_image(path)


@row("torchvision PIL", {IMAGE: 1}, None)
def torchvision_decode(folder):
    import torchvision
    with open(picture(folder + "/x.png"), "rb") as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    return lambda i: torchvision.io.decode_image(data)


@row("imageio PIL", {IMAGE: 1}, "x.png")
def imageio_read(folder):
    import imageio.v3
    path = picture(folder + "/x.png")
    return lambda i: imageio.v3.imread(path)


# ---- transforms ----

@row("torchvision PIL", {"05_transform Resize": 1, "05_transform ToTensor": 1, "05_transform Compose": 1})
def torchvision_v1(folder):
    from PIL import Image
    from torchvision import transforms
    transform = transforms.Compose([transforms.Resize(8), transforms.ToTensor()])
    return lambda i: transform(Image.fromarray(PICTURE))


@row("torchvision.transforms.v2", {"05_transform Resize": 1, "05_transform ToDtype": 1, "05_transform Compose": 1})
def torchvision_v2(folder):
    from torchvision.transforms import v2
    transform = v2.Compose([v2.Resize(8), v2.ToDtype(torch.float32, scale=True)])
    return lambda i: transform(torch.from_numpy(PICTURE.transpose(2, 0, 1).copy()))


@row("albumentations", {"05_transform HorizontalFlip": 1, "05_transform Compose": 1})
def albumentations_compose(folder):
    import albumentations
    transform = albumentations.Compose([albumentations.HorizontalFlip(p=1)])
    return lambda i: transform(image=PICTURE)


# ---- videos ----

def video(path):
    import cv2
    out = cv2.VideoWriter(path, cv2.VideoWriter_fourcc(*"mp4v"), 30, (64, 48))
    for k in range(ITEMS):
        out.write(np.roll(PICTURE, k, axis=1))
    out.release()
    return path


@row("cv2", {VIDEO: 4}, "x.mp4")
def cv2_video(folder):
    import cv2
    from cv2 import VideoCapture
    globals()["MyCapture"] = VideoCapture
    path, before = video(folder + "/x.mp4"), cv2.VideoCapture()

    def item(i):
        capture = MyCapture(path)  # noqa: F821
        capture.set(cv2.CAP_PROP_POS_FRAMES, i)
        assert capture.grab() and capture.retrieve()[0]
        assert isinstance(before, cv2.VideoCapture) and isinstance(capture, cv2.VideoCapture)
        assert not isinstance(3, cv2.VideoCapture) and issubclass(VideoCapture, cv2.VideoCapture)
        assert type(capture) is cv2.VideoCapture and capture.isOpened()
    return item


@row("av cv2", {VIDEO: 1}, "x.mp4")
def av_open(folder):
    import av
    path = video(folder + "/x.mp4")

    def item(i):
        with av.open(path) as container:
            next(container.decode(video=0))
    return item


@row("torchcodec torchcodec.decoders cv2", {VIDEO: 2}, "x.mp4")
def torchcodec_decoder(folder):
    from torchcodec.decoders import VideoDecoder
    path = video(folder + "/x.mp4")
    return lambda i: VideoDecoder(path)[i]


# ---- running ----

def why_not(needs):
    """Why a row cannot run, or None."""
    for name in needs:
        try:
            importlib.import_module(name)
        except Exception as error:
            return "{}: {}".format(name, str(error).split("\n")[0])
    return None


def run(name, folder):
    missing = why_not(ROWS[name].needs)
    if missing:
        print(name, missing)
        return
    own = os.path.join(folder, name)
    os.mkdir(own)
    item = ROWS[name].make(own)
    item(0)  # so that imports inside libraries are no part of the watch
    loader = weir.watch(DataLoader(Items(item), batch_size=BATCH, num_workers=2), every=0, name=name, log=own + ".jsonl")
    assert [batch.tolist() for batch in loader] == torch.arange(ITEMS).reshape(-1, BATCH).tolist()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in sys.argv[2:]:
        run(each, sys.argv[1])
