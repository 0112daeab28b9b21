"""weir.watch: the same batches, random numbers and exceptions with and without it, its figures, and its ends."""
import _ctypes
import concurrent.futures
import functools
import importlib.util
import json
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import zipfile

import weir

HERE = os.path.dirname(os.path.abspath(__file__))
LOADERS = os.path.join(HERE, "watch_loaders.py")

try:
    import torch  # noqa: F401
    HAVE_TORCH = True
except ImportError:
    HAVE_TORCH = False
needs_torch = unittest.skipUnless(HAVE_TORCH, "torch is not installed")

DATASET = """
import os, sys, time, random
import numpy as np, torch, weir
from torch.utils.data import DataLoader, Dataset
if __name__ == "__main__" and sys.version_info >= (3, 14):  # where forkserver, the default, needs a guarded main program
    torch.multiprocessing.set_start_method("fork")
class Data(Dataset):
    def __init__(self, n=32): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): return torch.full((4,), float(i))
"""


def environment(**variables):
    return dict(os.environ, **variables, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", COLUMNS="200")


# Becomes a program for each line that it reads, and prints its status: to import torch takes longer than most programs.
# Their output is in files beside the current folder.
WARM = """
import json, os, signal, sys
import numpy, torch.utils.data
for line in sys.stdin:
    folder, timeout, sys.argv = json.loads(line)
    child = os.fork()
    if child == 0: break
    print(os.waitpid(child, 0)[1], flush=True)
else:
    os._exit(0)
signal.alarm(timeout)
os.chdir(folder)
for fd, name in enumerate((os.devnull, "../stdout", "../stderr")):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    os.dup2(file, fd)
    os.close(file)
sys.path[0] = folder
del json, numpy, signal, torch, child, fd, file, line, name, timeout, folder
if sys.argv[0] == "-m":
    __import__("runpy")._run_module_as_main(sys.argv.pop(1))
else:
    __file__ = sys.argv[0]
    exec(compile(open(__file__).read(), __file__, "exec"))
"""
warm = threading.local()


def run_warm(folder, timeout, *arguments):
    """Returns (status, stdout, stderr)."""
    if not hasattr(warm, "server"):
        warm.server = subprocess.Popen([sys.executable, "-c", WARM], env=environment(), stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, universal_newlines=True, bufsize=1)
    warm.server.stdin.write(json.dumps([folder, timeout, arguments]) + "\n")
    status = int(warm.server.stdout.readline())
    texts = []
    for name in ("stdout", "stderr"):
        with open(os.path.join(folder, "..", name)) as file:
            texts.append(file.read())
    return (-(status & 127) or status >> 8, *texts)


def run(code, *arguments, check=0, module=(), timeout=300, **variables):
    """Runs a program in a process of its own. Returns (stdout, stderr)."""
    with tempfile.TemporaryDirectory() as outer:
        folder = os.path.join(outer, "job")
        os.mkdir(folder)
        path = os.path.join(folder, "train.py")
        with open(path, "w") as file:
            file.write(DATASET + textwrap.dedent(code))
        if HAVE_TORCH and not variables:
            status, out, err = run_warm(folder, timeout, *module, path, *arguments)
        else:
            done = subprocess.run([sys.executable, *module, path, *arguments], env=environment(**variables), cwd=folder,
                                  timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
            status, out, err = done.returncode, done.stdout, done.stderr
    if status != check:
        raise AssertionError("exit status %d, not %d:\n%s%s" % (status, check, out, err))
    return out, err


def calls(table):
    """Stage -> calls, in the last table of a text."""
    return {stage: int(count) for stage, count in
            re.findall(r"^(\S+)(?: \(helper\))? +(?:[a-z]+-?[a-z]+ +)?(\d+) +[0-9.]+s ", table, re.MULTILINE)}


def side_by_side(functions, at_once):
    """Calls functions on threads: most of their time they wait for processes. Returns their results."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return [future.result() for future in [pool.submit(function) for function in functions]]


class SideBySide(unittest.TestSuite):
    def run(self, result, debug=False):
        side_by_side([functools.partial(test.run, result) for test in self], 2)
        return result


def cases_of(suite):
    return [suite] if isinstance(suite, unittest.TestCase) else [case for each in suite for case in cases_of(each)]


def load_tests(loader, tests, pattern):
    return SideBySide(cases_of(tests))


def seen_by(mode, *cases):
    done = subprocess.run([sys.executable, LOADERS, mode, *cases], env=environment(), timeout=1200, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    lines = [line for line in done.stdout.split("\n") if line.startswith("{")]
    if done.returncode or not lines:
        raise AssertionError(done.stdout + done.stderr)
    return json.loads(lines[-1])


@needs_torch
class Same(unittest.TestCase):
    """What a training loop sees does not depend on the watch."""

    # In these loops no batch is held back: without workers, too few batches, or refused.
    NO_WINDOW = {"map", "map_shuffled", "iterable", "fails_without_workers", "list", "lazy_sampler", "unwatched",
                 "persistent_early_break"}

    def test_all_loaders(self):
        some = ("map_shuffled", "workers_2_shuffled", "iterable_workers", "two_at_once", "persistent")
        import watch_loaders
        names, most = list(watch_loaders.CASES), 9  # cases of a process
        special = [name for name in names if re.match("stateful|batches|a_generator|shared", name)]
        modes = {"watch": names, "windows": names, "headroom": ["long", *self.NO_WINDOW, *special]}
        runs = [("plain", *names), ("all", *some)] + [(mode, *cases[i:i + most]) for mode, cases in modes.items()
                                                      for i in range(0, len(cases), most)]
        plain, *others = side_by_side([functools.partial(seen_by, *run) for run in runs], 4)
        self.assertGreaterEqual(len(plain), 40)
        windows = {}
        for run, watched in zip(runs[1:], others):
            windows.update(watched.pop("windows", {}))
            self.assertEqual(watched, {name: plain[name] for name in run[1:]}, run[0])
        absent = {name for name in names if plain[name][0] == "absent"}
        self.assertLessEqual({name for name in names if not windows[name]}, self.NO_WINDOW | set(special) | absent)


@needs_torch
class Kept(unittest.TestCase):
    def test_what_the_program_sees_afterwards(self):
        """A timed function can be pickled while it is in its place, and later, when the original is there again. Threads have
        the numbers that they have without a watch."""
        run("""
            import copy, pickle, threading
            class Keeps(Data):
                def __getitem__(self, i):
                    if i == 0: self.opens = open
                    assert pickle.loads(pickle.dumps(open)) is open
                    return super().__getitem__(i)
            data = Keeps()
            for batch in weir.watch(DataLoader(data, batch_size=4), every=0): pass
            assert data.opens is not open
            assert pickle.loads(pickle.dumps(data)).opens is copy.deepcopy(data).opens is open
            assert threading.Thread().name == "Thread-1"
            """)


@needs_torch
class Figures(unittest.TestCase):
    def test_stages_of_workers(self):
        out, _ = run("""
            import linecache
            class Mine(Data):
                def __getitem__(self, i):
                    open("data.bin").read()
                    linecache.clearcache()
                    assert linecache.getline(__file__, 2)  # as a warning does
                    with weir.stage("my_part"): time.sleep(0.001)
                    return super().__getitem__(i)
            if __name__ == "__main__":
                open("data.bin", "w").close()
                loader = DataLoader(Mine(), batch_size=4, num_workers=2, multiprocessing_context=sys.argv[1])
                assert weir.watch(loader, name="mine") is loader
                for batch in loader:
                    with weir.stage("21_forward"): time.sleep(0.001)
        """, "spawn")
        for stage, count in (("00_TOTAL_batch", 8), ("01_getitem", 32), ("03_read", 32), ("my_part", 32), ("06_collate", 8),
                             ("06b_pickle", 8), ("20_step", 8), ("21_forward", 8)):
            self.assertEqual(calls(out).get(stage), count, stage + "\n" + out)
        self.assertIn("loader mine:", out)
        self.assertEqual(out.count("data.bin"), 6, "five slow items, and one file")
        self.assertNotIn("train.py", out[out.index("slowest items"):])

    def test_without_workers_and_table(self):
        out, _ = run("""
            weir.watch(loader := DataLoader(Data(), batch_size=4), every=0)
            for batch in loader: pass
            print("TABLE", weir.table(), "VERDICT", weir.verdict())
        """)
        self.assertRegex(out, r"(?s)TABLE verdict: .*VERDICT verdict: ")
        self.assertEqual(calls(out[out.index("TABLE"):out.index("VERDICT")])["01_getitem"], 32)

    def test_several_loaders(self):
        out, _ = run("""
            for name, n in ("train", 32), ("val", 16):
                for batch in weir.watch(DataLoader(Data(n), batch_size=4), every=0, name=name): pass
            print("TABLE", weir.table(whole=True), "TABLES", weir.table(whole=True, all_loaders=True),
                  "VERDICTS", weir.verdict(all_loaders=True), "END")
            session = weir._watch.session()
            session.json = "a.json"
            session.finish()
            import json
            report = json.load(open("a.json"))
            print(sorted(each["watch"]["batches"] for each in [report] + report["other_loaders"]))
        """)
        one, tables, verdicts = re.search("(?s)TABLE (.*)TABLES (.*)VERDICTS (.*)END", out).groups()
        self.assertEqual((one.count("00_TOTAL_batch"), tables.count("00_TOTAL_batch")), (1, 2))
        self.assertRegex(one, r"\nother loaders:\n  (train|val): ")
        self.assertEqual(sorted(re.findall("loader (.*):\nverdict: ", verdicts)), ["train", "val"])
        self.assertIn("\n[4, 8]\n", out)

    def test_functions_that_modules_have_imported(self):
        out, _ = run("""
            from numpy import load as my_load
            class Mine(Data):
                def __getitem__(self, i): return torch.from_numpy(my_load("a.npy"))
            np.save("a.npy", np.zeros(4))
            for batch in weir.watch(DataLoader(Mine(), batch_size=4, num_workers=1)): pass
            assert type(open).__name__ == "builtin_function_or_method" and my_load is np.load
        """)
        self.assertEqual(calls(out)["03_read"], 32)

    def test_functions_that_the_program_replaces(self):
        run("""
            def mine(path, load=np.load): return load(path) + 1
            class Mine(Data):
                def __getitem__(self, i):
                    if i == 31 and replaced: np.save = mine
                    return torch.from_numpy(np.load("a.npy"))
            np.save("a.npy", np.zeros(4))
            loader, replaced = weir.watch(DataLoader(Mine(), batch_size=4), every=0), False
            for batch in loader: assert batch[0, 0] == 0
            np.load, replaced = mine, True
            for batch in loader: assert batch[0, 0] == 1
            assert np.load is mine and np.save is mine
        """)

    def test_log(self):
        """One line per epoch, and one for the whole run. A batch counts once its step has ended."""
        out, _ = run("""
            import json
            for log, stop in ("whole.jsonl", 100), ("stopped.jsonl", 2):
                for n, batch in enumerate(weir.watch(DataLoader(Data(), batch_size=4), log=log)):
                    if n == stop: break
            batch = None
            weir._watch.session().finish()
            for log in "whole.jsonl", "stopped.jsonl":
                print([json.loads(line)["watch"]["batches"] for line in open(log) if '"watch"' in line])
        """)
        self.assertEqual(out.split("\n")[-3:], ["[8, 8]", "[2, 2]", ""])

    def test_page(self):
        """The page has each loader, and the one that is waited for most is unfolded. The extension makes it."""
        if importlib.util.find_spec("weir._weir") is None:
            self.skipTest("the extension is not installed")
        out, _ = run("""
            class Slow(Data):
                def __getitem__(self, i):
                    time.sleep(0.002)
                    return super().__getitem__(i)
            import time
            for dataset in Slow(), Data():
                loader = weir.watch(DataLoader(dataset, batch_size=4), html="page.html", log=None)
                for epoch in range(2):
                    for batch in loader: pass
            batch = None
            weir._watch.session().finish()
            page = open("page.html", encoding="utf-8").read()
            print(page.count("<article>"), page.count('<details class="run">'), page.count('<details class="run" open>'))
            print(page.index("<summary>Data") < page.index("<summary>Slow"), "items/s" in page, "01_getitem" in page)
        """)
        self.assertEqual(out.split("\n")[-3:], ["2 1 1", "True True True", ""])

    def test_hdf5_file_opened_before_the_workers(self):
        out, _ = run("""
            import h5py, numpy
            h5py.File("x.hdf5", "w").close()
            class Opened(Data):
                def __init__(self, *files): self.n, self.files, self.numbers = 32, files, numpy.zeros(3)
            class Lazy(Data):
                def __getitem__(self, i):
                    with h5py.File("x.hdf5", "r"): return super().__getitem__(i)
            file = h5py.File("x.hdf5", "r")
            for data in (Opened({"all": file}), torch.utils.data.Subset(Opened(file), range(8)), Opened(file["/"])):
                for batch in weir.watch(DataLoader(data, batch_size=4, num_workers=1)): pass
            file.close()
            print("CLOSED")
            for data in Opened(file), Lazy():
                for batch in weir.watch(DataLoader(data, batch_size=4, num_workers=1)): pass
        """)
        self.assertEqual(out[:out.index("CLOSED")].count("open the HDF5 file in each worker"), 3, out)
        self.assertNotIn("open the HDF5 file in each worker", out[out.index("CLOSED"):out.index("loader Lazy")])

    def test_rebuilt_loader(self):
        out, _ = run("""
            first = weir.watch(DataLoader(Data(), batch_size=4, num_workers=1), every=0, name="train")
            second = DataLoader(first.dataset, batch_size=8, num_workers=1)
            for batch in second: pass
        """)
        self.assertRegex(out, r"loader train: .*batch_size=8")

    def test_rebuilt_loaders_of_datasets_without_a_truth_value(self):
        out, err = run("""
            class NoTruth(Data):
                def __bool__(self): raise TypeError("no truth value")
            for dataset in torch.arange(32), np.arange(32), NoTruth():
                loader = weir.watch(DataLoader(dataset, batch_size=4), every=0, name="train")
                for epoch in range(2):
                    for batch in DataLoader(loader.dataset, batch_size=4): pass
                print("SEEN", [(each.name, each.epochs, each.batches) for each in weir._watch.session().used()][-1])
        """)
        self.assertEqual(out.count("SEEN ('train', 2, 16)"), 3, out)
        self.assertEqual(err, "")

    def test_loaders_that_share_figures(self):
        """A second loader of a dataset returns the watch. Loaders of one line, each made when the last one is gone, are one;
        a second call changes how a loader is watched."""
        out, err = run("""
            import gc
            def batches(): yield from [torch.zeros(3)] * 4
            def seen(): return [(each.name, each.batches) for each in weir._watch.session().used()]
            loader = weir.watch(DataLoader(Data(), batch_size=4), every=0, name="first")
            for each in [DataLoader(loader.dataset, batch_size=8)] + [loader] * 3:
                for batch in each: pass
            for epoch in range(20):
                for batch in weir.watch(batches(), every=0): pass
                for batch in weir.watch(DataLoader(Data(8), batch_size=4), every=0, name="each"): pass
            lists = [weir.watch([1, 2], every=0, name="list") for _ in range(2)]
            assert [list(each) for each in lists] == [[1, 2]] * 2
            val = weir.watch(DataLoader(loader.dataset, batch_size=16), every=0, name="val")
            for batch in val: pass
            print(seen())
            weir.watch(loader, every=0, headroom=True, name="changed")
            for batch in loader: pass
            print(seen()[0], weir._watch.session().text(0, True, "en", 0))
        """)
        self.assertTrue(out.startswith("[('first', 28), ('generator', 80), ('each', 40), ('list', 2), ('list', 2), ('val', 2)]\n"
                                       "('changed', 36) "), out)
        self.assertRegex(out, r"\('changed', 36\) .*\n\nloader changed:")
        self.assertEqual(err.count("weir.watch: changed: headroom cannot be measured"), 1, err)
        self.assertEqual(err.count("Warning"), 1, err)

    def test_many_loaders(self):
        """One for each of 100 validation sets, and as many as there can be. Memory is that of the loaders that exist."""
        out, err = run("""
            loaders = [DataLoader(Data(4), batch_size=4) for _ in range(100)]
            for loader in loaders: assert len(list(weir.watch(loader, every=0))) == 1
            session = weir._watch.session()
            print("SEEN", len(session.used()), os.fstat(session.fd).st_blocks // 2 < 4096)
            more = [weir.watch([1], every=0) for _ in range(200)]
            print("ALL", [len(list(each)) for each in more] == [1] * 200, len(session.used()))
        """)
        self.assertIn("SEEN 100 True\nALL True 256\n", out)
        self.assertIn("256 loaders are watched, the maximum; others run unwatched", err)
        self.assertEqual(err.count("Warning"), 1, err)

    def test_other_iterables(self):
        out, _ = run("""
            def batches():
                for i in range(5):
                    time.sleep(0.01)
                    yield torch.zeros(3)
            watched = weir.watch(batches(), name="mine")
            assert len(list(watched)) == 5
            try:
                for x in weir.watch((1 // 0 for _ in range(2)), every=0): pass
            except ZeroDivisionError: print("RAISED")
        """)
        self.assertRegex(out, r"(?s)loader mine: any iterable.*RAISED")
        self.assertEqual(calls(out[:out.index("RAISED")])["20_step"], 5)
        self.assertRegex(out, r"covers 1 epoch, 5 batches, 15 items in (?!0\.00)")

    def test_wrapper_is_like_its_iterable(self):
        run("""
            import collections.abc as abc, copy, pickle
            class Mine:
                def __iter__(self): return iter([1, 2])
            class Two(Mine):
                epoch = 0
                def __getitem__(self, i): return i
                def __len__(self): return 2
            for plain in Mine(), Two(), [], [3], iter([4]), (i for i in [5]), {"a": 1}:
                watched = weir.watch(plain, every=0)
                for kind in abc.Iterator, abc.Sized, abc.Container, abc.Callable, abc.Reversible:
                    assert isinstance(watched, kind) == isinstance(plain, kind), (plain, kind)
                assert bool(watched) == bool(plain) and hasattr(watched, "__getitem__") == hasattr(plain, "__getitem__")
                assert list(watched) == list(plain) or isinstance(plain, abc.Iterator)
            plain = Two()
            watched = weir.watch(plain, every=0)
            watched.epoch = 5
            assert plain.epoch == watched.epoch == 5 and watched[7] == 7 and len(watched) == 2
            for copied in copy.deepcopy(watched), pickle.loads(pickle.dumps(watched)):
                assert type(copied) is Two and copied is not plain and copied.epoch == 5
            del watched.epoch
            assert vars(plain) == {}
        """)

    def test_late(self):
        _, err = run("""
            loader = DataLoader(Data(), batch_size=4, num_workers=1, persistent_workers=True)
            for batch in loader: pass
            weir.watch(loader, every=0)
            for epoch in range(2):
                for batch in loader: pass
        """)
        self.assertEqual(err.count("persistent workers started before weir.watch"), 1, err)

    def test_bad_arguments(self):
        for bad, error in (({"every": -1}, ValueError), ({"headroom": "x"}, ValueError), ({"log": 5}, TypeError),
                           ({"name": 5}, TypeError)):
            with self.assertRaisesRegex(error, next(iter(bad)) + " must be "):
                weir.watch([1], **bad)
        with self.assertRaisesRegex(TypeError, "needs a DataLoader or another iterable"):
            weir.watch(5)


@needs_torch
class Failures(unittest.TestCase):
    """A watch that fails is one warning, and training goes on."""
    LOOP = """
            loader = DataLoader(Data(), batch_size=4, num_workers=1)
            assert weir.watch(loader, every=0) is loader and weir.watch(loader, every=0) is loader
            for epoch in range(2): print(sum(1 for batch in loader))
    """

    def fails(self, code, warning, table=False, **variables):
        out, err = run(code, **variables)
        self.assertTrue(out.startswith("8\n8\n"), out + err)
        self.assertEqual("00_TOTAL_batch" in out, table, out)
        self.assertEqual(err.count(warning), 1, err)
        self.assertEqual(err.count("RuntimeWarning"), 1, err)

    def test_library(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            for path in ("/nonexistent.so", file.name, _ctypes.__file__):  # missing, empty, without the functions
                self.fails(self.LOOP, "its library cannot be loaded", WEIR_WATCH_LIBRARY=path)

    def test_no_gil(self):
        self.fails("sys._is_gil_enabled = lambda: False\n" + textwrap.dedent(self.LOOP), "this Python runs without the GIL")

    def test_extension_of_another_version(self):
        self.fails("""
            import types
            vars(sys.modules.setdefault("weir._weir", types.ModuleType("weir._weir"))).pop("_watch_stages", None)
        """ + self.LOOP, "weir._weir is of another version", table=True)

    def test_package_with_an_extension_of_another_version(self):
        """import weir works as it does without an extension."""
        package = os.path.dirname(weir.__file__)
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(folder + "/weir")
            for name in os.listdir(package):
                if not name.startswith(("_weir.", "__pycache__")):
                    os.symlink(os.path.join(package, name), os.path.join(folder, "weir", name))
            with open(folder + "/weir/_weir.py", "w") as file:
                file.write("version = '0.0.1'")
            out, err = run("""
                class Mine(Data):
                    def __getitem__(self, i):
                        with weir.stage("my_part"): return super().__getitem__(i)
                if __name__ == "__main__":
                    for batch in weir.watch(DataLoader(Mine(), batch_size=4, num_workers=1,
                                                       multiprocessing_context="spawn")): pass
                    try: weir.Loader
                    except AttributeError as error: print(error)
            """, PYTHONPATH=folder)
        self.assertEqual(calls(out).get("my_part"), 32, out)
        self.assertIn("weir.Loader needs ", out)
        self.assertEqual(err.count("weir._weir is of another version"), 1, err)
        self.assertEqual(err.count("RuntimeWarning"), 1, err)

    def test_limits(self):
        """Files, memory and a thread that the system refuses."""
        for limit, value in (("FSIZE", "1 << 20"), ("NOFILE", "3"),
                             ("AS", "(int(open('/proc/self/statm').read().split()[0]) << 12) + (64 << 20)")):
            self.fails("""
            import resource
            old = resource.getrlimit(resource.RLIMIT_{0})
            resource.setrlimit(resource.RLIMIT_{0}, ({1}, old[1]))
            weir.watch([])
            resource.setrlimit(resource.RLIMIT_{0}, old)
            """.format(limit, value) + self.LOOP, "weir.watch: ")

    def test_unknown_torch(self):
        """An iterator that lacks what the watch looks for."""
        self.fails("""
            class Iterator(torch.utils.data.dataloader._SingleProcessDataLoaderIter):
                _dataset_fetcher = property(lambda self: 1 // 0, lambda self, value: setattr(self, "mine", value))
                def _next_data(self):
                    return self.mine.fetch(self._next_index())
            class Loader(DataLoader):
                def _get_iterator(self): return Iterator(self)
            loader = weir.watch(Loader(Data(), batch_size=4), every=0)
            for epoch in range(2): print(sum(1 for batch in loader))
        """, "ZeroDivisionError")

    def test_warnings_as_errors(self):
        out, err = run("""
            import warnings
            warnings.simplefilter("error")
            loader = weir.watch(DataLoader(Data(), batch_size=4), every=0, headroom=True)
            print(sum(1 for batch in loader))
        """)
        self.assertTrue(out.startswith("8\n"), out)
        self.assertEqual(err.count("headroom cannot be measured"), 1, err)

    def test_warnings_as_errors_in_an_import(self):
        out, err = run("""
            import warnings
            from weir import _watch_import
            warnings.simplefilter("error")
            open("mine.py", "w").close()
            _watch_import.after_import("mine", lambda name: 1 / 0)
            import mine
            print("imported")
        """)
        self.assertEqual(out, "imported\n")
        self.assertEqual(err.count("mine is not timed: ZeroDivisionError"), 1, err)

    def test_batches_that_look_like_arrays(self):
        out, err = run("""
            class Mine:
                def shape(self): pass
            assert len(list(weir.watch([Mine(), Mine()], every=0))) == 2
        """)
        self.assertIn("20_step", out)
        self.assertEqual(err, "")

    def test_import(self):
        """A module of the program's own with a name that the watch knows."""
        out, err = run("""
            class Mine(Data):
                def __getitem__(self, i):
                    import cv2
                    return torch.tensor(cv2.imread(i))
            open("cv2.py", "w").write("imread = lambda i: float(i)\\nclass VideoCapture: __slots__ = ()\\nresize = 3\\n")
            print(sum(batch.sum().item() for batch in weir.watch(DataLoader(Mine(), batch_size=4, num_workers=1), every=0)))
        """)
        self.assertTrue(out.startswith("496.0\n"), out)
        self.assertEqual(err, "")


@needs_torch
class Headroom(unittest.TestCase):
    def test_window(self):
        out, err = run("""
            loader = weir.watch(DataLoader(Data(400), batch_size=2, num_workers=2), every=0, headroom=True)
            for batch in loader: pass
        """)
        self.assertIn("held back for headroom", out)
        self.assertEqual(calls(out)["20_step"], 200)
        self.assertEqual(err, "")

    def test_refused(self):
        _, err = run("""
            class Lazy(torch.utils.data.Sampler):
                def __init__(self): pass
                def __len__(self): return 32
                def __iter__(self):
                    for i in range(32): yield int(torch.randint(32, ()))
            for loader in (DataLoader(Data(), batch_size=4), DataLoader(Data(), batch_size=4, num_workers=1, sampler=Lazy())):
                for epoch in range(2):
                    for batch in weir.watch(loader, every=0, headroom=True): pass
        """)
        self.assertEqual(err.count("headroom cannot be measured: with num_workers=0"), 1, err)
        self.assertEqual(err.count("headroom cannot be measured: the sampler draws from a global"), 1, err)


    @staticmethod
    def run_other(code):
        """A program with watched iterables that are no DataLoader."""
        return run("""
            from watch_loaders import Batches
            def watched(iterable, **options): return weir.watch(iterable, every=0, headroom=True, **options)
        """ + code, PYTHONPATH=os.pathsep.join([os.environ.get("PYTHONPATH", ""), HERE]))

    def test_other_iterables(self):
        """From the second epoch on; at once in an iterator of which there is one epoch. Later loops get held batches."""
        out, err = self.run_other("""
            import itertools
            batches = watched(Batches(), name="again")
            for batch in itertools.chain(batches, batches): time.sleep(0.004)
            shared = watched(iter(Batches()), name="once")
            seen = [batch["n"] for _ in range(3) for batch in itertools.islice(shared, 40)]
            print("SEEN", seen == list(range(120)))
            import json
            from weir import _watch, _watch_library
            for each in _watch.active().used():
                of = json.loads(_watch.active().text(_watch_library.JSON, True, "en", each.number))
                print("WINDOWS", each.name, of["watch"]["headroom"]["windows"], of["verdict"]["headroom"])
        """)
        self.assertEqual(err, "")
        self.assertIn("SEEN True", out)
        self.assertRegex(out, r"WINDOWS again 1(\.0)? [0-9.]+\n")
        self.assertRegex(out, r"WINDOWS once [12](\.0)? ")
        self.assertRegex(out, r"headroom: [0-9.]+ x .* measured")

    def test_other_iterables_refused(self):
        _, err = self.run_other("""
            class Saved(Batches):
                state_dict = None
                def __next__(self): raise StopIteration
                def __iter__(self): return self
            for name, iterable in (("one_buffer", Batches(depth=1)), ("buffers", Batches(depth=20)),
                                   ("drawing", Batches(draws="each")), ("files", [[open(__file__)]]), ("saved", Saved()),
                                   ("objects", [np.zeros(2, object)]), ("same_list", [[1, 2]] * 3)):
                iterable = watched(iterable, name=name)
                for epoch in range(2):
                    for batch in iterable: pass
        """)
        for name, why in (("one_buffer", "the iterable reuses the memory of earlier batches"),
                          ("buffers", "the iterable reuses the memory of earlier batches"),
                          ("drawing", "the iterable draws from a global random generator"),
                          ("files", "the memory of batches cannot be seen: _io.TextIOWrapper"),
                          ("saved", "the state_dict of Saved would be ahead of training"),
                          ("objects", "the memory of batches cannot be seen: an array of objects"),
                          ("same_list", "the iterable reuses the memory of earlier batches")):
            self.assertEqual(err.count("weir.watch: {}: headroom cannot be measured: {}".format(name, why)), 1, err)
        self.assertEqual(err.count("Warning"), 7, err)

    def test_loop_that_draws(self):
        _, err = self.run_other("""
            for batch in watched(iter(Batches())): random.random()
        """)
        self.assertEqual(err.count("headroom cannot be measured before an epoch has ended: the loop draws"), 1, err)

    def test_pool_of_batches(self):
        """An iterable that waits until the loop lets go of earlier batches is not waited for for ever."""
        out, err = self.run_other("""
            import threading
            pool = threading.Semaphore(3)
            class Lent(np.ndarray):
                def __del__(self): pool.release()
            def lent():
                for i in range(60):
                    pool.acquire()
                    yield np.full(4, float(i)).view(Lent)
            print("SUM", sum(batch[0].item() for batch in watched(lent())))
        """)
        self.assertIn("SUM {}".format(float(sum(range(60)))), out)
        self.assertIn("the iterable may block until earlier batches are released", err)

    def test_interrupt_while_batches_are_held(self):
        """Ctrl-C comes at once, and a loop that goes on gets all batches."""
        out, _ = self.run_other("""
            class Interrupting:
                asked = 0
                def __iter__(self): return self
                def __next__(self):
                    i, self.asked = self.asked, self.asked + 1
                    if i == 100: raise StopIteration
                    if i == 60:
                        self.asked -= 1
                        if not hasattr(self, "told"):
                            self.told = True
                            raise KeyboardInterrupt
                        self.asked += 1
                    return torch.full((4,), float(i))
            seen, shared = [], watched(Interrupting())
            try:
                for batch in shared: seen.append(batch[0].item())
            except KeyboardInterrupt: print("AFTER", len(seen))
            for batch in shared: seen.append(batch[0].item())
            print("ALL", seen == [float(i) for i in range(100)])
        """)
        after = int(re.search(r"AFTER (\d+)", out).group(1))
        self.assertLess(after, 60)  # the window had begun
        self.assertIn("ALL True", out)


@needs_torch
class Command(unittest.TestCase):
    WATCH = ("-m", "weir", "watch")

    def test_like_python(self):
        """The script sees what `python train.py` shows it, under spawn too."""
        code = """
            import json
            if __name__ == "__main__":
                loader = DataLoader(Data(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
                print(json.dumps([sys.argv[1:], sys.path[0] == os.path.dirname(os.path.realpath(__file__)), __name__,
                                  __spec__ is None, sys.modules["__main__"].Data is Data, [b.tolist() for b in loader]]))
        """
        plain, _ = run(code, "--every", "x")
        watched, _ = run(code, "--every", "x", module=self.WATCH)
        self.assertEqual(json.loads(plain.split("\n")[0]), json.loads(watched.split("\n")[0]))
        self.assertEqual(calls(watched)["01_getitem"], 32)

    def test_relative_path(self):
        code = "import sys\nprint(__file__, __loader__.path, sys._getframe().f_code.co_filename, sys.argv, type(__builtins__))\n" \
               "print(sorted(globals()))\n"
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.py"), "w") as file:
                file.write(code)
            plain, watched = [subprocess.run([sys.executable, *module, "./train.py"], env=environment(), cwd=folder, check=True,
                                             stdout=subprocess.PIPE).stdout for module in ((), self.WATCH)]
        self.assertEqual(plain, watched)

    PICKLING = """
        import concurrent.futures, dataclasses, multiprocessing, pickle, sys
        @dataclasses.dataclass
        class Point:
            x: int
            def twice(self): return Point(2 * self.x)
        class Wrong(Exception): pass
        def fails(x): raise Wrong(x)
        class Points:
            def __len__(self): return 4
            def __getitem__(self, i): return Point(i)
        def same(items): return items
        def loop(context):
            from torch.utils.data import DataLoader
            for batch in DataLoader(Points(), 2, collate_fn=same, num_workers=1, multiprocessing_context=context):
                print(batch == [Point(batch[0].x), Point(batch[1].x)])
        if __name__ == "__main__":
            import __main__
            assert __main__.Point is Point is pickle.loads(pickle.dumps(Point))
            for method in sys.argv[1].split(","):
                context = multiprocessing.get_context(method)
                with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
                    print(list(pool.map(Point.twice, [Point(1)])), type(pool.submit(fails, 1).exception()) is Wrong)
                with context.Pool(1) as pool: print(pool.map(Point.twice, [Point(2)]) == [Point(4)])
                if "loop" in sys.argv: loop(context)
            print(sorted(name for name in sys.modules if "__m" in name), sys.modules["__mp_main__"] is __main__)
    """

    def test_classes_of_the_program_in_other_processes(self):
        """Objects of the script's classes go to processes and come back, however the script is named."""
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "package")
            os.mkdir(package)
            for name in "__init__.py", "__main__.py", "train.py":
                with open(os.path.join(package, name), "w") as file:
                    file.write(textwrap.dedent(self.PICKLING) if name != "__init__.py" else "")
            py_compile.compile(os.path.join(package, "train.py"), os.path.join(folder, "train.pyc"))
            with zipfile.ZipFile(os.path.join(folder, "train.zip"), "w") as archive:
                archive.write(os.path.join(package, "train.py"), "__main__.py")

            def out(*arguments):
                done = subprocess.run([sys.executable, *arguments], env=environment(), cwd=folder, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, universal_newlines=True)
                self.assertEqual(done.returncode, 0, (arguments, done.stdout, done.stderr))
                return [line for line in done.stdout.split("\n") if re.match(r"\[|True|False", line)]
            # Python imports no __main__.py of a package, folder or archive into processes of spawn and forkserver.
            programs = (("package/train.py", "spawn,forkserver,fork", "loop"), ("-m", "package.train", "spawn,forkserver"),
                        ("train.pyc", "spawn"), ("-m", "package", "fork"), ("package", "fork"), ("train.zip", "fork"))
            runs = [module + program for program in programs for module in ((), self.WATCH)]
            found = side_by_side([functools.partial(out, *run) for run in runs], 2)
        for run, plain, watched in zip(programs, found[::2], found[1::2]):
            self.assertGreaterEqual(len(plain), 3)
            self.assertEqual(watched, plain, run)

    def test_terminal_without_chinese(self):
        out, err = run("""
            for batch in DataLoader(Data(), batch_size=4): pass
        """, module=(*self.WATCH, "--lang", "zh"), PYTHONIOENCODING="ascii")
        self.assertRegex(out, "01_getitem.*32")
        self.assertEqual(err, "")

    def test_module_and_files(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "job"))
            with open(os.path.join(folder, "job", "__init__.py"), "w"):
                pass
            with open(os.path.join(folder, "job", "train.py"), "w") as file:
                file.write(DATASET + "print(__name__, __spec__.name, sys.argv[1:])\n"
                           "for batch in DataLoader(Data(), batch_size=4, num_workers=1): pass\n")
            done = subprocess.run([sys.executable, *self.WATCH, "--log", "a.jsonl", "--json=a.json", "-m", "job.train", "-x"],
                                  env=environment(), cwd=folder, stdout=subprocess.PIPE, universal_newlines=True, check=True)
            self.assertTrue(done.stdout.startswith("__main__ job.train ['-x']\n"), done.stdout)
            with open(os.path.join(folder, "a.json")) as file:
                self.assertIsInstance(json.load(file), dict)
            with open(os.path.join(folder, "a.jsonl")) as file:
                self.assertTrue(all(isinstance(json.loads(line), dict) for line in file))

    def test_cpu_time_of_workers_is_the_jobs(self):
        """Also that of workers which are no children of the program, and have ended."""
        code = """
            class Busy(Data):
                def __getitem__(self, i):
                    until = time.thread_time() + 0.02
                    while time.thread_time() < until: pass
                    return i
            if __name__ == "__main__":
                for batch in DataLoader(Busy(), 4, num_workers=2, multiprocessing_context=sys.argv[1]): pass
        """
        for method in ("fork", "forkserver"):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "a.json")
                run(code, method, module=(*self.WATCH, "--json", path))
                with open(path) as file:
                    report = json.load(file)
            workers = sum(worker["cpu_s"] for worker in report["workers"])
            self.assertGreater(workers, 0.5)
            self.assertGreater(report["cpu_s"], 0.9 * workers, method)

    def test_exceptions_and_signals(self):
        code = """
            try:
                for batch in DataLoader(Data(), batch_size=4, num_workers=1):
                    if sys.argv[1] == "raise": raise LookupError("mine")
                    if sys.argv[1] == "exit": sys.exit(3)
                    os.kill(os.getpid(), int(sys.argv[1]))
                    time.sleep(60)
            except KeyboardInterrupt:
                print("INTERRUPTED"); raise
        """
        out, err = run(code, "raise", module=self.WATCH, check=1)
        self.assertIn("00_TOTAL_batch", out)
        self.assertIn("LookupError: mine", err)
        self.assertIn("00_TOTAL_batch", run(code, "exit", module=self.WATCH, check=3)[0])
        out, _ = run(code, str(int(signal.SIGINT)), module=self.WATCH, check=-signal.SIGINT)
        self.assertRegex(out, "(?s)INTERRUPTED.*00_TOTAL_batch")
        out, _ = run(code, str(int(signal.SIGTERM)), module=self.WATCH, check=-signal.SIGTERM)
        self.assertIn("00_TOTAL_batch", out)

    def test_sigterm(self):
        """The program's own handler, one that calls those before it as Lightning's does, no stdout, and ranks."""
        code = """
            import signal
            before = signal.getsignal(signal.SIGTERM)
            def handler(number, frame):
                if callable(before): before(number, frame)
                print("MINE")
            for batch in DataLoader(Data(), batch_size=4, num_workers=1): pass
            if sys.argv[1] == "handler": signal.signal(signal.SIGTERM, handler)
            if sys.argv[1] == "stdout": sys.stdout = object()
            if sys.argv[1] == "rank": assert before is signal.SIG_DFL
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
        """
        self.assertRegex(run(code, "handler", module=self.WATCH)[0], "(?s)MINE.*00_TOTAL_batch")
        run(code, "stdout", module=self.WATCH, check=-signal.SIGTERM)
        run(code, "rank", module=self.WATCH, check=-signal.SIGTERM, RANK="0", WORLD_SIZE="2")

    def test_sigterm_during_a_call_in_c(self):
        """Of minutes, in which handlers of Python do not run. The report needs a call that lets other threads run."""
        code = """
            import hashlib, subprocess
            for batch in DataLoader(Data(), batch_size=4): pass
            subprocess.Popen(["sh", "-c", "sleep 1; kill $PPID"])
            if sys.argv[1] == "lets_run": hashlib.pbkdf2_hmac("sha256", b"", b"", 2 ** 31 - 1)
            sum(range(10 ** 12))
        """
        out, err = run(code, "lets_run", module=self.WATCH, check=-signal.SIGTERM, timeout=100)
        self.assertEqual(out.count("00_TOTAL_batch"), 1, out + err)
        self.assertEqual(run(code, "holds", module=self.WATCH, check=-signal.SIGTERM, timeout=100)[1], "")

    def test_nothing_to_see(self):
        text = "no DataLoader of this process delivered a batch"
        self.assertIn(text, run("DataLoader(Data())", module=self.WATCH)[1])
        for code, status in (("1 / 0", 1), ("if os.fork(): os.wait()", 0)):
            self.assertNotIn(text, run(code, module=self.WATCH, check=status)[1], code)

    def test_usage(self):
        for arguments, status, text in ((["watch"], 2, "no script given"), (["watch", "--evry", "1", "x"], 2, "--evry"),
                                        (["watch", "--every", "x", "y"], 2, "--every x"), (["watch", "no.py"], 2, "no.py"),
                                        (["watch", "--json", "/no/a.json", "x"], 2, "/no cannot be written to"),
                                        (["watch", "--log", "/", "x"], 2, "--log /: is a folder"),
                                        (["watch", "--help"], 0, "--headroom-only"), ([], 2, "Usage")):
            done = subprocess.run([sys.executable, "-m", "weir", *arguments], env=environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True)
            self.assertEqual(done.returncode, status, done.stdout)
            self.assertIn(text, done.stdout)

    def test_headroom_only(self):
        out, _ = run("""
            loader = DataLoader(Data(), batch_size=4, num_workers=1)
            print([b[0, 0].item() for b in loader])
        """, module=(*self.WATCH, "--headroom-only"))
        self.assertIn("[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]", out)
        self.assertRegex(out, r"verdict: Without any loading, training makes \d+\.\d steps/s")


@needs_torch
@unittest.skipIf(HAVE_TORCH and sys.version_info >= (3, 11) and torch.__version__ < "2", "its torchrun fails on Python 3.11")
class OfRanks(unittest.TestCase):
    def test_slow_dataset_of_one_rank(self):
        out, _ = run("""
            import torch.distributed as dist
            class Mine(Data):
                def __getitem__(self, i):
                    time.sleep(0.02 if os.environ["RANK"] == "1" else 0.001)
                    return super().__getitem__(i)
            dist.init_process_group("gloo")
            loader = DataLoader(Mine(40), batch_size=4, num_workers=1)
            for epoch in range(2):
                for batch in loader: dist.all_reduce(batch.sum())
            dist.destroy_process_group()
        """, module=("-m", "torch.distributed.run", "--nproc_per_node", "2", "--standalone", "-m",
                     "weir", "watch"))
        self.assertRegex(out, r"2 ranks, .*: rank 1 on .* holds the others up")
        self.assertEqual(out.count("2 ranks, "), 1)


class Launchers(unittest.TestCase):
    def test_order(self):
        """That of base/ranks.h: mpirun in a job of Slurm leaves Slurm's variables of its own task."""
        slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}
        step = dict(slurm, SLURM_STEP_NUM_TASKS="2")
        mpi = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
        code = "from weir import _watch_ranks; print(*_watch_ranks.ranks())"
        for given, expected in ((slurm, "0 1"), (step, "0 2"), (dict(step, **mpi), "3 4"),
                                (dict(mpi, RANK="1", WORLD_SIZE="2"), "1 2"), ({"RANK": "2", "WORLD_SIZE": "2"}, "0 1")):
            done = subprocess.run([sys.executable, "-c", code], env=dict(environment(), **given), stdout=subprocess.PIPE,
                                  universal_newlines=True, check=True)
            self.assertEqual(done.stdout.strip(), expected, given)


@needs_torch
class Children(unittest.TestCase):
    """Training processes that the program starts itself."""
    WATCH = ("-m", "weir", "watch", "--json", "a.json", "--log", "a.jsonl")
    END = """
                for process in processes: process.start()
                for process in processes: process.join()
                print([process.exitcode for process in processes], sorted(os.listdir(".")))
    """

    def test_spawned_ranks(self):
        code = """
            import torch.distributed as dist, torch.multiprocessing as mp
            def train(rank, port):
                dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % port, rank=rank, world_size=2)
                torch.manual_seed(rank)
                loader = DataLoader(Data(40), 4, shuffle=True, num_workers=1, multiprocessing_context=sys.argv[1])
                for epoch in range(2):
                    for batch in loader:
                        dist.all_reduce(batch)
                        if rank == 0: print("VALUES", batch.tolist(), float(torch.rand(())))
                dist.destroy_process_group()
            if __name__ == "__main__":
                import socket
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    port = free.getsockname()[1]
                mp.spawn(train, (port,), nprocs=2)
                print(sorted(os.listdir(".")), "REPORT", flush=True)
                if os.path.exists("a.rank1.jsonl") and "WEIR_PROGRAM" in os.environ:
                    import subprocess
                    subprocess.run([os.environ["WEIR_PROGRAM"], "report", "a.rank0.jsonl", "a.rank1.jsonl"], check=True)
        """
        def values(out):
            return [line for line in out.split("\n") if line.startswith("VALUES")]
        plain, _ = run(code, "fork")
        self.assertEqual(len(values(plain)), 20)
        for method in ("fork", "spawn"):
            out, err = run(code, method, module=self.WATCH)
            out, report = out.split("REPORT")
            self.assertEqual(values(out), values(plain))
            self.assertEqual(out.count("loader Data:"), 1, out)
            self.assertEqual(calls(out)["00_TOTAL_batch"], 20)
            for text in (out, report) if "WEIR_PROGRAM" in os.environ else (out,):
                self.assertEqual(text.count("\n2 ranks, epochs 1-2: "), 1, text + err)
                self.assertNotRegex(text, "(?m)^rank [01]")  # none is missing
            self.assertIn("['a.rank0.json', 'a.rank0.jsonl', 'a.rank1.json', 'a.rank1.jsonl', 'train.py']", out)

    def test_independent(self):
        """Processes that are no ranks have files of their own, and each prints."""
        code = """
            import multiprocessing
            def train(n):
                for batch in DataLoader(Data(8 * n), batch_size=4, num_workers=1): pass
            if __name__ == "__main__":
                context = multiprocessing.get_context(sys.argv[1])
                processes = [context.Process(target=train, args=(n,), name="mine-%d" % n) for n in (1, 2)]
        """ + self.END
        for method in ("spawn", "forkserver", "fork"):
            out, err = run(code, method, module=self.WATCH)
            files = r"\['a.pid(\d+).json', 'a.pid\1.jsonl', 'a.pid(\d+).json', 'a.pid\2.jsonl', 'train.py'\]"
            self.assertRegex(out, r"(?m)^\[0, 0\] " + files, err)
            tables = re.split(r"(?m)^process (mine-\d) \(PID \d+\):$", out)
            self.assertEqual({name: calls(table)["00_TOTAL_batch"] for name, table in zip(tables[1::2], tables[2::2])},
                             {"mine-1": 2, "mine-2": 4}, out)

    def test_package_of_the_current_folder(self):
        """Processes find the package that the program no longer has on its path."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.dirname(weir.__file__), os.path.join(folder, "weir"))
            path = os.path.join(folder, "job", "train.py")
            os.mkdir(os.path.dirname(path))
            with open(path, "w") as file:
                file.write(DATASET.replace(", weir", "") + "if __name__ == '__main__':\n    os.chdir('/')\n"
                           "    loader = DataLoader(Data(), 4, num_workers=1, multiprocessing_context='spawn')\n"
                           "    print(sum(1 for batch in loader))\n")
            home = os.path.dirname(os.path.dirname(os.path.abspath(weir.__file__)))
            env = environment()
            env["PYTHONPATH"] = os.pathsep.join(path for path in env.get("PYTHONPATH", "").split(os.pathsep)
                                                if path and os.path.abspath(path) != home)
            done = subprocess.run([sys.executable, "-m", "weir", "watch", path], env=env, cwd=folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertTrue(done.stdout.startswith("8\n"), done.stdout)
            self.assertEqual(calls(done.stdout)["01_getitem"], 32)


class WithoutExtension(unittest.TestCase):
    def test_what_there_is(self):
        """Of the package without its extension, from a folder that has its Python files alone."""
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.dirname(weir.__file__)
            os.mkdir(os.path.join(folder, "weir"))
            for name in os.listdir(package):
                if name.endswith(".py") or name == "libweir_watch.so":
                    shutil.copy(os.path.join(package, name), os.path.join(folder, "weir", name))
            code = ("import weir\nassert [1, 2] == list(weir.watch([1, 2], every=0, name='two'))\n"
                    "with weir.stage('a'): pass\nprint(weir.table())\n"
                    "try: weir.Loader\nexcept AttributeError as error: print(error)\n")
            done = subprocess.run([sys.executable, "-c", code], env=dict(environment(), PYTHONPATH=folder),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertRegex(done.stdout, r"(?s)loader two: .*weir\.Loader needs .*weir\.watch works without it")


if __name__ == "__main__":
    unittest.main()
