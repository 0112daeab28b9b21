#include "pipeline/report/log_fields.h"
#include "base/field_rows.h"
#include "decoders/frame_kind.h"
#include "pipeline/report/report_parts_priv.h"
#include "prof/report/report_fields.h"

#include <assert.h>
#include <stddef.h>

#define SMALL(key, member) WEIR_FIELD(S, key, member, WEIR_FIELD_SMALL)
#define READS(text, member)                                                                                            \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_NAME, .flags = WEIR_FIELD_OPTIONAL, WEIR_FIELD_AT(S, member),                \
        .name = weir_reads_field_name, .names = WEIR_READS_DIRECT + 1                                                  \
    }

const char *weir_reads_field_name(int reads)
{
    return weir_report_reads_name((enum weir_reads)reads);
}

/* ---- start, epoch, measured ---- */

#define S struct weir_start_line
static const struct weir_field start[] = {
    PLAIN("first_batch_s", first_batch_s),
    PLAIN("open_s", open_s),
    PLAIN("index_s", index_s),
    PLAIN("files", files),
    PLAIN("files_from_index", files_from_index),
};
WEIR_FIELDS(weir_start_fields, start);
#undef S

#define S struct weir_epoch_line
static const struct weir_field losses[] = {
    WEIR_FIELD(S, "train_loss", train_loss, WEIR_FIELD_NAN),
    WEIR_FIELD(S, "val_loss", val_loss, WEIR_FIELD_NAN),
};
static WEIR_FIELDS(loss_fields, losses);
static const struct weir_field epoch_gpu[] = {
    PLAIN("gpu_busy_fraction", gpu_busy_fraction),
    KNOWN("copy_overlap_fraction", copy_overlap_fraction),
};
static WEIR_FIELDS(epoch_gpu_fields, epoch_gpu);
static const struct weir_field epoch[] = {
    PLAIN("epoch", epoch),
    PLAIN("epoch_count", epoch_count),
    PLAIN("interrupted", interrupted),
    PLAIN("total_s", total_s),
    PLAIN("train_s", train_s),
    PLAIN("val_s", val_s),
    PLAIN("data_wait_fraction", data_wait_fraction),
    PLAIN("samples_per_s", samples_per_s),
    PLAIN("images_per_s", images_per_s),
    PLAIN("peak_rss_bytes", peak_rss_bytes),
    READS("reads", reads),
    KNOWN("page_cache_fraction", cached_fraction),
    {.type = WEIR_FIELD_GROUP, .inner = &loss_fields, WEIR_FIELD_PRESENT(S, trained)},
    {.type = WEIR_FIELD_GROUP, .inner = &epoch_gpu_fields, WEIR_FIELD_PRESENT(S, gpu)},
};
WEIR_FIELDS(weir_epoch_fields, epoch);
#undef S

#define S struct weir_measured_line
static const struct weir_field measured[] = {
    PLAIN("seconds", seconds),
    PLAIN("warm_up_s", warm_up_s),
    PLAIN("batches", batches),
    PLAIN("samples", samples),
    PLAIN("images", images),
    PLAIN("samples_per_s", samples_per_s),
    PLAIN("images_per_s", images_per_s),
    PLAIN("data_wait_fraction", data_wait_fraction),
    PLAIN("peak_rss_bytes", peak_rss_bytes),
    READS("reads", reads),
    KNOWN("page_cache_fraction", cached_fraction),
};
WEIR_FIELDS(weir_measured_fields, measured);
#undef S

/* ---- stages: GPU ---- */

#define S struct weir_report_engine
static const struct weir_field engine[] = {
    PLAIN("by", by),
    PLAIN("frames", frames),
    PLAIN("groups", groups),
    PLAIN("busy_fraction", busy),
};
static WEIR_FIELDS(engine_fields, engine);
#undef S

#define S struct weir_report_decode
static const struct weir_field decode[] = {
    ARRAY("engines", engine_fields, engines, n_engines),
    PLAIN("cpu_frames", cpu_frames),
    KNOWN("cpu_busy_fraction", cpu_busy),
    PLAIN("sent_back", sent_back),
    PLAIN("reasons", reasons),
    PLAIN("compared", compared),
    PLAIN("below_gate", below),
    PLAIN("least_db", least_db),
    PLAIN("gate_db", gate_db),
};
static WEIR_FIELDS(decode_fields, decode);
#undef S

