/* Live figures of weir.Loader: metrics as text, in a file for Prometheus and over HTTP. */
#include "analyze/live/live.h"
#include "pipeline/report/live_report.h"
#include "python/src/loader_parts.h"
#include "python/src/py.h"
#include "python/src/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int collect(void *user, struct weir_metrics *metrics)
{
    struct weir_loader_object *self = user;
    weir_metrics_label(metrics->loader, self->config.data);
    weir_loader_now(self->loader, &metrics->now);
    metrics->epochs = (double)self->epochs_done;
    return weir_live_report(self->reports, &metrics->report);
}

static void write_run(void *user, FILE *out)
{
    const struct weir_loader_object *self = user;
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "run");
    weir_json_text(&json, "weir", WEIR_VERSION);
    weir_json_object(&json, "config");
    weir_json_text(&json, "data", self->config.data);
    weir_json_int(&json, "batch_size", self->config.batch_size);
    weir_json_end(&json, '}');
    weir_json_object(&json, "used");
    weir_json_int(&json, "rank", self->config.rank);
    weir_json_int(&json, "world_size", self->config.world_size);
    weir_json_end(&json, '}');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static struct weir_live_source source_of(struct weir_loader_object *self)
{
    return (struct weir_live_source){
        .collect = collect, .write_run = write_run, .write_log = weir_live_log, .user = self, .keeps_history = true};
}

static struct weir_metrics_process process_of(const struct weir_loader_object *self)
{
    return (struct weir_metrics_process){
        .version = WEIR_VERSION, .source = "loader", .rank = self->config.rank, .world_size = self->config.world_size};
}

int weir_loader_live_begin(struct weir_loader_object *self, struct weir_err *err)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    self->opened_unix_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    int rc = weir_live_report_begin(self->reports, self->live != NULL);
    if (rc < 0)
        return weir_err_set(err, rc, "out of memory for live figures");
    const struct weir_live_source source = source_of(self);
    rc = self->live ? weir_live_add(self->live, &source, err) : 0;
    self->is_live = self->live && rc == 0;
    return rc;
}

void weir_loader_live_end(struct weir_loader_object *self)
{
    if (self->is_live)
        weir_live_remove(self->live, self);
    self->is_live = false;
}

void weir_loader_live_epoch(struct weir_loader_object *self)
{
    self->epochs_done++;
    if (self->live)
        weir_live_epoch(self->live);
}

void weir_loader_live_close(struct weir_loader_object *self)
{
    struct weir_live *live = self->live;
    self->live = NULL;
    Py_BEGIN_ALLOW_THREADS weir_live_close(&live);
    Py_END_ALLOW_THREADS
}

PyObject *weir_loader_py_open_live(PyObject *object, PyObject *args)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    struct weir_live_config config = {.process = process_of(self), .page = weir_live_page};
    struct weir_err err = WEIR_ERR_NONE;
    int rc;
    if (!PyArg_ParseTuple(args, "zzi:_open_live", &config.prometheus, &config.serve, &config.local_rank) ||
        weir_loader_check(self) < 0)
        return NULL;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS;
    rc = config.prometheus ? weir_dataset_spare(weir_loader_dataset(self->loader), config.prometheus, &err) : 0;
    if (rc == 0)
        rc = weir_live_open(&self->live, &config, &err);
    if (rc == 0)
        rc = weir_loader_live_begin(self, &err);
    Py_END_ALLOW_THREADS;
    self->busy = false;
    if (rc < 0) {
        weir_loader_live_close(self);
        return weir_py_raise(rc, &err);
    }
    return Py_BuildValue("z", weir_live_url(self->live));
}

PyObject *weir_loader_py_metrics(PyObject *object, PyObject *unused)
{
    struct weir_loader_object *self = (struct weir_loader_object *)object;
    char *text;
    if (weir_loader_check(self) < 0)
        return NULL;
    struct weir_live_source source = source_of(self);
    struct weir_metrics_process process = process_of(self);
    process.start_unix_s = self->opened_unix_s;
    if (weir_live_text(&text, &source, 1, &process) < 0)
        return PyErr_NoMemory();
    PyObject *result = weir_py_shown(text);
    free(text);
    return result;
}
