#include "pipeline/samples/deltas.h"
#include "base/shortage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weir_window_pads(const struct weir_window *window, int t, int steps, uint8_t *is_pad)
{
    for (int i = 0; i < window->n; i++) {
        int64_t step = (int64_t)t + weir_window_offset(window, i);
        is_pad[i] = step < 0 || step >= steps;
    }
}

int weir_windows_images(const struct weir_windows *windows)
{
    int n = 0;
    for (int c = 0; c < windows->n_cameras; c++)
        n += windows->cameras[c].n;
    return n;
}

void weir_windows_close(struct weir_windows *windows)
{
    for (int c = 0; c < WEIR_CAMERAS_MAX; c++)
        free(windows->cameras[c].list);
    for (int c = 0; c < WEIR_COLUMNS_MAX; c++)
        free(windows->columns[c].list);
    free(windows->qpos.list);
    free(windows->actions.list);
    *windows = (struct weir_windows){0};
}

/* ---- parsing ---- */

/* An entry "KEY=-1,0,2" or "KEY=0:100" of the text. */
struct entry {
    const char *text; /* of the whole entry, for messages */
    int length;
    const char *key, *offsets, *end;
    size_t key_length;
};

static int bad_entry(const struct entry *entry, const char *why, struct weir_err *err)
{
    return weir_err_set(err, -EINVAL, "delta indices \"%.*s\": %s", entry->length < 200 ? entry->length : 200,
                        entry->text, why);
}

static bool parse_number(const char **at, const char *end, int *value)
{
    char *after;
    if (*at == end)
        return false;
    long number = strtol(*at, &after, 10);
    bool fine = after > *at && after <= end && **at != ' ' && number >= -WEIR_WINDOW_OFFSET_MAX &&
                number <= WEIR_WINDOW_OFFSET_MAX;
    *value = fine ? (int)number : 0;
    *at = after;
    return fine;
}

/* Parses "FIRST:END", whose end is not included. */
static int parse_range(const struct entry *entry, struct weir_window *window, struct weir_err *err)
{
    const char *at = entry->offsets;
    int end;
    if (!parse_number(&at, entry->end, &window->first) || *at++ != ':' || !parse_number(&at, entry->end, &end) ||
        at != entry->end)
        return bad_entry(entry, "is not KEY=FIRST:END with two integers", err);
    window->n = end - window->first;
    if (window->n < 1 || window->n > WEIR_WINDOW_MAX)
        return bad_entry(entry, "must contain 1 to 4096 offsets", err);
    return 0;
}

static int parse_list(const struct entry *entry, struct weir_window *window, struct weir_err *err)
{
    const char *at = entry->offsets;
    window->list = malloc(WEIR_WINDOW_MAX * sizeof *window->list);
    if (!window->list)
        return weir_no_memory(err);
    for (window->n = 0; window->n < WEIR_WINDOW_MAX; at++) {
        if (!parse_number(&at, entry->end, &window->list[window->n]))
            return bad_entry(entry, "is not KEY=A,B,C with integers of at most 1000000", err);
        window->n++;
        if (at == entry->end)
            return 0;
        if (*at != ',')
            return bad_entry(entry, "is not KEY=A,B,C with integers of at most 1000000", err);
    }
    return bad_entry(entry, "must contain 1 to 4096 offsets", err);
}

static bool is_key(const struct entry *entry, const char *name)
{
    return strlen(name) == entry->key_length && memcmp(name, entry->key, entry->key_length) == 0;
}

/* Returns whether the entry names the camera, its array in the dataset, or its key in a batch of LeRobot. */
static bool is_camera(const struct entry *entry, const struct weir_dataset *dataset, int c)
{
    const struct weir_camera *camera = weir_dataset_camera(dataset, c);
    char key[WEIR_NAME_MAX + 32];
    snprintf(key, sizeof key, "observation.%s.%s", weir_frame_is_depth(camera->kind) ? "depth" : "images",
             camera->name);
    return is_key(entry, camera->name) || is_key(entry, key) || is_key(entry, weir_dataset_camera_key(dataset, 0, c));
}

/* Returns whether the entry names the camera's array without its path, as features of LeRobot are named. */
static bool is_array(const struct entry *entry, const struct weir_dataset *dataset, int c)
{
    const char *slash = strrchr(weir_dataset_camera_key(dataset, 0, c), '/');
    return slash && is_key(entry, slash + 1);
}

