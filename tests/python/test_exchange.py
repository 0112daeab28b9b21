"""Exports of weir.Array: DLPack, the buffer protocol, __array_interface__."""
import ctypes
import unittest
import zlib

import common
import numpy as np
import weir

try:
    import torch
except ImportError:
    torch = None


def capsule_name(capsule):
    name = ctypes.pythonapi.PyCapsule_GetName
    name.argtypes, name.restype = [ctypes.py_object], ctypes.c_char_p
    return name(capsule)


class Exchange(common.Data):
    def setUp(self):
        with weir.Loader(self.data, batch_size=4, tensors="array") as loader:
            self.batch = next(iter(loader))
        with weir.Loader(self.data, batch_size=4, tensors="array", keys="lerobot") as loader:
            self.strided = next(iter(loader))["observation.images.wrist"]

    def address(self, array):
        return array.__array_interface__["data"][0]

    def test_numpy(self):
        for key, array in {**self.batch, "strided": self.strided}.items():
            seen = np.asarray(array)
            self.assertEqual(seen.ctypes.data, self.address(array))
            self.assertEqual((seen.shape, seen.strides, seen.dtype.name, seen.nbytes),
                             (array.shape, array.strides, array.dtype, array.nbytes), key)
            seen[...] = 1
            self.assertTrue((np.asarray(array) == 1).all())

    def test_numpy_dlpack(self):
        for array in (self.batch["image"], self.batch["qpos"], self.strided):
            seen = np.from_dlpack(array)
            self.assertEqual(seen.ctypes.data, self.address(array))
            self.assertEqual(seen.strides, array.strides)
            np.testing.assert_array_equal(seen, np.asarray(array))

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_torch_dlpack(self):
        for array in (self.batch["image"], self.batch["qpos"], self.strided):
            seen = torch.from_dlpack(array)
            self.assertEqual(seen.data_ptr(), self.address(array))
            np.testing.assert_array_equal(seen.numpy(), np.asarray(array))

    def test_buffer(self):
        image = self.batch["image"]
        view = memoryview(image)
        self.assertEqual((view.shape, view.format, view.nbytes, view.readonly, view.c_contiguous),
                         (image.shape, "B", image.nbytes, False, True))
        self.assertEqual(memoryview(self.batch["is_pad"]).format, "?")
        self.assertEqual(bytes(view), np.asarray(image).tobytes())
        strided = memoryview(self.strided)
        self.assertFalse(strided.c_contiguous)
        self.assertEqual(strided.tobytes(), np.asarray(self.strided).tobytes())
        with self.assertRaises(BufferError):
            zlib.crc32(self.strided)

    def test_capsules(self):
        array = self.batch["image"]
        for version, name in [(None, b"dltensor"), ((0, 8), b"dltensor"), ((1, 0), b"dltensor_versioned"),
                              ((2, 3), b"dltensor_versioned")]:
            self.assertEqual(capsule_name(array.__dlpack__(max_version=version)), name)
        self.assertEqual(array.__dlpack_device__(), (1, 0))
        self.assertEqual(capsule_name(array.__dlpack__(stream=None, dl_device=(1, 0), copy=False)), b"dltensor")

    def test_versioned(self):
        """The structure of DLPack 1.0, field by field."""
        for copy in (None, True):
            array = self.batch["is_pad"]
            capsule = array.__dlpack__(max_version=(1, 1), copy=copy)
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
            at = pointer(capsule, b"dltensor_versioned")
            major, minor = (ctypes.c_uint32 * 2).from_address(at)
            flags = ctypes.c_uint64.from_address(at + 24).value
            data = ctypes.c_uint64.from_address(at + 32).value
            device, number, ndim = (ctypes.c_int32 * 3).from_address(at + 40)
            code, bits = (ctypes.c_uint8 * 2).from_address(at + 52)
            shape = ctypes.c_uint64.from_address(at + 56).value
            self.assertEqual((major, minor, flags, device, number, ndim, code, bits),
                             (1, 0, 2 if copy else 0, 1, 0, 2, 6, 8))
            self.assertEqual(data == self.address(array), not copy)
            self.assertEqual(tuple((ctypes.c_int64 * 2).from_address(shape)), array.shape)

    def test_copy(self):
        for array in (self.batch["image"], self.strided):
            class Copied:
                def __dlpack__(self, stream=None):
                    return array.__dlpack__(copy=True)

                def __dlpack_device__(self):
                    return array.__dlpack_device__()
            before = np.asarray(array).copy()
            copied = np.from_dlpack(Copied())
            np.asarray(array)[...] = 0
            np.testing.assert_array_equal(copied, before)
            self.assertTrue(copied.flags.c_contiguous)

    def test_refused(self):
        array = self.batch["image"]
        for error, options in [(ValueError, {"stream": 1}), (ValueError, {"stream": -1}),
                               (BufferError, {"dl_device": (2, 0)}), (TypeError, {"max_version": 1}),
                               (TypeError, {"max_version": ("1", 0)}), (TypeError, {"other": 1})]:
            with self.subTest(options=options), self.assertRaises(error):
                array.__dlpack__(**options)
        with self.assertRaises(TypeError):
            weir.Array()

    def test_items(self):
        image = self.batch["image"]
        self.assertEqual(len(image), 4)
        np.testing.assert_array_equal(np.asarray(image[2][1]), np.asarray(image)[2, 1])
        self.assertEqual([part.shape for part in image], [image.shape[1:]] * 4)
        for index in (4, -5):
            with self.assertRaises(IndexError):
                image[index]
        self.assertEqual(repr(image), "weir.Array(shape=(4, 2, 3, 48, 64), dtype='uint8')")


if __name__ == "__main__":
    unittest.main()
