/* loader_parts.h: declarations shared by the files that implement weir.Loader. All functions require the interpreter's
 * lock. Only one thread at a time can call them, because others are rejected while `busy` is set. */
#ifndef WEIR_PYTHON_SRC_LOADER_PARTS_H
#define WEIR_PYTHON_SRC_LOADER_PARTS_H

#include "pipeline/samples/steps.h"
#include "python/src/array.h"
#include "weir/loader.h"
#include "weir/report.h"

enum { WEIR_OUT_MAX = 2, WEIR_ENTRIES_MAX = WEIR_TENSORS_MAX };

/* A batch in use by the program. Its memory belongs to the loader until it is kept. */
struct weir_out {
    struct weir_lent *lent; /* holds a reference */
    struct weir_batch *batch;
};

/* One value of a batch, such as a tensor or one of its cameras. */
struct weir_entry {
    PyObject *key;      /* owned */
    int tensor, camera; /* camera is -1 for the whole tensor; tensor is -1 - c for the column of strings c */
};

struct weir_gpu_mark;
struct weir_live;
struct weir_rank_session;

/* Totals at the beginning of the time that a table covers. */
struct weir_loader_period {
    struct weir_gpu_mark *gpu;
    struct weir_step_sums steps;
};

enum weir_keys { WEIR_KEYS_WEIR, WEIR_KEYS_ACT, WEIR_KEYS_LEROBOT };

struct weir_loader_object {
    PyObject_HEAD struct weir_loader *loader; /* NULL when closed */
    struct weir_loader_reports *reports;
    struct weir_loader_config config;
    PyObject *texts; /* list of the bytes that strings in config point to; owned */
    int fork_depth;
    bool busy, warned;
    uint64_t faults_reported; /* skipped samples and substituted frames in the last warning */
    struct weir_state
        state; /* settings that determine the sample order; needed to reopen the loader at another batch */
    uint64_t per_epoch, next_epoch, iteration;
    bool resumed; /* the next iteration begins at `position` */
    bool unasked; /* the last iteration has not requested a batch; Lightning calls iter() only as a test */
    uint64_t position;
    int n_out;
    struct weir_out out[WEIR_OUT_MAX];
    enum weir_keys keys;
    struct weir_lender *lender;         /* for batches on a GPU; NULL for the CPU */
    PyObject *from_dlpack, *bool_dtype; /* from torch, owned; NULL if batches contain weir.Arrays */
    PyObject *current_stream; /* function that returns torch's current stream on the batches' GPU as a number; owned */
    bool has_uint16;          /* whether torch has a uint16 dtype */
    /* The class of the named tuple for keys='act'; for keys='lerobot', the list of the dataset's keys in the order of a
     * batch, or NULL if it is no LeRobot dataset. Owned. */
    PyObject *make;
    int n_entries;
    struct weir_entry entries[WEIR_ENTRIES_MAX];
    bool has_number;                                    /* config.number is reserved for this loader */
    struct weir_loader_period since_start, since_table; /* for figures that `reports` does not contain */
    struct weir_rank_session *ranks;                    /* the table over ranks; NULL = none */
    struct weir_live *live;                             /* serve= and prometheus=; NULL = neither */
    bool is_live;                                       /* the open loader has been added to `live` */
    double opened_unix_s;                               /* when live figures began */
    _Atomic uint64_t epochs_done;
};

/* Returns 0, or -1 with an exception if the loader is closed, or is in use by another thread, or belongs to another
 * process. */
int weir_loader_check(const struct weir_loader_object *self);

/* Fills the configuration from the data's path and a dict of keywords. Returns 0, or -1 with an exception. */
int weir_loader_options(struct weir_loader_object *self, PyObject *path, PyObject *dict);

/* Returns the next batch if its number is below end. At the end, returns NULL without an exception. On failure, returns
 * NULL with an exception. */
PyObject *weir_batches_next(struct weir_loader_object *self, uint64_t end);
/* Finishes the loader and gives the memory of batches in use to the program. */
void weir_batches_leave(struct weir_loader_object *self);
void weir_batches_clear_entries(struct weir_loader_object *self);

/* Reserves a number that identifies the loader among the open ones, until weir_loader_number_give. Only 64 numbers
 * exist, so further loaders share the last one. */
void weir_loader_number_take(struct weir_loader_object *self);
void weir_loader_number_give(struct weir_loader_object *self);
/* Call this when the loader has been opened. Returns 0 or -ENOMEM. */
int weir_loader_periods_begin(struct weir_loader_object *self);
void weir_loader_periods_end(struct weir_loader_object *self);
/* Ends the last batch's step if it has not ended yet. Returns 0 or -ENOMEM. */
int weir_loader_step_ends(struct weir_loader_object *self);
PyObject *weir_loader_py_table(PyObject *object, PyObject *args, PyObject *names);
PyObject *weir_loader_py_verdict(PyObject *object, PyObject *args);
PyObject *weir_loader_py_reset(PyObject *object, PyObject *unused);
/* Returns a tuple (batches, seconds of their steps, seconds of waiting within these) for the time since the last table,
 * or for the whole run. */
PyObject *weir_loader_py_steps(PyObject *object, PyObject *whole);

/* ---- the table over ranks ---- */

/* Takes rank, world size, name, and host and port of the store (None: MASTER_ADDR). Returns None, or a str with the
 * reason why there is no table. */
PyObject *weir_loader_py_open_ranks(PyObject *object, PyObject *args);
/* Takes the seconds to wait for ranks. Returns the table that is ready, or None. */
PyObject *weir_loader_py_ranks_table(PyObject *object, PyObject *wait);
/* Makes a table as weir_loader_py_table, and publishes its figures to the other ranks. */
PyObject *weir_loader_py_published(PyObject *object, PyObject *unused);
void weir_loader_publish(struct weir_loader_object *self, const struct weir_loader_report *report);
/* Calls the loader's method _ranks_reported if a table is ready. */
void weir_loader_poll_ranks(struct weir_loader_object *self);
/* Calls _ranks_end if a table has not been printed, then leaves the other ranks. */
void weir_loader_end_ranks(struct weir_loader_object *self);

/* ---- live figures ---- */

/* Takes a file or None, an address or None, and the local rank. Returns the URL or None. */
PyObject *weir_loader_py_open_live(PyObject *object, PyObject *args);
/* Returns the loader's metrics in the classic text format. */
PyObject *weir_loader_py_metrics(PyObject *object, PyObject *unused);
/* Starts counting when the loader has been opened, and shows it. Needs no lock of the interpreter, like _end. */
int weir_loader_live_begin(struct weir_loader_object *self, struct weir_err *err);
void weir_loader_live_end(struct weir_loader_object *self);
void weir_loader_live_epoch(struct weir_loader_object *self);
void weir_loader_live_close(struct weir_loader_object *self);

/* Returns a dict that describes the loader's dataset, or NULL with an exception. */
PyObject *weir_loader_describe(const struct weir_loader_object *self);

#endif
