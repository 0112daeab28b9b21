"""Ownership of batch memory: while batches are held, after the loader, in other threads and processes."""
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import unittest
import warnings

import common
import numpy as np
import weir

try:
    import torch
except ImportError:
    torch = None

KINDS = ["array"] + (["torch"] if torch is not None else [])


def bits(batch):
    return {key: np.asarray(value).tobytes() for key, value in batch.items()}


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def first_in_child(data, connection):
    with weir.Loader(data, batch_size=4, tensors="array") as loader:
        connection.send(bits(next(iter(loader))))


class Lifetimes(common.Data):
    def loader(self, **options):
        return weir.Loader(self.data, **{"batch_size": 4, "num_workers": 2, "prefetch_factor": 2, **options})

    def expected(self):
        with self.loader(tensors="array") as loader:
            return [bits(batch) for batch in loader]

    def test_all_kept(self):
        """Held batches never change."""
        expected = self.expected()
        for kind in KINDS:
            with self.subTest(kind=kind), self.loader(tensors=kind) as loader:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # small batches must not warn
                    kept = list(loader)
                    again = [bits(batch) for batch in loader]
                self.assertEqual([bits(batch) for batch in kept], expected)
                self.assertEqual(len(again), len(expected))

    def test_much_kept(self):
        """One warning reports the memory of held batches; dropped batches no longer count."""
        options = {"tensors": "array", "image_size": (800, 600), "dtype": "float32", "batch_size": 4}
        with self.loader(**options) as loader, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in zip(loader, range(5)):
                pass
            self.assertEqual(caught, [])
            kept = [batch for _, batch in zip(range(6), loader)]
            self.assertEqual([w.category for w in caught], [RuntimeWarning])
            self.assertRegex(str(caught[0].message), r"keeps? take [\d.]+ MiB \(4[34](\.\d)? MiB each\)")
            kept.clear()
        with self.loader(**options) as loader, warnings.catch_warnings():
            warnings.simplefilter("error")
            kept = [batch for _, batch in zip(range(3), loader)]

    def test_two_loaders(self):
        """The batches that zip() holds cause no warning."""
        with self.loader() as train, self.loader() as val, warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(sum(1 for _, _ in zip(train, val)), len(train))

    def test_two_kept(self):
        """A loop may hold the previous batch without a warning."""
        expected = self.expected()
        with self.loader(tensors="array") as loader, warnings.catch_warnings():
            warnings.simplefilter("error")
            last = None
            seen = []
            for batch in loader:
                last, batch = batch, None
                seen.append(bits(last))
        self.assertEqual(seen, expected)
        self.assertEqual(bits(last), expected[-1])

    def test_loader_first(self):
        expected = self.expected()
        for kind in KINDS:
            loader = self.loader(tensors=kind)
            iterator = iter(loader)
            batches = [next(iterator), next(iterator)]
            del iterator
            loader.close()
            self.assertEqual([bits(batch) for batch in batches], expected[:2])
            del loader
            gc.collect()
            self.assertEqual([bits(batch) for batch in batches], expected[:2])
            image = batches[1]["image"]
            del batches
            self.assertEqual(np.asarray(image).tobytes(), expected[1]["image"])

    def test_views(self):
        """A view of a view keeps the memory alive."""
        expected = self.expected()
        with self.loader(tensors="array") as loader:
            views = [np.asarray(batch["image"])[1:, 0] for batch in loader]
        again = [np.frombuffer(batch["image"], np.uint8).reshape(batch["image"].shape)[1:, 0].tobytes()
                 for batch in self.loader(tensors="array")]
        self.assertEqual([view.tobytes() for view in views], again)
        self.assertEqual(len(views), len(expected))

    def test_exception_in_loop(self):
        with self.loader() as loader:
            for n in range(5):
                with self.assertRaises(KeyError):
                    for batch in loader:
                        batch["no such key"]

    def test_other_threads(self):
        """Other threads drop the last references."""
        with self.loader(tensors=KINDS[-1]) as loader:
            for batch in loader:
                values = list(batch.values())
                batch = None
                threads = [threading.Thread(target=values.pop) for _ in range(len(values))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

    def test_iterated_by_a_thread(self):
        expected = self.expected()
        seen = []
        with self.loader(tensors="array") as loader:
            thread = threading.Thread(target=lambda: seen.extend(bits(batch) for batch in loader))
            thread.start()
            thread.join()
            self.assertEqual(seen, expected)
        loader = self.loader()
        next(iter(loader))
        thread = threading.Thread(target=loader.close)
        thread.start()
        thread.join()

    def test_no_leak(self):
        """2,000 batches, some of them held for a while."""
        random.seed(0)
        kept, early, n = [], 0, 0
        with self.loader(tensors=KINDS[-1]) as loader, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while n < 2000:
                for batch in loader:
                    n += 1
                    kept.append(batch)
                    while len(kept) > random.randint(0, 5):
                        kept.pop(random.randrange(len(kept)))
                    if n == 500:
                        early = resident_bytes()
        self.assertLess(resident_bytes() - early, 32 << 20)

    def test_many_loaders(self):
        for n in range(60):
            with self.loader() as loader:
                batch = next(iter(loader))
            if n == 10:
                early = resident_bytes()
        self.assertLess(resident_bytes() - early, 32 << 20)
        self.assertGreater(len(batch), 0)

    def test_fork(self):
        expected = self.expected()
        loader = self.loader(tensors="array")
        iterator = iter(loader)
        batch = next(iterator)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with self.assertRaisesRegex(weir.Error, "fork"):
                    next(iterator)
                with self.assertRaisesRegex(weir.Error, "fork"):
                    iter(loader)
                self.assertEqual(bits(batch), expected[0])
                batch = iterator = loader = None
                with weir.stage("in a child"):
                    pass
                with self.loader(tensors="array") as mine:
                    self.assertEqual([bits(batch) for batch in mine], expected)
                self.assertIn("in a child", weir.table())
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual([bits(batch)] + [bits(batch) for batch in iterator], expected)
        loader.close()

    def test_fork_while_loaders_open(self):
        """A lock held by another thread during fork() must not stay locked in the child."""
        done = threading.Event()

        def open_loaders():
            while not done.is_set():
                next(iter(self.loader(tensors="array")))
        threads = [threading.Thread(target=open_loaders) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(25):
                child = os.fork()
                if child == 0:
                    try:
                        with weir.stage("in a child"):
                            next(iter(self.loader(tensors="array")))
                        os._exit(0)
                    finally:
                        os._exit(1)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
        finally:
            done.set()
            for thread in threads:
                thread.join()

    def test_spawned(self):
        expected = self.expected()
        for method in ("spawn", "forkserver"):
            context = multiprocessing.get_context(method)
            ours, theirs = context.Pipe()
            process = context.Process(target=first_in_child, args=(self.data, theirs))
            with self.loader() as loader:
                next(iter(loader))
                process.start()
                theirs.close()
                self.assertEqual(ours.recv(), expected[0])
                process.join()
            self.assertEqual(process.exitcode, 0)

    def test_end_of_the_interpreter(self):
        """A loader, an iterator, tensors and an unused capsule are alive at exit."""
        for kind in KINDS:
            code = ("import sys, weir\n"
                    f"loader = weir.Loader({self.data!r}, tensors={kind!r})\n"
                    "iterator = iter(loader); batch = next(iterator); kept = [next(iterator) for _ in range(4)]\n"
                    "if hasattr(batch['image'], '__dlpack__'): capsule = batch['image'].__dlpack__()\n"
                    "sys.keep = loader, iterator, batch\n")
            done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Interrupted(common.Data):
    SYNTH = ["--format", "act-jpeg", "--episodes", "1", "--steps", "16", "--cameras", "top", "--size", "1600x1200"]

    def test_wait(self):
        """A signal's exception ends the wait for a batch; the next call returns the batch."""
        def on_alarm(number, frame):
            raise InterruptedError
        before = signal.signal(signal.SIGALRM, on_alarm)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        with weir.Loader(self.data, batch_size=16, num_workers=1, tensors="array", shuffle=False) as loader:
            expected = np.asarray(next(iter(loader))["image"]).tobytes()
            for _ in range(100):
                loader.set_epoch(0)  # reopens the loader, so that no batch is ready
                iterator = iter(loader)
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                    next(iterator)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except InterruptedError:
                    if loader.state_dict()["position"] == 0:
                        break
            else:
                self.fail("no wait was interrupted: signals were only handled after it")
            self.assertEqual(np.asarray(next(iterator)["image"]).tobytes(), expected)


if __name__ == "__main__":
    unittest.main()
