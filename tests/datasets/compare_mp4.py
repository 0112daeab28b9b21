#!/usr/bin/env python3
"""Compares the sample tables of MP4 files that ffmpeg makes here with those that ffprobe reads: compare_mp4.py MP4_TABLE.
Also checks the errors for files that cannot be read. Skipped without ffmpeg."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TABLE = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
AV1 = ["-c:v", "libsvtav1", "-preset", "12", "-crf", "30", "-svtav1-params", "lp=1"]
H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-threads", "1"]
HEVC = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
        "open-gop=1:bframes=4:b-adapt=0:keyint=8:min-keyint=8:pools=none:frame-threads=1:log-level=none"]


def ffmpeg(*args):
    done = subprocess.run(["ffmpeg", "-v", "error", "-y", "-nostdin", *args], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"ffmpeg {' '.join(args)}: {done.stderr}")


def encode(path, codec, frames, fps, *args):
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=64x64:rate={fps}", "-frames:v", str(frames), "-pix_fmt", "yuv420p",
           *codec, *args, path)


def table(path):
    """Returns (fields of the stream, pictures in presentation order) as our reader sees them, or (None, the error)."""
    lines = subprocess.run([TABLE, path], capture_output=True, text=True, check=True).stdout.splitlines()
    if lines[1].startswith("error "):
        return None, lines[1]
    return lines[1].split()[1:], [tuple(map(int, line.split())) for line in lines[2:]]


def packets(path):
    """Returns the same pictures, without the numbers of their samples, as ffprobe sees them."""
    text = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
                           "packet=pts,size,pos,flags", "-of", "compact=p=0", path], capture_output=True, text=True,
                          check=True).stdout
    made = []
    for line in text.splitlines():
        packet = dict(field.split("=", 1) for field in line.split("|") if "=" in field)
        if "pos" in packet and "D" not in packet["flags"]:  # D: an edit list hides it
            made.append((int(packet["pos"]), int(packet["size"]), int(packet["pts"]), int("K" in packet["flags"])))
    return sorted(made, key=lambda packet: packet[2])


class Mp4(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chdir(cls.folder.name)
        encode("av1.mp4", AV1, 11, 10, "-g", "2")
        encode("h264.mp4", H264, 40, 15, "-bf", "3", "-b_strategy", "0", "-g", "12")
        ffmpeg("-f", "lavfi", "-i", "sine=duration=3", "-c:a", "aac", "sound.mp4")

    @classmethod
    def tearDownClass(cls):
        os.chdir("/")
        cls.folder.cleanup()

    def same(self, path, codec, frames):
        stream, samples = table(path)
        self.assertIsNotNone(stream, f"{path}: {samples}")
        self.assertEqual([sample[:4] for sample in samples], packets(path))
        self.assertEqual((stream[0], int(stream[7])), (codec, frames))
        self.assertEqual(stream[-2:], ["0", "0"], "pictures in a wrong place")
        self.assertEqual(int(stream[8]), sum(sample[3] for sample in samples) + (not samples[0][3]), "blocks")
        return stream, samples

    def refuses(self, path, *words):
        stream, error = table(path)
        self.assertIsNone(stream)
        for word in words:
            self.assertIn(word, error)

    def test_av1(self):
        _, samples = self.same("av1.mp4", "av01", 11)
        self.assertEqual([sample[3] for sample in samples], [1, 0] * 5 + [1])

    def test_av1_at_50_fps(self):
        encode("fast.mp4", AV1, 25, 50, "-g", "2")
        self.same("fast.mp4", "av01", 25)

    def test_reordered(self):
        _, samples = self.same("h264.mp4", "avc1", 40)
        numbers = [sample[4] for sample in samples]
        self.assertNotEqual(numbers, sorted(numbers))

    def test_negative_shifts(self):
        ffmpeg("-i", "h264.mp4", "-c", "copy", "-movflags", "+negative_cts_offsets", "negative.mp4")
        self.same("negative.mp4", "avc1", 40)

    def test_open_groups(self):
        encode("hevc.mp4", HEVC, 30, 30)
        stream, samples = self.same("hevc.mp4", "hev1", 30)
        self.assertGreater(int(stream[8]), 2)
        leading = [sample for sample, after in zip(samples, samples[1:]) if after[3] and sample[4] > after[4]]
        self.assertTrue(leading, "no group is open")

    def test_index_first(self):
        ffmpeg("-i", "h264.mp4", "-c", "copy", "-movflags", "+faststart", "-tag:v", "avc3", "first.mp4")
        self.same("first.mp4", "avc3", 40)
        size = os.path.getsize("first.mp4")
        shutil.copy("first.mp4", "cut.mp4")
        os.truncate("cut.mp4", size - 1)
        self.refuses("cut.mp4", "truncated", "sample 39 of 40")

    def test_sound_between(self):
        for order in (["0", "1"], ["1", "0"]):
            ffmpeg("-i", "h264.mp4", "-i", "sound.mp4", "-map", order[0], "-map", order[1], "-c", "copy", "both.mp4")
            self.same("both.mp4", "avc1", 40)

    def test_starts_later(self):
        ffmpeg("-itsoffset", "0.35", "-i", "h264.mp4", "-i", "sound.mp4", "-map", "0", "-map", "1", "-c", "copy",
               "later.mp4")
        _, samples = self.same("later.mp4", "avc1", 40)
        self.assertGreater(samples[0][2], 0)

    def test_starts_hidden(self):
        """An edit that begins between two pictures hides the earlier ones and moves the first shown one to 0."""
        for start in ("1.2", "1.23"):
            ffmpeg("-ss", start, "-i", "h264.mp4", "-c", "copy", "hidden.mp4")
            _, samples = self.same("hidden.mp4", "avc1", 22 if start == "1.2" else 21)
            self.assertEqual(samples[0][2], 0)
            self.assertGreater(samples[0][4], 0)

    def test_joined(self):
        """Joined as datasets join episodes: sync samples are no longer at even positions."""
        encode("seven.mp4", AV1, 7, 10, "-g", "2")
        with open("list.txt", "w") as file:
            file.write("file 'av1.mp4'\nfile 'seven.mp4'\nfile 'av1.mp4'\n")
        ffmpeg("-f", "concat", "-i", "list.txt", "-c", "copy", "joined.mp4")
        _, samples = self.same("joined.mp4", "av01", 29)
        self.assertTrue(samples[10][3] and samples[11][3])

    def test_uneven_times(self):
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x64:rate=30", "-frames:v", "20", "-vf", "select='mod(n,3)'",
               "-vsync", "vfr", *H264, "uneven.mp4")
        _, samples = self.same("uneven.mp4", "avc1", 20)
        self.assertGreater(len({b[2] - a[2] for a, b in zip(samples, samples[1:])}), 1)

    def test_colours(self):
        for name, full_range in (("colours.mp4", "1"), ("colours.mov", "-1")):  # QuickTime's box has no range
            encode(name, H264, 3, 10, "-colorspace", "bt709", "-color_range", "pc", "-color_primaries", "bt709",
                   "-color_trc", "bt709", "-movflags", "+write_colr")
            stream, _ = self.same(name, "avc1", 3)
            self.assertEqual(stream[1:5], ["64", "64", "1", full_range])

    def test_refusals(self):
        ffmpeg("-i", "h264.mp4", "-c", "copy", "-movflags", "+frag_keyframe+empty_moov", "fragments.mp4")
        self.refuses("fragments.mp4", "fragmented")
        encode("mpeg4.mp4", ["-c:v", "mpeg4"], 3, 10)
        self.refuses("mpeg4.mp4", "mp4v", "AV1")
        self.refuses("sound.mp4", "no video track")
        for text, error in (("version https://git-lfs.github.com/spec/v1\n", "is a Git LFS pointer"),
                            ("version https://git-lfs.org/spec/v1\n", "not an MP4 file")):
            with open("text.mp4", "w") as file:
                file.write(text)
            self.refuses("text.mp4", error)

    def test_every_length(self):
        """A file with the index at its end is refused at every shorter length."""
        with open("av1.mp4", "rb") as file:
            data = file.read()
        os.mkdir("short")
        lengths = [*range(0, len(data) - 40, 97), *range(len(data) - 40, len(data))]
        for n in lengths:
            with open(f"short/{n}", "wb") as file:
                file.write(data[:n])
        done = subprocess.run([TABLE, *[f"short/{n}" for n in lengths]], capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 2 * len(lengths))
        self.assertTrue(all(line.startswith("error -") for line in lines[1::2]))


if __name__ == "__main__":
    if not shutil.which("ffmpeg") or not shutil.which("ffprobe"):
        print("skipped: ffmpeg is not installed")
        sys.exit(77)
    unittest.main()
