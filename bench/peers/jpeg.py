"""Decoders of JPEG bytes into RGB pixels. Each is a function (bytes, out) that fills a uint8 array (H, W, 3), with the slow
integer DCT and fancy upsampling, as Weir decodes. All of them give the GIL back while they work."""
import numpy as np


def cv2_flags(cv2):
    """OpenCV before 4.11 has BGR only: the same work, the channels the other way round (check.py allows for it)."""
    return getattr(cv2, "IMREAD_COLOR_RGB", cv2.IMREAD_COLOR)


def _cv2():
    import cv2
    cv2.setNumThreads(0)
    flags = cv2_flags(cv2)

    def decode(data, out):  # Python's imdecode takes no destination: one copy more
        np.copyto(out, cv2.imdecode(np.frombuffer(data, np.uint8), flags))
    return decode


def _simplejpeg():
    import simplejpeg

    def decode(data, out):
        simplejpeg.decode_jpeg(data, "RGB", fastdct=False, fastupsample=False, buffer=out)
    return decode


def _ffmpeg():
    import spdl.io
    # swscale's defaults round twice and miss libjpeg's pixels by more than one on average
    filters = "scale=flags=bilinear+accurate_rnd+full_chroma_int,format=pix_fmts=rgb24"

    def decode(data, out):
        frames = spdl.io.decode_packets(spdl.io.demux_image(bytes(data)), filter_desc=filters)
        np.copyto(out, spdl.io.to_numpy(spdl.io.convert_frames(frames)))
    return decode


def decoder(name):
    return {"cv2": _cv2, "simplejpeg": _simplejpeg, "ffmpeg": _ffmpeg}[name]()
