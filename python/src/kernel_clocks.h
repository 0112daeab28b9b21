/* kernel_clocks.h: clocks inside kernels from a buffer of the caller's: the C side of weir.kernel_clocks. */
#ifndef WEIR_PYTHON_SRC_KERNEL_CLOCKS_H
#define WEIR_PYTHON_SRC_KERNEL_CLOCKS_H

#include "python/src/py.h"

int weir_kernel_clocks_begin(PyObject *module);

#endif
