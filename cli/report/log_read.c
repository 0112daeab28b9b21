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

/* Larger numbers are nobody's seconds or bytes, and would print hundreds of digits. */
static const double number_limit = 1e15;

/* Where a value is looked for, so that a complaint can name it. */
struct place {
    uint64_t line;
    struct weir_err *err;
    bool failed;
};

static void complain(struct place *place, const char *key, const char *what)
{
    weir_err_set(place->err, -EBADMSG, "line %" PRIu64 ": \"%s\" %s", place->line, key, what);
    place->failed = true;
}

/* Missing members take their default: older logs have fewer. */
static double get_double(struct place *place, const json_t *object, const char *key, double missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value || json_is_null(value))
        return missing;
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= -number_limit && number <= number_limit)) {
        complain(place, key, "is not a number of a sensible size");
        return missing;
    }
    return number;
}

static int64_t get_integer(struct place *place, const json_t *object, const char *key, int64_t min, int64_t max)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < min || json_integer_value(value) > max) {
        complain(place, key, "is not an integer of a sensible size");
        return 0;
    }
    return json_integer_value(value);
}

static int get_int(struct place *place, const json_t *object, const char *key)
{
    return (int)get_integer(place, object, key, INT_MIN, INT_MAX);
}

static uint64_t get_count(struct place *place, const json_t *object, const char *key)
{
    return (uint64_t)get_integer(place, object, key, 0, INT64_MAX);
}

static bool get_bool(struct place *place, const json_t *object, const char *key, bool missing)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        return missing;
    if (!json_is_boolean(value))
        complain(place, key, "is neither true nor false");
    return json_is_true(value);
}

static void get_text(struct place *place, const json_t *object, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));
    if (!value) {
        complain(place, key, "is missing or no text");
        return;
    }
    snprintf(text, size, "%s", value);
    weir_text_printable(text);
}

/* A member that is an array of objects, at most max of them; NULL when it is missing or wrong. */
static const json_t *get_array(struct place *place, const json_t *object, const char *key, size_t max)
{
    const json_t *array = json_object_get(object, key);
    if (!array)
        return NULL;
    if (!json_is_array(array) || json_array_size(array) > max) {
        complain(place, key, "is not a list of a sensible length");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (!json_is_object(json_array_get(array, i))) {
            complain(place, key, "holds something that is not an object");
            return NULL;
        }
    }
    return array;
}

static void read_start(struct place *place, const json_t *object, struct weir_start_line *start)
{
    start->first_batch_s = get_double(place, object, "first_batch_s", 0);
    start->open_s = get_double(place, object, "open_s", 0);
    start->index_s = get_double(place, object, "index_s", 0);
    start->files = get_int(place, object, "files");
    start->files_from_index = get_int(place, object, "files_from_index");
}

static void read_epoch(struct place *place, const json_t *object, struct weir_epoch_line *epoch)
{
    epoch->epoch = get_int(place, object, "epoch");
    epoch->epoch_count = get_int(place, object, "epoch_count");
    epoch->interrupted = get_bool(place, object, "interrupted", false);
    epoch->total_s = get_double(place, object, "total_s", 0);
    epoch->train_s = get_double(place, object, "train_s", 0);
    epoch->val_s = get_double(place, object, "val_s", 0);
    epoch->data_wait_fraction = get_double(place, object, "data_wait_fraction", 0);
    epoch->samples_per_s = get_double(place, object, "samples_per_s", 0);
    epoch->images_per_s = get_double(place, object, "images_per_s", 0);
    epoch->peak_rss_bytes = get_count(place, object, "peak_rss_bytes");
    epoch->cached_fraction = get_double(place, object, "page_cache_fraction", -1);
    epoch->gpu = json_object_get(object, "gpu_busy_fraction") != NULL;
    epoch->gpu_busy_fraction = get_double(place, object, "gpu_busy_fraction", 0);
    epoch->copy_overlap_fraction = get_double(place, object, "copy_overlap_fraction", -1);
    const char *reads = json_string_value(json_object_get(object, "reads"));
    for (enum weir_reads known = WEIR_READS_COLD; known <= WEIR_READS_DIRECT; known++)
        if (reads && strcmp(reads, weir_report_reads_name(known)) == 0)
            epoch->reads = known;
}

