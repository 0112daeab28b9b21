#include "analyze/logs/log_read.h"
#include "analyze/logs/log_read_priv.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MAX = 1024, PRINT_DEPTH = 4, COPY_DEPTH = 32 };

/* No measurement in seconds or bytes is larger, and larger numbers would print hundreds of digits. */
static const double number_limit = 1e15;

static void value_error(struct weir_log_at *at, const char *key, const char *what)
{
    weir_err_set(at->err, -EBADMSG, "line %" PRIu64 ": \"%s\" %s", at->line, key, what);
    at->failed = true;
}

double weir_log_double(struct weir_log_at *at, const json_t *object, const char *key, double missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return missing;
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= -number_limit && number <= number_limit)) {
        value_error(at, key, "is not a number of a sensible size");
        return missing;
    }
    return number;
}

int64_t weir_log_integer(struct weir_log_at *at, const json_t *object, const char *key, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max) {
        value_error(at, key, "is not an integer of a sensible size");
        return 0;
    }
    return json_integer_value(value);
}

int weir_log_int(struct weir_log_at *at, const json_t *object, const char *key)
{
    return (int)weir_log_integer(at, object, key, INT_MIN, INT_MAX);
}

uint64_t weir_log_count(struct weir_log_at *at, const json_t *object, const char *key)
{
    return (uint64_t)weir_log_integer(at, object, key, 0, INT64_MAX);
}

bool weir_log_bool(struct weir_log_at *at, const json_t *object, const char *key, bool missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return missing;
    if (!json_is_boolean(value))
        value_error(at, key, "is neither true nor false");
    return json_is_true(value);
}

void weir_log_text(struct weir_log_at *at, const json_t *object, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));
    if (!value) {
        value_error(at, key, "is missing, or is not text");
        return;
    }
    snprintf(text, size, "%s", value);
    weir_text_printable(text);
}

const json_t *weir_log_array(struct weir_log_at *at, const json_t *object, const char *key, size_t max)
{
    const json_t *array = json_object_get(object, key);
    if (!array)
        return NULL;
    if (!json_is_array(array) || json_array_size(array) > max) {
        value_error(at, key, "is not a list of a sensible length");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!json_is_object(json_array_get(array, i))) {
            value_error(at, key, "holds something that is not an object");
            return NULL;
        }
    }
    return array;
}

static void read_optional_text(struct weir_log_at *at, const json_t *object, const char *key, char *text, size_t size)
{
    if (json_is_string(json_object_get(object, key)))
        weir_log_text(at, object, key, text, size);
}

static void read_used(struct weir_log_at *at, const json_t *used, struct weir_log_used *to)
{
    *to = (struct weir_log_used){.known = json_is_object(used)};
    read_optional_text(at, json_object_get(used, "io"), "used", to->io, sizeof to->io);
    read_optional_text(at, used, "decoder", to->decoder, sizeof to->decoder);
    to->workers = (int)weir_log_integer(at, used, "num_workers", 0, WEIR_LOG_NUMBER_MAX);
    to->prefetch = (int)weir_log_integer(at, used, "prefetch", 0, WEIR_LOG_NUMBER_MAX);
}

static void read_measured(struct weir_log_at *at, const json_t *object, struct weir_log_measured *to)
{
    *to = (struct weir_log_measured){.seconds = weir_log_double(at, object, "seconds", 0),
                                     .samples = weir_log_double(at, object, "samples", 0),
                                     .images = weir_log_double(at, object, "images", 0),
                                     .samples_per_s = weir_log_double(at, object, "samples_per_s", 0),
                                     .images_per_s = weir_log_double(at, object, "images_per_s", 0),
                                     .data_wait = weir_log_double(at, object, "data_wait_fraction", 0),
                                     .peak_bytes = weir_log_double(at, object, "peak_rss_bytes", 0),
                                     .cached = weir_log_double(at, object, "page_cache_fraction", -1)};
    read_optional_text(at, object, "reads", to->reads, sizeof to->reads);
}

static void read_start(struct weir_log_at *at, const json_t *object, struct weir_start_line *start)
{
    start->first_batch_s = weir_log_double(at, object, "first_batch_s", 0);
    start->open_s = weir_log_double(at, object, "open_s", 0);
    start->index_s = weir_log_double(at, object, "index_s", 0);
    start->files = weir_log_int(at, object, "files");
    start->files_from_index = weir_log_int(at, object, "files_from_index");
}

