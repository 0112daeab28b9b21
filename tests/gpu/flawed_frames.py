#!/usr/bin/env python3
"""flawed_frames.py FOLDER: writes an episode of a camera whose JPEGs have extraneous bytes before restart markers and
before the end, as common USB cameras send them. Needs OpenCV and h5py."""
import os
import sys

import cv2
import h5py
import numpy

STEPS, HEIGHT, WIDTH = 96, 480, 640


def flawed(t):
    y, x = numpy.mgrid[:HEIGHT, :WIDTH]
    image = numpy.stack([(x + 3 * t) % 256, (y + t) % 256, (x * y // 64 + t) % 256], axis=2).astype(numpy.uint8)
    data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 90, cv2.IMWRITE_JPEG_RST_INTERVAL, 40])[1].tobytes()
    at = data.index(b"\xff\xda")
    for k in range(5):
        at = data.index(bytes((0xFF, 0xD0 + k)), at)
        data, at = data[:at] + b"\0" + data[at:], at + 3
    return data[:-2] + b"\x12\0\0" + data[-2:] if t % 2 else data


def main(folder):
    frames = [flawed(t) for t in range(STEPS)]
    size = max(map(len, frames))
    os.makedirs(folder)
    with h5py.File(os.path.join(folder, "episode_0.hdf5"), "w") as file:
        file["observations/images/usb"] = numpy.stack([numpy.frombuffer(f.ljust(size, b"\0"), numpy.uint8) for f in frames])
        file["observations/qpos"] = file["action"] = numpy.zeros((STEPS, 4), numpy.float32)
        file.attrs["compress"] = True


main(sys.argv[1])
