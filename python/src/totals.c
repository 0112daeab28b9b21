#include "analyze/causes/cores.h"
#include "analyze/causes/thresholds.h"
#include "analyze/verdict/stage_advice.h"
#include "base/ranks.h"
#include "base/terminal.h"
#include "prof/report/machine.h"
#include "python/src/gpu_timing.h"
#include "python/src/session.h"
#include "weir/report.h"
#include "weir/stages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static PyObject *py_launched(PyObject *module, PyObject *args)
{
    struct weir_ranks ranks;
    struct weir_err err = WEIR_ERR_NONE;
    int ask;
    if (!PyArg_ParseTuple(args, "p:_launched", &ask))
        return NULL;
    int rc =
        ask ? weir_ranks_find(&ranks, WEIR_RANKS_AUTO, WEIR_RANKS_AUTO, &err) : weir_ranks_find(&ranks, 0, 1, &err);
    if (rc < 0)
        return weir_py_raise(rc, &err);
    return Py_BuildValue("(iiiii)", ranks.rank, ranks.world_size, ranks.local_rank, ranks.local_size,
                         ranks.local_cores);
}

/* ---- periods ---- */

/* Totals at the beginning of a period. The pointers are NULL if it began with the session. */
struct period {
    struct weir_snapshot *snapshot;
    struct weir_gpu_mark *gpu;
    struct weir_machine_now machine;
};

static struct period since_start, since_table;
static struct weir_report_machine machine_begun;
static const struct weir_recorder *periods_of; /* session of the periods; a child of fork() has another session */

static void period_clear(struct period *period)
{
    weir_snapshot_free(&period->snapshot);
    weir_gpu_timing_unmark(&period->gpu);
}

/* Reads the machine's totals. Worker processes of a DataLoader count as this process. */
static void read_machine(struct weir_machine_now *now)
{
    weir_machine_read(now, "");
    PyObject *pids = weir_py_call(WEIR_PY_CHILDREN, NULL, NULL);
    Py_ssize_t n = pids && PyList_Check(pids) ? PyList_Size(pids) : 0;
    for (Py_ssize_t i = 0; i < n; i++)
        now->own_ns += weir_process_cpu_ns((int)PyLong_AsLong(PyList_GetItem(pids, i)));
    Py_XDECREF(pids);
    PyErr_Clear();
}

void weir_totals_session_opened(void)
{
    weir_machine_begin(&machine_begun, 0, "");
    read_machine(&since_start.machine);
    since_table.machine = since_start.machine;
}

static int period_begin(struct period *period)
{
    period_clear(period);
    read_machine(&period->machine);
    int rc = weir_snapshot_take(weir_session(), &period->snapshot);
    return rc < 0 ? rc : weir_gpu_timing_mark(&period->gpu);
}

/* Returns false with an exception on failure. */
static bool open_session(void)
{
    const struct weir_recorder *session = weir_session();
    if (session && session != periods_of) {
        period_clear(&since_start);
        period_clear(&since_table);
        periods_of = session;
    }
    return session != NULL;
}

int weir_totals_table_printed(void)
{
    return open_session() ? period_begin(&since_table) : -ENOMEM;
}

/* Gets the changes since the beginning of the period. The caller frees *diff with weir_snapshot_free. */
static int take_since(const struct period *period, struct weir_snapshot **diff)
{
    struct weir_snapshot *now = NULL;
    int rc = weir_snapshot_take(weir_session(), &now);
    if (rc == 0)
        rc = weir_snapshot_diff(now, period->snapshot, diff);
    weir_snapshot_free(&now);
    return rc;
}

/* ---- the training loop ---- */

/* Finds the thread of the training loop: the calling thread if it has stages, otherwise the first consumer thread that
 * has stages. */
static const struct weir_thread_stats *loop_of(const struct weir_snapshot *snapshot)
{
    const struct weir_thread_stats *loop = NULL;
    for (int i = 0; i < snapshot->n_threads; i++) {
        const struct weir_thread_stats *thread = &snapshot->threads[i];
        bool has_stages = thread->wall_ns > thread->self_ns[WEIR_STAGE_WORKER_LOOP] && thread->zones > 0;
        if (thread->is_caller && has_stages)
            return thread;
        if (!loop && has_stages && thread->role == WEIR_ROLE_CONSUMER)
            loop = thread;
    }
    return loop;
}

/* Returns the time in which a thread that used cpu_s seconds of a core was computing or ready to compute: its waits for
 * a core are divided in proportion to CPU time. Returns -1 if cpu_s is unknown. */
static double ready_s(double cpu_s, const struct weir_report_worker *thread)
{
    double waits_s = fmax(thread->core_wait_s, 0) + fmax(thread->throttled_s, 0);
    return cpu_s > 0 && thread->cpu_s > 0 ? cpu_s * (1 + waits_s / thread->cpu_s) : cpu_s;
}

