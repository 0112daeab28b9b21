"""Live figures of weir.Loader: serve=, prometheus= and weir.metrics()."""
import os
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

import common
import weir


def has_server():
    doctor = subprocess.run([os.environ["WEIR_PROGRAM"], "doctor"], capture_output=True, text=True)
    return "built without libmicrohttpd" not in doctor.stdout


def read(path):
    with open(path) as file:
        return file.read()


class Live(common.Data):
    def get(self, url):
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read().decode()

    def test_metrics(self):
        """A flat dictionary of what happened since the last call."""
        with weir.Loader(self.data, batch_size=4) as loader:
            for batch in loader:
                with weir.stage("20_train_forward_pass"):
                    pass
            first = weir.metrics()
            self.assertTrue(all(type(key) is str and type(value) is float for key, value in first.items()), first)
            self.assertTrue(all(re.fullmatch(r"weir/data/[\w\-. ]+", key) for key in first), first)
            self.assertEqual(first["weir/data/epochs"], 1)
            self.assertTrue(0 <= first["weir/data/data_wait"] <= 1, first)
            for name in ("images_per_s", "read_MB_per_s", "03b_image_decode_ms", "20_train_forward_pass_ms"):
                self.assertGreater(first["weir/data/" + name], 0)
            second = weir.metrics()
            self.assertEqual(second["weir/data/images_per_s"], 0)
            self.assertNotIn("weir/data/20_train_forward_pass_ms", second)
            loader.set_epoch(5)  # opens it again
            list(loader)
            self.assertGreater(weir.metrics()["weir/data/images_per_s"], 0)
            with weir.Loader(self.data, batch_size=4, train_split=0.6, split="val") as other:
                list(other)
                names = {key.split("/")[1] for key in weir.metrics()}
                self.assertEqual(names, {"data", "data 2"})
        self.assertEqual(weir.metrics(), {})

    def test_file(self):
        path = os.path.join(self.work, "m.prom")
        with weir.Loader(self.data, batch_size=4, prometheus=path) as loader:
            self.assertIsNone(loader.url)
            self.assertIn("weir_build_info", read(path))
            for epoch in range(2):
                list(loader)
            batches = 2 * len(loader)
        text = read(path)
        self.assertIn('weir_epochs_total{loader="data"} 2\n', text)
        self.assertIn(f'weir_batches_total{{loader="data",split="train"}} {batches}\n', text)
        with weir.Loader(self.data, batch_size=4, prometheus=path, rank=1, world_size=2) as loader:
            list(loader)
        self.assertIn('rank="1"', read(os.path.join(self.work, "m.rank1.prom")))

    def test_wrong_arguments(self):
        for options, kind, text in (({"serve": "127.0.0.1"}, ValueError, "has no port"),
                                    ({"serve": 9464}, ValueError, "serve must be True or an address"),
                                    ({"prometheus": os.path.join(self.data, "episode_0.hdf5")}, ValueError,
                                     "is not a file of metrics"),
                                    ({"prometheus": "/missing/m.prom"}, FileNotFoundError, "missing")):
            with self.assertRaisesRegex(kind, text):
                weir.Loader(self.data, **options)
        self.assertEqual(weir.metrics(), {})

    @unittest.skipUnless(has_server(), "built without libmicrohttpd")
    def test_server(self):
        with weir.Loader(self.data, batch_size=4, serve="127.0.0.1:0") as loader:
            list(loader)
            text = self.get(loader.url + "/metrics")
            self.assertIn('weir_epochs_total{loader="data"} 1\n', text)
            self.assertIn("03b_image_decode", self.get(loader.url + "/"))
            loader.set_epoch(7)  # opens it again, under the same address
            list(loader)
            self.assertIn('weir_epochs_total{loader="data"} 2\n', self.get(loader.url + "/metrics"))
            with self.assertRaisesRegex(weir.Error, "the port is in use"):
                weir.Loader(self.data, serve=loader.url[len("http://"):])
            with weir.Loader(self.data, batch_size=4, serve="127.0.0.1:0") as other:  # shares the address
                self.assertEqual(other.url, loader.url)
                self.assertIn('loader="data #2"', self.get(loader.url + "/metrics"))
                loader.set_epoch(20)  # opens it again; labels keep their loaders
                list(loader)
                text = self.get(loader.url + "/metrics")
                self.assertIn('weir_epochs_total{loader="data"} 3\n', text)
                self.assertIn('weir_epochs_total{loader="data #2"} 0\n', text)
            self.assertNotIn('loader="data #2"', self.get(loader.url + "/metrics"))
        with self.assertRaises(urllib.error.URLError):
            self.get(loader.url + "/metrics")

    @unittest.skipUnless(has_server(), "built without libmicrohttpd")
    def test_fork(self):
        """A child has neither the server nor its address."""
        code = """
import os, sys, urllib.request, weir
loader = weir.Loader(sys.argv[1], serve="127.0.0.1:0", prometheus=sys.argv[2])
list(loader)
ready, done = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.write(ready[1], b"x")
    os.read(done[0], 1)  # still alive when the parent has closed the loader
    os._exit(0 if weir.metrics() == {} else 1)
os.read(ready[0], 1)
urllib.request.urlopen(loader.url + "/metrics").read()
url = loader.url
loader.close()
with weir.Loader(sys.argv[1], serve=url[len("http://"):]) as again:  # the port is free
    assert again.url == url
os.write(done[1], b"x")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("fine")
"""
        done = subprocess.run([sys.executable, "-c", code, self.data, os.path.join(self.work, "f.prom")], text=True,
                              capture_output=True, timeout=240)
        self.assertEqual(done.stdout, "fine\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
