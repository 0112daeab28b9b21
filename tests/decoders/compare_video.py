#!/usr/bin/env python3
"""Compares the pixels of videos with PyAV's and torchcodec's: tests/decoders/compare_video.py VIDEO_PIXELS [FILE...]

Without files, encodes short videos: every codec, key-frame distances, B-frames, open groups of pictures, odd sizes,
chroma 4:2:2 and 4:4:4, 10 bits, BT.709 and full range. Each group of pictures is decoded by itself, in a random order,
and every picture's pixels must be equal. PyAV interpolates chroma with another filter than torchcodec unless it is
given the filter's name, as here. Runs in build/readers-venv (tests/readers/setup.sh), or in the Python that
WEIR_PYAV_PYTHON names. Exit status 77: PyAV is missing.
"""
import os
import random
import struct
import subprocess
import sys
import tempfile

VENV = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/readers-venv/bin/python")
PYTHON = os.environ.get("WEIR_PYAV_PYTHON", VENV)
if os.path.exists(PYTHON) and not os.environ.get("WEIR_PYAV_STARTED"):
    os.environ["WEIR_PYAV_STARTED"] = "1"
    os.execv(PYTHON, [PYTHON, os.path.abspath(__file__)] + sys.argv[1:])
try:
    import av
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}; tests/readers/setup.sh installs PyAV")
    sys.exit(77)
try:
    from torchcodec.decoders import VideoDecoder
except Exception:  # torchcodec is optional, and fails in many ways
    VideoDecoder = None

CODECS = {"av1": 0, "libdav1d": 0, "h264": 1, "hevc": 2}
FRAMES = 20
# encoder, width, height, pixel format, options, whether the video has tags of colours, which PyAV ignores
SVT = {"crf": "30", "preset": "8"}
VIDEOS = [
    ("libsvtav1", 640, 480, "yuv420p", {"g": "2", **SVT}, False),
    ("libsvtav1", 322, 242, "yuv420p", {"g": "10", **SVT}, False),
    ("libsvtav1", 161, 120, "yuv420p", {"g": "2", **SVT}, False),
    ("libsvtav1", 160, 121, "yuv420p", {"g": "2", **SVT}, False),
    ("libsvtav1", 161, 121, "yuv420p", {"g": "2", **SVT}, False),
    ("libx264", 640, 480, "yuv420p", {"g": "2", "crf": "23"}, False),
    ("libx264", 160, 120, "yuv420p", {"g": "12", "bf": "3", "crf": "23"}, False),
    ("libx264", 160, 120, "yuv420p", {"g": "12", "bf": "3", "crf": "23", "x264-params": "open-gop=1"}, False),
    ("libx264", 96, 64, "yuv420p", {"g": "250", "crf": "35", "x264-params": "slices=3"}, False),
    ("libx265", 160, 120, "yuv420p", {"x265-params": "keyint=10:bframes=4:log-level=none:open-gop=1"}, False),
    ("libx265", 128, 96, "gray12le", {"x265-params": "keyint=2:log-level=none"}, False),
    ("libx264", 160, 120, "yuv420p", {"g": "4", "colorspace": "bt709", "color_primaries": "bt709", "color_trc": "bt709"}, True),
    ("libx264", 160, 120, "yuv444p", {"g": "4", "colorspace": "bt709"}, True),
    ("libx264", 160, 120, "yuvj420p", {"g": "4", "color_range": "pc"}, True),
    ("libx264", 160, 120, "yuv422p", {"g": "4"}, False),
    ("libx264", 160, 121, "yuv422p", {"g": "4"}, False),
    ("libx264", 161, 121, "yuv444p", {"g": "4"}, False),
    ("libx264", 160, 120, "gray", {"g": "4"}, False),
    ("libx264", 160, 120, "yuv420p10le", {"g": "4"}, False),
    ("libx265", 160, 120, "yuv420p10le", {"x265-params": "keyint=4:log-level=none"}, False),
    ("libx265", 160, 120, "yuv420p12le", {"x265-params": "keyint=4:log-level=none"}, False),
    ("libx265", 160, 120, "yuv422p10le", {"x265-params": "keyint=4:log-level=none"}, False),
    ("libx265", 160, 120, "yuv444p10le", {"x265-params": "keyint=4:log-level=none"}, False),
    ("libsvtav1", 160, 120, "yuv420p10le", {"g": "2", **SVT}, False),
    ("libsvtav1", 161, 121, "yuv420p10le", {"g": "2", **SVT}, False),
]