/* Counts as work what a thread computes in its wait stages, such as a DataLoader without workers, which loads there. */
static void move_computing_to_work(struct weir_report *report)
{
    double self_s = 0, cpu_s = 0;
    for (int i = 0; i < report->n_rows; i++) {
        const struct weir_report_row *row = &report->rows[i];
        if (row->kind == WEIR_KIND_WAIT && row->cpu_s >= 0) {
            self_s += row->self_s;
            cpu_s += row->cpu_s;
        }
    }
    for (int i = 0; i <= report->n_workers; i++) {
        struct weir_report_worker *thread = i < report->n_workers ? &report->workers[i] : &report->consumer;
        double sampled_s = self_s > 0 ? thread->wait_s * cpu_s / self_s : 0;
        double moved_s =
            fmin(ready_s(thread->wait_cpu_s >= 0 ? thread->wait_cpu_s : sampled_s, thread), thread->wait_s);
        thread->work_s += moved_s;
        thread->wait_s -= moved_s;
    }
}

/* Sets each row's share to the fraction of the loop's time that its stage itself takes in the loop's thread. */
static void share_loop(struct weir_report *report, const struct weir_thread_stats *loop)
{
    for (int i = 0; i < report->n_rows; i++)
        report->rows[i].share = -1;
    for (int s = 0; loop && s < WEIR_STAGE_MAX; s++) {
        struct weir_report_row named;
        if (loop->self_ns[s] == 0 || !weir_stage_info(s))
            continue;
        weir_report_row_fill(&named, weir_stage_info(s), &(struct weir_stage_stats){0});
        for (int i = 0; i < report->n_rows; i++)
            if (report->rows[i].side == named.side && strcmp(report->rows[i].name, named.name) == 0)
                report->rows[i].share = (double)loop->self_ns[s] / (double)loop->wall_ns;
    }
}

/* Unless workers of a loader ran, the report is about the loop: shares refer to its time. */
static void adapt_to_loop(struct weir_report *report, const struct weir_snapshot *snapshot)
{
    for (int i = 0; i < snapshot->n_threads; i++)
        if (snapshot->threads[i].role == WEIR_ROLE_WORKER && snapshot->threads[i].wall_ns > 0)
            return;
    share_loop(report, loop_of(snapshot));
    move_computing_to_work(report);
}

/* Makes the report of `diff`, the time since the beginning of the period. */
static int report_of(const struct weir_snapshot *diff, const struct period *period, struct weir_loader_report *report)
{
    struct weir_machine_now now;
    int rc = weir_report_from_snapshot(&report->prof, diff);
    if (rc < 0)
        return rc;
    adapt_to_loop(&report->prof, diff);
    read_machine(&now);
    report->prof.machine = machine_begun;
    weir_machine_between(&report->prof.machine, &period->machine, &now);
    report->wall_s = (double)(now.at_ns - period->machine.at_ns) / 1e9;
    report->cpu_s = now.own_ns > period->machine.own_ns ? (double)(now.own_ns - period->machine.own_ns) / 1e9 : 0;
    weir_gpu_timing_add(&report->gpu, period->gpu);
    return 0;
}

static int make_report(const struct period *period, struct weir_loader_report *report)
{
    struct weir_snapshot *diff = NULL;
    int rc = take_since(period, &diff);
    if (rc == 0)
        rc = report_of(diff, period, report);
    weir_snapshot_free(&diff);
    return rc;
}

/* Accepts NULL. */
static void free_report(struct weir_loader_report *report)
{
    if (report)
        weir_loader_report_clear(report);
    free(report);
}

/* ---- the table without a loader ---- */

struct wanted {
    int lang;
    bool whole;
};

static int print_session(void *user, FILE *out)
{
    const struct wanted *wanted = user;
    const struct period *period = wanted->whole ? &since_start : &since_table;
    struct weir_loader_report *report = calloc(1, sizeof *report);
    int rc = report ? make_report(period, report) : -ENOMEM;
    if (rc == 0) {
        report->timing = true;
        weir_loader_report_loop_print(out, report, (enum weir_lang)wanted->lang);
        weir_report_cost_print(out, &report->prof);
    }
    free_report(report);
    return rc == 0 && !wanted->whole ? period_begin(&since_table) : rc;
}

static PyObject *py_table(PyObject *module, PyObject *args)
{
    PyObject *name;
    int whole;
    if (!PyArg_ParseTuple(args, "Op:_table", &name, &whole))
        return NULL;
    struct wanted wanted = {weir_py_lang(name), whole};
    if (wanted.lang < 0 || !open_session())
        return NULL;
    return weir_py_printed(print_session, &wanted);
}

