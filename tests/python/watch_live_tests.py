"""Live figures of weir.watch: serve=, prometheus=, the command's options, and weir.metrics()."""
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

try:
    import torch
except ImportError:
    torch = None

BEGIN = """
import os, sys, urllib.request, warnings
import torch, weir
from torch.utils.data import DataLoader, Dataset

if __name__ == "__main__" and sys.version_info >= (3, 14):  # where forkserver, the default, needs a guarded main program
    torch.multiprocessing.set_start_method("fork")
warnings.simplefilter("error")  # such as Python's warning of a fork with threads

class Items(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, i):
        return torch.zeros(4)

def get(path):
    from weir import _watch
    return urllib.request.urlopen(_watch._session.live.url + path, timeout=60).read().decode()
"""


def run(code, folder, *command):
    path = os.path.join(folder, "train.py")
    with open(path, "w") as file:
        file.write(BEGIN + textwrap.dedent(code))
    return subprocess.run([sys.executable, *command, path], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=240, env=dict(os.environ, OMP_NUM_THREADS="1"))


def read(folder, name):
    with open(os.path.join(folder, name)) as file:
        return file.read()


@unittest.skipIf(torch is None, "torch is not installed")
class Live(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_file_and_metrics(self):
        """Workers are forked in each epoch, and the program forks within one."""
        done = run("""
            loader = weir.watch(DataLoader(Items(), batch_size=4, num_workers=2), every=0, prometheus="m.prom", name="train")
            for epoch in range(2):
                for batch in loader:
                    child = os.fork()
                    if child == 0:
                        os._exit(0)
                    os.waitpid(child, 0)
            other = weir.watch(DataLoader(Items(), batch_size=4), every=0, prometheus="m.prom", name="val")
            found = weir.metrics()
            assert found["weir/train/epochs"] == 2 and found["weir/train/images_per_s"] > 0, found
            assert found["weir/train/01_getitem_ms"] > 0 and 0 <= found["weir/train/data_wait"] <= 1, found
            assert not any("bad_frames" in name or "read" in name for name in found), found
            assert weir.metrics()["weir/train/images_per_s"] == 0
            for batch in other: pass
            """, self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = read(self.folder, "m.prom")
        for line in ('weir_epochs_total{loader="train"} 2', 'weir_epochs_total{loader="val"} 1', 'weir_workers{loader="train"} 2',
                     'weir_stage_calls_total{loader="train",stage="01_getitem",kind="work",thread="worker"} 48'):
            self.assertIn(line + "\n", text)
        self.assertNotIn("weir_read_bytes_total{", text)

    def test_server(self):
        done = run("""
            if "http" not in os.popen(os.environ["WEIR_PROGRAM"] + " doctor | grep 'http  *yes'").read():
                sys.exit(77)
            def loader(name, **options):
                return weir.watch(DataLoader(Items(), batch_size=4, num_workers=1), every=0, name=name, **options)
            train, val = loader("train", serve="127.0.0.1:0"), loader("val")
            for each in (train, val, train):
                list(each)
            text = get("/metrics")
            assert 'weir_epochs_total{loader="train"} 2\\n' in text, text
            assert 'weir_epochs_total{loader="val"} 1\\n' in text, text
            for options in ({"serve": "127.0.0.1"}, {"serve": 5}, {"serve": "here:1"}):
                try:
                    loader("wrong", **options)
                except ValueError as error:
                    assert "serve" in str(error), error
                else:
                    sys.exit("accepted")
            page = get("/")
            assert "train" in page and "val" in page and "08_wait_for_data" in page, page
            """, self.folder)
        if done.returncode == 77:
            self.skipTest("built without libmicrohttpd")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("live figures: http://127.0.0.1:", done.stderr)

    def test_command(self):
        done = run("list(DataLoader(Items(), batch_size=4))", self.folder, "-m", "weir", "watch", "--serve", "127.0.0.1:0",
                   "--prometheus", "m.prom")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('weir_batches_total{loader="Items",split="train"} 6\n', read(self.folder, "m.prom"))
        for options, text in ((["--serve=127.0.0.1"], "has no port"), (["--prometheus", "missing/m.prom"], "missing")):
            done = run("", self.folder, "-m", "weir", "watch", *options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