static void read_epoch(struct weir_log_at *at, const json_t *object, struct weir_epoch_line *epoch)
{
    epoch->epoch = weir_log_int(at, object, "epoch");
    epoch->epoch_count = weir_log_int(at, object, "epoch_count");
    epoch->interrupted = weir_log_bool(at, object, "interrupted", false);
    epoch->total_s = weir_log_double(at, object, "total_s", 0);
    epoch->train_s = weir_log_double(at, object, "train_s", 0);
    epoch->val_s = weir_log_double(at, object, "val_s", 0);
    epoch->data_wait_fraction = weir_log_double(at, object, "data_wait_fraction", 0);
    epoch->samples_per_s = weir_log_double(at, object, "samples_per_s", 0);
    epoch->images_per_s = weir_log_double(at, object, "images_per_s", 0);
    epoch->peak_rss_bytes = weir_log_count(at, object, "peak_rss_bytes");
    epoch->cached_fraction = weir_log_double(at, object, "page_cache_fraction", -1);
    epoch->trained = json_object_get(object, "train_loss") != NULL;
    epoch->train_loss = weir_log_double(at, object, "train_loss", NAN);
    epoch->val_loss = weir_log_double(at, object, "val_loss", NAN);
    epoch->gpu = json_object_get(object, "gpu_busy_fraction") != NULL;
    epoch->gpu_busy_fraction = weir_log_double(at, object, "gpu_busy_fraction", 0);
    epoch->copy_overlap_fraction = weir_log_double(at, object, "copy_overlap_fraction", -1);
    const char *reads = json_string_value(json_object_get(object, "reads"));
    for (enum weir_reads known = WEIR_READS_COLD; known <= WEIR_READS_DIRECT; known++)
        if (reads && strcmp(reads, weir_report_reads_name(known)) == 0)
            epoch->reads = known;
}

static void read_kind(struct weir_log_at *at, const json_t *object, struct weir_report_row *row)
{
    char kind[16] = "", side[16] = "";
    weir_log_text(at, object, "kind", kind, sizeof kind);
    weir_log_text(at, object, "side", side, sizeof side);
    for (enum weir_report_side known = WEIR_SIDE_WORKER; known < WEIR_SIDES; known++)
        if (strcmp(side, weir_report_side_name(known)) == 0)
            row->side = known;
    for (enum weir_stage_kind known = WEIR_KIND_WORK; known <= WEIR_KIND_LOOP; known++) {
        if (strcmp(kind, weir_stage_kind_name(known)) != 0)
            continue;
        row->kind = known;
        return;
    }
    value_error(at, "kind", "is not one of work, inclusive, span, wait");
}

static void read_row(struct weir_log_at *at, const json_t *from, struct weir_report_row *row)
{
    weir_log_text(at, from, "name", row->name, sizeof row->name);
    read_kind(at, from, row);
    row->count = weir_log_count(at, from, "count");
    row->total_s = weir_log_double(at, from, "total_s", 0);
    row->self_s = weir_log_double(at, from, "self_s", 0);
    row->mean_s = weir_log_double(at, from, "mean_s", 0);
    row->min_s = weir_log_double(at, from, "min_s", 0);
    row->p50_s = weir_log_double(at, from, "p50_s", 0);
    row->p90_s = weir_log_double(at, from, "p90_s", 0);
    row->p99_s = weir_log_double(at, from, "p99_s", 0);
    row->max_s = weir_log_double(at, from, "max_s", 0);
    row->cpu_s = weir_log_double(at, from, "cpu_s", -1);
    row->preempted_s = weir_log_double(at, from, "preempted_s", -1);
    row->cpu_over_wall = weir_log_double(at, from, "cpu_over_wall", -1);
    row->share = weir_log_double(at, from, "share", -1);
}

static void read_rows(struct weir_log_at *at, const json_t *object, struct weir_loader_report *report)
{
    const json_t *array = weir_log_array(at, object, "stages", WEIR_REPORT_ROWS);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_row(at, json_array_get(array, i), &report->prof.rows[report->prof.n_rows++]);
}

static void read_engine(struct weir_log_at *at, const json_t *from, struct weir_report_engine *engine)
{
    weir_log_text(at, from, "by", engine->by, sizeof engine->by);
    engine->frames = weir_log_count(at, from, "frames");
    engine->groups = weir_log_count(at, from, "groups");
    engine->busy = weir_log_double(at, from, "busy_fraction", 0);
}