static int print_wrapped(void *user, FILE *out)
{
    weir_wrap_print(out, user, WEIR_WRAP_COLUMN, " | ");
    return 0;
}

static PyObject *py_wrapped(PyObject *module, PyObject *text)
{
    const char *lines = PyUnicode_AsUTF8AndSize(text, NULL);
    return lines ? weir_py_printed(print_wrapped, (void *)lines) : NULL;
}

static PyObject *py_reset(PyObject *module, PyObject *unused)
{
    if (!open_session())
        return NULL;
    weir_history_reset();
    if (period_begin(&since_start) < 0 || period_begin(&since_table) < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* ---- as numbers ---- */

static PyObject *row_tuple(const struct weir_report_row *row)
{
    return Py_BuildValue("(sssKddddddddN)", row->name, weir_stage_kind_name(row->kind),
                         weir_report_side_name(row->side), (unsigned long long)row->count, row->total_s, row->self_s,
                         row->mean_s, row->min_s, row->p50_s, row->p90_s, row->p99_s, row->max_s,
                         row->cpu_s >= 0 ? PyFloat_FromDouble(row->cpu_s) : Py_NewRef(Py_None));
}

static int add_rows(PyObject *list, const struct weir_loader_report *report)
{
    for (int i = 0; i < report->prof.n_rows; i++)
        if (report->prof.rows[i].count > 0 && weir_py_append(list, row_tuple(&report->prof.rows[i])) < 0)
            return -1;
    for (int i = 0; i < report->gpu.n_rows; i++)
        if (weir_py_append(list, row_tuple(&report->gpu.rows[i])) < 0)
            return -1;
    return 0;
}

static PyObject *py_stats(PyObject *module, PyObject *args)
{
    int whole;
    if (!PyArg_ParseTuple(args, "p:_stats", &whole) || !open_session())
        return NULL;
    PyObject *list = PyList_New(0);
    struct weir_loader_report *report = calloc(1, sizeof *report);
    int rc = list && report ? make_report(whole ? &since_start : &since_table, report) : -ENOMEM;
    if (rc < 0 || add_rows(list, report) < 0) {
        Py_CLEAR(list);
        if (!PyErr_Occurred())
            PyErr_NoMemory();
    }
    free_report(report);
    return list;
}

/* ---- the parts of the loop ---- */

static PyObject *stage_name(int stage)
{
    const struct weir_stage_info *info = weir_stage_info(stage);
    return info ? weir_py_shown(info->name) : Py_NewRef(Py_None);
}

/* Returns what a part's code is for: "loading", "step", or "other" for the program's own names. */
static const char *purpose(int stage, const struct weir_stage_info *info)
{
    if (stage == WEIR_STAGE_WAIT_DATA || !info->consumer)
        return "loading";
    return stage >= WEIR_STAGE_VAL_FORWARD && stage <= WEIR_STAGE_OPTIMIZER ? "step" : "other";
}

/* Returns the fraction of the stage's time that was computing or ready to compute; the rest was asleep. -1: unknown. */
static double part_ready(int stage, const struct weir_loader_report *report, const struct weir_report_worker *thread)
{
    for (int i = 0; i < report->prof.n_rows && thread; i++) {
        const struct weir_report_row *row = &report->prof.rows[i];
        if (row->side != WEIR_SIDE_HELPER && row->self_s > 0 && strcmp(row->name, weir_stage_info(stage)->name) == 0)
            return fmin(ready_s(row->cpu_s, thread) / row->self_s, 1);
    }
    return -1;
}

static PyObject *part_tuple(int stage, uint64_t own_ns, const struct weir_loader_report *report,
                            const struct weir_report_worker *thread)
{
    const struct weir_stage_info *info = weir_stage_info(stage);
    return Py_BuildValue("(NsdNsd)", stage_name(stage), weir_stage_kind_name(info->kind), (double)own_ns / 1e9,
                         stage_name(weir_history_parent(stage)), purpose(stage, info),
                         part_ready(stage, report, thread));
}

/* Returns who takes cores from the loop for a notable part of its time, by the thresholds of a loader's verdict:
 * "quota", "others", "own" (other threads and children of this process), or NULL. *share: that part. */
static const char *taker(const struct weir_loader_report *report, const struct weir_report_worker *thread,
                         double *share)
{
    const struct weir_report_machine *machine = &report->prof.machine;
    struct weir_core_figures figures = {
        .core_wait = thread->core_wait_s / thread->wall_s,
        .throttled = thread->throttled_s / thread->wall_s,
        .quota_cores = machine->quota_cores,
        .cores = machine->cores,
        .usable = machine->cores,
        .others_cores = machine->others_cores,
    };
    *share = figures.throttled;
    if (weir_quota_is_used_up(&figures))
        return "quota";
    figures.own_cores = report->cpu_s / report->wall_s;
    *share = figures.core_wait;
    if (*share < weir_core_wait_least(&figures))
        return NULL;
    return weir_others_take_cores(&figures) ? "others" : "own";
}

/* Returns None, or (who takes cores, part of the loop's time, cores that others and this process use, usable cores, CPU
 * quota). */
static PyObject *shortage_tuple(const struct weir_loader_report *report, const struct weir_report_worker *thread)
{
    double share;
    const char *who = thread && thread->wall_s > 0 && report->wall_s > 0 ? taker(report, thread, &share) : NULL;
    const struct weir_report_machine *machine = &report->prof.machine;
    return who ? Py_BuildValue("(sdddid)", who, share, machine->others_cores, report->cpu_s / report->wall_s,
                               machine->cores, machine->quota_cores)
               : Py_NewRef(Py_None);
}

/* Finds the loop's thread in the report. Threads can share a name; the time, which comes from the same snapshot,
 * distinguishes them. */
static const struct weir_report_worker *thread_of(const struct weir_report *report,
                                                  const struct weir_thread_stats *loop)
{
    double wall_s = (double)loop->wall_ns / 1e9;
    for (int i = 0; i < report->n_workers; i++)
        if (report->workers[i].wall_s == wall_s && strcmp(report->workers[i].name, loop->name) == 0)
            return &report->workers[i];
    return report->consumer.wall_s == wall_s ? &report->consumer : NULL;
}

static PyObject *loop_tuple(const struct weir_thread_stats *loop, const struct weir_loader_report *report)
{
    const struct weir_report_worker *thread = thread_of(&report->prof, loop);
    PyObject *parts = PyList_New(0);
    for (int s = 0; parts && s < WEIR_STAGE_MAX; s++)
        if (s != WEIR_STAGE_WORKER_LOOP && loop->self_ns[s] > 0 && weir_stage_info(s) &&
            weir_py_append(parts, part_tuple(s, loop->self_ns[s], report, thread)) < 0)
            Py_CLEAR(parts);
    return Py_BuildValue("(ddNN)", (double)loop->wall_ns / 1e9, (double)loop->self_ns[WEIR_STAGE_WORKER_LOOP] / 1e9,
                         parts, shortage_tuple(report, thread));
}

static PyObject *py_loop(PyObject *module, PyObject *args)
{
    int whole;
    struct weir_snapshot *diff = NULL;
    if (!PyArg_ParseTuple(args, "p:_loop", &whole) || !open_session())
        return NULL;
    const struct period *period = whole ? &since_start : &since_table;
    struct weir_loader_report *report = calloc(1, sizeof *report);
    int rc = report ? take_since(period, &diff) : -ENOMEM;
    const struct weir_thread_stats *loop = rc == 0 ? loop_of(diff) : NULL;
    if (loop)
        rc = report_of(diff, period, report);
    PyObject *result = rc < 0 ? PyErr_NoMemory() : loop ? loop_tuple(loop, report) : Py_NewRef(Py_None);
    weir_snapshot_free(&diff);
    free_report(report);
    return result;
}

static PyObject *py_stage_advice(PyObject *self, PyObject *stage)
{
    const char *name = PyUnicode_AsUTF8AndSize(stage, NULL);
    return name ? Py_BuildValue("z", weir_stage_advice_of(name, WEIR_SUBJECT_JOB)) : NULL;
}

int weir_totals_begin(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"_launched", py_launched, METH_VARARGS, "(rank, world_size, local_rank, local_size, local_cores)"},
        {"_table", py_table, METH_VARARGS, "The stage table, without a loader's additions."},
        {"_wrapped", py_wrapped, METH_O, "The lines of a text, wrapped to the width of tables."},
        {"_stats", py_stats, METH_VARARGS, "[(stage, kind, side, calls, and seconds: total, own, mean, min, ...)]"},
        {"_loop", py_loop, METH_VARARGS,
         "(wall seconds, seconds outside all stages, [(stage, kind, own seconds, parent, purpose, fraction of them on "
         "a "
         "core or ready for one)], None or (who takes cores, part, others' cores, own cores, cores, quota))"},
        {"_stage_advice", py_stage_advice, METH_O, "What helps in a script with a stage; None if that is unknown."},
        {"_reset", py_reset, METH_NOARGS, "Restarts the counts of all stages."},
        {0}};
    PyObject *least = Py_BuildValue("{s:d,s:d,s:d}", "data_wait", WEIR_VERDICT_WAIT_LEAST, "no_stage",
                                    WEIR_VERDICT_OTHER_MOST, "computes", WEIR_LOOP_COMPUTES);
    int rc = least ? PyModule_AddObjectRef(module, "_least", least) : -1;
    Py_XDECREF(least);
    return rc < 0 ? -1 : PyModule_AddFunctions(module, functions);
}