#define S struct weir_report_gpu
static const struct weir_field gpu[] = {
    PLAIN("number", number),
    PLAIN("name", name),
    PLAIN("busy_fraction", busy),
    KNOWN("copy_bytes_per_s", copy_bytes_per_s),
    KNOWN("copy_overlap_fraction", overlap),
    PLAIN("stall_s", stall_s),
    PLAIN("sync_steps", sync_steps),
    WEIR_FIELD(S, "memory_used_bytes", used_bytes, WEIR_FIELD_OMIT),
    ARRAY("stages", weir_row_fields, rows, n_rows),
    MEMBER_IF("decode", decode_fields, decode, n_engines),
};
static WEIR_FIELDS(gpu_fields, gpu);
#undef S

/* ---- stages: chunks, cache ---- */

#define S struct weir_report_video
static const struct weir_field pictures[] = {
    PLAIN("groups", counts.groups),         PLAIN("group_pictures", counts.group_pictures),
    PLAIN("decoded", counts.decoded),       PLAIN("used", counts.used),
    PLAIN("key_s", counts.key_s),           PLAIN("jpeg_s", jpeg_s),
    PLAIN("gpu_groups", counts.gpu_groups),
};
static WEIR_FIELDS(picture_fields, pictures);
#undef S

#define S struct weir_chunk_counts
static double unpacked_times(const void *counts)
{
    return weir_chunks_unpacked(counts);
}

static double read_times(const void *counts)
{
    return weir_chunks_read(counts);
}

static const struct weir_field chunks[] = {
    PLAIN("frames", frames),
    PLAIN("blocks", blocks),
    PLAIN("chunks", chunks),
    PLAIN("frame_bytes", frame_bytes),
    PLAIN("unpacked_bytes", unpacked_bytes),
    PLAIN("stored_bytes", stored_bytes),
    PLAIN("read_bytes", read_bytes),
    DERIVED("unpacked_times", unpacked_times),
    DERIVED("read_times", read_times),
};
static WEIR_FIELDS(chunk_fields, chunks);
#undef S

#define S struct weir_report_cache
static double hit_rate(const void *cache)
{
    return weir_report_hit_rate(cache);
}

static const struct weir_field cache[] = {
    PLAIN("budget_bytes", budget_bytes),
    PLAIN("used_bytes", used_bytes),
    PLAIN("frames", frames),
    PLAIN("hits", hits),
    PLAIN("misses", misses),
    DERIVED("hit_rate", hit_rate),
    WEIR_FIELD(S, "saved_s", saved_s, WEIR_FIELD_NAN),
    PLAIN("all_frames", all_frames),
    PLAIN("all_bytes", all_bytes),
    KNOWN("all_hit_rate", all_hit_rate),
};
static WEIR_FIELDS(cache_fields, cache);
#undef S

/* ---- stages: cameras, files, calls ---- */

#define S struct weir_report_source
static double source_rate(const void *source)
{
    return weir_source_bytes_per_s(source);
}

static const struct weir_field source[] = {
    PLAIN("count", count), PLAIN("bytes", bytes), PLAIN("total_s", total_s), DERIVED("bytes_per_s", source_rate),
    PLAIN("p50_s", p50_s), PLAIN("p99_s", p99_s), PLAIN("max_s", max_s),
};
static WEIR_FIELDS(source_fields, source);
#undef S

#define S struct weir_report_camera
static const struct weir_field camera[] = {
    PLAIN("name", name),
    MEMBER("read", source_fields, read),
    MEMBER("decode", source_fields, decode),
};
static WEIR_FIELDS(camera_fields, camera);
#undef S

#define S struct weir_report_file
static const struct weir_field file[] = {
    PLAIN("name", name),
    PLAIN("count", count),
    PLAIN("mean_s", mean_s),
    PLAIN("max_s", max_s),
};
static WEIR_FIELDS(file_fields, file);
#undef S

static const char *call_name(int decodes)
{
    return decodes ? "decode" : "read";
}

#define S struct weir_report_call
static const struct weir_field call[] = {
    {.key = "what", .type = WEIR_FIELD_NAME, WEIR_FIELD_AT(S, decode), .name = call_name, .names = 2},
    PLAIN("s", s),
    PLAIN("file", file),
    PLAIN("camera", camera),
    PLAIN("t", t),
};
static WEIR_FIELDS(call_fields, call);
#undef S

#define S struct weir_report_sources
static const struct weir_field files[] = {
    PLAIN("read", files_read),
    PLAIN("median_s", files_median_s),
    ARRAY("slowest", file_fields, files, n_files),
};
static WEIR_FIELDS(files_fields, files);
static const struct weir_field sources[] = {
    ARRAY("cameras", camera_fields, cameras, n_cameras),
    OBJECT("files", files_fields),
    ARRAY("slowest_calls", call_fields, calls, n_calls),
};
static WEIR_FIELDS(sources_fields, sources);
#undef S

/* ---- stages: setup, steps, late batches, idle time ---- */

static const char *codec_name(int kind)
{
    return weir_frame_kind_name((enum weir_frame_kind)kind);
}

