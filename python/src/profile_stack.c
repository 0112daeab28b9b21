/* Represents a thread's stack of Python functions as a number. Reading a frame takes about 100 ns. The text of a stack
 * is built only once. */
#include "python/src/profile_parts.h"
#include "python/src/py.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES_MAX = 32, TEXT_MAX = 8192 };

struct frame {
    PyObject *code; /* borrowed; kept alive by the running frame or by codes */
    int64_t line;
};

static PyObject *numbers; /* dict from an array of struct frame, as bytes, to the number of the stack */
static PyObject *codes;   /* list that keeps code objects alive, so that their addresses remain unique */
static PyObject *f_back, *co_filename, *co_qualname;

static bool begin(void)
{
    if (numbers)
        return true;
    f_back = PyUnicode_InternFromString("f_back");
    co_filename = PyUnicode_InternFromString("co_filename");
    co_qualname = PyUnicode_InternFromString("co_qualname");
    codes = PyList_New(0);
    numbers = f_back && co_filename && co_qualname && codes ? PyDict_New() : NULL;
    return numbers != NULL;
}

/* Reads the frames of the calling thread, innermost first. */
static int take_frames(struct frame *frames)
{
    int n = 0;
    PyObject *frame = (PyObject *)PyThreadState_GetFrame(PyThreadState_Get());
    while (frame && frame != Py_None && n < FRAMES_MAX) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        frames[n++] = (struct frame){code, PyFrame_GetLineNumber((PyFrameObject *)frame)};
        Py_DECREF(code);
        PyObject *back = PyObject_GetAttr(frame, f_back);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return n;
}

/* Appends "FILE(LINE): FUNCTION", except for frames of this package. Invalid characters in names are replaced, and
 * semicolons become colons. */
static void add_frame(char text[TEXT_MAX], const struct frame *frame)
{
    PyObject *file = PyObject_GetAttr(frame->code, co_filename), *name = PyObject_GetAttr(frame->code, co_qualname);
    PyObject *own_files = weir_py_own_files();
    bool own = file && own_files && PyUnicode_Tailmatch(file, own_files, 0, PY_SSIZE_T_MAX, -1) == 1;
    PyObject *line =
        file && name && !own ? PyUnicode_FromFormat("%U(%lld): %U", file, (long long)frame->line, name) : NULL;
    PyObject *bytes = line ? PyUnicode_AsEncodedString(line, "utf-8", "replace") : NULL;
    size_t used = strlen(text), length = bytes ? (size_t)PyBytes_Size(bytes) : 0;
    if (bytes && used + length + 2 < TEXT_MAX) {
        char *at = text + used + (used > 0);
        memcpy(at, PyBytes_AsString(bytes), length + 1);
        for (; *at; at++)
            *at = *at == ';' ? ':' : *at;
        if (used > 0)
            text[used] = ';';
    }
    Py_XDECREF(file);
    Py_XDECREF(name);
    Py_XDECREF(line);
    Py_XDECREF(bytes);
}

static uint32_t make_number(PyObject *key, const struct frame *frames, int n)
{
    char text[TEXT_MAX] = "";
    for (int i = 0; i < n; i++) {
        add_frame(text, &frames[i]);
        if (PyList_Append(codes, frames[i].code) < 0)
            return 0;
    }
    uint32_t stack = weir_stack_text(text);
    PyObject *number = PyLong_FromUnsignedLong(stack);
    int rc = number ? PyDict_SetItem(numbers, key, number) : -1;
    Py_XDECREF(number);
    return rc < 0 ? 0 : stack;
}

uint32_t weir_profile_stack(void)
{
    struct frame frames[FRAMES_MAX];
    int n = begin() ? take_frames(frames) : 0;
    PyObject *key = n > 0 ? PyBytes_FromStringAndSize((const char *)frames, n * (Py_ssize_t)sizeof *frames) : NULL;
    PyObject *known = key ? PyDict_GetItemWithError(numbers, key) : NULL;
    uint32_t stack = known ? (uint32_t)PyLong_AsUnsignedLong(known) : 0;
    if (key && !known && !PyErr_Occurred())
        stack = make_number(key, frames, n);
    Py_XDECREF(key);
    PyErr_Clear();
    return stack;
}
