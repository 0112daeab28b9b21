/* weir._weir._Motion, a library of motion clips. This is the C part of weir.MotionLibrary. */
#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion.h"
#include "pipeline/gpu/gpu.h"
#include "python/src/array.h"
#include "python/src/gpu_timing.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4, LINE_BYTES = 64 };

/* Memory for the results of one call. It is reused when no array refers to it any more. */
struct block {
    struct weir_lent *lent; /* NULL: not allocated */
    char *memory;
    size_t bytes;
};

struct motion_object {
    PyObject_HEAD struct weir_motion *motion;
    struct weir_device *device; /* NULL: the CPU */
    PyObject *from_dlpack;      /* PyTorch's from_dlpack; NULL: results are weir.Array */
    int fork_depth;
    pthread_mutex_t lock; /* serialises calls, because they share motion and blocks */
    struct block blocks[BLOCKS];
    int next_block; /* next block to replace when all are in use */
};

static PyObject *motion_type;

/* ---- open and close ---- */

static void close_motion(struct motion_object *self)
{
    if (self->motion && self->fork_depth == weir_fork_depth()) {
        for (int i = 0; i < BLOCKS; i++)
            if (self->blocks[i].lent)
                weir_lent_drop(self->blocks[i].lent);
        weir_motion_close(&self->motion);
        weir_device_close(&self->device);
    }
    /* In a child of fork() nothing is freed, because the resources belong to the parent process. */
    memset(self->blocks, 0, sizeof self->blocks);
    self->motion = NULL;
    self->device = NULL;
}

static PyObject *list_names(char (*names)[WEIR_MOTION_NAME], size_t n)
{
    if (!names)
        Py_RETURN_NONE;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *name = PyUnicode_DecodeUTF8(names[i], (Py_ssize_t)strlen(names[i]), "replace");
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* Returns a list with (name, frames, fps, duration, loop) for each clip. */
static PyObject *list_clips(const struct weir_motion_clips *clips)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < clips->clips; i++) {
        const struct weir_motion_clip *clip = &clips->clip[i];
        PyObject *name = PyUnicode_DecodeUTF8(clip->name, (Py_ssize_t)strlen(clip->name), "replace");
        PyObject *row = name ? Py_BuildValue("(NnddN)", name, (Py_ssize_t)clip->frames, clip->fps, clip->duration_s,
                                             PyBool_FromLong(clip->loop))
                             : NULL;
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *describe(const struct weir_motion_clips *clips)
{
    PyObject *rows = list_clips(clips), *dofs = list_names(clips->dof_names, clips->dofs),
             *bodies = list_names(clips->body_names, clips->bodies), *about = NULL;
    if (rows && dofs && bodies)
        about = Py_BuildValue("(OOOnn)", rows, dofs, bodies, (Py_ssize_t)clips->dofs, (Py_ssize_t)clips->bodies);
    Py_XDECREF(rows);
    Py_XDECREF(dofs);
    Py_XDECREF(bodies);
    return about;
}

/* Arguments of _open. All pointers are borrowed. */
struct opening {
    const char **paths;
    Py_ssize_t n;
    struct weir_motion_read_options read;
    int gpu, threads;
};

/* Runs without the GIL. */
static int open_motion(struct motion_object *self, const struct opening *o, struct weir_motion_clips **clips,
                       struct weir_err *err)
{
    struct weir_motion_config config;
    int rc = o->gpu < 0 ? 0 : weir_motion_gpu_check(o->gpu, err);
    if (rc == 0 && o->gpu >= 0)
        rc = weir_device_open(&self->device, o->gpu, err);
    if (rc == 0)
        rc = weir_motion_read_paths(clips, o->paths, (size_t)o->n, &o->read, err);
    if (rc < 0)
        return rc;
    weir_motion_config_default(&config);
    config.clips = *clips;
    config.variant = WEIR_MOTION_FUSED;
    config.gpu = o->gpu;
    config.threads = o->threads;
    return weir_motion_open(&self->motion, &config, err);
}

static int take_paths(PyObject *tuple, struct opening *o)
{
    o->n = PyTuple_Size(tuple);
    o->paths = calloc((size_t)o->n + 1, sizeof *o->paths);
    if (!o->paths) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < o->n; i++)
        if (!(o->paths[i] = PyBytes_AsString(PyTuple_GetItem(tuple, i))))
            return -1;
    return 0;
}

/* _open(paths, root_body, key_bodies, loop, gpu, threads, from_dlpack) returns the description made by describe().
 * The argument paths is a tuple of bytes. */
