"""weir.watch: what weir.Loader gives on the data of a watched loader."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import weir
from watch_tests import environment, needs_torch, run


@needs_torch
@unittest.skipUnless(hasattr(weir, "Loader") and os.environ.get("WEIR_PROGRAM"), "no weir.Loader here, or no program weir")
class Trial(unittest.TestCase):
    """What weir.Loader gives on the data of a loader that is waited for."""

    SLOW = """
            from weir import _watch_trial
            _watch_trial._LIMIT_S = 100 if len(sys.argv) < 3 else 5
            class Files(Data):
                def __init__(self, folder, **names):
                    super().__init__(120)
                    self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
                    self.__dict__.update(names)
                    if not names: self.files = tuple([list(self.files)])  # no text among the attributes
                def __getitem__(self, i):
                    time.sleep(0.01)
                    files = self.files[0] if isinstance(self.files, tuple) else self.files
                    with open(files[i % len(files)], "rb") as file: return torch.full((4,), float(len(file.read(9))))
    """

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        subprocess.run([os.environ["WEIR_PROGRAM"], "synth", os.path.join(cls.folder, "data"), "--episodes", "3", "--steps",
                        "8", "--size", "64x48"], stdout=subprocess.DEVNULL, check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_on(self, code, *arguments, **options):
        return run(self.SLOW + code, os.path.join(self.folder, "data"), *arguments, **options)

    def test_folder_of_the_dataset(self):
        report = os.path.join(self.folder, "a.json")
        log = os.path.join(self.folder, "a.jsonl")
        out, err = self.run_on("""
            dataset = torch.utils.data.Subset(Files(sys.argv[1], dataset_dir=sys.argv[1]), range(120))
            for batch in DataLoader(dataset, batch_size=2, num_workers=1): pass
        """, module=("-m", "weir", "watch", "--json", report, "--log", log))
        self.assertRegex(out, r"weir\.Loader on \S*data: \d+ samples/s, the watched loader \d+ with all workers busy: ")
        self.assertIn("use weir.Loader", out)
        self.assertEqual(err, "")
        with open(report) as file:
            of = json.load(file)["weir_loader"]
        self.assertTrue(of["path"].endswith("data") and "64x48 float32" in of["sample"], of)
        self.assertGreater(of["ratio"], 1)
        again = subprocess.run([os.environ["WEIR_PROGRAM"], "report", log], stdout=subprocess.PIPE, universal_newlines=True,
                               env=environment(), check=True)
        self.assertIn("weir.Loader on", again.stdout)

    def test_files_that_workers_read(self):
        """Without an attribute that names them; the table of the only epoch has been printed before."""
        out, _ = self.run_on("""
            for batch in weir.watch(DataLoader(Files(sys.argv[1]), batch_size=2)): pass
        """)
        self.assertEqual(out.count("verdict: "), 1)
        self.assertRegex(out, r"weir\.Loader on \S*data: \d+ samples/s, the watched loader \d+: ")

    def test_silent(self):
        """Of data that Weir cannot read, without waits, and after an exception, a signal or a failure."""
        loop = """
            for n, batch in enumerate(DataLoader(Files(sys.argv[1], root=sys.argv[1]), batch_size=2)):
                time.sleep(float(sys.argv[2]))
                if n == 9 and sys.argv[2] != "0": break
        """
        watch = ("-m", "weir", "watch")
        for end, step, status in (("pass", "0.6", 0), ("1 / 0", "0", 1), ("sys.exit(3)", "0", 3),
                                  ("os.kill(os.getpid(), 15); time.sleep(60)", "0", -15),
                                  ("os.kill(os.getpid(), 2); time.sleep(60)", "0", -2)):
            out, _ = self.run_on(loop + "    " + end, step, module=watch, check=status)
            self.assertIn("verdict: ", out)
            self.assertNotIn("weir.Loader", out, end)
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "episode_0.hdf5"), "w") as file:
                file.write("no HDF5")
            out, err = run(self.SLOW + loop, folder, "0", module=watch)
        self.assertNotIn("weir.Loader", out)
        self.assertEqual(err, "")

    def test_end_during_the_trial(self):
        """A signal ends the trial, and the report is complete. A trial that hangs is ended."""
        code = """
            with open("stand_in", "w") as file:
                file.write("#!/bin/sh\\nkill -{} $PPID\\nexec sleep 20".format(sys.argv[2]))
            os.chmod("stand_in", 0o755)
            for batch in DataLoader(Files(sys.argv[1], root=sys.argv[1]), batch_size=2): pass
            sys.executable = os.path.abspath("stand_in")
        """
        for signals, status in (("TERM", -15), ("INT", 0), ("0", 0)):
            report = os.path.join(self.folder, signals + ".json")
            out, err = self.run_on(code, signals, module=("-m", "weir", "watch", "--json", report), check=status)
            self.assertEqual(out.count("verdict: "), 1, out)
            self.assertNotIn("weir.Loader", out)
            self.assertEqual(err, "")
            with open(report) as file:
                self.assertNotIn("weir_loader", json.load(file))

    def test_names(self):
        from weir import _watch_trial
        data, file = os.path.join(self.folder, "data"), os.path.join(self.folder, "data", "episode_0.hdf5")
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        real = os.path.realpath
        self.assertEqual(_watch_trial.candidates(["/", "/proc/self", pipe, "no such file", "a\0b", "x" * 4000], []), [])
        self.assertEqual(_watch_trial.candidates([self.folder, data], [file]),
                         [real(data), real(self.folder), real(file)])
        self.assertEqual(_watch_trial.candidates([data], ["/etc/hostname"])[:1], ["/etc"])


if __name__ == "__main__":
    unittest.main()