static bool is_column(const struct entry *entry, const struct weir_dataset *dataset, int c)
{
    return is_key(entry, weir_dataset_column(dataset, c, NULL));
}

/* Returns the window that the entry names. */
static struct weir_window *window_named(struct weir_windows *windows, const struct weir_dataset *dataset,
                                        const struct entry *entry)
{
    for (int c = 0; c < windows->n_columns; c++)
        if (is_column(entry, dataset, c))
            return &windows->columns[c];
    if (is_key(entry, "qpos") || is_key(entry, "observation.state"))
        return &windows->qpos;
    if (is_key(entry, "actions") || is_key(entry, "action"))
        return &windows->actions;
    for (int c = 0; c < windows->n_cameras; c++)
        if (is_camera(entry, dataset, c))
            return &windows->cameras[c];
    for (int c = 0; c < windows->n_cameras; c++)
        if (is_array(entry, dataset, c))
            return &windows->cameras[c];
    return NULL;
}

static int parse_entry(struct weir_windows *windows, const struct weir_dataset *dataset, struct entry *entry,
                       struct weir_err *err)
{
    const char *equals = memchr(entry->text, '=', (size_t)entry->length);
    entry->key = entry->text;
    entry->end = entry->text + entry->length;
    if (!equals)
        return bad_entry(entry, "is not KEY=OFFSETS", err);
    entry->key_length = (size_t)(equals - entry->text);
    entry->offsets = equals + 1;
    struct weir_window *window = window_named(windows, dataset, entry);
    if (!window)
        return bad_entry(entry,
                         "names no camera or column, and neither qpos nor actions; `weir info` lists the cameras", err);
    if (window->is_given)
        return bad_entry(entry, "names a key twice", err);
    *window = (struct weir_window){.is_given = true};
    return memchr(entry->offsets, ':', (size_t)(entry->end - entry->offsets)) ? parse_range(entry, window, err)
                                                                              : parse_list(entry, window, err);
}

static int parse(struct weir_windows *windows, const char *text, const struct weir_dataset *dataset,
                 struct weir_err *err)
{
    int rc = 0;
    while (text && *text && rc == 0) {
        size_t length = strcspn(text, ";");
        struct entry entry = {.text = text, .length = (int)length};
        rc = parse_entry(windows, dataset, &entry, err);
        text += length + (text[length] == ';');
    }
    return rc;
}

/* ---- all windows ---- */

static void find_limits(struct weir_windows *windows)
{
    windows->first = windows->n_cameras ? INT32_MAX : 0;
    windows->last = windows->n_cameras ? INT32_MIN : 0;
    for (int c = 0; c < windows->n_cameras; c++) {
        const struct weir_window *window = &windows->cameras[c];
        windows->images_max = window->n > windows->images_max ? window->n : windows->images_max;
        for (int i = 0; i < window->n; i++) {
            int offset = weir_window_offset(window, i);
            windows->first = offset < windows->first ? offset : windows->first;
            windows->last = offset > windows->last ? offset : windows->last;
        }
    }
}

int weir_windows_init(struct weir_windows *windows, const struct weir_loader_config *config,
                      const struct weir_dataset *dataset, struct weir_err *err)
{
    struct weir_window history = {.n = config->obs_history, .first = 1 - config->obs_history};
    *windows = (struct weir_windows){.n_cameras = weir_dataset_cameras(dataset),
                                     .qpos = history,
                                     .actions = {.n = config->chunk_size, .first = config->action_offset}};
    for (int c = 0; c < windows->n_cameras; c++)
        windows->cameras[c] = history;
    windows->n_columns = weir_dataset_columns(dataset);
    if (windows->n_columns > WEIR_COLUMNS_MAX)
        return weir_err_set(err, -ENOTSUP, "the dataset has %d columns; a batch can have %d", windows->n_columns,
                            WEIR_COLUMNS_MAX);
    for (int c = 0; c < windows->n_columns; c++)
        windows->columns[c] = (struct weir_window){.n = 1};
    int rc = parse(windows, config->delta_indices, dataset, err);
    find_limits(windows);
    return rc;
}
