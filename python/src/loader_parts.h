/* loader_parts.h: shared by the files of weir.Loader. All calls need the interpreter's lock, from one thread at a time
 * (busy). */
#ifndef WEIR_PYTHON_SRC_LOADER_PARTS_H
#define WEIR_PYTHON_SRC_LOADER_PARTS_H

#include "pipeline/samples/steps.h"
#include "python/src/array.h"
#include "weir/loader.h"
#include "weir/report.h"

enum { WEIR_OUT_MAX = 2, WEIR_ENTRIES_MAX = WEIR_CAMERAS_MAX + 3 };

/* A batch in use: its memory is the loader's until it is kept. */
struct weir_out {
    struct weir_lent *lent; /* holds a reference */
    struct weir_batch *batch;
};

/* One value of a batch as the program gets it. */
struct weir_entry {
    PyObject *key;      /* owned */
    int tensor, camera; /* camera -1 = all of the tensor */
};

struct weir_gpu_mark;

/* State at the beginning of the time that a table covers. */
struct weir_loader_period {
    struct weir_gpu_mark *gpu;
    struct weir_step_sums steps;
};

enum weir_keys { WEIR_KEYS_WEIR, WEIR_KEYS_ACT, WEIR_KEYS_LEROBOT };

struct weir_loader_object {
    PyObject_HEAD struct weir_loader *loader; /* NULL = closed */
    struct weir_loader_reports *reports;
    struct weir_loader_config config;
    PyObject *texts; /* list of bytes that config borrows from; owned */
    int fork_depth;
    bool busy, warned;
    struct weir_state state; /* the values that sample order depends on, for opening at another batch */
    uint64_t per_epoch, next_epoch, iteration;
    bool resumed; /* the next iteration begins at position */
    bool unasked; /* it follows an iteration without next(): Lightning calls iter() as a test */
    uint64_t position;
    int n_out;
    struct weir_out out[WEIR_OUT_MAX];
    enum weir_keys keys;
    struct weir_lender *lender;         /* of batches on a GPU; NULL = they are on the CPU */
    PyObject *from_dlpack, *bool_dtype; /* torch's; NULL = batches are weir.Arrays. Owned */
    PyObject *current_stream; /* function that returns torch's stream on the batches' GPU as a number. Owned */
    bool has_uint16;          /* whether torch does */
    PyObject *make;           /* the named tuple's class; owned */
    int n_entries;
    struct weir_entry entries[WEIR_ENTRIES_MAX];
    bool has_number;                                    /* config.number, among the open loaders */
    struct weir_loader_period since_start, since_table; /* figures that reports lacks */
};

/* 0, or -1 with an exception if the loader is closed, or in use by another thread or process. */
int weir_loader_check(const struct weir_loader_object *self);

/* Fills the configuration from the data's path and a dict of keywords: 0, or -1 with an exception. */
int weir_loader_options(struct weir_loader_object *self, PyObject *path, PyObject *dict);

/* The next batch before batch number end; NULL without an exception at the end. */
PyObject *weir_batches_next(struct weir_loader_object *self, uint64_t end);
/* Leaves batches in use to the program; the loader is finished. */
void weir_batches_leave(struct weir_loader_object *self);
void weir_batches_clear_entries(struct weir_loader_object *self);

/* Takes a number that no other open loader has (64 of them; further loaders share the last) until it is given back. */
void weir_loader_number_take(struct weir_loader_object *self);
void weir_loader_number_give(struct weir_loader_object *self);
/* Call when the loader is opened: 0 or -ENOMEM. */
int weir_loader_periods_begin(struct weir_loader_object *self);
void weir_loader_periods_end(struct weir_loader_object *self);
/* Ends the last batch's step unless it has ended: 0 or -ENOMEM. */
int weir_loader_step_ends(struct weir_loader_object *self);
PyObject *weir_loader_py_table(PyObject *object, PyObject *args, PyObject *names);
PyObject *weir_loader_py_verdict(PyObject *object, PyObject *args);
PyObject *weir_loader_py_reset(PyObject *object, PyObject *unused);
/* (batches, seconds of their steps, seconds of that waiting), since the last table or for the whole run. */
PyObject *weir_loader_py_steps(PyObject *object, PyObject *whole);

/* A dict that describes the data. */
PyObject *weir_loader_describe(const struct weir_loader_object *self);

#endif
