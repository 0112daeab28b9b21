/* The output of --json: of weir run, weir train, weir report of logs, and python -m weir watch. */
#include "analyze/compare/compared_priv.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { JSON_MAX_BYTES = 256 << 20 };

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

/* What other output of --json is, by a member that only it has. */
static const char *kind_of(const json_t *root)
{
    static const struct {
        const char *member, *what;
    } kinds[] = {
        {"candidates", "output of weir tune --json"},
        {"ladder", "output of weir whatif --json"},
        {"cells", "output of weir bench --json"},
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

int weir_compared_json(struct weir_compared *compared, FILE *in, struct weir_err *err)
{
    json_error_t where;
    char *text = NULL;
    size_t size = 0;
    fseek(in, 0, SEEK_END);
    long bytes = ftell(in);
    rewind(in);
    if (bytes > JSON_MAX_BYTES)
        return weir_err_set(err, -E2BIG, "%s is larger than %d MiB; compare the runs' logs (--log)", compared->path,
                            JSON_MAX_BYTES >> 20);
    json_t *root = json_loadf(in, 0, &where);
    if (!root)
        return weir_err_set(err, -EBADMSG, "%s: line %d is invalid JSON: %s (column %d)", compared->path, where.line,
                            where.text, where.column);
    FILE *out = open_memstream(&text, &size);
    int code = out ? convert(out, root) : -ENOMEM;
    if (out && fclose(out) != 0 && code >= 0)
        code = -ENOMEM;
    if (code == 0)
        code = weir_err_set(err, -EINVAL,
                            "%s is %s; weir compare reads the --json of weir run, weir train, python -m weir watch, "
                            "and weir report of one log",
                            compared->path, kind_of(root));
    else if (code == 1)
        code = read_lines(compared, text, size, err);
    json_decref(root);
    free(text);
    if (code == 0 && strcmp(compared->family, "run") == 0)
        compared->what = "a result of weir run --json";
    return code;
}