static void read_decode(struct weir_log_at *at, const json_t *object, struct weir_report_decode *decode)
{
    const json_t *from = json_object_get(object, "decode");
    if (!from)
        return;
    const json_t *array = weir_log_array(at, from, "engines", WEIR_REPORT_ENGINES);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_engine(at, json_array_get(array, i), &decode->engines[decode->n_engines++]);
    decode->cpu_frames = weir_log_count(at, from, "cpu_frames");
    decode->cpu_busy = weir_log_double(at, from, "cpu_busy_fraction", -1);
    decode->sent_back = weir_log_count(at, from, "sent_back");
    weir_log_text(at, from, "reasons", decode->reasons, sizeof decode->reasons);
    decode->compared = weir_log_count(at, from, "compared");
    decode->below = weir_log_count(at, from, "below_gate");
    decode->least_db = weir_log_double(at, from, "least_db", 0);
    decode->gate_db = weir_log_double(at, from, "gate_db", 0);
}

static void read_gpu(struct weir_log_at *at, const json_t *object, struct weir_report_gpu *gpu)
{
    const json_t *from = json_object_get(object, "gpu");
    if (!from)
        return;
    gpu->used = true;
    gpu->number = weir_log_int(at, from, "number");
    weir_log_text(at, from, "name", gpu->name, sizeof gpu->name);
    gpu->copy_bytes_per_s = weir_log_double(at, from, "copy_bytes_per_s", -1);
    gpu->overlap = weir_log_double(at, from, "copy_overlap_fraction", -1);
    gpu->busy = weir_log_double(at, from, "busy_fraction", 0);
    gpu->stall_s = weir_log_double(at, from, "stall_s", 0);
    gpu->sync_steps = weir_log_bool(at, from, "sync_steps", false);
    gpu->used_bytes = weir_log_count(at, from, "memory_used_bytes");
    const json_t *array = weir_log_array(at, from, "stages", WEIR_REPORT_GPU_ROWS);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_row(at, json_array_get(array, i), &gpu->rows[gpu->n_rows++]);
    read_decode(at, from, &gpu->decode);
}

static void read_thread(struct weir_log_at *at, const json_t *from, struct weir_report_worker *worker)
{
    weir_log_text(at, from, "name", worker->name, sizeof worker->name);
    worker->wall_s = weir_log_double(at, from, "wall_s", 0);
    worker->work_s = weir_log_double(at, from, "work_s", 0);
    worker->wait_s = weir_log_double(at, from, "wait_s", 0);
    worker->unattributed_s = weir_log_double(at, from, "unattributed_s", weir_log_double(at, from, "other_s", 0));
    worker->cpu_s = weir_log_double(at, from, "cpu_s", 0);
    worker->work_cpu_s = weir_log_double(at, from, "work_cpu_s", -1);
    worker->wait_cpu_s = weir_log_double(at, from, "wait_cpu_s", -1);
    worker->unattributed_cpu_s =
        weir_log_double(at, from, "unattributed_cpu_s", weir_log_double(at, from, "other_cpu_s", -1));
    worker->throttled_s = weir_log_double(at, from, "throttled_s", -1);
    worker->core_wait_s = weir_log_double(at, from, "core_wait_s", -1);
    worker->blocked_s = weir_log_double(at, from, "blocked_s", -1);
    worker->steal_s = weir_log_double(at, from, "steal_s", -1);
}

static void read_machine(struct weir_log_at *at, const json_t *from, struct weir_report_machine *machine)
{
    *machine = (struct weir_report_machine){
        .used = from != NULL,
        .cores = weir_log_int(at, from, "cores_usable"),
        .online = weir_log_int(at, from, "cores_online"),
        .part = weir_log_int(at, from, "cores_part"),
        .quota_cores = weir_log_double(at, from, "quota_cores", 0),
        .throttling = json_object_get(from, "throttled_periods") != NULL,
        .periods = weir_log_count(at, from, "periods"),
        .throttled = weir_log_count(at, from, "throttled_periods"),
        .throttled_s = weir_log_double(at, from, "throttled_s", 0),
        .memory_limit_bytes = weir_log_count(at, from, "memory_limit_bytes"),
        .others_cores = weir_log_double(at, from, "others_cores", -1),
        .steal_cores = weir_log_double(at, from, "steal_cores", -1),
        .load_average = weir_log_double(at, from, "load_average_at_start", -1),
    };
}