static void read_kind(struct place *place, const json_t *object, struct weir_report_row *row)
{
    char kind[16] = "", side[16] = "";
    get_text(place, object, "kind", kind, sizeof kind);
    get_text(place, object, "side", side, sizeof side);
    for (enum weir_report_side known = WEIR_SIDE_WORKER; known < WEIR_SIDES; known++)
        if (strcmp(side, weir_report_side_name(known)) == 0)
            row->side = known;
    for (enum weir_stage_kind known = WEIR_KIND_WORK; known <= WEIR_KIND_LOOP; known++) {
        if (strcmp(kind, weir_stage_kind_name(known)) != 0)
            continue;
        row->kind = known;
        return;
    }
    complain(place, "kind", "is none of work, inclusive, span, wait");
}

static void read_row(struct place *place, const json_t *from, struct weir_report_row *row)
{
    get_text(place, from, "name", row->name, sizeof row->name);
    read_kind(place, from, row);
    row->count = get_count(place, from, "count");
    row->total_s = get_double(place, from, "total_s", 0);
    row->self_s = get_double(place, from, "self_s", 0);
    row->mean_s = get_double(place, from, "mean_s", 0);
    row->min_s = get_double(place, from, "min_s", 0);
    row->p50_s = get_double(place, from, "p50_s", 0);
    row->p90_s = get_double(place, from, "p90_s", 0);
    row->p99_s = get_double(place, from, "p99_s", 0);
    row->max_s = get_double(place, from, "max_s", 0);
    row->cpu_s = get_double(place, from, "cpu_s", -1);
    row->preempted_s = get_double(place, from, "preempted_s", -1);
    row->cpu_over_wall = get_double(place, from, "cpu_over_wall", -1);
    row->share = get_double(place, from, "share", -1);
}

static void read_rows(struct place *place, const json_t *object, struct weir_report *report)
{
    const json_t *array = get_array(place, object, "stages", WEIR_REPORT_ROWS);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_row(place, json_array_get(array, i), &report->rows[report->n_rows++]);
}

static void read_engine(struct place *place, const json_t *from, struct weir_report_engine *engine)
{
    get_text(place, from, "by", engine->by, sizeof engine->by);
    engine->frames = get_count(place, from, "frames");
    engine->groups = get_count(place, from, "groups");
    engine->busy = get_double(place, from, "busy_fraction", 0);
    engine->tried = json_object_get(from, "gain_fraction");
    engine->gain = get_double(place, from, "gain_fraction", 0);
}

static void read_decode(struct place *place, const json_t *object, struct weir_report_decode *decode)
{
    const json_t *from = json_object_get(object, "decode");
    if (!from)
        return;
    const json_t *array = get_array(place, from, "engines", WEIR_REPORT_ENGINES);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_engine(place, json_array_get(array, i), &decode->engines[decode->n_engines++]);
    decode->cpu_frames = get_count(place, from, "cpu_frames");
    decode->cpu_busy = get_double(place, from, "cpu_busy_fraction", -1);
    decode->sent_back = get_count(place, from, "sent_back");
    get_text(place, from, "reasons", decode->reasons, sizeof decode->reasons);
    decode->compared = get_count(place, from, "compared");
    decode->below = get_count(place, from, "below_gate");
    decode->least_db = get_double(place, from, "least_db", 0);
    decode->gate_db = get_double(place, from, "gate_db", 0);
}

