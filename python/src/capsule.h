/* capsule.h: arrays as DLPack capsules. */
#ifndef WEIR_PYTHON_SRC_CAPSULE_H
#define WEIR_PYTHON_SRC_CAPSULE_H

#include "python/src/array.h"

/* A capsule of the form before version 1, which knows no bool: it says uint8. On a GPU the caller sees to the streams.
 * A new reference, which holds one of the memory; NULL with an exception. */
PyObject *weir_array_capsule(const struct weir_view_of *view);

/* weir.Array.__dlpack__ and __dlpack_device__. */
PyObject *weir_array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *weir_array_dlpack_device(PyObject *self, PyObject *unused);

#endif
