#include "prof/trace/trace_read.h"
#include "base/claims.h"
#include "base/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SNIFF_BYTES = 1 << 16 };

/* About 126 years in ns. No trace is longer, and the difference of two such times does not overflow. */
static const int64_t ns_limit = INT64_C(4000000000000000000);

struct read {
    struct weir_pieces pieces;
    struct weir_trace *trace;
    weir_text_id forked;      /* torch's name of a function run by jit.fork */
    uint64_t ranges, foreign; /* number of ranges, and of ranges with a category that no profiler uses */
    uint64_t text_bytes;      /* of the interned strings before n_texts */
    uint32_t n_texts;
    bool whole; /* keep the events' other args, and the devices */
    struct weir_err *err;
};

/* ---- recognition ---- */

bool weir_trace_recognised(const char *path)
{
    char bytes[SNIFF_BYTES + 1];
    struct weir_gz_reader *reader;
    int rc = strcmp(path, "-") == 0 ? -EINVAL : weir_gz_read_open(&reader, path);
    if (rc < 0 && rc != -ENOMEM)
        return false;
    ssize_t n = rc < 0 ? rc : weir_gz_read(reader, bytes, SNIFF_BYTES);
    weir_gz_read_close(&reader);
    size_t length = strlen(path);
    if (n <= 0) /* empty or damaged: decide by the name, so that reading the trace reports the error */
        return length > 8 && (strcmp(path + length - 8, ".json.gz") == 0);
    bytes[n] = '\0';
    const char *first = bytes + strspn(bytes, " \t\r\n");
    if (*first == '[')
        return strstr(first, "\"ph\"") != NULL;
    return *first == '{' && (strstr(first, "\"traceEvents\"") || strstr(first, "\"schemaVersion\"") ||
                             strstr(first, "\"displayTimeUnit\""));
}

/* ---- values ---- */

static weir_text_id intern(struct read *r, const char *text)
{
    return text ? weir_trace_intern(r->trace, text, strlen(text)) : 0;
}

static weir_text_id intern_text(struct read *r, const json_t *object, const char *key)
{
    return intern(r, json_string_value(json_object_get(object, key)));
}

/* Formats a list as Python does, because the tables print it unchanged. */
static weir_text_id intern_list(struct read *r, const json_t *object, const char *key)
{
    const json_t *list = json_object_get(object, key);
    char *text = json_is_array(list) && json_array_size(list) > 0 ? json_dumps(list, JSON_ENCODE_ANY) : NULL;
    weir_text_id id = intern(r, text);
    free(text);
    return id;
}

/* torch ends a stack with a semicolon. */
static weir_text_id intern_stack(struct read *r, const json_t *args)
{
    const char *text = json_string_value(json_object_get(args, "Call stack"));
    size_t length = text ? strlen(text) : 0;
    return weir_trace_intern(r->trace, text, length - (length > 0 && text[length - 1] == ';'));
}

/* Replaces a list of tensors (TensorList) with [], as torch's tables do; traces contain the list's elements. */
static weir_text_id intern_shapes(struct read *r, const json_t *args)
{
    const json_t *dims = json_object_get(args, "Input Dims");
    json_t *copy = json_is_array(dims) ? json_copy((json_t *)(uintptr_t)dims) : NULL;
    json_t *wrap = copy ? json_object() : NULL;
    weir_text_id id = 0;
    for (size_t i = 0; wrap && i < json_array_size(copy); i++)
        if (json_is_array(json_array_get(json_array_get(copy, i), 0)))
            json_array_set_new(copy, i, json_array());
    if (wrap && json_object_set(wrap, "shapes", copy) == 0)
        id = intern_list(r, wrap, "shapes");
    json_decref(wrap);
    json_decref(copy);
    return id;
}

