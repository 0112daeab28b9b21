#include "analyze/logs/log_read.h"
#include "analyze/logs/log_read_priv.h"
#include "analyze/verdict/verdict.h"
#include "analyze/watch/watch_text.h"

#include "base/claims.h"
#include "base/fields.h"
#include "base/terminal.h"
#include "base/text.h"
#include "pipeline/report/log_fields.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PRINT_DEPTH = 4, COPY_DEPTH = 32, WINDOWS_MAX = 1024 };

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
    to->workers = (int)weir_log_integer(at, used, "num_workers", 0, WEIR_FIELD_SMALL_MAX);
    to->prefetch = (int)weir_log_integer(at, used, "prefetch", 0, WEIR_FIELD_SMALL_MAX);
    to->rank = (int)weir_log_integer(at, used, "rank", 0, WEIR_FIELD_SMALL_MAX);
    to->world_size = (int)weir_log_integer(at, used, "world_size", 0, WEIR_FIELD_SMALL_MAX);
    to->pid = (int)weir_log_integer(at, used, "pid", 0, INT_MAX);
    read_optional_text(at, used, "host", to->host, sizeof to->host);
}

/* Reads a table of stages. Frame kinds of newer versions count as unknown. */
static void read_report(struct weir_log_at *at, const json_t *object, struct weir_loader_report *report)
{
    static const int unknown = -1;
    *report = (struct weir_loader_report){0};
    memcpy(&report->setup.kind, &unknown, sizeof unknown);
    weir_log_fields(at, object, &weir_stages_fields, report);
    if (memcmp(&report->setup.kind, &unknown, sizeof unknown) == 0)
        report->setup.kind = report->setup.encoded ? WEIR_FRAME_IMAGE : WEIR_FRAME_RAW;
}

/* Reads the figures of a watched loader. Returns 0 or -ENOMEM. */
static int read_watch(struct weir_log_at *at, const json_t *watch, struct weir_log_record *record)
{
    if (!json_is_object(watch))
        return 0;
    record->watch = calloc(1, sizeof *record->watch);
    if (!record->watch)
        return -ENOMEM;
    weir_log_fields(at, watch, &weir_watch_fields, record->watch);
    weir_dataloader_add_report(record->watch, &record->report);
    record->watch->known = true;
    return 0;
}

/* Paths that are too long for a file system are left out. */
static void read_profile(struct weir_log_at *at, const json_t *object, struct weir_log_window *window)
{
    const json_t *windows = weir_log_array(at, object, "windows", WINDOWS_MAX);
    *window = (struct weir_log_window){0};
    for (size_t i = json_array_size(windows); i > 0 && !window->trace[0] && !at->failed; i--) {
        const json_t *each = json_array_get(windows, i - 1), *path = json_object_get(each, "path");
        if (!json_is_string(path) || json_string_length(path) >= sizeof window->trace)
            continue;
        snprintf(window->trace, sizeof window->trace, "%s", json_string_value(path));
    }
}

static const char *record_type(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "";
}

static bool is_record_type(const char *type)
{
    static const char *const types[] = {"run", "start", "epoch", "stages", "measured", "whatif", "profile"};
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

const char *weir_log_unread(struct weir_lines *lines)
{
    static const struct {
        const char *start, *what;
    } kinds[] = {
        {"{\"type\":\"turn\"", "a log of weir tune"},
        {"{\"schema\":", "output of --json"},
        {"  \"schema\":", "output of --json"},
    };
    if (weir_lines_peek(lines) <= 0)
        return NULL;
    if (strcmp(lines->text, "{") == 0) /* an indented object; the next line has its first member */
        lines->pushed_back = weir_lines_next(lines) > 0 && weir_lines_next(lines) > 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(lines->text, kinds[i].start, strlen(kinds[i].start)) == 0)
            return kinds[i].what;
    return NULL;
}

/* Reads a record. Returns 1, 0 if its type is unknown, or -errno. */
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
        record->start = (struct weir_start_line){0};
        weir_log_fields(&at, object, &weir_start_fields, &record->start);
    } else if (strcmp(type, "epoch") == 0) {
        record->type = WEIR_LOG_EPOCH;
        record->epoch = (struct weir_epoch_line){0};
        weir_log_fields(&at, object, &weir_epoch_fields, &record->epoch);
    } else if (strcmp(type, "measured") == 0) {
        record->type = WEIR_LOG_MEASURED;
        record->measured = (struct weir_measured_line){0};
        weir_log_fields(&at, object, &weir_measured_fields, &record->measured);
    } else if (strcmp(type, "whatif") == 0) {
        record->type = WEIR_LOG_WHATIF;
        code = weir_log_read_whatif(&at, object, &record->whatif);
    } else if (strcmp(type, "profile") == 0) {
        record->type = WEIR_LOG_PROFILE;
        read_profile(&at, object, &record->window);
    } else {
        record->type = WEIR_LOG_STAGES;
        read_report(&at, object, &record->report);
        code = read_watch(&at, json_object_get(object, "watch"), record);
    }
    if (code < 0)
        return code;
    return at.failed ? err->code : 1;
}

