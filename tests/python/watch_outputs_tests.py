"""Outputs of the package destroy no input and no other output, and are complete or as they were."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import weir
from watch_tests import DATASET, environment, needs_torch

HAVE_EXTENSION = importlib.util.find_spec("weir._weir") is not None
LOOP = DATASET + """
if __name__ == "__main__":
    for batch in DataLoader(Data(), batch_size=4): pass
"""


class InFolder(unittest.TestCase):
    """A script, a module and files of data, which remain as they are."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.inputs = {"t.py": LOOP.encode(), "job.py": LOOP.encode(), "episode_0.hdf5": b"\x89HDF\r\n\x1a\n" + bytes(500),
                       "rows.jsonl": b'{"task_index": 0}\n', "info.json": b'{"fps": 30}', "page.html": b"<!doctype html>\n<p>mine"}
        for name, data in self.inputs.items():
            with open(self.path(name), "wb") as file:
                file.write(data)
        os.symlink("t.py", self.path("link.py"))
        os.link(self.path("episode_0.hdf5"), self.path("hard.hdf5"))
        os.symlink("new", self.path("link.new"))

    def tearDown(self):
        for name, data in self.inputs.items():
            with open(self.path(name), "rb") as file:
                self.assertEqual(file.read(), data, name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, *arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **variables):
        return subprocess.run([sys.executable, "-m", "weir", "watch", *arguments], cwd=self.folder, stdout=stdout,
                              env=environment(**variables), stderr=stderr, universal_newlines=True)


class Refused(InFolder):
    OPTIONS = ("log", "json", "html", "prometheus")

    def test_inputs(self):
        """Of the command and of weir.watch."""
        for name in [*self.inputs, "link.py", "hard.hdf5"]:
            for option in self.OPTIONS:
                program = ("-m", "job") if name == "job.py" else ("t.py",)
                if name == "link.py" or option == "html":  # the rest is the same function's, without a process
                    done = self.command("--" + option, name, *program)
                    self.assertEqual(done.returncode, 2, done.stdout)
                    self.assertIn(name, done.stdout)
                if option != "json":
                    with self.assertRaisesRegex(ValueError, "{}: .* is not .*, so it is not overwritten; choose another path"
                                                .format(option)):
                        weir.watch([1], every=0, **{option: self.path(name)})

    def test_script(self):
        done = self.command("--json", "link.py", "t.py")
        self.assertIn("link.py: the script and --json name the same file; choose a different file for each", done.stdout)

    def test_folders(self):
        """What only fails when training ends is said before it begins."""
        os.symlink("missing/new", self.path("link.missing"))
        for path, words in ("link.missing", "missing cannot be written to"), ("", "is a folder"):
            done = self.command("--json", path, "t.py")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stdout)

    def test_streams(self):
        """What the program prints into a file is not replaced."""
        for option, path, into in ("prometheus", "/dev/stdout", "stdout"), ("log", "printed", "stdout"), \
                ("html", "printed", "stderr"):
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            with open(self.path("printed"), "w") as file:
                streams[into] = file
                done = self.command("--" + option, path, "t.py", **streams)
            with open(self.path("printed")) as file:
                words = file.read() + (done.stderr or "")
            self.assertEqual(done.returncode, 2, words)
            stream = "standard " + {"stdout": "output", "stderr": "error"}[into]
            self.assertIn("{}: is the file of {}; choose another path".format(path, stream), words)

    def test_each_other(self):
        for one, two, first, second in (("log", "json", "a", "./a"), ("html", "prometheus", "new", "link.new"),
                                        ("json", "html", "a", "a")):
            done = self.command("--" + one, first, "--" + two, second, "t.py")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("name the same file; choose a different file for each", done.stdout)
        with self.assertRaisesRegex(ValueError, "log and html name the same file"):
            weir.watch([1], log=self.path("a"), html=self.path("a"))

    def test_of_two_loaders(self):
        loader = weir.watch([1], every=0, log=self.path("a"))
        with self.assertRaisesRegex(ValueError, "log and html name the same file"):
            weir.watch([2], every=0, html=self.path("a"))
        del loader

    @unittest.skipUnless(HAVE_EXTENSION, "the extension is not installed")
    def test_exports(self):
        for name in self.inputs:
            with self.assertRaisesRegex(ValueError, "is not a table of kernel clocks, so it is not overwritten"):
                weir.kernel_clocks(memoryview(bytes(8)).cast("q", (1, 1)), ["a"]).export_csv(self.path(name))
            with weir.profile() as prof:
                pass
            for export in prof.export_chrome_trace, prof.export_stacks:
                with self.assertRaisesRegex(ValueError, "so it is not overwritten; choose another path"):
                    export(self.path(name))


@needs_torch
class Written(InFolder):
    OPTIONS = ("--json", "a.json", "--log", "a.jsonl", "--prometheus", "a.prom") + (
        ("--html", "a.html") if HAVE_EXTENSION else ())

    def test_again(self):
        """Earlier outputs are replaced by complete ones; a log is continued."""
        self.assertEqual(self.command(*self.OPTIONS, "t.py").returncode, 0)
        names = self.OPTIONS[1::2]
        before = {}
        for name in names:
            file = open(self.path(name), "rb")
            self.addCleanup(file.close)
            before[name] = file, file.read()
            os.chmod(self.path(name), 0o640)
        done = self.command(*self.OPTIONS, "t.py")
        self.assertEqual(done.returncode, 0, done.stdout)
        for name, (file, data) in before.items():
            file.seek(0)
            with open(self.path(name), "rb") as now:
                self.assertTrue(now.read().startswith(data) if name == "a.jsonl" else file.read() == data, name)
            self.assertEqual(os.stat(self.path(name)).st_mode & 0o777, 0o640)
            self.assertEqual(os.fstat(file.fileno()).st_ino == os.stat(self.path(name)).st_ino, name == "a.jsonl", name)
        self.assertEqual({name for name in os.listdir(self.folder) if "tmp" in name}, set())

    def test_names_of_ranks(self):
        """A rank's file is known when it is written."""
        shutil.copy(self.path("episode_0.hdf5"), self.path("a.rank1.json"))
        self.inputs["a.rank1.json"] = self.inputs["episode_0.hdf5"]
        done = self.command("--json", "a.json", "--log", "a.rank0.jsonl", "t.py", RANK="1", WORLD_SIZE="2")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("a.rank1.json: is not a report of Weir, so it is not overwritten", done.stdout)
        self.assertTrue(os.path.exists(self.path("a.rank0.rank1.jsonl")))

    def test_pipe(self):
        self.assertEqual(self.command("--json", "/dev/null", "--log", "/dev/null", "t.py").returncode, 0)


if __name__ == "__main__":
    unittest.main()