/* Interns an object's members as JSON without the braces, the form of an event's args and a device's properties. */
static weir_text_id intern_members(struct read *r, const json_t *object)
{
    char *text = json_is_object(object) && json_object_size(object) > 0 ? json_dumps(object, 0) : NULL;
    weir_text_id id = text ? weir_trace_intern(r->trace, text + 1, strlen(text) - 2) : 0;
    free(text);
    return id;
}

/* Interns the members without the named ones, which have fields of their own or no meaning in another file. */
static weir_text_id intern_others(struct read *r, const json_t *object, const char *const *without)
{
    json_t *others = json_is_object(object) ? json_copy((json_t *)(uintptr_t)object) : NULL;
    for (; others && *without; without++)
        json_object_del(others, *without);
    weir_text_id id = intern_members(r, others);
    json_decref(others);
    return id;
}

static weir_text_id intern_args(struct read *r, const json_t *args)
{
    static const char *const fields[] = {"External id", "correlation", "item",   "Input Dims", "Input type",
                                         "Call stack",  "finished",    "Ev Idx", "flops",      NULL};
    return intern_others(r, args, fields);
}

static int64_t get_integer(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (json_is_string(value))
        return strtoll(json_string_value(value), NULL, 10);
    if (json_is_real(value)) {
        double real = json_real_value(value);
        return real > -9e18 && real < 9e18 ? (int64_t)real : 0;
    }
    return json_is_integer(value) ? json_integer_value(value) : 0;
}

/* Converts microseconds with three decimals to ns. Does not use a double, because Unix times in microseconds have more
 * digits than a double holds. */
static bool parse_ns(const char *text, size_t length, int64_t *ns)
{
    bool negative = length > 0 && text[0] == '-';
    size_t i = negative;
    int64_t value = 0;
    int decimals = -1;
    for (; i < length && decimals < 3; i++) {
        if (text[i] == '.' && decimals < 0) {
            decimals = 0;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || value > ns_limit / 10 - 1)
            break;
        value = value * 10 + (text[i] - '0');
        decimals += decimals >= 0;
    }
    while (i < length && decimals == 3 && text[i] >= '0' && text[i] <= '9')
        i++;
    for (int left = decimals < 0 ? 3 : 3 - decimals; left > 0 && i == length; left--) {
        if (value > ns_limit / 10)
            return false;
        value *= 10;
    }
    if (i < length) { /* an exponent, or too many digits */
        char copy[64];
        snprintf(copy, sizeof copy, "%.*s", (int)(length < 63 ? length : 63), text);
        double us = strtod(copy, NULL);
        if (!(us > -4e15 && us < 4e15))
            return false;
        *ns = (int64_t)(us * 1000);
        return true;
    }
    *ns = negative ? -value : value;
    return true;
}

static bool get_ns(const struct read *r, const json_t *event, const char *key, int64_t *ns)
{
    const json_t *value = json_object_get(event, key);
    const char *text = json_string_value(value);
    size_t length = text ? strlen(text) : weir_piece_number(r->pieces.piece, r->pieces.length, key, &text);
    return value && length && parse_ns(text, length, ns);
}

/* ---- events ---- */

static int64_t track_of(struct read *r, const json_t *event, bool device)
{
    const json_t *pid = json_object_get(event, "pid"), *tid = json_object_get(event, "tid");
    weir_text_id label = 0;
    char *end = NULL;
    if (json_is_string(pid) && (strtoll(json_string_value(pid), &end, 10), *end || end == json_string_value(pid)))
        label = intern(r, json_string_value(pid));
    else if (json_is_string(tid) && (strtoll(json_string_value(tid), &end, 10), *end || end == json_string_value(tid)))
        label = intern(r, json_string_value(tid));
    return weir_trace_track(r->trace, get_integer(event, "pid"), get_integer(event, "tid"), device, label);
}

static int add_event(struct read *r, const json_t *json, struct weir_event *event)
{
    int64_t track = track_of(r, json, weir_cat_is_device((enum weir_cat)event->cat));
    if (track < 0)
        return (int)track;
    event->track = (uint32_t)track;
    return weir_trace_add(r->trace, event);
}

