/* totals.h: which rank this process is, and what its stages took, as Python's numbers. */
#ifndef WEIR_PYTHON_SRC_TOTALS_H
#define WEIR_PYTHON_SRC_TOTALS_H

#include "python/src/py.h"

int weir_totals_begin(PyObject *module);

#endif
