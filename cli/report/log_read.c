#include "cli/report/log_read.h"

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

/* Where a value is looked for, so that an error can name it. */
struct location {
    uint64_t line;
    struct weir_err *err;
    bool failed;
};

static void value_error(struct location *location, const char *key, const char *what)
{
    weir_err_set(location->err, -EBADMSG, "line %" PRIu64 ": \"%s\" %s", location->line, key, what);
    location->failed = true;
}

/* Missing members take their default: older logs have fewer. */
static double get_double(struct location *location, const json_t *object, const char *key, double missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return missing;
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= -number_limit && number <= number_limit)) {
        value_error(location, key, "is not a number of a sensible size");
        return missing;
    }
    return number;
}

static int64_t get_integer(struct location *location, const json_t *object, const char *key, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max) {
        value_error(location, key, "is not an integer of a sensible size");
        return 0;
    }
    return json_integer_value(value);
}

static int get_int(struct location *location, const json_t *object, const char *key)
{
    return (int)get_integer(location, object, key, INT_MIN, INT_MAX);
}

static uint64_t get_count(struct location *location, const json_t *object, const char *key)
{
    return (uint64_t)get_integer(location, object, key, 0, INT64_MAX);
}

static bool get_bool(struct location *location, const json_t *object, const char *key, bool missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return missing;
    if (!json_is_boolean(value))
        value_error(location, key, "is neither true nor false");
    return json_is_true(value);
}

static void get_text(struct location *location, const json_t *object, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));
    if (!value) {
        value_error(location, key, "is missing, or is not text");
        return;
    }
    snprintf(text, size, "%s", value);
    weir_text_printable(text);
}

/* A member that is an array of objects, at most max of them; NULL when it is missing or wrong. */
static const json_t *get_array(struct location *location, const json_t *object, const char *key, size_t max)
{
    const json_t *array = json_object_get(object, key);
    if (!array)
        return NULL;
    if (!json_is_array(array) || json_array_size(array) > max) {
        value_error(location, key, "is not a list of a sensible length");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!json_is_object(json_array_get(array, i))) {
            value_error(location, key, "holds something that is not an object");
            return NULL;
        }
    }
    return array;
}

static void read_start(struct location *location, const json_t *object, struct weir_start_line *start)
{
    start->first_batch_s = get_double(location, object, "first_batch_s", 0);
    start->open_s = get_double(location, object, "open_s", 0);
    start->index_s = get_double(location, object, "index_s", 0);
    start->files = get_int(location, object, "files");
    start->files_from_index = get_int(location, object, "files_from_index");
}

static void read_epoch(struct location *location, const json_t *object, struct weir_epoch_line *epoch)
{
    epoch->epoch = get_int(location, object, "epoch");
    epoch->epoch_count = get_int(location, object, "epoch_count");
    epoch->interrupted = get_bool(location, object, "interrupted", false);
    epoch->total_s = get_double(location, object, "total_s", 0);
    epoch->train_s = get_double(location, object, "train_s", 0);
    epoch->val_s = get_double(location, object, "val_s", 0);
    epoch->data_wait_fraction = get_double(location, object, "data_wait_fraction", 0);
    epoch->samples_per_s = get_double(location, object, "samples_per_s", 0);
    epoch->images_per_s = get_double(location, object, "images_per_s", 0);
    epoch->peak_rss_bytes = get_count(location, object, "peak_rss_bytes");
    epoch->cached_fraction = get_double(location, object, "page_cache_fraction", -1);
    epoch->gpu = json_object_get(object, "gpu_busy_fraction") != NULL;
    epoch->gpu_busy_fraction = get_double(location, object, "gpu_busy_fraction", 0);
    epoch->copy_overlap_fraction = get_double(location, object, "copy_overlap_fraction", -1);
    const char *reads = json_string_value(json_object_get(object, "reads"));
    for (enum weir_reads known = WEIR_READS_COLD; known <= WEIR_READS_DIRECT; known++)
        if (reads && strcmp(reads, weir_report_reads_name(known)) == 0)
            epoch->reads = known;
}

