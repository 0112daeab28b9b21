/* Creates the table and the verdict of weir.Loader. */
#include "analyze/verdict/verdict.h"
#include "base/terminal.h"
#include "python/src/gpu_timing.h"
#include "python/src/loader_parts.h"
#include "python/src/py.h"
#include "python/src/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- periods ---- */

static int read_steps(struct weir_loader_object *self, struct weir_step_sums *sums)
{
    struct weir_steps steps;
    int rc = weir_steps_of(self->loader, &steps);
    if (rc < 0)
        return rc;
    *sums = steps.sums;
    weir_steps_close(&steps);
    return 0;
}

int weir_loader_step_ends(struct weir_loader_object *self)
{
    struct weir_step_sums sums;
    return read_steps(self, &sums);
}

static int begin(struct weir_loader_object *self, struct weir_loader_period *period)
{
    int rc = weir_gpu_timing_mark(&period->gpu);
    return rc < 0 ? rc : read_steps(self, &period->steps);
}

int weir_loader_periods_begin(struct weir_loader_object *self)
{
    int rc = begin(self, &self->since_start);
    return rc < 0 ? rc : begin(self, &self->since_table);
}

void weir_loader_periods_end(struct weir_loader_object *self)
{
    weir_gpu_timing_unmark(&self->since_start.gpu);
    weir_gpu_timing_unmark(&self->since_table.gpu);
}

PyObject *weir_loader_py_reset(PyObject *object, PyObject *unused)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    if (weir_loader_check(self) < 0)
        return NULL;
    if (weir_loader_reports_restart(self->reports) < 0 || weir_loader_periods_begin(self) < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyObject *weir_loader_py_steps(PyObject *object, PyObject *whole)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    struct weir_step_sums now;
    int is_whole = PyObject_IsTrue(whole);
    if (is_whole < 0 || weir_loader_check(self) < 0)
        return NULL;
    if (read_steps(self, &now) < 0)
        return PyErr_NoMemory();
    const struct weir_step_sums *then = is_whole ? &self->since_start.steps : &self->since_table.steps;
    uint64_t batches = 0, ns = 0, wait_ns = 0;
    for (int i = 0; i < WEIR_STEPS_SPLITS; i++) {
        batches += now.batches[i] - then->batches[i];
        ns += now.ns[i] - then->ns[i];
        wait_ns += now.wait_ns[i] - then->wait_ns[i];
    }
    return Py_BuildValue("(Kdd)", (unsigned long long)batches, (double)ns / 1e9, (double)wait_ns / 1e9);
}

/* ---- numbers of open loaders ---- */

enum { LOADERS_MAX = 64 };
static bool taken[LOADERS_MAX];

void weir_loader_number_take(struct weir_loader_object *self)
{
    if (self->has_number)
        return;
    int number = 0;
    while (number < LOADERS_MAX - 1 && taken[number])
        number++;
    taken[number] = self->has_number = true;
    self->config.number = number;
}

void weir_loader_number_give(struct weir_loader_object *self)
{
    if (self->has_number)
        taken[self->config.number] = false;
    self->has_number = false;
}

/* ---- reports ---- */

struct wanted {
    struct weir_loader_object *self;
    enum weir_lang lang;
    bool whole, publish;
    FILE *verdict; /* separate output for the verdict; NULL prints it before the tables */
    struct weir_verdict made;
};

/* Prints the verdict, with the program's options replaced by keyword arguments. */
static void write_verdict(const struct wanted *wanted, FILE *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return;
    weir_verdict_lines(memory, &wanted->made);
    char *named = fclose(memory) == 0 ? malloc(2 * bytes + 1) : NULL;
    if (named) {
        weir_name_keywords(named, 2 * bytes + 1, text);
        if (out == wanted->verdict)
            fputs(named, out);
        else
            weir_wrap_print(out, named, WEIR_WRAP_COLUMN, " | ");
    }
    free(named);
    free(text);
}

static void judge(void *user, struct weir_loader_report *report)
{
    struct wanted *wanted = user;
    weir_verdict_judge_validation(&report->steps);
    weir_gpu_timing_add(&report->gpu, wanted->whole ? wanted->self->since_start.gpu : wanted->self->since_table.gpu);
    weir_verdict_make(&wanted->made, report, NULL);
    if (wanted->publish)
        weir_loader_publish(wanted->self, report);
    if (wanted->verdict)
        write_verdict(wanted, wanted->verdict);
}

static void print_verdict(void *user, FILE *out, const struct weir_loader_report *report, enum weir_lang lang)
{
    write_verdict(user, out);
}

static int print_report(void *user, FILE *out)
{
    struct wanted *wanted = user;
    struct weir_loader_object *self = wanted->self;
    const struct weir_report_addition addition = {.begin = judge, .print = print_verdict, .user = wanted};
    uint64_t position = weir_loader_position(self->loader);
    const struct weir_loader_report_options options = {.size = sizeof options,
                                                       .final = wanted->whole,
                                                       .epochs_done =
                                                           (int)((position + self->per_epoch - 1) / self->per_epoch),
                                                       .lang = wanted->lang,
                                                       .addition = &addition};
    int rc = weir_loader_report(self->reports, &options, out);
    if (rc == 0 && !wanted->whole)
        rc = begin(self, &self->since_table);
    return rc == 0 && !wanted->whole ? weir_totals_table_printed() : rc;
}

static int print_verdict_alone(void *user, FILE *out)
{
    FILE *tables = fopen("/dev/null", "w");
    if (!tables)
        return -errno;
    ((struct wanted *)user)->verdict = out;
    int rc = print_report(user, tables);
    fclose(tables);
    return rc;
}

static PyObject *printed(PyObject *object, PyObject *lang_name, bool whole, int (*print)(void *user, FILE *out))
{
    struct wanted wanted = {.self = (struct weir_loader_object *)object, .whole = whole};
    int lang = weir_py_lang(lang_name);
    if (lang < 0 || weir_loader_check(wanted.self) < 0)
        return NULL;
    wanted.lang = (enum weir_lang)lang;
    return weir_py_printed(print, &wanted);
}

PyObject *weir_loader_py_table(PyObject *object, PyObject *args, PyObject *names)
{
    static char *keywords[] = {"lang", "whole", NULL};
    PyObject *lang = NULL;
    int whole = 0;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|O$p:table", keywords, &lang, &whole))
        return NULL;
    return printed(object, lang, whole, print_report);
}

PyObject *weir_loader_py_published(PyObject *object, PyObject *unused)
{
    struct wanted wanted = {.self = (struct weir_loader_object *)object, .lang = WEIR_LANG_EN, .publish = true};
    return weir_loader_check(wanted.self) < 0 ? NULL : weir_py_printed(print_report, &wanted);
}

PyObject *weir_loader_py_verdict(PyObject *object, PyObject *args)
{
    PyObject *lang = NULL;
    return PyArg_ParseTuple(args, "|O:verdict", &lang) ? printed(object, lang, true, print_verdict_alone) : NULL;
}