static int read_workers(struct weir_log_at *at, const json_t *object, struct weir_loader_report *report)
{
    const json_t *array = weir_log_array(at, object, "workers", WORKERS_MAX);
    const json_t *consumer = json_object_get(object, "consumer");
    if (consumer)
        read_thread(at, consumer, &report->prof.consumer);
    if (!array || json_array_size(array) == 0)
        return 0;
    report->prof.workers = calloc(json_array_size(array), sizeof *report->prof.workers);
    if (!report->prof.workers)
        return weir_err_set(at->err, -ENOMEM, "line %" PRIu64 ": out of memory", at->line);
    for (size_t i = 0; i < json_array_size(array); i++) {
        read_thread(at, json_array_get(array, i), &report->prof.workers[report->prof.n_workers++]);
    }
    return 0;
}

static void read_chunks(struct weir_log_at *at, const json_t *from, struct weir_chunk_counts *counts)
{
    *counts = (struct weir_chunk_counts){
        .frames = weir_log_count(at, from, "frames"),
        .blocks = weir_log_count(at, from, "blocks"),
        .chunks = weir_log_count(at, from, "chunks"),
        .frame_bytes = weir_log_count(at, from, "frame_bytes"),
        .unpacked_bytes = weir_log_count(at, from, "unpacked_bytes"),
        .stored_bytes = weir_log_count(at, from, "stored_bytes"),
        .read_bytes = weir_log_count(at, from, "read_bytes"),
    };
}

static void read_cache(struct weir_log_at *at, const json_t *object, struct weir_report_cache *cache)
{
    const json_t *from = json_object_get(object, "decode_cache");
    cache->budget_bytes = weir_log_count(at, from, "budget_bytes");
    cache->used_bytes = weir_log_count(at, from, "used_bytes");
    cache->frames = weir_log_count(at, from, "frames");
    cache->hits = weir_log_count(at, from, "hits");
    cache->misses = weir_log_count(at, from, "misses");
    cache->saved_s = weir_log_double(at, from, "saved_s", NAN);
    cache->all_frames = weir_log_count(at, from, "all_frames");
    cache->all_bytes = weir_log_count(at, from, "all_bytes");
    cache->all_hit_rate = weir_log_double(at, from, "all_hit_rate", -1);
}

static void read_counts(struct weir_log_at *at, const json_t *object, struct weir_loader_report *report)
{
    const json_t *queue = json_object_get(object, "queue"), *io = json_object_get(object, "io");
    report->queue_slots = (int)weir_log_integer(at, queue, "slots", 0, WEIR_LOG_NUMBER_MAX);
    report->queue_mean = weir_log_double(at, queue, "mean", 0);
    report->queue_min = weir_log_int(at, queue, "min");
    report->queue_max = weir_log_int(at, queue, "max");
    report->queue_samples = weir_log_count(at, queue, "requests");
    report->reads = weir_log_count(at, io, "reads");
    report->read_bytes = weir_log_count(at, io, "read_bytes");
    report->fallbacks.frames = weir_log_count(at, io, "fallback_reads");
    report->fallbacks.busy = weir_log_double(at, io, "helper_busy_fraction", 0);
    report->fallbacks.each_s = weir_log_double(at, io, "helper_each_s", 0);
    report->fallbacks.waiting = weir_log_double(at, io, "helper_waiting", 0);
    const json_t *decoding = json_object_get(object, "decoding");
    report->stored_pixels = weir_log_count(at, decoding, "stored_pixels");
    report->decoded_pixels = weir_log_count(at, decoding, "decoded_pixels");
    read_chunks(at, json_object_get(object, "chunks"), &report->chunks);
    weir_log_read_sources(at, object, &report->sources);
    weir_log_read_steps(at, object, report);
    report->frames_shared = weir_log_count(at, object, "frames_shared");
    read_cache(at, object, &report->cache);
    report->bad_frames = weir_log_count(at, object, "bad_frames");
    report->skipped_samples = weir_log_count(at, object, "skipped_samples");
    report->substituted_frames = weir_log_count(at, object, "substituted_frames");
    report->bad_episodes = weir_log_count(at, object, "bad_episodes");
    report->changed_files = weir_log_count(at, object, "changed_files");
    const json_t *errors = weir_log_array(at, object, "errors", WEIR_REPORT_ERRORS_MAX);
    for (size_t i = 0; errors && i < json_array_size(errors); i++) {
        struct weir_report_error *error = &report->errors[report->n_errors++];
        weir_log_text(at, json_array_get(errors, i), "text", error->text, sizeof error->text);
        error->count = weir_log_count(at, json_array_get(errors, i), "count");
    }
}

