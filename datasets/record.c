/* Episodes as bytes, and back. What is read is taken to be hostile: every count is checked against what is there. */
#include "datasets/record_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct episode_record {
    int32_t steps, rows_cut, qpos_dim, action_dim, n_tracks, note;
};

struct track_record {
    int32_t width, height, frames, storage, rows, has_ends;
    uint64_t row_bytes, base;
};

struct blocks_record {
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    uint8_t fill[16];
};

/* ---- writing ---- */

void weir_record_put(struct weir_record_writer *w, const void *data, size_t n)
{
    size_t padded = (n + 7) & ~(size_t)7;
    if (w->capacity - w->n < padded) {
        size_t capacity = w->capacity * 2 > w->n + padded ? w->capacity * 2 : w->n + padded + 4096;
        uint8_t *bytes = w->full ? NULL : realloc(w->bytes, capacity);
        if (!bytes) {
            w->full = true;
            return;
        }
        w->bytes = bytes;
        w->capacity = capacity;
    }
    if (n)
        memcpy(w->bytes + w->n, data, n);
    memset(w->bytes + w->n + n, 0, padded - n);
    w->n += padded;
}

void weir_record_put_text(struct weir_record_writer *w, const char *text)
{
    uint64_t n = text ? strlen(text) + 1 : 0;
    weir_record_put(w, &n, sizeof n);
    weir_record_put(w, text, n);
}

static void put_track(struct weir_record_writer *w, const struct weir_track *track, const char *name)
{
    size_t frames = (size_t)track->frames;
    struct track_record record = {track->width,         track->height,       track->frames,    (int32_t)track->storage,
                                  (int32_t)track->rows, track->ends != NULL, track->row_bytes, track->base};
    weir_record_put(w, &record, sizeof record);
    weir_record_put_text(w, track->key);
    weir_record_put_text(w, track->codec);
    weir_record_put_text(w, track->why);
    weir_record_put(w, name, WEIR_NAME_MAX);
    if (track->storage == WEIR_STORED_CHUNKS)
        weir_record_put(w, track->offsets, frames * sizeof *track->offsets);
    if (track->storage == WEIR_STORED_HEAP)
        weir_record_put(w, track->slots, frames * sizeof *track->slots);
    if (track->ends)
        weir_record_put(w, track->ends, frames * sizeof *track->ends);
    if (track->storage == WEIR_STORED_BLOCKS) {
        struct blocks_record blocks = {track->blocks->grid, track->blocks->filters, {0}};
        memcpy(blocks.fill, track->blocks->fill, sizeof blocks.fill);
        weir_record_put(w, &blocks, sizeof blocks);
        weir_record_put(w, track->blocks->chunks, track->blocks->n_chunks * sizeof *track->blocks->chunks);
    }
}

void weir_record_put_episode(struct weir_record_writer *w, const struct weir_episode *e)
{
    size_t steps = (size_t)e->steps;
    struct episode_record record = {e->steps, e->rows_cut, e->qpos_dim, e->action_dim, e->n_tracks, (int32_t)e->note};
    weir_record_put(w, &record, sizeof record);
    weir_record_put_text(w, e->layout->name);
    weir_record_put_text(w, e->root);
    weir_record_put_text(w, e->qpos_key);
    weir_record_put_text(w, e->action_key);
    weir_record_put_text(w, e->passed_over);
    weir_record_put(w, e->qpos, steps * (size_t)e->qpos_dim * sizeof(float));
    weir_record_put(w, e->actions, steps * (size_t)e->action_dim * sizeof(float));
    for (int i = 0; i < e->n_tracks; i++)
        put_track(w, &e->tracks[i], e->names[i]);
}

/* ---- reading ---- */

/* n bytes, padded to 8; NULL and bad when they are not there. */
void *weir_record_get(struct weir_record_cursor *c, uint64_t n)
{
    uint64_t padded = n + (-n & 7);
    if (c->bad || padded < n || padded > c->left) {
        c->bad = true;
        return NULL;
    }
    void *data = c->at;
    c->at += padded;
    c->left -= padded;
    return data;
}