static void read_kind(struct location *location, const json_t *object, struct weir_report_row *row)
{
    char kind[16] = "", side[16] = "";
    get_text(location, object, "kind", kind, sizeof kind);
    get_text(location, object, "side", side, sizeof side);
    for (enum weir_report_side known = WEIR_SIDE_WORKER; known < WEIR_SIDES; known++)
        if (strcmp(side, weir_report_side_name(known)) == 0)
            row->side = known;
    for (enum weir_stage_kind known = WEIR_KIND_WORK; known <= WEIR_KIND_LOOP; known++) {
        if (strcmp(kind, weir_stage_kind_name(known)) != 0)
            continue;
        row->kind = known;
        return;
    }
    value_error(location, "kind", "is not one of work, inclusive, span, wait");
}

static void read_row(struct location *location, const json_t *from, struct weir_report_row *row)
{
    get_text(location, from, "name", row->name, sizeof row->name);
    read_kind(location, from, row);
    row->count = get_count(location, from, "count");
    row->total_s = get_double(location, from, "total_s", 0);
    row->self_s = get_double(location, from, "self_s", 0);
    row->mean_s = get_double(location, from, "mean_s", 0);
    row->min_s = get_double(location, from, "min_s", 0);
    row->p50_s = get_double(location, from, "p50_s", 0);
    row->p90_s = get_double(location, from, "p90_s", 0);
    row->p99_s = get_double(location, from, "p99_s", 0);
    row->max_s = get_double(location, from, "max_s", 0);
    row->cpu_s = get_double(location, from, "cpu_s", -1);
    row->preempted_s = get_double(location, from, "preempted_s", -1);
    row->cpu_over_wall = get_double(location, from, "cpu_over_wall", -1);
    row->share = get_double(location, from, "share", -1);
}

static void read_rows(struct location *location, const json_t *object, struct weir_loader_report *report)
{
    const json_t *array = get_array(location, object, "stages", WEIR_REPORT_ROWS);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_row(location, json_array_get(array, i), &report->prof.rows[report->prof.n_rows++]);
}

static void read_engine(struct location *location, const json_t *from, struct weir_report_engine *engine)
{
    get_text(location, from, "by", engine->by, sizeof engine->by);
    engine->frames = get_count(location, from, "frames");
    engine->groups = get_count(location, from, "groups");
    engine->busy = get_double(location, from, "busy_fraction", 0);
}

static void read_decode(struct location *location, const json_t *object, struct weir_report_decode *decode)
{
    const json_t *from = json_object_get(object, "decode");
    if (!from)
        return;
    const json_t *array = get_array(location, from, "engines", WEIR_REPORT_ENGINES);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_engine(location, json_array_get(array, i), &decode->engines[decode->n_engines++]);
    decode->cpu_frames = get_count(location, from, "cpu_frames");
    decode->cpu_busy = get_double(location, from, "cpu_busy_fraction", -1);
    decode->sent_back = get_count(location, from, "sent_back");
    get_text(location, from, "reasons", decode->reasons, sizeof decode->reasons);
    decode->compared = get_count(location, from, "compared");
    decode->below = get_count(location, from, "below_gate");
    decode->least_db = get_double(location, from, "least_db", 0);
    decode->gate_db = get_double(location, from, "gate_db", 0);
}

static void read_gpu(struct location *location, const json_t *object, struct weir_report_gpu *gpu)
{
    const json_t *from = json_object_get(object, "gpu");
    if (!from)
        return;
    gpu->used = true;
    gpu->number = get_int(location, from, "number");
    get_text(location, from, "name", gpu->name, sizeof gpu->name);
    gpu->copy_bytes_per_s = get_double(location, from, "copy_bytes_per_s", -1);
    gpu->overlap = get_double(location, from, "copy_overlap_fraction", -1);
    gpu->busy = get_double(location, from, "busy_fraction", 0);
    gpu->stall_s = get_double(location, from, "stall_s", 0);
    gpu->sync_steps = get_bool(location, from, "sync_steps", false);
    gpu->used_bytes = get_count(location, from, "memory_used_bytes");
    const json_t *array = get_array(location, from, "stages", WEIR_REPORT_GPU_ROWS);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_row(location, json_array_get(array, i), &gpu->rows[gpu->n_rows++]);
    read_decode(location, from, &gpu->decode);
}