static int read_report(struct weir_log_at *at, const json_t *object, struct weir_loader_report *report)
{
    *report = (struct weir_loader_report){0};
    report->epoch_first = weir_log_int(at, object, "epoch_first");
    report->epoch_last = weir_log_int(at, object, "epoch_last");
    report->epoch_count = weir_log_int(at, object, "epoch_count");
    report->final = weir_log_bool(at, object, "final", false);
    report->interrupted = weir_log_bool(at, object, "interrupted", false);
    report->timing = weir_log_bool(at, object, "timing", true);
    report->wall_s = weir_log_double(at, object, "wall_s", 0);
    report->cpu_s = weir_log_double(at, object, "cpu_s", 0);
    read_rows(at, object, report);
    read_machine(at, json_object_get(object, "machine"), &report->prof.machine);
    read_gpu(at, object, &report->gpu);
    read_counts(at, object, report);
    const json_t *profiler = json_object_get(object, "profiler");
    report->prof.zones = weir_log_count(at, profiler, "zones");
    report->prof.too_deep = weir_log_count(at, profiler, "zones_too_deep");
    report->prof.zone_cost_ns = weir_log_double(at, profiler, "zone_cost_ns", 0);
    report->prof.thread_s = weir_log_double(at, profiler, "thread_s", 0);
    report->prof.profiler_share = weir_log_double(at, profiler, "share", 0);
    report->prof.clock_error_ppm = weir_log_double(at, profiler, "clock_error_ppm", 0);
    read_optional_text(at, profiler, "cpu_sampled", report->prof.cpu_sampled, sizeof report->prof.cpu_sampled);
    return read_workers(at, object, report);
}

static const char *record_type(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "";
}

