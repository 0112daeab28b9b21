#!/usr/bin/env python3
"""A reader of packed files in plain Python, based on docs/internals/packed.md alone: read_packed.py FILE [PATHS]

Verifies every checksum and lists the file. PATHS: act-jpeg episodes in the copy's order, whose states, actions and
frames it compares with the file's (needs h5py, else exit status 77)."""
import struct
import sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def without(data, at):
    return data[:at] + bytes(4) + data[at + 4:]


def need(holds, what):
    if not holds:
        sys.exit(f"{sys.argv[1]}: {what}")


def text(data):
    return data.split(b"\0")[0].decode()


def read_record(data, at, length, cameras, row_bytes):
    record = data[at:at + length]
    magic, crc, number, n, _, steps, n_texts, texts = struct.unpack_from("<8sIIQQIIQ", record)
    need(magic == b"WEIRepis" and n == length and crc == crc32c(without(record, 8)), f"record at {at}")
    padded = [(steps * size + 7) & ~7 for size in row_bytes]
    frames = 48 + sum(padded)
    state = [record[48:48 + steps * row_bytes[0]], record[48 + padded[0]:48 + padded[0] + steps * row_bytes[1]]]
    images = {}
    for i in range(steps * len(cameras)):
        offset, size, crc = struct.unpack_from("<QII", record, frames + 16 * i)
        need(crc == crc32c(data[offset:offset + size]), f"frame {i} of episode {number}")
        images[cameras[i % len(cameras)][0], i // len(cameras)] = data[offset:offset + size]
    pairs = {}
    for _ in range(n_texts):
        k, v = struct.unpack_from("<II", record, texts)
        pairs[record[texts + 8:texts + 8 + k].decode()] = record[texts + 8 + k:texts + 8 + k + v].decode()
        texts += 8 + k + v
    return steps, state, images, pairs


def read(data):
    magic, version, crc, flags, n, index, length, _, index_crc, n_cameras = struct.unpack_from("<8sIIIIQQQII", data)
    need(magic == b"\x89WEIR\r\n\x1a" and version == 1, "not a packed file")
    need(crc == crc32c(without(data[:4096], 12)) and flags < 2, "header")
    need(index != 0 and length == len(data) == index + 16 * n, "unfinished or cut")
    need(index_crc == crc32c(data[index:]), "index")
    types = [text(data[56:60]), text(data[60:64])]
    dims = struct.unpack_from("<II", data, 64)
    cameras = [(text(data[128 + 96 * i:192 + 96 * i]), text(data[192 + 96 * i:208 + 96 * i]), *struct.unpack_from("<II", data, 208 + 96 * i))
               for i in range(n_cameras)]
    row_bytes = [int(types[i][2]) * dims[i] for i in (0, 1)]
    entries = [struct.unpack_from("<QQ", data, index + 16 * i) for i in range(n)]
    return types, dims, cameras, [read_record(data, at, size, cameras, row_bytes) for at, size in entries]


def compare(path, episode, h5py):
    steps, state, images, _ = episode
    with h5py.File(path) as f:
        for key, ours in (("observations/qpos", state[0]), ("action", state[1])):
            need(f[key][()].tobytes() == ours, f"{key} differs from {path}")
        for (camera, t), ours in images.items():
            row = f[f"observations/images/{camera}"][t].tobytes()
            need(row[:len(ours)] == ours and not any(row[len(ours):]), f"{camera}[{t}] differs from {path}")
    return steps * len({camera for camera, _ in images})


def main():
    with open(sys.argv[1], "rb") as f:
        types, dims, cameras, episodes = read(f.read())
    print(f"{len(episodes)} episodes, state {types[0]} x {dims[0]}, actions {types[1]} x {dims[1]}")
    for camera in cameras:
        print("camera %s: %s %dx%d" % camera)
    for steps, _, _, pairs in episodes:
        print(f"{steps} steps", *(f"{key}={value}" for key, value in pairs.items()))
    if len(sys.argv) > 2:
        try:
            import h5py
        except ImportError:
            print("skipped: no h5py to read the source with")
            sys.exit(77)
        need(len(episodes) == len(sys.argv) - 2, "the number of episodes")
        print(sum(compare(path, e, h5py) for path, e in zip(sys.argv[2:], episodes)), "frames are those of the source")


if __name__ == "__main__":
    main()
