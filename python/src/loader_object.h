/* loader_object.h: the class that weir.Loader is made of. */
#ifndef WEIR_PYTHON_SRC_LOADER_OBJECT_H
#define WEIR_PYTHON_SRC_LOADER_OBJECT_H

#include "python/src/py.h"

int weir_loader_object_begin(PyObject *module);

#endif
