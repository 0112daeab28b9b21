/* Members of a log line: the consumer's steps, and the configuration of the run. */
#include "pipeline/report/report_parts_priv.h"

static void write_epochs(struct weir_json *json, const char *key, const struct weir_report_epochs *epochs)
{
    weir_json_object(json, key);
    weir_json_int(json, "n", epochs->n);
    weir_json_uint(json, "images", epochs->images);
    weir_json_double(json, "s", epochs->s);
    weir_json_double(json, "wait_s", epochs->wait_s);
    weir_json_double(json, "slowest_images_per_s", epochs->slowest);
    weir_json_double(json, "fastest_images_per_s", epochs->fastest);
    weir_json_known(json, "device_bytes", epochs->device_bytes);
    weir_json_end(json, '}');
}

static void write_steps(struct weir_json *json, const struct weir_loader_report *report)
{
    const struct weir_report_steps *steps = &report->steps;
    weir_json_object(json, "steps");
    weir_json_uint(json, "train_batches", steps->train_batches);
    weir_json_uint(json, "val_batches", steps->val_batches);
    weir_json_uint(json, "images", steps->images);
    weir_json_double(json, "train_s", steps->train_s);
    weir_json_double(json, "val_s", steps->val_s);
    weir_json_double(json, "train_wait_s", steps->train_wait_s);
    weir_json_double(json, "val_wait_s", steps->val_wait_s);
    weir_json_double(json, "first_wait_s", steps->first_wait_s);
    weir_json_known(json, "device_bytes", report->storage.device_bytes);
    const struct weir_report_storage *storage = &report->storage;
    if (storage->probe_depth > 0) {
        weir_json_object(json, "probe");
        weir_json_int(json, "depth", storage->probe_depth);
        weir_json_double(json, "small_s", storage->probe_small_s);
        weir_json_double(json, "whole_s", storage->probe_whole_s);
        weir_json_double(json, "bytes_per_s", storage->probe_bytes_per_s);
        weir_json_end(json, '}');
    }
    if (report->first_epoch.n > 0)
        write_epochs(json, "first_epoch", &report->first_epoch);
    if (report->later_epochs.n > 0)
        write_epochs(json, "later_epochs", &report->later_epochs);
    weir_json_end(json, '}');
}

static void write_late(struct weir_json *json, const struct weir_report_late *late)
{
    if (late->batches == 0)
        return;
    weir_json_object(json, "late");
    weir_json_uint(json, "batches", late->batches);
    weir_json_double(json, "wait_s", late->wait_s);
    weir_json_double(json, "task_s", late->task_s);
    weir_json_double(json, "read_s", late->read_s);
    weir_json_double(json, "longest_wait_s", late->longest_wait_s);
    weir_json_text(json, "camera", late->camera);
    weir_json_double(json, "camera_wait_s", late->camera_wait_s);
    weir_json_text(json, "file", late->file);
    weir_json_double(json, "file_wait_s", late->file_wait_s);
    weir_json_text(json, "worker", late->worker);
    weir_json_double(json, "worker_wait_s", late->worker_wait_s);
    weir_json_end(json, '}');
}

static void write_setup(struct weir_json *json, const struct weir_report_setup *setup)
{
    weir_json_object(json, "setup");
    weir_json_int(json, "workers", setup->workers);
    weir_json_int(json, "slots", setup->slots);
    weir_json_int(json, "batch_size", setup->batch_size);
    weir_json_int(json, "images_per_sample", setup->images_per_sample);
    weir_json_int(json, "device", setup->device);
    weir_json_int(json, "width", setup->width);
    weir_json_int(json, "height", setup->height);
    weir_json_int(json, "out_width", setup->out_width);
    weir_json_int(json, "out_height", setup->out_height);
    weir_json_bool(json, "normalised", setup->normalised);
    weir_json_bool(json, "encoded", setup->encoded);
    weir_json_text(json, "codec", weir_frame_kind_name(setup->kind));
    weir_json_bool(json, "sizes_differ", setup->sizes_differ);
    weir_json_uint(json, "image_bytes", setup->image_bytes);
    weir_json_bool(json, "reads_ahead", setup->reads_ahead);
    weir_json_bool(json, "direct", setup->direct);
    weir_json_text(json, "decoder", setup->decoder);
    weir_json_text(json, "io", setup->io);
    weir_json_uint(json, "frames_bytes", setup->frames_bytes);
    weir_json_uint(json, "memory_free_bytes", setup->memory_free_bytes);
    weir_json_known(json, "cached_at_start", setup->cached_at_start);
    weir_json_double(json, "copy_bytes_per_s", setup->copy_bytes_per_s);
    weir_json_int(json, "jpeg_engines", setup->jpeg_engines);
    weir_json_bool(json, "indexed", setup->indexed);
    weir_json_double(json, "index_s", setup->index_s);
    weir_json_end(json, '}');
}

static void write_idle(struct weir_json *json, const struct weir_report_idle *idle)
{
    if (idle->traced_s <= 0)
        return;
    weir_json_object(json, "gpu_idle");
    weir_json_double(json, "traced_s", idle->traced_s);
    weir_json_double(json, "busy_fraction", idle->busy);
    weir_json_double(json, "launching", idle->launching);
    weir_json_double(json, "synchronising", idle->sync);
    weir_json_double(json, "data", idle->data);
    weir_json_double(json, "allocating", idle->allocating);
    weir_json_double(json, "queued", idle->queued);
    weir_json_double(json, "other", idle->other);
    weir_json_known(json, "delay_p50_s", idle->delay_p50_s);
    weir_json_known(json, "delay_p99_s", idle->delay_p99_s);
    weir_json_known(json, "kernels_per_step", idle->kernels_per_step);
    weir_json_end(json, '}');
}

void weir_report_steps_json(struct weir_json *json, const struct weir_loader_report *report)
{
    if (report->setup.known)
        write_setup(json, &report->setup);
    if (report->steps.train_batches + report->steps.val_batches > 0)
        write_steps(json, report);
    write_late(json, &report->late);
    write_idle(json, &report->idle);
}
