#!/usr/bin/env python3
"""simplejpeg's side of bench/limits, which starts this program and controls it over stdin and stdout.

It first prints "ready simplejpeg 1.9.0 (libjpeg-turbo 3.1.2), Python 3.11.7", or "left out: " and the reason. The input
is a line "FRAMES WIDTH HEIGHT", the length of each frame as a little-endian u32, and the frames' bytes. Then each line
"WORKERS SECONDS IMAGES_MIN" requests one trial, and the reply is a line "IMAGES SECONDS".

Workers are processes, not threads, forked before their first trial and asleep between trials. decode_jpeg releases the
GIL, but holds it for 18 us per call, so many cores with small frames would wait for it (with frames of 16x16, 2 threads
are 1.1 times as fast as one, 2 processes 1.9 times)."""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # this process forks and needs no numpy threads
import multiprocessing
import platform
import re
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCATTER = 7919  # as in raw_turbo.c: a prime, so that all frames are visited, not in order


def library(simplejpeg):
    with open(simplejpeg._jpeg.__file__, "rb") as module:
        found = re.search(rb"libjpeg-turbo version (\d+(\.\d+)*)", module.read())
    turbo = f"libjpeg-turbo {found[1].decode()}" if found else "a libjpeg-turbo without a version"
    return f"simplejpeg {simplejpeg.__version__} ({turbo}), Python {platform.python_version()}"


def read_frames(stdin):
    n, width, height = map(int, stdin.readline().split())
    lengths = struct.unpack(f"<{n}I", stdin.read(4 * n))
    return [stdin.read(length) for length in lengths], (height, width, 3)


def work(end, others, decode, frames, shape):
    import numpy as np
    for other in others:
        other.close()  # an open write end would hide the pipe's end of file
    pixels = np.empty(shape, np.uint8)
    while True:
        try:
            first, step, until, images_min = end.recv()
        except EOFError:
            return
        done = 0
        try:
            while done < images_min or time.perf_counter() < until:
                decode(frames[(first + done * step) * SCATTER % len(frames)], pixels)
                done += 1
            end.send(done)
        except Exception as error:
            end.send(str(error) or repr(error))


class Crew:
    def __init__(self, decode, frames, shape):
        self.common, self.ends, self.next = (decode, frames, shape), [], 0

    def grow(self, n):
        context = multiprocessing.get_context("fork")
        while len(self.ends) < n:
            mine, theirs = context.Pipe()
            self.ends.append(mine)
            context.Process(target=work, args=(theirs, self.ends, *self.common), daemon=True).start()
            theirs.close()

    def turn(self, n, seconds, images_min):
        self.grow(n)
        start = time.perf_counter()  # all processes share this clock
        for i, end in enumerate(self.ends[:n]):
            end.send((self.next + i, n, start + seconds, max(1, -(-images_min // n))))
        answers = [end.recv() for end in self.ends[:n]]
        spent = time.perf_counter() - start
        for answer in answers:
            if isinstance(answer, str):
                return "a frame does not decode: " + answer.splitlines()[0]
        self.next += max(answers) * n
        return f"{sum(answers)} {spent:.9f}"


def say(text):
    print(text, flush=True)


def main():
    # a packed folder's site-packages, and the peers' decoder and flags
    sys.path += [os.path.join(HERE, "site-packages"), os.path.join(HERE, "peers")]
    try:
        import jpeg
        decode = jpeg.decoder("simplejpeg")
        say("ready " + library(sys.modules["simplejpeg"]))
    except ImportError as error:
        say("left out: " + str(error).splitlines()[0])
        return
    crew = Crew(decode, *read_frames(sys.stdin.buffer))
    for line in sys.stdin.buffer:
        workers, seconds, images_min = line.split()
        say(crew.turn(int(workers), float(seconds), int(images_min)))


if __name__ == "__main__":
    main()
