/* The output of --json: of weir run, weir train, weir report of logs, weir bench, weir tune, and python -m weir watch.
 */
#include "analyze/compare/compared_priv.h"
#include "base/claims.h"
#include "base/text.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_MAX_BYTES = 64 << 20 };

/* Writes a copy of the object as a line of a log. */
static int put_line(FILE *out, const json_t *object, const char *type)
{
    json_t *copy = json_is_object(object) ? json_copy((json_t *)(uintptr_t)object) : NULL;
    if (!copy)
        return json_is_object(object) ? -ENOMEM : 0;
    int code = json_object_set_new(copy, "type", json_string(type)) < 0 ? -ENOMEM : 0;
    if (code == 0 && json_dumpf(copy, out, JSON_COMPACT) < 0)
        code = -ENOMEM;
    json_decref(copy);
    return putc('\n', out) == EOF ? -ENOMEM : code;
}

static int put_lines(FILE *out, const json_t *array, const char *type)
{
    int code = 0;
    for (size_t i = 0; i < json_array_size(array) && code == 0; i++)
        code = put_line(out, json_array_get(array, i), type);
    return code;
}

/* Writes the lines of a run: one object of weir run, or of the array "runs" of weir report. */
static int put_run(FILE *out, const json_t *run)
{
    int code = put_line(out, json_object_get(run, "run"), "run");
    if (code == 0)
        code = put_lines(out, json_object_get(run, "epochs"), "epoch");
    if (code == 0)
        code = put_line(out, json_object_get(run, "measured"), "measured");
    if (code == 0)
        code = put_lines(out, json_object_get(run, "reports"), "stages");
    return code == 0 ? put_line(out, json_object_get(run, "report"), "stages") : code;
}

/* ---- weir bench and weir tune: a row is a candidate, a measurement is a trial of it ---- */

/* Which members of the two outputs hold the candidates and their settings. */
struct trials_form {
    const char *what, *family, *candidates, *settings, *whole;
};

static const struct trials_form forms[] = {
    {"a result of weir bench --json", "bench", "cells", "settings", "images/s, first row"},
    {"a result of weir tune --json", "tune", "candidates", "setting", "images/s, chosen"},
};

static const char *value_text(char text[64], const json_t *value)
{
    if (json_is_integer(value))
        snprintf(text, 64, "%lld", (long long)json_integer_value(value));
    else if (json_is_number(value))
        snprintf(text, 64, "%.6g", json_number_value(value));
    else
        snprintf(text, 64, "%s", json_is_string(value) ? json_string_value(value) : "-");
    return text;
}

static bool differs(const json_t *candidates, const char *settings, const char *key)
{
    const json_t *first = json_object_get(json_object_get(json_array_get(candidates, 0), settings), key);
    for (size_t i = 1; i < json_array_size(candidates); i++)
        if (!json_equal(first, json_object_get(json_object_get(json_array_get(candidates, i), settings), key)))
            return true;
    return false;
}

/* Names a candidate by its format, the cache and the settings that differ between candidates. */
static void name_of(char name[WEIR_COMPARED_NAME], const struct trials_form *form, const json_t *candidates, size_t i)
{
    const json_t *candidate = json_array_get(candidates, i);
    const char *format = json_string_value(json_object_get(candidate, "format"));
    const char *cache = json_string_value(json_object_get(candidate, "cache")), *key;
    json_t *value;
    char text[64];
    int n = snprintf(name, WEIR_COMPARED_NAME, "%s%s%s", format ? format : "", format && cache ? " " : "",
                     cache ? cache : "");
    json_object_foreach(json_object_get(candidate, form->settings), key, value)
    {
        if (n < 0 || n >= WEIR_COMPARED_NAME)
            return;
        if (differs(candidates, form->settings, key))
            n += snprintf(name + n, (size_t)(WEIR_COMPARED_NAME - n), "%s%s=%s", n > 0 ? " " : "", key,
                          value_text(text, value));
    }
    if (n == 0)
        snprintf(name, WEIR_COMPARED_NAME, "all");
}

static int add_candidate(struct weir_compared *compared, const char *name, const json_t *turns, bool whole)
{
    int code = 0;
    for (size_t i = 0; i < json_array_size(turns) && code == 0; i++) {
        double rate = json_number_value(json_object_get(json_array_get(turns, i), "images_per_s"));
        if (!(rate > 0))
            continue;
        code = weir_compared_stage(compared, name, 1 / rate);
        if (code == 0 && whole)
            code = weir_series_add(&compared->whole, rate);
    }
    return code;
}

static int add_trials(struct weir_compared *compared, const json_t *root)
{
    const struct trials_form *form = json_object_get(root, forms[0].candidates) ? &forms[0] : &forms[1];
    const json_t *candidates = json_object_get(root, form->candidates);
    json_int_t whole = json_integer_value(json_object_get(root, "chosen"));
    int code = 0;
    compared->what = form->what;
    compared->family = form->family;
    compared->whole_name = form->whole;
    compared->unit = "trial";
    compared->per = "image";
    compared->more_is_better = true;
    for (size_t i = 0; i < json_array_size(candidates) && code == 0; i++) {
        char name[WEIR_COMPARED_NAME];
        name_of(name, form, candidates, i);
        weir_text_printable(name);
        code = add_candidate(compared, name, json_object_get(json_array_get(candidates, i), "turns"),
                             (json_int_t)i == whole);
    }
    return code;
}

