/* elsewhere.h: stages that are timed in processes forked from this one, such as DataLoader's workers. */
#ifndef WEIR_PYTHON_SRC_ELSEWHERE_H
#define WEIR_PYTHON_SRC_ELSEWHERE_H

#include "python/src/py.h"

int weir_elsewhere_begin(PyObject *module);
/* A session was opened in this process: 0, or -1 with an exception. */
int weir_elsewhere_opened(void);

#endif
