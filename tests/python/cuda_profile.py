"""weir.profile on the fake GPU: a loader's GPU work, and fork()."""
import subprocess
import sys

import cuda_batches
import test_profile
import weir

BOTH = [weir.ProfilerActivity.CPU, weir.ProfilerActivity.CUDA]


class Trace(cuda_batches.Cuda, test_profile.Profiles):
    def test_loader(self):
        """The trace contains the steps, and the loader's copies and kernels with the calls that queued them."""
        with self.loader() as loader, weir.profile(
                activities=BOTH, schedule=weir.schedule(wait=0, warmup=1, active=5, repeat=1)) as prof:
            for batch in loader:
                with weir.stage("20_train_forward_pass"):
                    del batch
                prof.step()
        self.assertEqual(self.steps(prof), [1, 2, 3, 4, 5])
        ranges = self.ranges(prof)
        self.assertIn(test_profile.WAIT, {event["name"] for event in ranges})
        calls = {event["args"]["correlation"]: event for event in ranges if event["cat"] == "cuda_runtime"}
        pixels = 4 * 2 * 3 * 48 * 64
        copies = [event for event in ranges if event["cat"] == "gpu_memcpy" and event["args"]["bytes"] == pixels]
        kernels = [event for event in ranges if event["cat"] == "kernel" and event["name"] == "prepare"]
        for events, name, call in ((copies, "Memcpy HtoD (Pinned -> Device)", "cudaMemcpyAsync"),
                                   (kernels, "prepare", "cudaLaunchKernel")):
            self.assertGreaterEqual(len(events), 2, "of 5 batches, 3 of which may have been prefetched")
            for event in events:
                self.assertEqual((event["name"], event["args"]["device"]), (name, 0))
            queued = [(calls[event["args"]["correlation"]], event) for event in events
                      if event["args"]["correlation"] in calls]  # the others were queued before recording began
            self.assertGreater(len(queued), 0)
            for queued_by, event in queued:
                self.assertEqual(queued_by["name"], call)
                self.assertLessEqual(queued_by["ts"], event["ts"])


class Fork(cuda_batches.Cuda):
    CODE = """if True:
        import os, sys, warnings
        import weir
        both = [weir.ProfilerActivity.CPU, weir.ProfilerActivity.CUDA]

        def record(activities, name):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                with weir.profile(activities=activities) as prof, weir.record_function(name):
                    pass
            assert [row.key for row in prof.key_averages()] == [name]
            return [str(w.message) for w in seen]

        with weir.profile(activities=eval(sys.argv[1])) as parents:
            child = os.fork()
            if child == 0:
                try:
                    parents.step()
                    parents.stop()
                    print(*record(None, "one"), *record(both, "two"), sep="\\n")
                    weir.Loader(sys.argv[2], device="cuda", tensors="array")
                except weir.Error as error:
                    print(error, flush=True)
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(child, 0)[1] == 0
            with weir.record_function("parent"):
                pass
        assert "parent" in [row.key for row in parents.key_averages()]
        assert record(both, "again") == []
    """

    def test_child_records_its_cpu(self):
        """It warns only if the GPU was requested."""
        for activities in ("None", "both"):
            done = subprocess.run([sys.executable, "-c", self.CODE, activities, self.data], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            why = "the parent process used the GPU before fork()"
            recorded, opened = done.stdout.splitlines()
            self.assertTrue(recorded.startswith(f"GPU work is not recorded: {why}"), recorded)
            self.assertTrue(opened.startswith(f"device='cuda': {why}"), opened)
