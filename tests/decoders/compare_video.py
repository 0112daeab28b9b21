#!/usr/bin/env python3
"""Compares the pixels of videos with PyAV's and torchcodec's: tests/decoders/compare_video.py VIDEO_PIXELS [FILE...]

Without files, encodes short videos: every codec, key-frame distances, B-frames, open groups of pictures, odd sizes,
chroma 4:2:2 and 4:4:4, 10 bits, BT.709 and full range; and cuts videos with ffmpeg (if installed), which writes edit
lists. Each group of pictures is decoded by itself, in a random order, and every picture's time and pixels must be
equal. PyAV interpolates chroma with another filter than torchcodec unless it is
given the filter's name, as here. Runs in build/readers-venv (tests/readers/setup.sh), or in the Python that
WEIR_PYAV_PYTHON names. Exit status 77: PyAV is missing.
"""
import os
import shutil
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
    from torchcodec import _core as torchcodec
except Exception:  # torchcodec is optional, and fails in many ways
    torchcodec = None

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

# Arguments of ffmpeg. LONG-NAME.mp4 are videos of 2 s at 30 fps with three B-frames, none, open groups, and AV1.
EDITED = [
    "-ss 0.65 -i LONG-b3.mp4 -t 1 -c copy",
    "-ss 0.65 -i LONG-b0.mp4 -c copy",
    "-ss 1.234 -i LONG-b3.mp4 -c copy -movflags +faststart",
    "-i LONG-b3.mp4 -ss 0.8 -t 0.8 -c copy",
    "-ss 0.4 -to 1.1 -i LONG-b3.mp4 -c copy",
    "-ss 0.65 -i LONG-hevc.mp4 -c copy",
    "-ss 0.651 -i LONG-av1.mp4 -t 0.9 -c copy",
    "-itsoffset 0.25 -i LONG-b3.mp4 -c copy",
    "-itsoffset 0.35 -ss 0.65 -i LONG-b3.mp4 -f lavfi -i sine=duration=2 -c:v copy -c:a aac",
    "-ss 0.65 -i LONG-b3.mp4 -c copy -movflags +negative_cts_offsets",
    "-ss 0.65 -i LONG-b3.mp4 -c copy -use_editlist 0",
    "-ss 0.65 -i LONG-b0.mp4 -c copy -video_track_timescale 90000 -movie_timescale 600",
    "-ss 0.65 -i LONG-b3.mp4 -c copy -avoid_negative_ts make_zero",
    "-ss 0.65 -copyts -i LONG-b3.mp4 -c copy",
    "-f concat -safe 0 -i LONG.txt -c copy",
    "-ss 0.65 -i LONG-b3.mp4 -c copy -f mov",
]