static void read_gpu(struct place *place, const json_t *object, struct weir_report_gpu *gpu)
{
    const json_t *from = json_object_get(object, "gpu");
    if (!from)
        return;
    gpu->used = true;
    gpu->number = get_int(place, from, "number");
    get_text(place, from, "name", gpu->name, sizeof gpu->name);
    gpu->copy_bytes_per_s = get_double(place, from, "copy_bytes_per_s", -1);
    gpu->overlap = get_double(place, from, "copy_overlap_fraction", -1);
    gpu->busy = get_double(place, from, "busy_fraction", 0);
    gpu->stall_s = get_double(place, from, "stall_s", 0);
    gpu->sync_steps = get_bool(place, from, "sync_steps", false);
    gpu->used_bytes = get_count(place, from, "memory_used_bytes");
    const json_t *array = get_array(place, from, "stages", WEIR_REPORT_GPU_ROWS);
    for (size_t i = 0; array && i < json_array_size(array); i++)
        read_row(place, json_array_get(array, i), &gpu->rows[gpu->n_rows++]);
    read_decode(place, from, &gpu->decode);
}

static void read_thread(struct place *place, const json_t *from, struct weir_report_worker *worker)
{
    get_text(place, from, "name", worker->name, sizeof worker->name);
    worker->wall_s = get_double(place, from, "wall_s", 0);
    worker->work_s = get_double(place, from, "work_s", 0);
    worker->wait_s = get_double(place, from, "wait_s", 0);
    worker->other_s = get_double(place, from, "other_s", 0);
    worker->cpu_s = get_double(place, from, "cpu_s", 0);
    worker->work_cpu_s = get_double(place, from, "work_cpu_s", -1);
    worker->wait_cpu_s = get_double(place, from, "wait_cpu_s", -1);
    worker->other_cpu_s = get_double(place, from, "other_cpu_s", -1);
    worker->throttled_s = get_double(place, from, "throttled_s", -1);
    worker->core_wait_s = get_double(place, from, "core_wait_s", -1);
    worker->blocked_s = get_double(place, from, "blocked_s", -1);
    worker->steal_s = get_double(place, from, "steal_s", -1);
}

static void read_machine(struct place *place, const json_t *from, struct weir_report_machine *machine)
{
    *machine = (struct weir_report_machine){
        .used = from != NULL,
        .cores = get_int(place, from, "cores_usable"),
        .online = get_int(place, from, "cores_online"),
        .part = get_int(place, from, "cores_part"),
        .quota_cores = get_double(place, from, "quota_cores", 0),
        .throttling = json_object_get(from, "throttled_periods") != NULL,
        .periods = get_count(place, from, "periods"),
        .throttled = get_count(place, from, "throttled_periods"),
        .throttled_s = get_double(place, from, "throttled_s", 0),
        .memory_limit_bytes = get_count(place, from, "memory_limit_bytes"),
        .others_cores = get_double(place, from, "others_cores", -1),
        .steal_cores = get_double(place, from, "steal_cores", -1),
        .load_average = get_double(place, from, "load_average_at_start", -1),
    };
}

static int read_workers(struct place *place, const json_t *object, struct weir_report *report)
{
    const json_t *array = get_array(place, object, "workers", WORKERS_MAX);
    const json_t *consumer = json_object_get(object, "consumer");
    if (consumer)
        read_thread(place, consumer, &report->consumer);
    if (!array || json_array_size(array) == 0)
        return 0;
    report->workers = calloc(json_array_size(array), sizeof *report->workers);
    if (!report->workers)
        return weir_err_set(place->err, -ENOMEM, "line %" PRIu64 ": out of memory", place->line);
    for (size_t i = 0; i < json_array_size(array); i++) {
        read_thread(place, json_array_get(array, i), &report->workers[report->n_workers++]);
    }
    return 0;
}

static void read_source(struct place *place, const json_t *from, struct weir_report_source *source)
{
    source->count = get_count(place, from, "count");
    source->bytes = get_count(place, from, "bytes");
    source->total_s = get_double(place, from, "total_s", 0);
    source->p50_s = get_double(place, from, "p50_s", 0);
    source->p99_s = get_double(place, from, "p99_s", 0);
    source->max_s = get_double(place, from, "max_s", 0);
}

