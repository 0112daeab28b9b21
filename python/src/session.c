#include "python/src/session.h"
#include "base/threads.h"
#include "python/src/gpu_timing.h"
#include "python/src/lent.h"
#include "python/src/profile_parts.h"
#include "weir/profiler.h"
#include "weir/recorder.h"
#include "weir/stages.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Changed only with the interpreter's lock held. */
static struct weir_recorder *session;
static int session_depth; /* weir_fork_depth when the session was opened */
static pthread_key_t thread_end;

/* A stage, which exists until the process ends, once per name and once more with cuda=True. It contains only a number,
 * so any thread can use it at any time. */
struct stage {
    PyObject_HEAD int number;
    bool gpu;
    int watched;         /* its number in the segment of weir.watch, -1 if not known */
    unsigned generation; /* that segment's */
};

static PyObject *stage_type;
static PyObject *stages[2]; /* dicts from name to stage: [0] without cuda=True, [1] with it */

/* Stages open on this thread, with the innermost one last. Stages nested deeper than STAGES_DEEP are only counted. */
enum { STAGES_DEEP = 64 };
static __thread struct {
    int n;
    int16_t numbers[STAGES_DEEP];
    bool watched[STAGES_DEEP];
} opened;

/* The functions that time stages for weir.watch, by their addresses; NULL without a watch. */
static struct {
    int (*stage)(const char *name, int kind);
    void (*begin)(int stage);
    void (*end)(void);
    unsigned generation; /* counts segments: each has numbers of its own */
} watch;

/* A stage that was open when its thread ended; -1 if none exists, -2 after a warning about one. */
static _Atomic int left_open = -1;

/* Attaches the thread and opens a zone around everything on it. The zone's self time is the thread's unattributed time,
 * so that the times of all stages add up to the thread's time. */
static void attach(void)
{
    const char *name = weir_thread_id() == getpid() ? "consumer" : "thread";
    if (weir_thread_attach(session, name, WEIR_ROLE_CONSUMER) < 0)
        return;
    weir_zone_begin(WEIR_STAGE_WORKER_LOOP);
    pthread_setspecific(thread_end, session);
}

static void on_thread_end(void *unused)
{
    int none = -1;
    weir_thread_detach();
    weir_history_end();
    weir_gpu_timing_end_thread();
    if (opened.n > 0 && session_depth == weir_fork_depth())
        atomic_compare_exchange_strong(&left_open, &none, opened.numbers[0]);
}

/* Returns 0, or -1 with an exception if warnings are errors. */
static int warn_of_left_open(void)
{
    int stage = atomic_load(&left_open);
    if (stage < 0)
        return 0;
    atomic_store(&left_open, -2);
    return PyErr_WarnFormat(
        PyExc_RuntimeWarning, 1,
        "a thread ended inside weir.stage('%s'), so the stage is counted up to the thread's end; exit "
        "stages, and close generators that are inside a stage, before the thread ends",
        weir_stage_info(stage)->name);
}

struct weir_recorder *weir_session(void)
{
    if (warn_of_left_open() < 0)
        return NULL;
    if (session && session_depth == weir_fork_depth() && weir_thread_self)
        return session;
    if (!session || session_depth != weir_fork_depth()) {
        if (weir_thread_self)
            weir_thread_detach(); /* leaves the parent's session and ends the stages open in it */
        weir_history_end();
        weir_history_reset();
        opened.n = 0;
        session_depth = weir_fork_depth();
        if (weir_recorder_open(&session) < 0) {
            PyErr_NoMemory();
            return NULL;
        }
        weir_totals_session_opened();
        weir_zone_cost_ns(); /* measures the cost of a zone before any stage runs */
        PyObject *done = weir_py_call(WEIR_PY_OPENED, NULL, NULL);
        Py_XDECREF(done);
        if (!done)
            return NULL;
    }
    if (!weir_thread_self)
        attach();
    return session;
}

int weir_py_lang(PyObject *name)
{
    if (!name || (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "en") == 0))
        return WEIR_LANG_EN;
    if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "zh") == 0)
        return WEIR_LANG_ZH;
    PyErr_Format(PyExc_ValueError, "lang must be 'en' or 'zh', not %.100R", name);
    return -1;
}

/* ---- stages ---- */

/* Returns whether the stage has begun in weir.watch. */
static bool watch_begin(struct stage *stage)
{
    if (!watch.begin)
        return false;
    if (stage->watched < 0 || stage->generation != watch.generation) {
        stage->watched = watch.stage(weir_stage_info(stage->number)->name, 0);
        stage->generation = watch.generation;
    }
    if (stage->watched >= 0)
        watch.begin(stage->watched);
    return stage->watched >= 0;
}

static PyObject *py_watch_stages(PyObject *module, PyObject *args)
{
    Py_ssize_t stage, begin, end;
    if (!PyArg_ParseTuple(args, "nnn", &stage, &begin, &end))
        return NULL;
    *(void **)&watch.stage = (void *)stage;
    *(void **)&watch.begin = (void *)begin;
    *(void **)&watch.end = (void *)end;
    watch.generation++;
    Py_RETURN_NONE;
}