static void *get_array(struct weir_record_cursor *c, uint64_t count, size_t element)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, element, &bytes))
        c->bad = true;
    return c->bad ? NULL : weir_record_get(c, bytes);
}

/* For what was read to be kept in. */
static void *allocate(struct weir_record_cursor *c, size_t n, size_t bytes)
{
    void *memory = calloc(n, bytes);
    c->no_memory |= !memory;
    c->bad |= !memory;
    return memory;
}

/* NULL for none as well. */
char *weir_record_text(struct weir_record_cursor *c)
{
    const uint64_t *n = weir_record_get(c, sizeof *n);
    char *text = n && *n ? weir_record_get(c, *n) : NULL;
    if (text && text[*n - 1] != '\0')
        c->bad = true;
    return c->bad ? NULL : text;
}

/* ---- an episode of a record ---- */

static const char *known_codec(const char *name)
{
    static const char *const codecs[] = {"raw", "jpeg", "raw16", "png16"};
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0] && name; i++)
        if (strcmp(codecs[i], name) == 0)
            return codecs[i];
    return NULL;
}

static void get_blocks(struct weir_record_cursor *c, struct weir_track *track)
{
    const struct blocks_record *record = weir_record_get(c, sizeof *record);
    struct weir_blocks *blocks = record ? track->blocks = allocate(c, 1, sizeof *blocks) : NULL;
    if (!blocks) {
        c->bad = true;
        return;
    }
    unsigned char filtered; /* looked at as a byte: a bool of another value must not be read as one */
    memcpy(&filtered, &record->grid.filtered, 1);
    if (filtered > 1) {
        c->bad = true;
        return;
    }
    blocks->grid = record->grid;
    blocks->filters = record->filters;
    memcpy(blocks->fill, record->fill, sizeof blocks->fill);
    bool fine = blocks->grid.rank >= 1 && blocks->grid.rank <= WEIR_GRID_RANK_MAX && blocks->filters.n >= 0 &&
                blocks->filters.n <= WEIR_FILTERS_MAX && weir_blocks_init(blocks);
    if (!fine || blocks->row_bytes != track->row_bytes || blocks->grid.dims[0] < (uint64_t)track->frames)
        c->bad = true;
    blocks->chunks = get_array(c, blocks->n_chunks, sizeof *blocks->chunks);
}

/* What is read is a hint at most, whoever wrote it. */
static void get_ends(struct weir_record_cursor *c, struct weir_track *track)
{
    uint64_t frames = (uint64_t)track->frames;
    track->ends = get_array(c, frames, sizeof *track->ends);
    bool padded = track->rows == WEIR_ROWS_PADDED || track->rows == WEIR_ROWS_STRINGS;
    for (uint64_t t = 0; t < frames && track->ends; t++)
        if (!padded || atomic_load_explicit(&track->ends[t].bytes, memory_order_relaxed) > track->row_bytes)
            c->bad = true; /* nor has anybody known it then */
}

static void get_track(struct weir_record_cursor *c, struct weir_track *track, char name[WEIR_NAME_MAX], int steps)
{
    const struct track_record *record = weir_record_get(c, sizeof *record);
    if (!record || record->frames < steps || record->storage < 0 || record->storage > WEIR_STORED_LIBRARY ||
        record->rows < 0 || record->rows > WEIR_ROWS_VLEN || record->row_bytes > INT32_MAX || record->width < 0 ||
        record->height < 0) {
        c->bad = true;
        return;
    }
    *track = (struct weir_track){.width = record->width,
                                 .height = record->height,
                                 .frames = record->frames,
                                 .storage = (enum weir_storage)record->storage,
                                 .rows = (enum weir_rows)record->rows,
                                 .row_bytes = record->row_bytes,
                                 .base = record->base};
    uint64_t frames = (uint64_t)track->frames;
    track->key = weir_record_text(c);
    track->codec = known_codec(weir_record_text(c));
    track->why = weir_record_text(c);
    const char *kept = weir_record_get(c, WEIR_NAME_MAX);
    if (kept)
        snprintf(name, WEIR_NAME_MAX, "%.*s", WEIR_NAME_MAX - 1, kept);
    if (track->storage == WEIR_STORED_CHUNKS)
        track->offsets = get_array(c, frames, sizeof *track->offsets);
    if (track->storage == WEIR_STORED_HEAP)
        track->slots = get_array(c, frames, sizeof *track->slots);
    if (record->has_ends)
        get_ends(c, track);
    if (track->storage == WEIR_STORED_BLOCKS && !c->bad)
        get_blocks(c, track);
    if (!track->key || !track->codec || (track->storage == WEIR_STORED_LIBRARY && !track->why))
        c->bad = true;
}

