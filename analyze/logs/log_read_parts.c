/* Parts of a "stages" record: which camera and file, the consumer's steps, what the run was set up with. */
#include "analyze/logs/log_read_priv.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

static void read_source(struct weir_log_at *at, const json_t *from, struct weir_report_source *source)
{
    source->count = weir_log_count(at, from, "count");
    source->bytes = weir_log_count(at, from, "bytes");
    source->total_s = weir_log_double(at, from, "total_s", 0);
    source->p50_s = weir_log_double(at, from, "p50_s", 0);
    source->p99_s = weir_log_double(at, from, "p99_s", 0);
    source->max_s = weir_log_double(at, from, "max_s", 0);
}

static void read_call(struct weir_log_at *at, const json_t *from, struct weir_report_call *call)
{
    char what[16] = "";
    weir_log_text(at, from, "what", what, sizeof what);
    call->decode = strcmp(what, "decode") == 0;
    call->s = weir_log_double(at, from, "s", 0);
    weir_log_text(at, from, "file", call->file, sizeof call->file);
    weir_log_text(at, from, "camera", call->camera, sizeof call->camera);
    call->t = weir_log_integer(at, from, "t", 0, INT_MAX);
}

void weir_log_read_sources(struct weir_log_at *at, const json_t *object, struct weir_report_sources *sources)
{
    const json_t *cameras = weir_log_array(at, object, "cameras", WEIR_REPORT_CAMERAS);
    for (size_t i = 0; cameras && i < json_array_size(cameras); i++) {
        const json_t *from = json_array_get(cameras, i);
        struct weir_report_camera *camera = &sources->cameras[sources->n_cameras++];
        weir_log_text(at, from, "name", camera->name, sizeof camera->name);
        read_source(at, json_object_get(from, "read"), &camera->read);
        read_source(at, json_object_get(from, "decode"), &camera->decode);
    }
    const json_t *files = json_object_get(object, "files");
    sources->files_read = weir_log_count(at, files, "read");
    sources->files_median_s = weir_log_double(at, files, "median_s", 0);
    files = weir_log_array(at, files, "slowest", WEIR_REPORT_FILES);
    for (size_t i = 0; files && i < json_array_size(files); i++) {
        const json_t *from = json_array_get(files, i);
        struct weir_report_file *file = &sources->files[sources->n_files++];
        weir_log_text(at, from, "name", file->name, sizeof file->name);
        file->count = weir_log_count(at, from, "count");
        file->mean_s = weir_log_double(at, from, "mean_s", 0);
        file->max_s = weir_log_double(at, from, "max_s", 0);
    }
    const json_t *calls = weir_log_array(at, object, "slowest_calls", WEIR_REPORT_CALLS);
    for (size_t i = 0; calls && i < json_array_size(calls); i++)
        read_call(at, json_array_get(calls, i), &sources->calls[sources->n_calls++]);
}

/* ---- steps ---- */

static void read_epochs(struct weir_log_at *at, const json_t *from, struct weir_report_epochs *epochs)
{
    *epochs = (struct weir_report_epochs){
        .n = weir_log_int(at, from, "n"),
        .images = weir_log_count(at, from, "images"),
        .s = weir_log_double(at, from, "s", 0),
        .wait_s = weir_log_double(at, from, "wait_s", 0),
        .slowest = weir_log_double(at, from, "slowest_images_per_s", 0),
        .fastest = weir_log_double(at, from, "fastest_images_per_s", 0),
        .device_bytes = weir_log_double(at, from, "device_bytes", from ? -1 : 0),
    };
}

static void read_late(struct weir_log_at *at, const json_t *from, struct weir_report_late *late)
{
    if (!from)
        return;
    late->batches = weir_log_count(at, from, "batches");
    late->wait_s = weir_log_double(at, from, "wait_s", 0);
    late->task_s = weir_log_double(at, from, "task_s", 0);
    late->read_s = weir_log_double(at, from, "read_s", 0);
    late->longest_wait_s = weir_log_double(at, from, "longest_wait_s", 0);
    weir_log_text(at, from, "camera", late->camera, sizeof late->camera);
    weir_log_text(at, from, "file", late->file, sizeof late->file);
    weir_log_text(at, from, "worker", late->worker, sizeof late->worker);
    late->camera_wait_s = weir_log_double(at, from, "camera_wait_s", 0);
    late->file_wait_s = weir_log_double(at, from, "file_wait_s", 0);
    late->worker_wait_s = weir_log_double(at, from, "worker_wait_s", 0);
}