/* Returns the category of an event without "cat" from its process name. torch without Kineto (Debian's 1.13) and the
 * legacy writer of torch.autograd.profiler write no categories. */
static enum weir_cat cat_of_process(const json_t *json)
{
    const char *pid = json_string_value(json_object_get(json, "pid"));
    if (pid && strcmp(pid, "CPU functions") == 0)
        return WEIR_CAT_CPU_OP;
    return pid && strcmp(pid, "CUDA functions") == 0 ? WEIR_CAT_KERNEL : WEIR_CAT_OTHER;
}

static void read_cat(struct read *r, const json_t *json, struct weir_event *event)
{
    const char *cat = json_string_value(json_object_get(json, "cat"));
    event->cat = (uint8_t)(cat ? weir_cat_find(cat, strlen(cat)) : cat_of_process(json));
    if (event->cat == WEIR_CAT_OTHER)
        event->cat_text = intern(r, cat);
}

static int read_range(struct read *r, const json_t *json)
{
    const json_t *args = json_object_get(json, "args");
    struct weir_event event = {.kind = WEIR_EVENT_RANGE, .name = intern_text(r, json, "name")};
    read_cat(r, json, &event);
    r->ranges++;
    r->foreign += event.cat == WEIR_CAT_OTHER;
    if (!get_ns(r, json, "ts", &event.start_ns) || !get_ns(r, json, "dur", &event.duration_ns))
        return weir_err_set(r->err, -EBADMSG, "a range has no valid ts or dur");
    event.duration_ns = event.duration_ns > 0 ? event.duration_ns : 0;
    event.external_id = (uint64_t)get_integer(args, "External id");
    event.correlation = (uint32_t)get_integer(args, "correlation");
    event.item = (uint64_t)get_integer(args, "item");
    event.wait = get_integer(args, "wait") == 1;
    event.shapes = intern_shapes(r, args);
    event.types = intern_list(r, args, "Input type");
    event.stack = intern_stack(r, args);
    event.value = json_number_value(json_object_get(args, "flops"));
    const json_t *ended = json_object_get(args, "finished"); /* a string, or a boolean in torch 2.15 */
    const char *finished = json_string_value(ended);
    event.unfinished = json_is_false(ended) || (finished && strcmp(finished, "false") == 0);
    if (event.cat == WEIR_CAT_GPU_STAGE)
        event.args = intern_members(r, args);
    else if (r->whole)
        event.args = intern_args(r, args);
    if (event.cat == WEIR_CAT_PYTHON_FUNCTION && json_object_get(args, "CallFrom"))
        r->trace->python_frames = WEIR_PYTHON_HIDDEN;
    r->trace->forks |= event.cat == WEIR_CAT_CPU_OP && event.name == r->forked;
    return add_event(r, json, &event);
}

static int read_point(struct read *r, const json_t *json, bool counter)
{
    const json_t *args = json_object_get(json, "args");
    const char *name = json_string_value(json_object_get(json, "name"));
    struct weir_event event = {.kind = counter ? WEIR_EVENT_COUNTER : WEIR_EVENT_INSTANT, .name = intern(r, name)};
    read_cat(r, json, &event);
    if (!get_ns(r, json, "ts", &event.start_ns))
        return 0;
    if (!counter && name && strcmp(name, "[memory]") == 0) {
        event.kind = WEIR_EVENT_MEMORY;
        event.memory.address = (uint64_t)get_integer(args, "Addr");
        event.memory.bytes = get_integer(args, "Bytes");
        event.memory.allocated = get_integer(args, "Total Allocated");
        event.memory.reserved = get_integer(args, "Total Reserved");
        event.memory.device =
            get_integer(args, "Device Type") == 0 ? -1 : (int32_t)(get_integer(args, "Device Id") & 255);
    } else if (counter) {
        void *first = json_object_iter((json_t *)args);
        event.value = first ? json_number_value(json_object_iter_value(first)) : 0;
    }
    return add_event(r, json, &event);
}

