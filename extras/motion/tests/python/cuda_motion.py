"""weir.MotionLibrary on the fake GPU: values, memory, forks."""
import gc
import multiprocessing

import numpy as np
from cuda_batches import fake, host
from test_motion import Clips

import weir


def in_child(library, answers):
    try:
        library.state([0], [0.0])
        answers.put("nothing was raised")
    except weir.Error as error:
        answers.put(str(error))


class Cuda(Clips):
    def test_as_on_the_host(self):
        with weir.MotionLibrary(self.folder, tensors="array") as on_host, \
                weir.MotionLibrary(self.folder, device="cuda:0", tensors="array") as library:
            for n, steps in ((1, 0), (33, 3), (1100, 0)):
                clips, times = self.queries(library, n, steps)
                wanted = on_host.state(clips, times)
                for name, got in library.state(clips, times)._asdict().items():
                    self.assertEqual((got.device, got.shape), ("cuda:0", getattr(wanted, name).shape))
                    np.testing.assert_array_equal(host(got), np.asarray(getattr(wanted, name)), name)
            with self.assertRaisesRegex(ValueError, "clips are numbered 0 to 2"):
                library.state([3], [0.0])

    def test_memory_goes_with_its_arrays(self):
        gc.collect()
        before = fake.weir_fake_used_bytes()
        library = weir.MotionLibrary(self.folder, device="cuda", tensors="array")
        clips, times = self.queries(library, 100)
        opened = fake.weir_fake_used_bytes()
        held = [library.state(clips, times) for _ in range(6)]
        self.assertGreater(fake.weir_fake_used_bytes(), opened)
        last = held[-1].dof_pos
        wanted = host(last).copy()
        del held
        library.close()
        np.testing.assert_array_equal(host(last), wanted)
        del last
        self.assertEqual(fake.weir_fake_used_bytes(), before)

    def test_fork(self):
        with weir.MotionLibrary(self.folder, device="cuda", tensors="array") as library:
            context = multiprocessing.get_context("fork")
            answers = context.Queue()
            child = context.Process(target=in_child, args=(library, answers))
            child.start()
            self.assertIn("fork()", answers.get())
            child.join()
            self.assertEqual(child.exitcode, 0)

    def test_devices_that_are_not_there(self):
        with self.assertRaisesRegex(weir.Error, "no GPU 7"):
            weir.MotionLibrary(self.folder, device="cuda:7", tensors="array")