#define S struct weir_report_setup
static const struct weir_field setup[] = {
    SMALL("workers", workers),
    SMALL("slots", slots),
    SMALL("batch_size", batch_size),
    SMALL("images_per_sample", images_per_sample),
    PLAIN("device", device),
    PLAIN("width", width),
    PLAIN("height", height),
    PLAIN("out_width", out_width),
    PLAIN("out_height", out_height),
    PLAIN("normalised", normalised),
    PLAIN("encoded", encoded),
    {.key = "codec", .type = WEIR_FIELD_NAME, WEIR_FIELD_AT(S, kind), .name = codec_name, .names = WEIR_FRAME_KINDS},
    PLAIN("sizes_differ", sizes_differ),
    PLAIN("image_bytes", image_bytes),
    PLAIN("reads_ahead", reads_ahead),
    PLAIN("direct", direct),
    PLAIN("decoder", decoder),
    PLAIN("io", io),
    PLAIN("frames_bytes", frames_bytes),
    PLAIN("memory_free_bytes", memory_free_bytes),
    KNOWN("cached_at_start", cached_at_start),
    PLAIN("copy_bytes_per_s", copy_bytes_per_s),
    SMALL("jpeg_engines", jpeg_engines),
    WEIR_FIELD(S, "indexed", indexed, WEIR_FIELD_TRUE),
    PLAIN("index_s", index_s),
};
static WEIR_FIELDS(setup_fields, setup);
#undef S

#define S struct weir_report_epochs
static const struct weir_field epochs[] = {
    PLAIN("n", n),
    PLAIN("images", images),
    PLAIN("s", s),
    PLAIN("wait_s", wait_s),
    PLAIN("slowest_images_per_s", slowest),
    PLAIN("fastest_images_per_s", fastest),
    KNOWN("device_bytes", device_bytes),
};
static WEIR_FIELDS(epochs_fields, epochs);
#undef S

#define S struct weir_report_late
static const struct weir_field late[] = {
    PLAIN("batches", batches),
    PLAIN("wait_s", wait_s),
    PLAIN("task_s", task_s),
    PLAIN("read_s", read_s),
    PLAIN("longest_wait_s", longest_wait_s),
    PLAIN("camera", camera),
    PLAIN("camera_wait_s", camera_wait_s),
    PLAIN("file", file),
    PLAIN("file_wait_s", file_wait_s),
    PLAIN("worker", worker),
    PLAIN("worker_wait_s", worker_wait_s),
};
static WEIR_FIELDS(late_fields, late);
#undef S

#define S struct weir_report_idle
static const struct weir_field idle[] = {
    PLAIN("traced_s", traced_s),
    PLAIN("busy_fraction", busy),
    PLAIN("launching", launching),
    PLAIN("synchronising", sync),
    PLAIN("data", data),
    PLAIN("allocating", allocating),
    PLAIN("queued", queued),
    PLAIN("other", other),
    KNOWN("delay_p50_s", delay_p50_s),
    KNOWN("delay_p99_s", delay_p99_s),
    KNOWN("kernels_per_step", kernels_per_step),
};
static WEIR_FIELDS(idle_fields, idle);
#undef S

#define S struct weir_report_error
static const struct weir_field error[] = {
    WEIR_FIELD(S, "text", text,
               WEIR_FIELD_SHOWN), /* as in the tables, so that printing a log gives the same output as the run */
    PLAIN("count", count),
};
static WEIR_FIELDS(error_fields, error);
#undef S

/* ---- stages ---- */

#define S struct weir_loader_report
static const struct weir_field probe[] = {
    PLAIN("depth", storage.probe_depth),
    PLAIN("small_s", storage.probe_small_s),
    PLAIN("whole_s", storage.probe_whole_s),
    PLAIN("bytes_per_s", storage.probe_bytes_per_s),
};
static WEIR_FIELDS(probe_fields, probe);

static const struct weir_field steps[] = {
    PLAIN("train_batches", steps.train_batches),
    PLAIN("val_batches", steps.val_batches),
    PLAIN("images", steps.images),
    PLAIN("train_s", steps.train_s),
    PLAIN("val_s", steps.val_s),
    PLAIN("train_wait_s", steps.train_wait_s),
    PLAIN("val_wait_s", steps.val_wait_s),
    PLAIN("first_wait_s", steps.first_wait_s),
    PLAIN("no_step", steps.no_step),
    PLAIN("step_ms", steps.step_ms),
    PLAIN("own_step", steps.own_step),
    KNOWN("device_bytes", storage.device_bytes),
    OBJECT_IF("probe", probe_fields, storage.probe_depth),
    MEMBER_IF("first_epoch", epochs_fields, first_epoch, n),
    MEMBER_IF("later_epochs", epochs_fields, later_epochs, n),
};
static WEIR_FIELDS(steps_fields, steps);
static_assert(offsetof(S, steps.val_batches) == offsetof(S, steps.train_batches) + sizeof(uint64_t),
              "steps are present if a batch count is not 0");