static void read_call(struct place *place, const json_t *from, struct weir_report_call *call)
{
    char what[16] = "";
    get_text(place, from, "what", what, sizeof what);
    call->decode = strcmp(what, "decode") == 0;
    call->s = get_double(place, from, "s", 0);
    get_text(place, from, "file", call->file, sizeof call->file);
    get_text(place, from, "camera", call->camera, sizeof call->camera);
    call->t = get_integer(place, from, "t", 0, INT_MAX);
}

static void read_sources(struct place *place, const json_t *object, struct weir_report_sources *sources)
{
    const json_t *cameras = get_array(place, object, "cameras", WEIR_REPORT_CAMERAS);
    for (size_t i = 0; cameras && i < json_array_size(cameras); i++) {
        const json_t *from = json_array_get(cameras, i);
        struct weir_report_camera *camera = &sources->cameras[sources->n_cameras++];
        get_text(place, from, "name", camera->name, sizeof camera->name);
        read_source(place, json_object_get(from, "read"), &camera->read);
        read_source(place, json_object_get(from, "decode"), &camera->decode);
    }
    const json_t *files = json_object_get(object, "files");
    sources->files_read = get_count(place, files, "read");
    sources->files_median_s = get_double(place, files, "median_s", 0);
    files = get_array(place, files, "slowest", WEIR_REPORT_FILES);
    for (size_t i = 0; files && i < json_array_size(files); i++) {
        const json_t *from = json_array_get(files, i);
        struct weir_report_file *file = &sources->files[sources->n_files++];
        get_text(place, from, "name", file->name, sizeof file->name);
        file->count = get_count(place, from, "count");
        file->mean_s = get_double(place, from, "mean_s", 0);
        file->max_s = get_double(place, from, "max_s", 0);
    }
    const json_t *calls = get_array(place, object, "slowest_calls", WEIR_REPORT_CALLS);
    for (size_t i = 0; calls && i < json_array_size(calls); i++)
        read_call(place, json_array_get(calls, i), &sources->calls[sources->n_calls++]);
}

static void read_chunks(struct place *place, const json_t *from, struct weir_chunk_counts *counts)
{
    *counts = (struct weir_chunk_counts){
        .frames = get_count(place, from, "frames"),
        .blocks = get_count(place, from, "blocks"),
        .chunks = get_count(place, from, "chunks"),
        .frame_bytes = get_count(place, from, "frame_bytes"),
        .unpacked_bytes = get_count(place, from, "unpacked_bytes"),
        .stored_bytes = get_count(place, from, "stored_bytes"),
        .read_bytes = get_count(place, from, "read_bytes"),
    };
}

static void read_cache(struct place *place, const json_t *object, struct weir_report_cache *cache)
{
    const json_t *from = json_object_get(object, "decode_cache");
    cache->budget_bytes = get_count(place, from, "budget_bytes");
    cache->used_bytes = get_count(place, from, "used_bytes");
    cache->frames = get_count(place, from, "frames");
    cache->hits = get_count(place, from, "hits");
    cache->misses = get_count(place, from, "misses");
    cache->saved_s = get_double(place, from, "saved_s", NAN);
    cache->all_frames = get_count(place, from, "all_frames");
    cache->all_bytes = get_count(place, from, "all_bytes");
    cache->all_hit_rate = get_double(place, from, "all_hit_rate", -1);
}