/* ---- any output ---- */

/* What other output of --json is, by a member that only it has. */
static const char *kind_of(const json_t *root)
{
    static const struct {
        const char *member, *what;
    } kinds[] = {
        {"ladder", "output of weir whatif --json"},
        {"traces", "output of weir report --json for traces"},
        {"logs", "output of weir report --json for several logs"},
        {"jobs", "output of weir top --json"},
        {"decoders", "output of weir doctor --json"},
        {"findings", "output of weir verify --json"},
        {"layout", "output of weir info --json"},
        {"copy", "output of weir convert --json"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_object_get(root, kinds[i].member))
            return kinds[i].what;
    return "output of --json of another command";
}

static bool is_trials(const json_t *root)
{
    return json_object_get(root, "cells") || json_object_get(root, "candidates");
}

/* Writes the settings and the machine of weir bench or weir tune as the first line of a log. */
static int put_head(FILE *out, const json_t *root)
{
    json_t *head = json_object();
    static const char *const members[] = {"schema", "weir", "git", "machine", "config"};
    int code = head ? 0 : -ENOMEM;
    for (size_t i = 0; i < sizeof members / sizeof *members && code == 0; i++) {
        json_t *member = json_object_get(root, members[i]);
        if (member && json_object_set(head, members[i], member) < 0)
            code = -ENOMEM;
    }
    if (code == 0)
        code = put_line(out, head, "run");
    json_decref(head);
    return code;
}

/* Returns 1 if lines were written, 0 if the output contains no run, or -errno. */
static int convert(FILE *out, const json_t *root)
{
    const json_t *runs = json_object_get(root, "runs");
    const char *type = json_string_value(json_object_get(root, "type"));
    int code = 0;
    if (type && strcmp(type, "watch") == 0)
        code = put_line(out, root, "stages");
    else if (json_object_get(root, "report") || json_object_get(root, "epochs"))
        code = put_run(out, root);
    else if (is_trials(root))
        code = put_head(out, root);
    else if (json_array_size(runs) > 0 && json_object_get(json_array_get(runs, 0), "reports"))
        for (size_t i = 0; i < json_array_size(runs) && code == 0; i++)
            code = put_run(out, json_array_get(runs, i));
    else
        return 0;
    return code < 0 ? code : 1;
}

static int read_lines(struct weir_compared *compared, char *text, size_t size, struct weir_err *err)
{
    struct weir_lines lines;
    FILE *in = size > 0 ? fmemopen(text, size, "rb") : NULL;
    if (!in)
        return -ENOMEM;
    weir_lines_open(&lines, in);
    int code = weir_compared_records(compared, &lines, err);
    weir_lines_close(&lines);
    fclose(in);
    return code;
}

/* Parses n bytes. Returns 0 or a negative code with err. */
static int parse(const char *path, const char *text, size_t n, json_t **root, struct weir_err *err)
{
    json_error_t where;
    struct weir_err why = WEIR_ERR_NONE;
    int code = weir_json_claim(text, n, NULL, &why);
    if (code < 0)
        return weir_err_set(err, code, "%s: %s; compare the runs' logs (--log)", path, why.text);
    errno = 0; /* jansson reports a failed allocation as a syntax error, but errno is then ENOMEM */
    *root = json_loadb(text, n, 0, &where);
    if (!*root && errno == ENOMEM)
        return -ENOMEM;
    return *root ? 0
                 : weir_err_set(err, -EBADMSG, "%s: line %d is invalid JSON: %s (column %d)", path, where.line,
                                where.text, where.column);
}

static int read_root(const char *path, FILE *in, json_t **root, struct weir_err *err)
{
    fseek(in, 0, SEEK_END);
    long bytes = ftell(in);
    rewind(in);
    if (bytes > JSON_MAX_BYTES)
        return weir_err_set(err, -E2BIG, "%s is larger than %d MiB; compare the runs' logs (--log)", path,
                            JSON_MAX_BYTES >> 20);
    char *text = malloc(bytes > 0 ? (size_t)bytes : 1);
    size_t n = text && bytes > 0 ? fread(text, 1, (size_t)bytes, in) : 0;
    int code = text ? parse(path, text, n, root, err) : -ENOMEM;
    free(text);
    return code;
}

int weir_compared_json(struct weir_compared *compared, FILE *in, struct weir_err *err)
{
    char *text = NULL;
    size_t size = 0;
    json_t *root = NULL;
    int code = read_root(compared->path, in, &root, err);
    if (code < 0)
        return code;
    FILE *out = open_memstream(&text, &size);
    code = out ? convert(out, root) : -ENOMEM;
    if (out && fclose(out) != 0 && code >= 0)
        code = -ENOMEM;
    if (code == 0)
        code = weir_err_set(err, -EINVAL,
                            "%s is %s; weir compare reads the --json of weir run, weir train, weir bench, weir tune, "
                            "python -m weir watch, and weir report of one log",
                            compared->path, kind_of(root));
    else if (code == 1)
        code = read_lines(compared, text, size, err);
    if (code == 0 && is_trials(root))
        code = add_trials(compared, root);
    json_decref(root);
    free(text);
    if (code == 0 && strcmp(compared->family, "run") == 0)
        compared->what = "a result of weir run --json";
    return code;
}