static void read_thread(struct location *location, const json_t *from, struct weir_report_worker *worker)
{
    get_text(location, from, "name", worker->name, sizeof worker->name);
    worker->wall_s = get_double(location, from, "wall_s", 0);
    worker->work_s = get_double(location, from, "work_s", 0);
    worker->wait_s = get_double(location, from, "wait_s", 0);
    worker->other_s = get_double(location, from, "other_s", 0);
    worker->cpu_s = get_double(location, from, "cpu_s", 0);
    worker->work_cpu_s = get_double(location, from, "work_cpu_s", -1);
    worker->wait_cpu_s = get_double(location, from, "wait_cpu_s", -1);
    worker->other_cpu_s = get_double(location, from, "other_cpu_s", -1);
    worker->throttled_s = get_double(location, from, "throttled_s", -1);
    worker->core_wait_s = get_double(location, from, "core_wait_s", -1);
    worker->blocked_s = get_double(location, from, "blocked_s", -1);
    worker->steal_s = get_double(location, from, "steal_s", -1);
}

static void read_machine(struct location *location, const json_t *from, struct weir_report_machine *machine)
{
    *machine = (struct weir_report_machine){
        .used = from != NULL,
        .cores = get_int(location, from, "cores_usable"),
        .online = get_int(location, from, "cores_online"),
        .part = get_int(location, from, "cores_part"),
        .quota_cores = get_double(location, from, "quota_cores", 0),
        .throttling = json_object_get(from, "throttled_periods") != NULL,
        .periods = get_count(location, from, "periods"),
        .throttled = get_count(location, from, "throttled_periods"),
        .throttled_s = get_double(location, from, "throttled_s", 0),
        .memory_limit_bytes = get_count(location, from, "memory_limit_bytes"),
        .others_cores = get_double(location, from, "others_cores", -1),
        .steal_cores = get_double(location, from, "steal_cores", -1),
        .load_average = get_double(location, from, "load_average_at_start", -1),
    };
}

static int read_workers(struct location *location, const json_t *object, struct weir_loader_report *report)
{
    const json_t *array = get_array(location, object, "workers", WORKERS_MAX);
    const json_t *consumer = json_object_get(object, "consumer");
    if (consumer)
        read_thread(location, consumer, &report->prof.consumer);
    if (!array || json_array_size(array) == 0)
        return 0;
    report->prof.workers = calloc(json_array_size(array), sizeof *report->prof.workers);
    if (!report->prof.workers)
        return weir_err_set(location->err, -ENOMEM, "line %" PRIu64 ": out of memory", location->line);
    for (size_t i = 0; i < json_array_size(array); i++) {
        read_thread(location, json_array_get(array, i), &report->prof.workers[report->prof.n_workers++]);
    }
    return 0;
}

static void read_source(struct location *location, const json_t *from, struct weir_report_source *source)
{
    source->count = get_count(location, from, "count");
    source->bytes = get_count(location, from, "bytes");
    source->total_s = get_double(location, from, "total_s", 0);
    source->p50_s = get_double(location, from, "p50_s", 0);
    source->p99_s = get_double(location, from, "p99_s", 0);
    source->max_s = get_double(location, from, "max_s", 0);
}

static void read_call(struct location *location, const json_t *from, struct weir_report_call *call)
{
    char what[16] = "";
    get_text(location, from, "what", what, sizeof what);
    call->decode = strcmp(what, "decode") == 0;
    call->s = get_double(location, from, "s", 0);
    get_text(location, from, "file", call->file, sizeof call->file);
    get_text(location, from, "camera", call->camera, sizeof call->camera);
    call->t = get_integer(location, from, "t", 0, INT_MAX);
}

