"""JPEG decoders. Each is a function (bytes, out) that fills a uint8 RGB array (H, W, 3), with the slow integer DCT and
fancy upsampling, like Weir. All of them release the GIL."""
import numpy as np


def cv2_flags(cv2):
    """OpenCV before 4.11 only decodes to BGR. The work is the same, and check.py allows for it."""
    return getattr(cv2, "IMREAD_COLOR_RGB", cv2.IMREAD_COLOR)


def _cv2():
    import cv2
    cv2.setNumThreads(0)
    flags = cv2_flags(cv2)

    def decode(data, out):  # Python's imdecode has no destination argument, which costs a copy
        np.copyto(out, cv2.imdecode(np.frombuffer(data, np.uint8), flags))
    return decode


def _simplejpeg():
    import simplejpeg

    def decode(data, out):
        simplejpeg.decode_jpeg(data, "RGB", fastdct=False, fastupsample=False, buffer=out)
    return decode


def _ffmpeg():
    import spdl.io
    # swscale's defaults round twice and differ from libjpeg's pixels by more than 1 on average
    filters = "scale=flags=bilinear+accurate_rnd+full_chroma_int,format=pix_fmts=rgb24"

    def decode(data, out):
        frames = spdl.io.decode_packets(spdl.io.demux_image(bytes(data)), filter_desc=filters)
        np.copyto(out, spdl.io.to_numpy(spdl.io.convert_frames(frames)))
    return decode


def decoder(name):
    return {"cv2": _cv2, "simplejpeg": _simplejpeg, "ffmpeg": _ffmpeg}[name]()