static PyObject *motion_open(PyObject *object, PyObject *args)
{
    struct motion_object *self = (struct motion_object *)object;
    struct opening o = {0};
    struct weir_motion_clips *clips = NULL;
    struct weir_err err = WEIR_ERR_NONE;
    PyObject *paths, *from_dlpack, *about = NULL;
    int loop, rc = -EINVAL;
    if (!PyArg_ParseTuple(args, "O!zziiiO:_open", &PyTuple_Type, &paths, &o.read.root_body, &o.read.key_bodies, &loop,
                          &o.gpu, &o.threads, &from_dlpack))
        return NULL;
    if (self->motion)
        return PyErr_Format(weir_py_error, "the motion library is already open");
    o.read.loop = (enum weir_motion_loop)loop;
    if (take_paths(paths, &o) == 0 && (o.gpu < 0 || weir_gpu_use("weir.MotionLibrary(device='cuda')") == 0)) {
        Py_BEGIN_ALLOW_THREADS rc = open_motion(self, &o, &clips, &err);
        Py_END_ALLOW_THREADS
    }
    self->fork_depth = weir_fork_depth();
    self->from_dlpack = from_dlpack == Py_None ? NULL : Py_NewRef(from_dlpack);
    if (rc == 0)
        about = describe(clips);
    else if (!PyErr_Occurred())
        weir_py_raise(rc, &err);
    weir_motion_clips_free(&clips);
    free(o.paths);
    if (!self->motion)
        weir_device_close(&self->device);
    return about;
}