static void read_setup(struct weir_log_at *at, const json_t *from, struct weir_report_setup *setup)
{
    if (!from)
        return;
    *setup = (struct weir_report_setup){
        .known = true,
        .workers = (int)weir_log_integer(at, from, "workers", 0, WEIR_LOG_NUMBER_MAX),
        .slots = (int)weir_log_integer(at, from, "slots", 0, WEIR_LOG_NUMBER_MAX),
        .batch_size = (int)weir_log_integer(at, from, "batch_size", 0, WEIR_LOG_NUMBER_MAX),
        .images_per_sample = (int)weir_log_integer(at, from, "images_per_sample", 0, WEIR_LOG_NUMBER_MAX),
        .device = weir_log_int(at, from, "device"),
        .width = weir_log_int(at, from, "width"),
        .height = weir_log_int(at, from, "height"),
        .out_width = weir_log_int(at, from, "out_width"),
        .out_height = weir_log_int(at, from, "out_height"),
        .normalised = weir_log_bool(at, from, "normalised", false),
        .encoded = weir_log_bool(at, from, "encoded", false),
        .sizes_differ = weir_log_bool(at, from, "sizes_differ", false),
        .image_bytes = weir_log_count(at, from, "image_bytes"),
        .reads_ahead = weir_log_bool(at, from, "reads_ahead", false),
        .direct = weir_log_bool(at, from, "direct", false),
        .frames_bytes = weir_log_count(at, from, "frames_bytes"),
        .memory_free_bytes = weir_log_count(at, from, "memory_free_bytes"),
        .cached_at_start = weir_log_double(at, from, "cached_at_start", -1),
        .copy_bytes_per_s = weir_log_double(at, from, "copy_bytes_per_s", 0),
        .jpeg_engines = (int)weir_log_integer(at, from, "jpeg_engines", 0, WEIR_LOG_NUMBER_MAX),
        .indexed = weir_log_bool(at, from, "indexed", true),
        .index_s = weir_log_double(at, from, "index_s", 0),
    };
    char codec[16] = "";
    weir_log_text(at, from, "decoder", setup->decoder, sizeof setup->decoder);
    weir_log_text(at, from, "io", setup->io, sizeof setup->io);
    weir_log_text(at, from, "codec", codec, sizeof codec);
    int kind = weir_frame_kind_from_name(codec);
    setup->kind = kind >= 0 ? (enum weir_frame_kind)kind : setup->encoded ? WEIR_FRAME_IMAGE : WEIR_FRAME_RAW;
}

static void read_idle(struct weir_log_at *at, const json_t *from, struct weir_report_idle *idle)
{
    *idle = (struct weir_report_idle){
        .traced_s = weir_log_double(at, from, "traced_s", 0),
        .busy = weir_log_double(at, from, "busy_fraction", 0),
        .launching = weir_log_double(at, from, "launching", 0),
        .sync = weir_log_double(at, from, "synchronising", 0),
        .data = weir_log_double(at, from, "data", 0),
        .allocating = weir_log_double(at, from, "allocating", 0),
        .queued = weir_log_double(at, from, "queued", 0),
        .other = weir_log_double(at, from, "other", 0),
        .delay_p50_s = weir_log_double(at, from, "delay_p50_s", -1),
        .delay_p99_s = weir_log_double(at, from, "delay_p99_s", -1),
        .kernels_per_step = weir_log_double(at, from, "kernels_per_step", -1),
    };
}

void weir_log_read_steps(struct weir_log_at *at, const json_t *object, struct weir_loader_report *report)
{
    const json_t *from = json_object_get(object, "steps");
    report->steps = (struct weir_report_steps){
        .train_batches = weir_log_count(at, from, "train_batches"),
        .val_batches = weir_log_count(at, from, "val_batches"),
        .images = weir_log_count(at, from, "images"),
        .train_s = weir_log_double(at, from, "train_s", 0),
        .val_s = weir_log_double(at, from, "val_s", 0),
        .train_wait_s = weir_log_double(at, from, "train_wait_s", 0),
        .val_wait_s = weir_log_double(at, from, "val_wait_s", 0),
        .first_wait_s = weir_log_double(at, from, "first_wait_s", 0),
    };
    report->storage.device_bytes = weir_log_double(at, from, "device_bytes", -1);
    const json_t *probe = json_object_get(from, "probe");
    report->storage.probe_depth = weir_log_int(at, probe, "depth");
    report->storage.probe_small_s = weir_log_double(at, probe, "small_s", 0);
    report->storage.probe_whole_s = weir_log_double(at, probe, "whole_s", 0);
    report->storage.probe_bytes_per_s = weir_log_double(at, probe, "bytes_per_s", 0);
    read_epochs(at, json_object_get(from, "first_epoch"), &report->first_epoch);
    read_epochs(at, json_object_get(from, "later_epochs"), &report->later_epochs);
    read_late(at, json_object_get(object, "late"), &report->late);
    read_idle(at, json_object_get(object, "gpu_idle"), &report->idle);
    read_setup(at, json_object_get(object, "setup"), &report->setup);
}