static PyObject *stage_enter(PyObject *self, PyObject *unused)
{
    if ((!weir_thread_self || session_depth != weir_fork_depth()) && !weir_session())
        return NULL;
    struct stage *stage = (struct stage *)self;
    if (stage->gpu && weir_gpu_timing_begin(stage->number) < 0)
        return NULL;
    if (opened.n < STAGES_DEEP) {
        opened.numbers[opened.n] = (int16_t)stage->number;
        opened.watched[opened.n] = watch_begin(stage);
    }
    opened.n++;
    weir_zone_begin(stage->number);
    Py_INCREF(self);
    return self;
}

/* Ends the innermost stage with this name, and all stages inside it. Like a range, a stage can be exited out of order,
 * or on a thread that did not enter it. */
static PyObject *stage_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    const struct stage *stage = (struct stage *)self;
    int at = opened.n - 1;
    while (at >= 0 && at < STAGES_DEEP && opened.numbers[at] != stage->number)
        at--;
    if (at >= 0) {
        uint32_t stack = weir_profile_stack_here();
        for (; opened.n > at; opened.n--) {
            struct weir_zone_now zone = weir_zone_now();
            weir_zone_end();
            weir_history_closed(&zone);
            if (opened.n <= STAGES_DEEP && opened.watched[opened.n - 1])
                watch.end();
        }
        weir_stack_self = stack;
    }
    if (stage->gpu)
        weir_gpu_timing_end(stage->number);
    Py_RETURN_NONE;
}

PyObject *weir_py_decorated(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *function;
    if (PyTuple_Size(args) != 1 || (keywords && PyDict_Size(keywords) > 0))
        return PyErr_Format(PyExc_TypeError, "a %s decorates exactly one function",
                            Py_TYPE(self) == (PyTypeObject *)stage_type ? "stage" : "record_function");
    function = PyTuple_GetItem(args, 0);
    return weir_py_call(WEIR_PY_DECORATE, self, function);
}

/* Registers a stage's name and returns its number, or -1 with an exception. */
static int number_of(PyObject *name)
{
    const char *text = weir_py_name(name);
    if (!text)
        return -1;
    char *kept = strdup(text); /* the profiler uses it until the process ends */
    int number = kept ? weir_stage_register(kept, WEIR_KIND_WORK, true) : -ENOMEM;
    if (number == -ENOSPC)
        PyErr_Format(weir_py_error, "stage '%s': there are already %d names, the maximum; use fewer names", text,
                     WEIR_STAGE_MAX);
    else if (number < 0)
        PyErr_NoMemory();
    if (number < 0)
        free(kept);
    return number < 0 ? -1 : number;
}

/* Returns a new reference to the stage of this name, or NULL with an exception. */
static PyObject *stage_of(PyObject *name, bool gpu)
{
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "a stage's name must be a str, not %R", Py_TYPE(name));
    PyObject *known = PyDict_GetItemWithError(stages[gpu], name);
    if (known || PyErr_Occurred()) {
        Py_XINCREF(known);
        return known;
    }
    if (gpu && weir_gpu_timing_check() < 0)
        return NULL;
    known = PyDict_GetItemWithError(stages[!gpu], name);
    int number = known ? ((struct stage *)known)->number : number_of(name);
    struct stage *stage = number < 0 ? NULL : PyObject_New(struct stage, (PyTypeObject *)stage_type);
    if (!stage)
        return NULL;
    stage->number = number;
    stage->gpu = gpu;
    stage->watched = -1;
    stage->generation = 0;
    if (PyDict_SetItem(stages[gpu], name, (PyObject *)stage) < 0)
        Py_CLEAR(stage);
    return (PyObject *)stage;
}

static PyObject *py_stage(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    bool fits = n == 1 && (named == 0 ||
                           (named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "cuda") == 0));
    if (!fits) {
        PyErr_SetString(PyExc_TypeError, "stage accepts a name and optionally cuda=True or False");
        return NULL;
    }
    int gpu = named ? PyObject_IsTrue(args[1]) : 0;
    return gpu < 0 ? NULL : stage_of(args[0], gpu > 0);
}

static PyObject *py_log_timing(PyObject *module, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"", "", "elsewhere", NULL};
    PyObject *name;
    double seconds;
    int elsewhere = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "Od|$p:log_timing", keywords, &name, &seconds, &elsewhere))
        return NULL;
    if (!(seconds >= 0 && seconds < 1e9))
        return PyErr_Format(PyExc_ValueError, "seconds must be a number from 0 to 1e9");
    PyObject *stage = stage_of(name, false);
    if (!stage || !weir_session()) {
        Py_XDECREF(stage);
        return NULL;
    }
    uint64_t ticks = (uint64_t)(seconds * 1e9 / weir_clock_ns_per_tick());
    if (elsewhere)
        weir_zone_logged(((struct stage *)stage)->number, ticks, 0);
    else
        weir_history_logged(((struct stage *)stage)->number, ticks);
    Py_DECREF(stage);
    Py_RETURN_NONE;
}

