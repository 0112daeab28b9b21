"""JAX imports batches through DLPack without a copy. In a separate process, because JAX starts threads."""
import importlib.util
import subprocess
import sys
import unittest

import common

PROGRAM = """
import sys, jax, numpy, weir
with weir.Loader(sys.argv[1], batch_size=4, tensors="array") as loader:
    batch = next(iter(loader))
names = sorted(batch)
for key in names:
    array = batch.pop(key)
    seen = jax.dlpack.from_dlpack(array)
    address = array.__array_interface__["data"][0]
    assert seen.unsafe_buffer_pointer() == address, (key, hex(seen.unsafe_buffer_pointer()), hex(address))
    dtype = "uint8" if array.dtype == "bool" else array.dtype  # JAX requests no version; unversioned DLPack has no bool
    assert seen.shape == array.shape and seen.dtype == dtype, key
    copy = numpy.array(array)
    del array
    assert numpy.array_equal(numpy.asarray(seen), copy), key
print("same memory:", ", ".join(names))
"""


@unittest.skipUnless(importlib.util.find_spec("jax"), "jax is not installed")
class Jax(common.Data):
    def test_same_memory(self):
        done = subprocess.run([sys.executable, "-c", PROGRAM, self.data], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "same memory: action, image, is_pad, qpos\n")


if __name__ == "__main__":
    unittest.main()
