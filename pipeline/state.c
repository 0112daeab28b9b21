#include "pipeline/state.h"
#include "prof/gz_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char magic[] = "weir-state 1\n";

static int write_file(const char *path, const char *text, size_t n)
{
    struct weir_gz_file *file;
    int rc = weir_gz_open(&file, path, WEIR_GZ_PLAIN, NULL);
    if (rc < 0)
        return rc;
    weir_gz_write(file, text, n);
    weir_gz_sync(file);
    return weir_gz_commit(&file, NULL);
}

int weir_state_write(const char *path, uint64_t next, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err)
{
    char text[64 * (WEIR_STATE_FIELDS + 2)];
    int n = snprintf(text, sizeof text, "%snext %" PRIu64 "\n", magic, next);
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s %" PRIu64 "\n", fields[i].name, fields[i].value);
    int rc = write_file(path, text, (size_t)n);
    return rc < 0 ? weir_err_set(err, rc, "%s: the state cannot be written: %s; name another file", path, strerror(-rc))
                  : 0;
}

static int read_fields(FILE *file, struct weir_state *state)
{
    char line[256] = "", name[64];
    if (!fgets(line, sizeof line, file) || strcmp(line, magic) != 0)
        return -EBADMSG;
    if (!fgets(line, sizeof line, file) || sscanf(line, "next %" SCNu64, &state->next) != 1)
        return -EBADMSG;
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        if (!fgets(line, sizeof line, file) || sscanf(line, "%63s %" SCNu64, name, &state->values[i]) != 2)
            return -EBADMSG;
    return 0;
}

int weir_state_read(const char *path, struct weir_state *state, struct weir_err *err)
{
    *state = (struct weir_state){.given = false};
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT)
        return 0;
    if (!file)
        return weir_err_set(err, -errno, "%s: cannot be opened: %s", path, strerror(errno));
    int rc = read_fields(file, state);
    fclose(file);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: is no state of a run; remove it to begin anew", path);
    state->given = true;
    return 0;
}

int weir_state_check(const struct weir_state *state, const struct weir_state_field fields[WEIR_STATE_FIELDS],
                     struct weir_err *err)
{
    for (int i = 0; i < WEIR_STATE_FIELDS; i++)
        if (state->values[i] != fields[i].value)
            return weir_err_set(err, -EINVAL,
                                "the run that left its state had another %s: its remaining batches are not to be had; "
                                "give the same, or remove the state to begin anew",
                                fields[i].name);
    return 0;
}