static const struct weir_field queue[] = {
    SMALL("slots", queue_slots), PLAIN("mean", queue_mean),        PLAIN("min", queue_min),
    PLAIN("max", queue_max),     PLAIN("requests", queue_samples),
};
static WEIR_FIELDS(queue_fields, queue);

static const struct weir_field io[] = {
    PLAIN("reads", reads),
    PLAIN("read_bytes", read_bytes),
    PLAIN("fallback_reads", fallbacks.frames),
    PLAIN("helper_busy_fraction", fallbacks.busy),
    PLAIN("helper_each_s", fallbacks.each_s),
    PLAIN("helper_waiting", fallbacks.waiting),
    PLAIN("ahead_reads", ahead_reads),
    WEIR_FIELD(S, "server_requests", server.requests, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "server_opening_requests", server.opening_requests, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "server_bytes", server.bytes, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "server_retries", server.retries, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "server_limited", server.limited, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "server_connections", server.connections, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "server_wait_s", server.wait_s, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "server_transfer_s", server.transfer_s, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "cache_bytes", server.cache_bytes, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "cache_stored_bytes", server.cache_stored_bytes, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "cache_full_bytes", server.cache_full_bytes, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "cache_damaged_blocks", server.cache_damaged_blocks, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "cache_errno", server.cache_errno, WEIR_FIELD_OMIT),
    WEIR_FIELD(S, "server_in_flight", server.in_flight, WEIR_FIELD_OMIT),
    PLAIN("server_limit", server.limit),
    PLAIN("server_limit_most", server.limit_most),
    PLAIN("server_limit_fixed", server.limit_fixed),
    WEIR_FIELD(S, "server_host", server.host, WEIR_FIELD_OPTIONAL | WEIR_FIELD_SHOWN),
};
static WEIR_FIELDS(io_fields, io);

static const struct weir_field pixels[] = {
    PLAIN("stored_pixels", stored_pixels),
    PLAIN("decoded_pixels", decoded_pixels),
};
static WEIR_FIELDS(pixel_fields, pixels);

static const struct weir_field stages[] = {
    PLAIN("epoch_first", epoch_first),
    PLAIN("epoch_last", epoch_last),
    PLAIN("epoch_count", epoch_count),
    PLAIN("final", final),
    PLAIN("interrupted", interrupted),
    PLAIN("after_fill", after_fill),
    PLAIN("wall_s", wall_s),
    PLAIN("cpu_s", cpu_s),
    WEIR_FIELD(S, "timing", timing, WEIR_FIELD_TRUE),
    {.type = WEIR_FIELD_GROUP, .inner = &weir_prof_fields, WEIR_FIELD_AT(S, prof)},
    MEMBER_IF("gpu", gpu_fields, gpu, used),
    OBJECT("queue", queue_fields),
    OBJECT("io", io_fields),
    OBJECT("decoding", pixel_fields),
    MEMBER_IF("chunks", chunk_fields, chunks, frames),
    MEMBER_IF("video", picture_fields, video, counts.groups),
    {.type = WEIR_FIELD_GROUP,
     .inner = &sources_fields,
     WEIR_FIELD_AT(S, sources),
     WEIR_FIELD_PRESENT(S, sources.n_cameras)},
    MEMBER_IF("setup", setup_fields, setup, known),
    {.key = "steps",
     .type = WEIR_FIELD_OBJECT,
     .inner = &steps_fields,
     .present = offsetof(S, steps.train_batches),
     .present_size = 2 * sizeof(uint64_t)},
    MEMBER_IF("late", late_fields, late, batches),
    MEMBER_IF("gpu_idle", idle_fields, idle, traced_s),
    PLAIN("frames_shared", frames_shared),
    MEMBER_IF("decode_cache", cache_fields, cache, budget_bytes),
    WEIR_FIELD(S, "warned_frames", warned_frames, WEIR_FIELD_OMIT),
    PLAIN("bad_frames", bad_frames),
    PLAIN("skipped_samples", skipped_samples),
    PLAIN("substituted_frames", substituted_frames),
    PLAIN("bad_episodes", bad_episodes),
    WEIR_FIELD(S, "changed_files", changed_files, WEIR_FIELD_OMIT),
    ARRAY("errors", error_fields, errors, n_errors),
    {.type = WEIR_FIELD_GROUP, .inner = &weir_cost_fields, WEIR_FIELD_AT(S, prof)},
};
WEIR_FIELDS(weir_stages_fields, stages);
#undef S
