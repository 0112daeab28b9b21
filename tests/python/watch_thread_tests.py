"""weir.watch and threads: loops on several threads, workers that are threads, and a loader inside another one's items."""
import unittest

from watch_tests import SideBySide, calls, cases_of, needs_torch, run


def load_tests(loader, tests, pattern):
    return SideBySide(cases_of(tests))


@needs_torch
class Threads(unittest.TestCase):
    def test_loops_on_threads_that_end(self):
        """A thread can have the identity of an ended one."""
        out, _ = run("""
            import threading
            loader = weir.watch(DataLoader(Data(), batch_size=4), every=0)
            def train():
                for batch in loader: pass
                identities.add(threading.get_ident())
            identities = set()
            for epoch in range(6):
                thread = threading.Thread(target=train)
                thread.start()
                thread.join()
            print(len(identities))
        """)
        self.assertLess(int(out.split("\n")[0]), 6, "an identity was used again")
        self.assertEqual(calls(out)["01_getitem"], 6 * 32)

    def test_workers_that_are_threads(self):
        """As in MONAI's ThreadDataLoader."""
        out, err = run("""
            import queue, threading
            class Process(threading.Thread):
                pid = 0
                def terminate(self): pass
            class Context:
                _name = "spawn"
                Event, Queue, Process = threading.Event, None, Process
                @staticmethod
                def Queue():
                    made = queue.Queue()
                    made.cancel_join_thread = made.close = made.join_thread = lambda: None
                    return made
            class Loader(DataLoader):
                @property
                def multiprocessing_context(self): return Context
                @multiprocessing_context.setter
                def multiprocessing_context(self, value): pass
            torch._C._set_worker_pids, torch._C._remove_worker_pids = lambda *_: None, lambda *_: None
            weir.watch(loader := Loader(Data(), batch_size=4, num_workers=2), every=0)
            for epoch in range(2): print([batch[:, 0].tolist()[0] for batch in loader])
            for batch in weir.watch(DataLoader(Data(), batch_size=4, num_workers=1), every=0, name="next"): pass
            print(weir.table())
        """)
        self.assertEqual(out.split("\n")[:2], [str([4.0 * i for i in range(8)])] * 2)
        self.assertEqual(err.count("a worker is not watched: it is a thread of the training process"), 1, err)
        self.assertIn("loader next", out)

    def test_loader_in_the_items_of_another_one(self):
        out, _ = run("""
            inner = weir.watch(DataLoader(Data(6), batch_size=2), every=0, name="inner")
            class Outer(Data):
                def __getitem__(self, i):
                    for batch in inner: pass
                    open("data.bin").read()
                    return super().__getitem__(i)
            open("data.bin", "w").close()
            for batch in weir.watch(DataLoader(Outer(12), batch_size=4), name="outer"): pass
            print("OUTER")
            print(weir._watch.session().text(0, True, "en", 0), "END")
        """)
        outer, inner = out[:out.index("END")].split("OUTER")
        self.assertEqual((calls(outer)["01_getitem"], calls(outer)["03_read"]), (12, 12), out)
        self.assertEqual((calls(inner)["01_getitem"], calls(inner).get("03_read")), (72, None), out)

    def test_ranks_without_a_store(self):
        out, err = run("""
            for batch in weir.watch(DataLoader(Data(), batch_size=4)): pass
        """, RANK="0", WORLD_SIZE="2")
        self.assertRegex(err, "no table over ranks during the run: MASTER_ADDR is not set; `weir report` compares")
        self.assertIn("01_getitem", out)

    def test_others_run_while_rank_0_waits(self):
        """For the last figures of a rank that sends none."""
        out, _ = run("""
            import threading
            from weir import _watch_ranks
            store = torch.distributed.TCPStore("127.0.0.1", 0, 2, is_master=True, wait_for_workers=False)
            os.environ.update(RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(store.port))
            _watch_ranks._LAST_S = 1.0
            for batch in weir.watch(DataLoader(Data(), batch_size=4)): pass
            main, seen, ended = threading.get_ident(), [], threading.Event()
            def look():
                while not ended.wait(0.02):
                    frame = sys._current_frames()[main]
                    while frame is not None and frame.f_code is not _watch_ranks.Ranks.end.__code__: frame = frame.f_back
                    seen.append(frame is not None)
            thread = threading.Thread(target=look)
            thread.start()
            weir._watch.session().end_ranks()
            ended.set()
            thread.join()
            print("SEEN", sum(seen))
        """)
        self.assertIn("2 ranks, ", out)
        self.assertGreater(int(out[out.index("SEEN") + 4:].split()[0]), 3, out)


if __name__ == "__main__":
    unittest.main()