def encode(path, encoder, width, height, pixels, options, frames=FRAMES):
    noise = np.random.default_rng(width)
    with av.open(path, "w") as container:
        stream = container.add_stream(encoder, rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt = width, height, pixels
        y, x = np.mgrid[:height, :width]
        for t in range(frames):
            if pixels == "gray12le":
                image = ((x * 13 + y * 7 + t * 29) % 4096).astype(np.uint16)
                frame = av.VideoFrame.from_ndarray(image, format="gray16le").reformat(format=pixels)
            else:
                image = np.stack([x * 2 + t * 3, y * 2 - t, (x ^ y) + 5 * t], -1) + noise.integers(0, 12, (height, width, 3))
                frame = av.VideoFrame.from_ndarray((image % 256).astype(np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def decode(program, path, is_depth, seed):
    """time -> pixels, as the program demuxes and decodes them."""
    out = subprocess.run([program, path, str(seed)] + ["depth"] * is_depth, stdout=subprocess.PIPE, check=True).stdout
    frames, at, different = {}, 0, 0
    while at < len(out):
        pts, width, height = struct.unpack_from("<qQQ", out, at)
        n = width * height * (2 if is_depth else 3)
        image = np.frombuffer(out, np.uint16 if is_depth else np.uint8, n // (2 if is_depth else 1), at + 24)
        image = image.reshape((height, width) if is_depth else (height, width, 3))
        different += pts in frames
        frames[pts] = image
        at += 24 + n
    return frames, different


def pyav_pixels(frame):
    """As torchcodec converts them; the values of gray12le, which is depth."""
    if frame.format.name == "gray12le":
        return frame.to_ndarray(format="gray12le")
    return frame.reformat(format="rgb24", interpolation="BICUBIC").to_ndarray()


def compare(program, path, is_tagged, seed):
    with av.open(path) as container:
        is_depth = container.streams.video[0].codec_context.pix_fmt == "gray12le"
        wanted = {f.pts: pyav_pixels(f) for f in container.decode(video=0)}
    got, different = decode(program, path, is_depth, seed)
    times = sorted(wanted)
    result = [f"{len(got)} of {len(wanted)} frames from {times[0] if times else '-'}"]
    faults = different + (got.keys() != wanted.keys())
    for name, others in (("PyAV", {} if is_tagged else wanted), ("torchcodec", torchcodec_frames(path, times))):
        if not others or next(iter(others.values())).shape != next(iter(wanted.values())).shape:
            continue
        unequal = [int(np.abs(got[pts].astype(int) - others[pts]).max()) for pts in got.keys() & others.keys()
                   if not np.array_equal(got[pts], others[pts])]
        result.append(f"{name}: {len(unequal)} different" + (f", by at most {max(unequal)}" if unequal else ""))
        faults += len(unequal) + (got.keys() != others.keys())
    return "; ".join(result), faults


def torchcodec_frames(path, times):
    """time -> pixels in sequence: torchcodec's random access to the first pictures of an edit can return later ones.
    Without those before the first time, which FFmpeg 5 shows in AV1 although an edit list hides them."""
    if not torchcodec:
        return {}
    try:
        decoder, frames = torchcodec.create_from_file(path), {}
        torchcodec.add_video_stream(decoder, dimension_order="NHWC")
        with av.open(path) as container:
            unit = container.streams.video[0].time_base
        while len(frames) < len(times):
            pixels, seconds, _ = torchcodec.get_next_frame(decoder)
            time = round(float(seconds) / unit)
            frames |= {time: pixels.numpy()} if time >= times[0] else {}
        return frames
    except Exception as e:  # such as gray12le, which it does not convert
        print(f"    torchcodec: {e}")
        return {}


def ffmpeg(*args):
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-nostdin", *args], check=True)


def edited_videos(folder):
    """Cuts and joins videos with FFmpeg's commands, which write edit lists."""
    source = os.path.join(folder, "long")
    for name, encoder, options in (("b3", "libx264", {"g": "20", "bf": "3"}), ("b0", "libx264", {"g": "6", "bf": "0"}),
                                   ("hevc", "libx265", {"x265-params": "keyint=8:bframes=3:log-level=none:open-gop=1"}),
                                   ("av1", "libsvtav1", {"g": "6", **SVT})):
        encode(f"{source}-{name}.mp4", encoder, 96, 64, "yuv420p", options, 60)
    for i, command in enumerate(EDITED):
        path = os.path.join(folder, f"edited{i}.{'mov' if '-f mov' in command else 'mp4'}")
        if "concat" in command:  # of two cuts
            with open(f"{source}.txt", "w") as names:
                for part in ("1", "2"):
                    ffmpeg("-ss", "0.4" + part, "-i", f"{source}-b3.mp4", "-t", "0.8", "-c", "copy", f"{source}-{part}.mp4")
                    names.write(f"file '{source}-{part}.mp4'\n")
        words = [word.replace("LONG", source) for word in command.split()]
        ffmpeg(*words, path)
        yield path, "ffmpeg " + command, False


def main():
    program, files = sys.argv[1], sys.argv[2:]
    failed = 0
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
        if not files and shutil.which("ffmpeg"):
            videos += edited_videos(folder)
        for seed, (path, name, is_tagged) in enumerate(videos):
            text, faults = compare(program, path, is_tagged, seed)
            failed += faults > 0
            print(f"{'FAILED ' if faults else ''}{name}: {text}")
    print(f"{len(videos)} videos, {failed} failures")
    sys.exit(1 if failed or not videos else 0)


if __name__ == "__main__":
    main()