def encode(path, encoder, width, height, pixels, options):
    noise = np.random.default_rng(width)
    with av.open(path, "w") as container:
        stream = container.add_stream(encoder, rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        y, x = np.mgrid[:height, :width]
        for t in range(FRAMES):
            if pixels == "gray12le":
                image = ((x * 13 + y * 7 + t * 29) % 4096).astype(np.uint16)
                frame = av.VideoFrame.from_ndarray(image, format="gray16le").reformat(format=pixels)
            else:
                image = np.stack([x * 2 + t * 3, y * 2 - t, (x ^ y) + 5 * t], -1) + noise.integers(0, 12, (height, width, 3))
                frame = av.VideoFrame.from_ndarray((image % 256).astype(np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def groups_of(packets):
    """The packets of each group of pictures: those that follow its sync sample, including the leading pictures of the next one."""
    syncs = [i for i, p in enumerate(packets) if p.is_keyframe]
    for first, following in zip(syncs, syncs[1:] + [len(packets)]):
        end = following + 1 if following < len(packets) else following
        while end < len(packets) and packets[end].pts < packets[following].pts:
            end += 1
        yield packets[first:end]


def decode(program, path, rng):
    """pts -> pixels, as the program decodes them."""
    with av.open(path) as container:
        stream = container.streams.video[0]
        config = bytes(stream.codec_context.extradata or b"")
        codec, depth = CODECS[stream.codec_context.name], stream.codec_context.pix_fmt == "gray12le"
        matrix, full_range = stream.codec_context.colorspace, stream.codec_context.color_range
        tags = depth | (0 if matrix == 2 else matrix + 1) << 8 | full_range << 16
        groups = list(groups_of([p for p in container.demux(stream) if p.size]))
        rng.shuffle(groups)
        data = b"".join(struct.pack("<4I", codec, len(config), len(group), tags) + config +
                        b"".join(struct.pack("<qQ", p.pts, p.size) + bytes(p) for p in group) for group in groups)
    out = subprocess.run([program], input=data, stdout=subprocess.PIPE, check=True).stdout
    frames, at, different = {}, 0, 0
    while at < len(out):
        pts, width, height = struct.unpack_from("<qQQ", out, at)
        n = width * height * (2 if depth else 3)
        image = np.frombuffer(out, np.uint16 if depth else np.uint8, n // (2 if depth else 1), at + 24)
        image = image.reshape((height, width) if depth else (height, width, 3))
        different += pts in frames and not np.array_equal(frames[pts], image)
        frames[pts] = image
        at += 24 + n
    return frames, different


def pyav_pixels(frame):
    """As torchcodec converts them; the values of gray12le, which is depth."""
    if frame.format.name == "gray12le":
        return frame.to_ndarray(format="gray12le")
    return frame.reformat(format="rgb24", interpolation="BICUBIC").to_ndarray()


def compare(program, path, is_tagged, rng):
    got, different = decode(program, path, rng)
    with av.open(path) as container:
        wanted = {f.pts: pyav_pixels(f) for f in container.decode(video=0)}
    result = [f"{len(got)} of {len(wanted)} frames"]
    faults = different + (got.keys() != wanted.keys())
    for name, others in (("PyAV", {} if is_tagged else wanted), ("torchcodec", torchcodec_frames(path, sorted(wanted)))):
        if not others or next(iter(others.values())).shape != next(iter(wanted.values())).shape:
            continue
        unequal = [int(np.abs(got[pts].astype(int) - others[pts]).max()) for pts in got.keys() & others.keys()
                   if not np.array_equal(got[pts], others[pts])]
        result.append(f"{name}: {len(unequal)} different" + (f", by at most {max(unequal)}" if unequal else ""))
        faults += len(unequal)
    return "; ".join(result), faults


def torchcodec_frames(path, times):
    if not VideoDecoder:
        return {}
    try:
        decoder = VideoDecoder(path, dimension_order="NHWC")
        return {pts: decoder[i].numpy() for i, pts in enumerate(times)}
    except Exception as e:  # such as gray12le, which it does not convert
        print(f"    torchcodec: {e}")
        return {}


def main():
    program, files = sys.argv[1], sys.argv[2:]
    rng, failed = random.Random(1), 0
    with tempfile.TemporaryDirectory() as folder:
        videos = [(path, path, False) for path in files]
        for i, (encoder, width, height, pixels, options, is_tagged) in enumerate([] if files else VIDEOS):
            path = os.path.join(folder, f"{i}.mp4")
            try:
                encode(path, encoder, width, height, pixels, options)
            except Exception as e:  # an encoder that this PyAV lacks
                print(f"{encoder} {pixels}: not encoded: {e}")
                continue
            videos.append((path, f"{encoder} {width}x{height} {pixels} {options}", is_tagged))
        for path, name, is_tagged in videos:
            text, faults = compare(program, path, is_tagged, rng)
            failed += faults > 0
            print(f"{'FAILED ' if faults else ''}{name}: {text}")
    print(f"{len(videos)} videos, {failed} failures")
    sys.exit(1 if failed or not videos else 0)


if __name__ == "__main__":
    main()
