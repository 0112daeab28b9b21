#!/usr/bin/env python3
"""Encodes the tiny videos of tests/fixtures/video_streams.h: make_video_streams.py >tests/fixtures/video_streams.h

Needs ffmpeg with libaom, libx264 and libx265, and PyAV, whose RGB pixels are the expected ones.
"""
import os
import subprocess
import sys
import tempfile

import av

X265 = "info=0:log-level=none:bframes=2:keyint=6"
# name, enum weir_video_codec, size (a video of 80x64 pixels follows if it is "changed"), frames, ffmpeg's options
STREAMS = [
    ("av1", "AV1", "64x48", 6, "-pix_fmt yuv420p -c:v libaom-av1 -cpu-used 8 -g 2 -crf 50"),
    ("av1_small", "AV1", "34x30", 2, "-pix_fmt yuv420p -c:v libaom-av1 -cpu-used 8 -g 2 -crf 50"),
    ("h264", "H264", "64x48", 6, "-pix_fmt yuv420p -c:v libx264 -g 6 -bf 2 -crf 40 -bsf:v filter_units=remove_types=6"),
    ("h264_changed", "H264", "64x48", 2, "-pix_fmt yuv420p -c:v libx264 -g 6 -bf 0 -crf 50 -bsf:v filter_units=remove_types=6"),
    ("hevc", "HEVC", "64x48", 6, f"-pix_fmt yuv420p -c:v libx265 -x265-params {X265} -crf 40 -tag:v hvc1"),
    ("hevc_depth", "HEVC", "64x48", 2, f"-pix_fmt gray12le -c:v libx265 -x265-params {X265} -crf 20 -tag:v hvc1"),
]


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def print_bytes(name, data):
    print(f"static const uint8_t {name}[] = {{")
    for at in range(0, len(data), 20):
        print("    " + ", ".join(f"{byte}" for byte in data[at:at + 20]) + ",")
    print("};")


def ffmpeg(*arguments):
    subprocess.run(["ffmpeg", "-v", "error", "-y", *arguments], check=True, stderr=subprocess.DEVNULL)


def encode(path, size, frames, options):
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=3", "-frames:v", str(frames), *options.split(), path)


def make(path, name, codec, size, frames, options):
    if "changed" not in name:
        encode(path, size, frames, options)
        return
    parts = [f"{path}.{part}.{codec.lower()}" for part in (size, "80x64", "both")]
    for part, part_size in zip(parts, (size, "80x64")):
        encode(part, part_size, frames, options)
    with open(parts[2], "wb") as both:
        for part in parts[:2]:
            with open(part, "rb") as f:
                both.write(f.read())
    ffmpeg("-i", parts[2], "-c", "copy", path)


def print_stream(name, codec, size, frames, options, folder):
    path = os.path.join(folder, name + ".mp4")
    make(path, name, codec, size, frames, options)
    with av.open(path) as container:
        stream = container.streams.video[0]
        packets = [(bytes(p), p.pts) for p in container.demux(stream) if p.size]
        extradata = bytes(stream.codec_context.extradata)
    with av.open(path) as container:
        pixels = [frame.to_ndarray(format="gray12le" if "depth" in name else "rgb24") for frame in container.decode(video=0)]
    print_bytes(f"{name}_config", extradata)
    print_bytes(f"{name}_bytes", b"".join(data for data, _ in packets))
    width, height = size.split("x")
    print(f"static const struct video_stream {name}_stream = {{")
    print(f"    WEIR_VIDEO_{codec}, {width}, {height}, {name}_config, sizeof {name}_config, {name}_bytes, {len(packets)},")
    print("    {" + ", ".join(f"{len(data)}" for data, _ in packets) + "},")
    print("    {" + ", ".join(f"{pts}" for _, pts in packets) + "},")
    print("    {" + ", ".join(f"0x{fnv1a(frame.tobytes()):016X}" for frame in pixels) + "},")
    print("};\n")


def main():
    print(f"""/* video_streams.h: tiny videos, made by tests/tools/{os.path.basename(__file__)}. */
/* clang-format off */
#ifndef WEIR_TESTS_FIXTURES_VIDEO_STREAMS_H
#define WEIR_TESTS_FIXTURES_VIDEO_STREAMS_H

#include "weir/frames.h"

#include <stddef.h>
#include <stdint.h>

enum {{ VIDEO_PACKETS_MAX = 6 }};

struct video_stream {{
    enum weir_video_codec codec;
    int width, height;
    const uint8_t *config;
    size_t config_bytes;
    const uint8_t *bytes; /* the packets, in decoding order */
    int n;
    size_t lengths[VIDEO_PACKETS_MAX];
    int64_t pts[VIDEO_PACKETS_MAX];
    uint64_t pixels[VIDEO_PACKETS_MAX]; /* FNV-1a of each picture's RGB or depth, in presentation order */
}};
""")
    with tempfile.TemporaryDirectory() as folder:
        for stream in STREAMS:
            print_stream(*stream, folder)
    print("#endif")


if __name__ == "__main__":
    sys.exit(main())