static void read_sources(struct location *location, const json_t *object, struct weir_report_sources *sources)
{
    const json_t *cameras = get_array(location, object, "cameras", WEIR_REPORT_CAMERAS);
    for (size_t i = 0; cameras && i < json_array_size(cameras); i++) {
        const json_t *from = json_array_get(cameras, i);
        struct weir_report_camera *camera = &sources->cameras[sources->n_cameras++];
        get_text(location, from, "name", camera->name, sizeof camera->name);
        read_source(location, json_object_get(from, "read"), &camera->read);
        read_source(location, json_object_get(from, "decode"), &camera->decode);
    }
    const json_t *files = json_object_get(object, "files");
    sources->files_read = get_count(location, files, "read");
    sources->files_median_s = get_double(location, files, "median_s", 0);
    files = get_array(location, files, "slowest", WEIR_REPORT_FILES);
    for (size_t i = 0; files && i < json_array_size(files); i++) {
        const json_t *from = json_array_get(files, i);
        struct weir_report_file *file = &sources->files[sources->n_files++];
        get_text(location, from, "name", file->name, sizeof file->name);
        file->count = get_count(location, from, "count");
        file->mean_s = get_double(location, from, "mean_s", 0);
        file->max_s = get_double(location, from, "max_s", 0);
    }
    const json_t *calls = get_array(location, object, "slowest_calls", WEIR_REPORT_CALLS);
    for (size_t i = 0; calls && i < json_array_size(calls); i++)
        read_call(location, json_array_get(calls, i), &sources->calls[sources->n_calls++]);
}

static void read_chunks(struct location *location, const json_t *from, struct weir_chunk_counts *counts)
{
    *counts = (struct weir_chunk_counts){
        .frames = get_count(location, from, "frames"),
        .blocks = get_count(location, from, "blocks"),
        .chunks = get_count(location, from, "chunks"),
        .frame_bytes = get_count(location, from, "frame_bytes"),
        .unpacked_bytes = get_count(location, from, "unpacked_bytes"),
        .stored_bytes = get_count(location, from, "stored_bytes"),
        .read_bytes = get_count(location, from, "read_bytes"),
    };
}

static void read_cache(struct location *location, const json_t *object, struct weir_report_cache *cache)
{
    const json_t *from = json_object_get(object, "decode_cache");
    cache->budget_bytes = get_count(location, from, "budget_bytes");
    cache->used_bytes = get_count(location, from, "used_bytes");
    cache->frames = get_count(location, from, "frames");
    cache->hits = get_count(location, from, "hits");
    cache->misses = get_count(location, from, "misses");
    cache->saved_s = get_double(location, from, "saved_s", NAN);
    cache->all_frames = get_count(location, from, "all_frames");
    cache->all_bytes = get_count(location, from, "all_bytes");
    cache->all_hit_rate = get_double(location, from, "all_hit_rate", -1);
}