static PyObject *motion_close(PyObject *object, PyObject *unused)
{
    (void)unused;
    struct motion_object *self = (struct motion_object *)object;
    if (self->fork_depth != weir_fork_depth()) { /* another thread may have held the lock during fork() */
        close_motion(self);
        Py_RETURN_NONE;
    }
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    close_motion(self);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static void motion_free(PyObject *object)
{
    struct motion_object *self = (struct motion_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    close_motion(self);
    pthread_mutex_destroy(&self->lock);
    Py_XDECREF(self->from_dlpack);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *motion_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)args, (void)keywords;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *object = allocate(type, 0);
    if (object)
        pthread_mutex_init(&((struct motion_object *)object)->lock, NULL);
    return object;
}

/* ---- a call ---- */

/* Byte offsets of the arrays in a block. */
struct layout {
    size_t results[WEIR_MOTION_RESULTS], clips, times, bytes;
    int widths[WEIR_MOTION_RESULTS]; /* numbers per query in each result */
};

static size_t add_part(struct layout *layout, size_t n, size_t width, size_t size)
{
    size_t begin = layout->bytes, bytes;
    if (begin == SIZE_MAX || __builtin_mul_overflow(n, width * size, &bytes) ||
        __builtin_add_overflow(bytes, WEIR_MOTION_SPARE * size + LINE_BYTES, &bytes) ||
        __builtin_add_overflow(begin, bytes / LINE_BYTES * LINE_BYTES, &layout->bytes))
        layout->bytes = SIZE_MAX;
    return begin;
}

/* with_queries: the block also contains clips and times, which are copied from the host to the GPU. */
static struct layout plan(const struct motion_object *self, size_t envs, size_t steps, bool with_queries)
{
    struct layout layout = {0};
    for (int i = 0; i < WEIR_MOTION_RESULTS; i++) {
        layout.widths[i] = weir_motion_result_width(self->motion, i);
        layout.results[i] = add_part(&layout, envs * steps, (size_t)layout.widths[i], sizeof(float));
    }
    if (with_queries) {
        layout.clips = add_part(&layout, envs, 1, sizeof(int64_t));
        layout.times = add_part(&layout, envs * steps, 1, sizeof(float));
    }
    return layout;
}

/* Returns a new reference to a block of memory that no array refers to. If "again" is true, reuses a kept block, or
 * keeps a new block in place of an older one. The memory of the older block is freed with the last array that refers to
 * it. If "again" is false, allocates a block that is not kept. The caller must hold the lock. */
static struct weir_lent *take_block(struct motion_object *self, size_t bytes, bool again, char **memory,
                                    struct weir_err *err)
{
    struct block *block = NULL;
    for (int i = 0; i < BLOCKS && again; i++)
        if (self->blocks[i].lent && self->blocks[i].bytes >= bytes && weir_lent_is_free(self->blocks[i].lent))
            block = &self->blocks[i];
    if (!block) {
        void *fresh;
        struct weir_lent *lent = weir_lent_new_memory(bytes, self->device, &fresh, err);
        if (!lent)
            return NULL;
        if (!again) {
            *memory = fresh;
            return lent;
        }
        block = &self->blocks[self->next_block];
        self->next_block = (self->next_block + 1) % BLOCKS;
        if (block->lent)
            weir_lent_drop(block->lent);
        *block = (struct block){lent, fresh, bytes};
    }
    weir_lent_take(block->lent);
    *memory = block->memory;
    return block->lent;
}

/* One call to _sample: its queries and the block for its results. */
struct call {
    size_t envs, steps;
    bool has_steps;         /* true: times are [envs][steps]; false: [envs] */
    const int64_t *clips;   /* in device or host memory */
    const float *times;     /* in device or host memory */
    bool on_device, finish; /* whether queries are in GPU memory; whether the call waits for its results */
    struct layout layout;
    struct weir_lent *lent;
    char *memory;
};

static int copy_queries(struct motion_object *self, struct call *c, struct weir_err *err)
{
    void *stream = weir_motion_stream(self->motion), *clips = c->memory + c->layout.clips,
         *times = c->memory + c->layout.times;
    int rc = weir_motion_check_clips(self->motion, c->clips, c->envs, err);
    if (rc == 0)
        rc = weir_device_copy_in(self->device, clips, c->clips, c->envs * sizeof *c->clips, stream, err);
    if (rc == 0)
        rc = weir_device_copy_in(self->device, times, c->times, c->envs * c->steps * sizeof *c->times, stream, err);
    c->clips = clips;
    c->times = times;
    return rc;
}

/* Runs without the GIL and with the lock held. Sets c->lent to a reference that the caller must drop. */
static int sample_locked(struct motion_object *self, struct call *c, struct weir_err *err)
{
    if (!self->motion)
        return weir_err_set(err, -EBADF, "the motion library is closed");
    bool copies = self->device && !c->on_device;
    c->layout = plan(self, c->envs, c->steps, copies);
    if (c->layout.bytes == SIZE_MAX)
        return weir_err_set(err, -ENOMEM, "out of memory for the results of %zu queries", c->envs * c->steps);
    /* On a GPU, blocks are reused only for PyTorch, because other consumers may still read a block after its array is
     * freed. */
    c->lent = take_block(self, c->layout.bytes, !self->device || self->from_dlpack, &c->memory, err);
    int rc = !c->lent ? err->code : copies ? copy_queries(self, c, err) : 0;
    if (rc < 0)
        return rc;
    struct weir_motion_queries queries = {
        .envs = c->envs, .steps = (int)c->steps, .clips = c->clips, .times = c->times};
    for (int i = 0; i < WEIR_MOTION_RESULTS; i++)
        queries.results[i] = (float *)(void *)(c->memory + c->layout.results[i]);
    rc = weir_motion_sample(self->motion, &queries, err);
    return rc == 0 && c->finish ? weir_motion_finish(self->motion, err) : rc;
}

/* Uses only the block, because another thread may have closed the library. */
static PyObject *result_of(const struct call *c, int result, PyObject *from_dlpack)
{
    struct weir_view_of view = {.lent = c->lent,
                                .data = c->memory + c->layout.results[result],
                                .dtype = WEIR_DTYPE_F32,
                                .gpu = weir_device_number(weir_lent_device(c->lent))};
    bool bodies = result == WEIR_MOTION_KEY_BODY_POS_B;
    view.shape[view.ndim++] = (int64_t)c->envs;
    if (c->has_steps)
        view.shape[view.ndim++] = (int64_t)c->steps;
    view.shape[view.ndim++] = c->layout.widths[result] / (bodies ? 3 : 1);
    if (bodies)
        view.shape[view.ndim++] = 3;
    weir_view_dense_strides(&view, view.strides);
    if (!from_dlpack)
        return weir_array_new(&view);
    PyObject *capsule = weir_array_capsule(&view);
    PyObject *tensor = capsule ? PyObject_CallFunctionObjArgs(from_dlpack, capsule, NULL) : NULL;
    Py_XDECREF(capsule);
    return tensor;
}

static PyObject *results_of(const struct call *c, PyObject *from_dlpack)
{
    PyObject *results = PyTuple_New(WEIR_MOTION_RESULTS);
    for (int i = 0; results && i < WEIR_MOTION_RESULTS; i++) {
        PyObject *result = result_of(c, i, from_dlpack);
        if (!result || PyTuple_SetItem(results, i, result) < 0)
            Py_CLEAR(results);
    }
    return results;
}

static int check(const struct motion_object *self)
{
    if (self->motion && self->fork_depth != weir_fork_depth())
        PyErr_SetString(weir_py_error, "the motion library was opened before fork(), and its threads do not exist in "
                                       "this process; open it in the process that uses it");
    else if (!self->motion)
        PyErr_SetString(weir_py_error, "the motion library is closed");
    else
        return 0;
    return -1;
}

/* _sample(clips, times, envs, steps, on_device) returns a tuple of nine results. If steps is 0, times are [envs]. With
 * on_device, clips and times are addresses in GPU memory, and the caller must have made _stream wait until both are
 * written. */
static PyObject *motion_sample(PyObject *object, PyObject *args)
{
    struct motion_object *self = (struct motion_object *)object;
    struct weir_err err = WEIR_ERR_NONE;
    PyObject *clips, *times, *results = NULL;
    Py_buffer clips_buffer = {0}, times_buffer = {0};
    Py_ssize_t envs, steps;
    int on_device, rc = -EINVAL;
    if (!PyArg_ParseTuple(args, "OOnnp:_sample", &clips, &times, &envs, &steps, &on_device) || check(self) < 0)
        return NULL;
    struct call c = {.envs = (size_t)envs, .steps = (size_t)(steps ? steps : 1), .has_steps = steps > 0};
    size_t queries;
    if (envs < 1 || steps < 0 || steps > INT32_MAX || __builtin_mul_overflow(c.envs, c.steps, &queries) ||
        queries > SIZE_MAX / 1024)
        return PyErr_Format(PyExc_ValueError,
                            "%zd environments with %zd times each: use at least one environment and one time", envs,
                            steps);
    c.on_device = on_device;
    c.finish = self->device && !(on_device && self->from_dlpack);
    if (weir_py_numbers(clips, &clips_buffer, "ql", c.envs * sizeof(int64_t), "clips", (const void **)&c.clips) == 0 &&
        weir_py_numbers(times, &times_buffer, "f", queries * sizeof(float), "times", (const void **)&c.times) == 0) {
        Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
        rc = sample_locked(self, &c, &err);
        pthread_mutex_unlock(&self->lock);
        Py_END_ALLOW_THREADS if (rc < 0) weir_py_raise(rc, &err);
    }
    if (rc == 0)
        results = results_of(&c, self->from_dlpack);
    if (c.lent)
        weir_lent_drop(c.lent);
    PyBuffer_Release(&clips_buffer);
    PyBuffer_Release(&times_buffer);
    return results;
}

static PyObject *motion_stream(PyObject *object, void *unused)
{
    (void)unused;
    struct motion_object *self = (struct motion_object *)object;
    return check(self) < 0 ? NULL : PyLong_FromVoidPtr(weir_motion_stream(self->motion));
}

static PyObject *motion_engine(PyObject *object, void *unused)
{
    (void)unused;
    struct motion_object *self = (struct motion_object *)object;
    return check(self) < 0 ? NULL : PyUnicode_FromString(weir_motion_engine(self->motion));
}

static PyObject *motion_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(!((struct motion_object *)object)->motion);
}