static PyObject *py_warn_of_left_open(PyObject *module, PyObject *unused)
{
    if (warn_of_left_open() < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Returns the name of a stage that was created and never entered, or None. Always None after fork(), because a child
 * knows its parent's stages, but not whether the parent entered them. */
static PyObject *py_never_entered(PyObject *module, PyObject *unused)
{
    PyObject *name, *stage;
    Py_ssize_t at = 0;
    struct weir_snapshot *now = NULL;
    if (!weir_session())
        return NULL;
    if (session_depth != 0 || weir_snapshot_take(session, &now) < 0)
        return Py_NewRef(Py_None);
    PyObject *found = Py_None;
    for (int gpu = 0; gpu < 2; gpu++, at = 0)
        while (found == Py_None && PyDict_Next(stages[gpu], &at, &name, &stage))
            if (now->stages[((struct stage *)stage)->number].count == 0)
                found = name;
    weir_snapshot_free(&now);
    return Py_NewRef(found);
}

/* ---- stages in DataLoader's workers ---- */

/* Number of DataLoader workers that timed a stage: memory shared by this process and all processes forked from it, but
 * not by spawned ones. NULL if there was none. */
static atomic_uint *workers;

static PyObject *py_worker_began(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(!workers || atomic_fetch_add(workers, 1) == 0);
}

static PyObject *py_workers(PyObject *module, PyObject *unused)
{
    return PyLong_FromUnsignedLong(workers ? atomic_load(workers) : 0);
}

int weir_session_begin(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"__enter__", stage_enter, METH_NOARGS, "Begins the stage on this thread."},
        {"__exit__", (PyCFunction)(void (*)(void))stage_exit, METH_FASTCALL, "Ends the stage."},
        {0}};
    static PyType_Slot slots[] = {
        {Py_tp_doc, "A stage of the table: a context manager and decorator, created by weir.stage."},
        {Py_tp_methods, methods},
        {Py_tp_call, weir_py_decorated},
        {Py_tp_dealloc, weir_py_free},
        {0, NULL}};
    static PyMethodDef functions[] = {
        {"stage", (PyCFunction)(void (*)(void))py_stage, METH_FASTCALL | METH_KEYWORDS,
         "stage(name, /, *, cuda=False)\n--\n\n"
         "Times a part of the training loop, as a row of the table.\n\n"
         "    with weir.stage(\"20_train_forward_pass\"):\n"
         "        loss = model(batch)\n\n"
         "    @weir.stage(\"22_optimizer_step\")\n"
         "    def step(): ...\n\n"
         "Stages can be nested, and a row's own time excludes the stages inside. Times are measured on the\n"
         "host, so they include GPU work only while the host waits for it. There can be at most 40 names.\n\n"
         "With cuda=True the stage has a second row, of kind gpu-work, with the time of its work on the\n"
         "GPU. The time is measured between events on the stream that is torch's current stream when the\n"
         "stage begins. Nothing waits for these events, so a call appears in the table once the GPU has\n"
         "completed it."},
        {"log_timing", (PyCFunction)(void (*)(void))py_log_timing, METH_VARARGS | METH_KEYWORDS,
         "log_timing(name, seconds, /, *, elsewhere=False)\n--\n\n"
         "Adds one call of a stage that the program timed itself. Call this function at the end of the\n"
         "timed part, on the thread that ran it, so that stages inside the part are nested in the call.\n"
         "elsewhere=True means that another process, another thread or a GPU spent the time. The call then\n"
         "appears in the table, but does not count towards the loop's time."},
        {"_worker_began", py_worker_began, METH_NOARGS, "Counts a DataLoader worker. Returns True for the first one."},
        {"_workers", py_workers, METH_NOARGS, "Number of DataLoader workers that timed stages in their own processes."},
        {"_warn_of_left_open", py_warn_of_left_open, METH_NOARGS, NULL},
        {"_never_entered", py_never_entered, METH_NOARGS,
         "Name of a stage that was created and never entered, or None."},
        {"_watch_stages", py_watch_stages, METH_VARARGS,
         "Addresses of weir_watch_stage, _begin and _end, which time stages from now on."},
        {0}};
    void *page = mmap(NULL, sizeof *workers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    workers = page == MAP_FAILED ? NULL : page;
    weir_lent_begin();
    weir_history_begin();
    int rc = weir_loader_stages();
    stages[0] = PyDict_New();
    stages[1] = PyDict_New();
    if (rc < 0 || pthread_key_create(&thread_end, on_thread_end) != 0 || !stages[0] || !stages[1]) {
        PyErr_SetString(PyExc_ImportError, "weir's stages cannot be registered");
        return -1;
    }
    return PyModule_AddFunctions(module, functions) < 0
               ? -1
               : weir_py_add_type(module, "weir.Stage", sizeof(struct stage), 0, slots, &stage_type);
}
