/* totals.h: what the stages of this process took, as a table and as Python's numbers, and which rank it is. */
#ifndef WEIR_PYTHON_SRC_TOTALS_H
#define WEIR_PYTHON_SRC_TOTALS_H

#include "python/src/py.h"

int weir_totals_begin(PyObject *module);
/* A table was printed: the next one without a loader covers the time from here on. 0 or a negative code. */
int weir_totals_table_printed(void);

#endif
