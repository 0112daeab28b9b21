#include "python/src/gpu_timing.h"
#include "pipeline/gpu/gpu.h"
#include "pipeline/gpu/gpu_clocks.h"
#include "python/src/lent.h"

#include <errno.h>
#include <stdlib.h>

enum { GPUS_MAX = 16, DEEP = 32 };

/* Stages by GPU number. Each entry is opened once, under the interpreter's lock, and is never closed. */
static struct weir_gpu_stages *of_gpu[GPUS_MAX];
static int used_at = -1; /* weir_fork_depth of the process that uses GPUs; -1 if none does */
static bool warned;

/* Stages open on this thread, with the innermost one last. */
static __thread struct {
    int n;
    struct {
        int stage, gpu, call;
    } stack[DEEP];
} open_calls;

int weir_gpu_usable(struct weir_err *err)
{
    if (used_at < 0 || used_at == weir_fork_depth())
        return 0;
    return weir_err_set(err, -EPERM,
                        "the parent process used the GPU before fork(), so this process cannot use it; start "
                        "processes with spawn or forkserver");
}

int weir_gpu_use(const char *what)
{
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_gpu_usable(&err) < 0) {
        PyErr_Format(weir_py_error, "%s: %s", what, err.text);
        return -1;
    }
    used_at = weir_fork_depth();
    return 0;
}

int weir_gpu_timing_check(void)
{
    struct weir_err err = WEIR_ERR_NONE;
    int n;
    if (weir_gpu_use("stage(cuda=True)") < 0)
        return -1;
    if (weir_device_count(&n, &err) == 0)
        return 0;
    PyErr_Format(weir_py_error, "stage(cuda=True): %s", err.text);
    return -1;
}

/* Returns the stages of a GPU, opening them if needed, or NULL with an exception. */
static struct weir_gpu_stages *stages_of(long gpu)
{
    struct weir_device *device;
    struct weir_err err = WEIR_ERR_NONE;
    if (gpu < 0 || gpu >= GPUS_MAX)
        return (void *)PyErr_Format(weir_py_error, "stage(cuda=True) supports GPUs 0 to %d, not GPU %ld", GPUS_MAX - 1,
                                    gpu);
    if (of_gpu[gpu])
        return of_gpu[gpu];
    int rc = weir_device_open(&device, (int)gpu, &err);
    if (rc == 0) {
        rc = weir_gpu_stages_open(&of_gpu[gpu], device, &err);
        weir_device_close(&device);
    }
    (void)weir_py_check(rc, &err);
    return of_gpu[gpu];
}

/* Gets torch's current GPU and stream. Returns 0, or -1 with an exception. */
static int find_current(long *gpu, void **stream)
{
    PyObject *both = weir_py_call(WEIR_PY_CURRENT, NULL, NULL);
    if (!both)
        return -1;
    *gpu = PyTuple_Check(both) && PyTuple_Size(both) == 2 ? PyLong_AsLong(PyTuple_GetItem(both, 0)) : -1;
    *stream = *gpu >= 0 ? PyLong_AsVoidPtr(PyTuple_GetItem(both, 1)) : NULL;
    Py_DECREF(both);
    return PyErr_Occurred() ? -1 : 0;
}

static int warn_once(const struct weir_err *err)
{
    char text[sizeof err->text + 128];
    if (warned)
        return 0;
    warned = true;
    snprintf(text, sizeof text, "%s; further calls are not timed on the GPU until some of them have finished",
             err->text);
    return PyErr_WarnEx(PyExc_RuntimeWarning, text, 1);
}

int weir_gpu_timing_begin(int stage)
{
    long gpu;
    void *stream;
    struct weir_err err = WEIR_ERR_NONE;
    if (weir_gpu_use("stage(cuda=True)") < 0 || find_current(&gpu, &stream) < 0)
        return -1;
    struct weir_gpu_stages *stages = stages_of(gpu);
    if (!stages)
        return -1;
    if (open_calls.n == DEEP)
        return 0;
    int call = weir_gpu_stages_begin(stages, stage, stream, &err);
    if (call < 0)
        return call == -EAGAIN ? warn_once(&err) : weir_py_check(call, &err);
    open_calls.stack[open_calls.n].stage = stage;
    open_calls.stack[open_calls.n].gpu = (int)gpu;
    open_calls.stack[open_calls.n++].call = call;
    return 0;
}

/* Ends open calls until only n remain. In a child of fork(), the calls belong to the parent and are only removed. */
static void end_down_to(int n)
{
    while (open_calls.n > n) {
        int i = --open_calls.n; /* errors are ignored, because the next work on a lost GPU reports them */
        if (used_at == weir_fork_depth())
            weir_gpu_stages_end(of_gpu[open_calls.stack[i].gpu], open_calls.stack[i].call, NULL);
    }
}

void weir_gpu_timing_end(int stage)
{
    int i = open_calls.n - 1;
    while (i >= 0 && open_calls.stack[i].stage != stage)
        i--;
    if (i >= 0)
        end_down_to(i);
}

void weir_gpu_timing_end_thread(void)
{
    end_down_to(0);
}

struct weir_gpu_mark {
    struct weir_gpu_mark *next;
    int gpu, stage;
    struct weir_stage_stats stats;
};

typedef int each_fn(void *user, int gpu, int stage, const struct weir_stage_stats *stats);

static int for_each_stage(each_fn *each, void *user)
{
    struct weir_stage_stats stats;
    int rc = 0;
    if (used_at != weir_fork_depth())
        return 0;
    for (int i = 0; i < GPUS_MAX; i++)
        for (int stage = 0; of_gpu[i] && stage < WEIR_STAGE_MAX && rc == 0; stage++)
            if (weir_gpu_stages_read(of_gpu[i], stage, &stats, NULL) == 0 && stats.count > 0)
                rc = each(user, i, stage, &stats);
    return rc;
}

static int keep(void *user, int gpu, int stage, const struct weir_stage_stats *stats)
{
    struct weir_gpu_mark **first = user, *mark = malloc(sizeof *mark);
    if (!mark)
        return -ENOMEM;
    *mark = (struct weir_gpu_mark){*first, gpu, stage, *stats};
    *first = mark;
    return 0;
}

int weir_gpu_timing_mark(struct weir_gpu_mark **mark)
{
    weir_gpu_timing_unmark(mark);
    return for_each_stage(keep, mark);
}

void weir_gpu_timing_unmark(struct weir_gpu_mark **mark)
{
    while (*mark) {
        struct weir_gpu_mark *next = (*mark)->next;
        free(*mark);
        *mark = next;
    }
}

struct addition {
    struct weir_report_gpu *gpu;
    const struct weir_gpu_mark *then;
};

static int add_since(void *user, int gpu, int stage, const struct weir_stage_stats *stats)
{
    struct addition *addition = user;
    struct weir_stage_stats since = *stats;
    for (const struct weir_gpu_mark *then = addition->then; then; then = then->next)
        if (then->gpu == gpu && then->stage == stage)
            weir_stage_stats_subtract(&since, &then->stats);
    weir_report_gpu_add(addition->gpu, stage, &since);
    return 0;
}

void weir_gpu_timing_add(struct weir_report_gpu *gpu, const struct weir_gpu_mark *then)
{
    struct addition addition = {gpu, then};
    for_each_stage(add_since, &addition);
}