void weir_record_episode(struct weir_record_cursor *c, struct weir_episode *e)
{
    const struct episode_record *record = weir_record_get(c, sizeof *record);
    if (!record || record->steps < 1 || record->rows_cut < 0 || record->qpos_dim < 1 || record->action_dim < 1 ||
        record->n_tracks < 0 || record->n_tracks > WEIR_CAMERAS_MAX || record->note < 0 || record->note >= WEIR_NOTES) {
        c->bad = true;
        return;
    }
    size_t before = c->left;
    *e = (struct weir_episode){.steps = record->steps,
                               .rows_cut = record->rows_cut,
                               .qpos_dim = record->qpos_dim,
                               .action_dim = record->action_dim,
                               .n_tracks = record->n_tracks,
                               .note = (enum weir_note)record->note,
                               .is_lent = true};
    const char *layout = weir_record_text(c);
    e->layout = layout ? weir_layout_by_name(layout) : NULL;
    e->root = weir_record_text(c);
    e->qpos_key = weir_record_text(c);
    e->action_key = weir_record_text(c);
    e->passed_over = weir_record_text(c);
    e->qpos = get_array(c, (uint64_t)e->steps * (uint64_t)e->qpos_dim, sizeof(float));
    e->actions = get_array(c, (uint64_t)e->steps * (uint64_t)e->action_dim, sizeof(float));
    e->tracks = allocate(c, (size_t)e->n_tracks + 1, sizeof *e->tracks);
    e->names = allocate(c, (size_t)e->n_tracks + 1, sizeof *e->names);
    if (!e->tracks || !e->names || !e->layout || !e->root || !e->qpos_key || !e->action_key)
        c->bad = true;
    for (int i = 0; i < e->n_tracks && !c->bad; i++)
        get_track(c, &e->tracks[i], e->names[i], e->steps);
    e->bytes = sizeof *e + before - c->left;
}

static bool own(void *pointer, size_t bytes)
{
    void **at = pointer, *copy = *at ? malloc(bytes ? bytes : 1) : NULL;
    bool fine = !*at || copy;
    if (copy)
        memcpy(copy, *at, bytes);
    *at = copy;
    return fine;
}

static bool own_text(char **text)
{
    return own(text, *text ? strlen(*text) + 1 : 0);
}

int weir_record_own(struct weir_episode *e)
{
    size_t steps = (size_t)e->steps;
    bool fine = own_text(&e->root);
    fine &= own_text(&e->qpos_key);
    fine &= own_text(&e->action_key);
    fine &= own_text(&e->passed_over);
    fine &= own(&e->qpos, steps * (size_t)e->qpos_dim * sizeof *e->qpos);
    fine &= own(&e->actions, steps * (size_t)e->action_dim * sizeof *e->actions);
    for (int i = 0; i < e->n_tracks; i++) {
        struct weir_track *track = &e->tracks[i];
        fine &= own_text(&track->key);
        fine &= own(&track->ends, (size_t)track->frames * sizeof *track->ends);
    }
    e->is_lent = false;
    return fine ? 0 : -ENOMEM;
}