static void read_counts(struct location *location, const json_t *object, struct weir_loader_report *report)
{
    const json_t *queue = json_object_get(object, "queue"), *io = json_object_get(object, "io");
    report->queue_slots = get_int(location, queue, "slots");
    report->queue_mean = get_double(location, queue, "mean", 0);
    report->queue_min = get_int(location, queue, "min");
    report->queue_max = get_int(location, queue, "max");
    report->queue_samples = get_count(location, queue, "requests");
    report->reads = get_count(location, io, "reads");
    report->read_bytes = get_count(location, io, "read_bytes");
    report->fallbacks.frames = get_count(location, io, "fallback_reads");
    report->fallbacks.busy = get_double(location, io, "helper_busy_fraction", 0);
    report->fallbacks.each_s = get_double(location, io, "helper_each_s", 0);
    report->fallbacks.waiting = get_double(location, io, "helper_waiting", 0);
    const json_t *decoding = json_object_get(object, "decoding");
    report->stored_pixels = get_count(location, decoding, "stored_pixels");
    report->decoded_pixels = get_count(location, decoding, "decoded_pixels");
    read_chunks(location, json_object_get(object, "chunks"), &report->chunks);
    read_sources(location, object, &report->sources);
    report->frames_shared = get_count(location, object, "frames_shared");
    read_cache(location, object, &report->cache);
    report->bad_frames = get_count(location, object, "bad_frames");
    report->skipped_samples = get_count(location, object, "skipped_samples");
    report->substituted_frames = get_count(location, object, "substituted_frames");
    report->bad_episodes = get_count(location, object, "bad_episodes");
    report->changed_files = get_count(location, object, "changed_files");
    const json_t *errors = get_array(location, object, "errors", WEIR_REPORT_ERRORS_MAX);
    for (size_t i = 0; errors && i < json_array_size(errors); i++) {
        struct weir_report_error *error = &report->errors[report->n_errors++];
        get_text(location, json_array_get(errors, i), "text", error->text, sizeof error->text);
        error->count = get_count(location, json_array_get(errors, i), "count");
    }
}

static int read_report(struct location *location, const json_t *object, struct weir_loader_report *report)
{
    *report = (struct weir_loader_report){0};
    report->epoch_first = get_int(location, object, "epoch_first");
    report->epoch_last = get_int(location, object, "epoch_last");
    report->epoch_count = get_int(location, object, "epoch_count");
    report->final = get_bool(location, object, "final", false);
    report->interrupted = get_bool(location, object, "interrupted", false);
    report->timing = get_bool(location, object, "timing", true);
    report->wall_s = get_double(location, object, "wall_s", 0);
    read_rows(location, object, report);
    read_machine(location, json_object_get(object, "machine"), &report->prof.machine);
    read_gpu(location, object, &report->gpu);
    read_counts(location, object, report);
    const json_t *profiler = json_object_get(object, "profiler");
    report->prof.zones = get_count(location, profiler, "zones");
    report->prof.too_deep = get_count(location, profiler, "zones_too_deep");
    report->prof.zone_cost_ns = get_double(location, profiler, "zone_cost_ns", 0);
    report->prof.thread_s = get_double(location, profiler, "thread_s", 0);
    report->prof.profiler_share = get_double(location, profiler, "share", 0);
    report->prof.clock_error_ppm = get_double(location, profiler, "clock_error_ppm", 0);
    if (json_is_string(json_object_get(profiler, "cpu_sampled")))
        get_text(location, profiler, "cpu_sampled", report->prof.cpu_sampled, sizeof report->prof.cpu_sampled);
    return read_workers(location, object, report);
}

static const char *record_type(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "";
}

static bool is_record_type(const char *type)
{
    static const char *const types[] = {"run", "start", "epoch", "stages"};
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
    struct location location = {.line = record->line, .err = err};
    const char *type = record_type(object);
    if (!json_is_object(object) || !*type)
        return weir_err_set(err, -EBADMSG, "line %" PRIu64 " is not a record: it has no \"type\"", record->line);
    if (!is_record_type(type))
        return 0;
    int code = 0;
    if (strcmp(type, "run") == 0) {
        record->type = WEIR_LOG_RUN;
    } else if (strcmp(type, "start") == 0) {
        record->type = WEIR_LOG_START;
        read_start(&location, object, &record->start);
    } else if (strcmp(type, "epoch") == 0) {
        record->type = WEIR_LOG_EPOCH;
        read_epoch(&location, object, &record->epoch);
    } else {
        record->type = WEIR_LOG_STAGES;
        code = read_report(&location, object, &record->report);
    }
    if (code < 0)
        return code;
    return location.failed ? -EBADMSG : 1;
}

void weir_log_record_clear(struct weir_log_record *record)
{
    weir_loader_report_clear(&record->report);
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