static void read_counts(struct place *place, const json_t *object, struct weir_report *report)
{
    const json_t *queue = json_object_get(object, "queue"), *io = json_object_get(object, "io");
    report->queue_slots = get_int(place, queue, "slots");
    report->queue_mean = get_double(place, queue, "mean", 0);
    report->queue_min = get_int(place, queue, "min");
    report->queue_max = get_int(place, queue, "max");
    report->queue_samples = get_count(place, queue, "requests");
    report->reads = get_count(place, io, "reads");
    report->read_bytes = get_count(place, io, "read_bytes");
    report->fallbacks.frames = get_count(place, io, "fallback_reads");
    report->fallbacks.busy = get_double(place, io, "helper_busy_fraction", 0);
    report->fallbacks.each_s = get_double(place, io, "helper_each_s", 0);
    report->fallbacks.waiting = get_double(place, io, "helper_waiting", 0);
    const json_t *decoding = json_object_get(object, "decoding");
    report->stored_pixels = get_count(place, decoding, "stored_pixels");
    report->decoded_pixels = get_count(place, decoding, "decoded_pixels");
    read_chunks(place, json_object_get(object, "chunks"), &report->chunks);
    read_sources(place, object, &report->sources);
    report->frames_shared = get_count(place, object, "frames_shared");
    read_cache(place, object, &report->cache);
    report->bad_frames = get_count(place, object, "bad_frames");
    report->skipped_samples = get_count(place, object, "skipped_samples");
    report->substituted_frames = get_count(place, object, "substituted_frames");
    report->bad_episodes = get_count(place, object, "bad_episodes");
    report->changed_files = get_count(place, object, "changed_files");
    const json_t *errors = get_array(place, object, "errors", WEIR_REPORT_ERRORS_MAX);
    for (size_t i = 0; errors && i < json_array_size(errors); i++) {
        struct weir_report_error *error = &report->errors[report->n_errors++];
        get_text(place, json_array_get(errors, i), "text", error->text, sizeof error->text);
        error->count = get_count(place, json_array_get(errors, i), "count");
    }
}

static int read_report(struct place *place, const json_t *object, struct weir_report *report)
{
    *report = (struct weir_report){0};
    report->epoch_first = get_int(place, object, "epoch_first");
    report->epoch_last = get_int(place, object, "epoch_last");
    report->epoch_count = get_int(place, object, "epoch_count");
    report->final = get_bool(place, object, "final", false);
    report->interrupted = get_bool(place, object, "interrupted", false);
    report->timing = get_bool(place, object, "timing", true);
    report->wall_s = get_double(place, object, "wall_s", 0);
    read_rows(place, object, report);
    read_machine(place, json_object_get(object, "machine"), &report->machine);
    read_gpu(place, object, &report->gpu);
    read_counts(place, object, report);
    const json_t *profiler = json_object_get(object, "profiler");
    report->zones = get_count(place, profiler, "zones");
    report->too_deep = get_count(place, profiler, "zones_too_deep");
    report->zone_cost_ns = get_double(place, profiler, "zone_cost_ns", 0);
    report->thread_s = get_double(place, profiler, "thread_s", 0);
    report->profiler_share = get_double(place, profiler, "share", 0);
    report->clock_error_ppm = get_double(place, profiler, "clock_error_ppm", 0);
    if (json_is_string(json_object_get(profiler, "cpu_sampled")))
        get_text(place, profiler, "cpu_sampled", report->cpu_sampled, sizeof report->cpu_sampled);
    return read_workers(place, object, report);
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

/* 1 when the record is one of ours, 0 when it is of another type, -errno. */
static int take_record(struct weir_log_record *record, json_t *object, struct weir_err *err)
{
    struct place place = {.line = record->line, .err = err};
    const char *type = record_type(object);
    if (!json_is_object(object) || !*type)
        return weir_err_set(err, -EBADMSG, "line %" PRIu64 " is no record: it has no \"type\"", record->line);
    if (!is_record_type(type))
        return 0;
    int code = 0;
    if (strcmp(type, "run") == 0) {
        record->type = WEIR_LOG_RUN;
    } else if (strcmp(type, "start") == 0) {
        record->type = WEIR_LOG_START;
        read_start(&place, object, &record->start);
    } else if (strcmp(type, "epoch") == 0) {
        record->type = WEIR_LOG_EPOCH;
        read_epoch(&place, object, &record->epoch);
    } else {
        record->type = WEIR_LOG_STAGES;
        code = read_report(&place, object, &record->report);
    }
    if (code < 0)
        return code;
    return place.failed ? -EBADMSG : 1;
}

void weir_log_record_clear(struct weir_log_record *record)
{
    weir_report_free(&record->report);
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
        errno = 0; /* jansson does not tell a lack of memory apart */
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