static PyObject *result_names(void)
{
    PyObject *names = PyTuple_New(WEIR_MOTION_RESULTS);
    for (int i = 0; names && i < WEIR_MOTION_RESULTS; i++) {
        PyObject *name = PyUnicode_FromString(weir_motion_result_name(i));
        if (!name || PyTuple_SetItem(names, i, name) < 0)
            Py_CLEAR(names);
    }
    return names;
}

int weir_motion_object_begin(PyObject *module); /* called through the macro WEIR_EXTRA_PYTHON */

int weir_motion_object_begin(PyObject *module)
{
    static PyMethodDef methods[] = {{"_open", motion_open, METH_VARARGS, NULL},
                                    {"_sample", motion_sample, METH_VARARGS, NULL},
                                    {"close", motion_close, METH_NOARGS,
                                     "close($self)\n--\n\nStops the threads. Tensors already returned stay valid."},
                                    {0}};
    static PyGetSetDef properties[] = {
        {"closed", motion_closed, NULL, "Whether the library is closed.", NULL},
        {"engine", motion_engine, NULL, "Name of the engine, e.g. \"2 threads, AVX2\" or a GPU.", NULL},
        {"_stream", motion_stream, NULL, NULL, NULL},
        {0}};
    static PyType_Slot slots[] = {{Py_tp_new, motion_new},
                                  {Py_tp_dealloc, motion_free},
                                  {Py_tp_methods, methods},
                                  {Py_tp_getset, properties},
                                  {0, NULL}};
    PyObject *names = result_names();
    int rc = names ? PyModule_AddObjectRef(module, "_motion_results", names) : -1;
    Py_XDECREF(names);
    return rc < 0 ? rc
                  : weir_py_add_type(module, "weir._weir._Motion", sizeof(struct motion_object), Py_TPFLAGS_BASETYPE,
                                     slots, &motion_type);
}