static int read_metadata(struct read *r, const json_t *json)
{
    const char *kind = json_string_value(json_object_get(json, "name"));
    if (!kind || strcmp(kind, "thread_name") != 0)
        return 0;
    int64_t track = track_of(r, json, false);
    if (track < 0)
        return (int)track;
    r->trace->tracks[track].name = intern_text(r, json_object_get(json, "args"), "name");
    return 0;
}

static int read_event(struct read *r, const json_t *json)
{
    const char *phase = json_string_value(json_object_get(json, "ph"));
    const char *cat = json_string_value(json_object_get(json, "cat"));
    if (!phase)
        return json_is_object(json) ? 0 : weir_err_set(r->err, -EBADMSG, "an element is not an event");
    if (strcmp(phase, "X") == 0)
        return cat && strcmp(cat, "Trace") == 0 ? 0 : read_range(r, json); /* "Trace" is the profiler's own span */
    if (strcmp(phase, "M") == 0)
        return read_metadata(r, json);
    if (strcmp(phase, "i") == 0 || strcmp(phase, "C") == 0)
        return read_point(r, json, phase[0] == 'C');
    return 0;
}

/* ---- the file ---- */

static int read_devices(struct read *r, const json_t *list)
{
    static const char *const fields[] = {"id", "name", NULL};
    struct weir_trace *trace = r->trace;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *device = json_array_get(list, i);
        if (!weir_grow(&trace->devices, (size_t)trace->n_devices, sizeof *trace->devices))
            return -ENOMEM;
        trace->devices[trace->n_devices++] = (struct weir_trace_device){
            (int)get_integer(device, "id"), intern_text(r, device, "name"), intern_others(r, device, fields)};
    }
    return 0;
}

/* Sets the FLOPs of operators that have been read, from an object of numbers by External id. */
static void read_flops(struct read *r, const json_t *flops)
{
    for (size_t i = 0; i < r->trace->n_events; i++) {
        struct weir_event *event = &r->trace->events[i];
        char id[24];
        snprintf(id, sizeof id, "%" PRIu64, event->external_id);
        if (event->kind == WEIR_EVENT_RANGE && event->cat == WEIR_CAT_CPU_OP)
            event->value = json_number_value(json_object_get(flops, id));
    }
}

static int read_member(struct read *r, const json_t *json)
{
    const char *key = r->pieces.key;
    if (r->whole && strcmp(key, "deviceProperties") == 0)
        return read_devices(r, json);
    if (r->whole && strcmp(key, "weir_flops") == 0)
        read_flops(r, json);
    bool on = json_is_true(json) || (json_is_integer(json) && json_integer_value(json) != 0);
    if (strcmp(key, "record_shapes") == 0)
        r->trace->shapes = on;
    else if (strcmp(key, "profile_memory") == 0)
        r->trace->memory = on;
    else if (strcmp(key, "with_stack") == 0)
        r->trace->stacks = on;
    else if (strcmp(key, "host_name") == 0 && r->trace->python_frames == WEIR_PYTHON_LEFT_OUT)
        r->trace->python_frames = WEIR_PYTHON_ROWS;
    else if (strcmp(key, "baseTimeNanoseconds") == 0)
        r->trace->base_unix_ns = json_integer_value(json);
    else if (strcmp(key, "weir_dropped_events") == 0)
        r->trace->dropped = (uint64_t)json_integer_value(json);
    return 0;
}

