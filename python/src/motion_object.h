/* motion_object.h: weir._weir._Motion, a library of motion clips that is sampled: the C side of weir.MotionLibrary. */
#ifndef WEIR_PYTHON_SRC_MOTION_OBJECT_H
#define WEIR_PYTHON_SRC_MOTION_OBJECT_H

#include "python/src/py.h"

int weir_motion_object_begin(PyObject *module);

#endif