void weir_log_record_clear(struct weir_log_record *record)
{
    weir_loader_report_clear(&record->report);
    free(record->whatif);
    record->whatif = NULL;
    free(record->watch);
    record->watch = NULL;
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
        if ((code = weir_json_claim(lines->text, lines->length, NULL, err)) < 0) {
            weir_err_prefix(err, "line %" PRIu64, lines->number);
            return code;
        }
        errno = 0; /* jansson reports a failed allocation as a syntax error, but errno is then ENOMEM */
        json_t *object = json_loadb(lines->text, lines->length, JSON_REJECT_DUPLICATES, &where);
        if (!object && errno == ENOMEM)
            return weir_err_set(err, -ENOMEM, "line %" PRIu64 ": out of memory", lines->number);
        if (!object && !lines->ended)
            return WEIR_LOG_CUT;
        if (!object)
            return weir_err_set(err, -EBADMSG, "line %" PRIu64 " is invalid JSON: %s (column %d)", lines->number,
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

void weir_log_report_print(FILE *out, const struct weir_log_record *record, enum weir_lang lang)
{
    if (record->watch) {
        weir_watch_print(out, record->watch, &record->report, lang, false);
        return;
    }
    weir_verdict_of_log(out, &record->report);
    putc('\n', out);
    weir_loader_report_print(out, &record->report, lang);
}

void weir_log_report_json(struct weir_json *json, const struct weir_log_record *record)
{
    weir_loader_report_json(json, &record->report);
    if (record->watch)
        weir_watch_json(json, record->watch);
    else
        weir_verdict_of_log_json(json, &record->report);
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

static int put_setting(const char *name, const json_t *value, weir_log_setting_fn *put, void *user)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return -ENOMEM;
    print_value(out, value);
    int code = fclose(out) == 0 ? put(user, name, text) : -ENOMEM;
    free(text);
    return code;
}

static int put_settings(const char *prefix, const json_t *object, int depth, weir_log_setting_fn *put, void *user)
{
    const char *key;
    json_t *value;
    int code = 0;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        char name[128];
        snprintf(name, sizeof name, "%.60s%s%.60s", prefix, *prefix ? "." : "", key);
        weir_text_printable(name);
        if (json_is_object(value) && depth < PRINT_DEPTH)
            code = put_settings(name, value, depth + 1, put, user);
        else if (!json_is_object(value) && !json_is_array(value) && strcmp(name, "type") != 0)
            code = put_setting(name, value, put, user);
        if (code < 0)
            return code;
    }
    return 0;
}

int weir_log_settings(const struct weir_log_record *record, weir_log_setting_fn *put, void *user)
{
    const json_t *settings = json_object_get(json_object_get(record->parsed_, "watch"), "settings");
    return record->type == WEIR_LOG_RUN ? put_settings("", record->parsed_, 0, put, user)
           : settings                   ? put_settings("watch", settings, 0, put, user)
                                        : 0;
}

struct pairs {
    FILE *out;
    int n;
};

/* Prints "name value, name value" on one line. */
static int print_pair(void *user, const char *name, const char *value)
{
    struct pairs *pairs = user;
    fprintf(pairs->out, "%s%s %s", pairs->n++ > 0 ? ", " : " ", name, value);
    return 0;
}

void weir_log_run_print(FILE *out, const struct weir_log_record *record)
{
    static const char *const parts[] = {"machine", "versions", "config"};
    fputs("run: weir ", out);
    print_value(out, json_object_get(record->parsed_, "weir"));
    const json_t *git = json_object_get(record->parsed_, "git");
    if (git) { /* python -m weir watch has none */
        fputs(", git ", out);
        print_value(out, git);
    }
    fputs(weir_terminal_folds() ? " (machine, versions and config: --wide)\n" : "\n", out);
    if (weir_terminal_folds())
        return;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const json_t *part = json_object_get(record->parsed_, parts[i]);
        if (!json_is_object(part))
            continue;
        fprintf(out, "%s:", parts[i]);
        struct pairs pairs = {.out = out};
        put_settings("", part, 0, print_pair, &pairs);
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