/* Events can be compressed to almost nothing: bounds the memory of the trace by the bytes of its file. */
static int check_claim(struct read *r)
{
    const struct weir_trace *t = r->trace;
    for (; r->n_texts < weir_trace_text_count(t); r->n_texts++)
        r->text_bytes += strlen(weir_trace_text(t, r->n_texts)) + 1;
    uint64_t bytes = r->text_bytes + t->n_events * sizeof *t->events + t->n_tracks * sizeof *t->tracks;
    return weir_claim_fits(bytes, weir_gz_stored(r->pieces.reader))
               ? 0
               : weir_err_set(r->err, -EFBIG,
                              "its events take %" PRIu64 " MiB, over 64 times the size of the file, as those of no "
                              "trace do",
                              bytes >> 20);
}

static int read_piece(struct read *r)
{
    json_error_t where;
    if (weir_json_claim(r->pieces.piece, r->pieces.length, NULL, r->err) < 0) {
        weir_err_prefix(r->err, "at byte %" PRIu64, r->pieces.offset);
        return r->err->code;
    }
    errno = 0; /* jansson reports a failed allocation as a syntax error, but errno is then ENOMEM */
    json_t *json = json_loadb(r->pieces.piece, r->pieces.length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &where);
    if (!json && errno == ENOMEM)
        return weir_err_set(r->err, -ENOMEM, "out of memory");
    if (!json && !r->pieces.in_array)
        return 0; /* ignore metadata that users added and that is not JSON, such as N/A */
    int rc = json ? 0 : weir_err_set(r->err, -EBADMSG, "not JSON: %s", where.text);
    if (rc == 0)
        rc = r->pieces.in_array ? read_event(r, json) : read_member(r, json);
    if (rc == -ENOMEM)
        weir_err_set(r->err, rc, "out of memory");
    rc = rc < 0 ? rc : check_claim(r);
    if (rc < 0)
        weir_err_prefix(r->err, "at byte %" PRIu64, r->pieces.offset);
    json_decref(json);
    return rc;
}

static int read_all(struct read *r)
{
    bool events = false;
    int rc;
    while ((rc = weir_pieces_next(&r->pieces, r->err)) > 0) {
        events |= r->pieces.in_array;
        rc = read_piece(r);
        if (rc < 0)
            return rc;
    }
    if (rc == 0 && weir_trace_failed(r->trace))
        return weir_err_set(r->err, -ENOMEM, "out of memory");
    if (rc == 0 && !events)
        return weir_err_set(r->err, -ENODATA, "contains no events (traceEvents); record some steps");
    if (rc == 0 && r->ranges > 0 && r->foreign == r->ranges)
        return weir_err_set(r->err, -ENOTSUP,
                            "none of its %" PRIu64 " ranges has a category (cat) of torch.profiler or Weir, "
                            "such as cpu_op, user_annotation or kernel; choose a trace that one of them recorded",
                            r->ranges);
    return rc;
}

static int read_file(struct weir_trace **out, const char *path, bool whole, struct weir_err *err)
{
    struct read r = {.whole = whole, .err = err};
    struct weir_gz_reader *reader;
    *out = NULL;
    int rc = weir_gz_read_open(&reader, path);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: cannot be opened: %s", path, strerror(-rc));
    rc = weir_trace_new(&r.trace);
    if (rc == 0)
        rc = weir_pieces_open(&r.pieces, reader, "traceEvents");
    if (rc < 0)
        weir_err_set(err, rc, "out of memory");
    if (rc == 0)
        r.forked = intern(&r, "<forked function>");
    if (rc == 0)
        rc = read_all(&r);
    weir_pieces_close(&r.pieces);
    weir_gz_read_close(&reader);
    if (rc < 0) {
        weir_err_prefix(err, "%s", path);
        weir_trace_free(&r.trace);
    }
    *out = r.trace;
    return rc;
}

int weir_trace_read(struct weir_trace **out, const char *path, struct weir_err *err)
{
    return read_file(out, path, false, err);
}

int weir_trace_read_whole(struct weir_trace **out, const char *path, struct weir_err *err)
{
    return read_file(out, path, true, err);
}