static bool is_record_type(const char *type)
{
    static const char *const types[] = {"run", "start", "epoch", "stages", "measured", "whatif"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

bool weir_log_recognised(const char *line, size_t length)
{
    static const char start[] = "{\"type\":\"";
    size_t compare = length < sizeof start - 1 ? length : sizeof start - 1;
    if (compare > 1 && memcmp(line, start, compare) == 0)
        return true;
    if (length == 0 || line[0] != '{')
        return false;
    json_t *object = json_loadb(line, length, 0, NULL);
    bool ours = object && is_record_type(record_type(object));
    json_decref(object);
    return ours;
}

/* 1 when the record is of a type that is read here, 0 when it is of another type, -errno. */
static int take_record(struct weir_log_record *record, json_t *object, struct weir_err *err)
{
    struct weir_log_at at = {.line = record->line, .err = err};
    const char *type = record_type(object);
    if (!json_is_object(object) || !*type)
        return weir_err_set(err, -EBADMSG, "line %" PRIu64 " is not a record: it has no \"type\"", record->line);
    if (!is_record_type(type))
        return 0;
    int code = 0;
    if (strcmp(type, "run") == 0) {
        record->type = WEIR_LOG_RUN;
        read_used(&at, json_object_get(object, "used"), &record->used);
    } else if (strcmp(type, "start") == 0) {
        record->type = WEIR_LOG_START;
        read_start(&at, object, &record->start);
    } else if (strcmp(type, "epoch") == 0) {
        record->type = WEIR_LOG_EPOCH;
        read_epoch(&at, object, &record->epoch);
    } else if (strcmp(type, "measured") == 0) {
        record->type = WEIR_LOG_MEASURED;
        read_measured(&at, object, &record->measured);
    } else if (strcmp(type, "whatif") == 0) {
        record->type = WEIR_LOG_WHATIF;
        code = weir_log_read_whatif(&at, object, &record->whatif);
    } else {
        record->type = WEIR_LOG_STAGES;
        code = read_report(&at, object, &record->report);
    }
    if (code < 0)
        return code;
    return at.failed ? -EBADMSG : 1;
}

void weir_log_record_clear(struct weir_log_record *record)
{
    weir_loader_report_clear(&record->report);
    free(record->whatif);
    record->whatif = NULL;
    json_decref(record->parsed_);
    record->parsed_ = NULL;
}

static bool blank(const struct weir_lines *lines)
{
    return strspn(lines->text, " \t\r") == lines->length;
}

int weir_log_next(struct weir_lines *lines, struct weir_log_record *record, struct weir_err *err)
{
    int code;
    while ((code = weir_lines_next(lines)) > 0) {
        weir_log_record_clear(record);
        record->line = lines->number;
        if (blank(lines))
            continue;
        if (lines->cut)
            return weir_err_set(err, -EBADMSG, "line %" PRIu64 " is longer than %d bytes", lines->number,
                                WEIR_LINE_MAX_BYTES);
        json_error_t where;
        errno = 0; /* jansson reports a lack of memory as a syntax error; errno differs */
        json_t *object = json_loadb(lines->text, lines->length, JSON_REJECT_DUPLICATES, &where);
        if (!object && errno == ENOMEM)
            return weir_err_set(err, -ENOMEM, "line %" PRIu64 ": out of memory", lines->number);
        if (!object && !lines->ended)
            return WEIR_LOG_CUT;
        if (!object)
            return weir_err_set(err, -EBADMSG, "line %" PRIu64 " is broken JSON: %s (column %d)", lines->number,
                                where.text, where.column);
        record->parsed_ = object;
        int taken = take_record(record, object, err);
        if (taken != 0)
            return taken < 0 ? taken : WEIR_LOG_RECORD;
    }
    if (code < 0)
        return weir_err_set(err, code, "cannot be read: %s", strerror(-code));
    return WEIR_LOG_END;
}

static void print_value(FILE *out, const json_t *value)
{
    char text[256];
    if (json_is_string(value)) {
        snprintf(text, sizeof text, "%s", json_string_value(value));
        weir_text_printable(text);
        fputs(text, out);
    } else if (json_is_integer(value)) {
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value)) {
        fprintf(out, "%g", json_real_value(value));
    } else {
        fputs(json_is_true(value) ? "true" : json_is_false(value) ? "false" : "-", out);
    }
}

/* "key value, key value", inner objects flattened, texts on one line. */
static void print_pairs(FILE *out, const json_t *object, int depth, bool *first)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (json_is_object(value) && depth < PRINT_DEPTH)
            print_pairs(out, value, depth + 1, first);
        if (json_is_object(value) || json_is_array(value))
            continue;
        char name[64];
        snprintf(name, sizeof name, "%s", key);
        weir_text_printable(name);
        fprintf(out, "%s%s ", *first ? "" : ", ", name);
        *first = false;
        print_value(out, value);
    }
}

void weir_log_run_print(FILE *out, const struct weir_log_record *record)
{
    static const char *const parts[] = {"machine", "versions", "config"};
    fputs("run: weir ", out);
    print_value(out, json_object_get(record->parsed_, "weir"));
    fputs(", git ", out);
    print_value(out, json_object_get(record->parsed_, "git"));
    putc('\n', out);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const json_t *part = json_object_get(record->parsed_, parts[i]);
        bool first = true;
        if (!json_is_object(part))
            continue;
        fprintf(out, "%s: ", parts[i]);
        print_pairs(out, part, 0, &first);
        putc('\n', out);
    }
}

static void copy_value(struct weir_json *json, const char *name, const json_t *value, int depth)
{
    if (json_is_object(value) && depth < COPY_DEPTH) {
        const char *key;
        json_t *inner;
        weir_json_object(json, name);
        json_object_foreach((json_t *)(uintptr_t)value, key, inner) copy_value(json, key, inner, depth + 1);
        weir_json_end(json, '}');
    } else if (json_is_array(value) && depth < COPY_DEPTH) {
        weir_json_array(json, name);
        for (size_t i = 0; i < json_array_size(value); i++)
            copy_value(json, NULL, json_array_get(value, i), depth + 1);
        weir_json_end(json, ']');
    } else if (json_is_string(value)) {
        weir_json_text(json, name, json_string_value(value));
    } else if (json_is_integer(value)) {
        weir_json_int(json, name, json_integer_value(value));
    } else if (json_is_real(value)) {
        weir_json_double(json, name, json_real_value(value));
    } else if (json_is_boolean(value)) {
        weir_json_bool(json, name, json_is_true(value));
    } else {
        weir_json_null(json, name);
    }
}

void weir_log_run_json(struct weir_json *json, const char *key, const struct weir_log_record *record)
{
    copy_value(json, key, record->parsed_, 0);
}
