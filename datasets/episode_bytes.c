/* Serialises episodes and parses them again. Every count is checked against the remaining bytes. */
#include "datasets/episode_bytes.h"
#include "decoders/frame_kind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct episode_fields {
    int32_t steps, rows_cut, qpos_dim, action_dim, n_maps, note, is_bgr, has_own, qpos_type, action_type;
};

struct map_fields {
    int32_t width, height, frames, storage, rows, has_ends;
    uint64_t row_bytes, base;
};

struct blocks_fields {
    struct weir_chunk_grid grid;
    struct weir_filters filters;
    uint8_t fill[16];
    uint32_t before, channels, is_planar, unused;
};

/* ---- writing ---- */

void weir_bytes_put(struct weir_bytes_writer *w, const void *data, size_t n)
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

void weir_bytes_put_text(struct weir_bytes_writer *w, const char *text)
{
    uint64_t n = text ? strlen(text) + 1 : 0;
    weir_bytes_put(w, &n, sizeof n);
    weir_bytes_put(w, text, n);
}

static void put_map(struct weir_bytes_writer *w, const struct weir_frame_map *map, const char *name)
{
    size_t frames = (size_t)map->frames;
    struct map_fields fields = {map->width,         map->height,       map->frames,    (int32_t)map->storage,
                                (int32_t)map->rows, map->ends != NULL, map->row_bytes, map->base};
    weir_bytes_put(w, &fields, sizeof fields);
    weir_bytes_put_text(w, map->key);
    weir_bytes_put_text(w, weir_frame_kind_name(map->kind));
    weir_bytes_put_text(w, map->why);
    weir_bytes_put(w, name, WEIR_NAME_MAX);
    if (map->storage == WEIR_STORED_CHUNKS)
        weir_bytes_put(w, map->offsets, frames * sizeof *map->offsets);
    if (map->storage == WEIR_STORED_HEAP)
        weir_bytes_put(w, map->slots, frames * sizeof *map->slots);
    if (map->storage == WEIR_STORED_EXTENTS)
        weir_bytes_put(w, map->extents, frames * sizeof *map->extents);
    if (map->ends)
        weir_bytes_put(w, map->ends, frames * sizeof *map->ends);
    if (map->storage == WEIR_STORED_BLOCKS) {
        struct blocks_fields blocks = {.grid = map->blocks->grid,
                                       .filters = map->blocks->filters,
                                       .before = map->blocks->before,
                                       .channels = map->blocks->channels,
                                       .is_planar = map->blocks->is_planar};
        memcpy(blocks.fill, map->blocks->fill, sizeof blocks.fill);
        weir_bytes_put(w, &blocks, sizeof blocks);
        weir_bytes_put(w, map->blocks->chunks, map->blocks->n_chunks * sizeof *map->blocks->chunks);
    }
}

static void put_texts(struct weir_bytes_writer *w, const struct weir_episode *e)
{
    uint64_t n = e->texts_bytes;
    weir_bytes_put(w, &n, sizeof n);
    weir_bytes_put(w, e->texts, e->texts_bytes);
}

static void put_own(struct weir_bytes_writer *w, const struct weir_own_numbers *own, size_t n)
{
    if (own->values)
        weir_bytes_put(w, own->values, n * weir_number_bytes(own->type));
}

void weir_bytes_put_episode(struct weir_bytes_writer *w, const struct weir_episode *e)
{
    size_t steps = (size_t)e->steps;
    struct episode_fields fields = {e->steps,
                                    e->rows_cut,
                                    e->qpos_dim,
                                    e->action_dim,
                                    e->n_maps,
                                    (int32_t)e->note,
                                    e->is_bgr,
                                    e->qpos_own.values != NULL,
                                    (int32_t)e->qpos_own.type,
                                    (int32_t)e->actions_own.type};
    weir_bytes_put(w, &fields, sizeof fields);
    weir_bytes_put_text(w, e->layout->name);
    weir_bytes_put_text(w, e->root);
    weir_bytes_put_text(w, e->qpos_key);
    weir_bytes_put_text(w, e->action_key);
    weir_bytes_put_text(w, e->passed_over);
    weir_bytes_put_text(w, e->left_out);
    weir_bytes_put_text(w, e->not_used);
    put_texts(w, e);
    weir_bytes_put(w, e->qpos, steps * (size_t)e->qpos_dim * sizeof(float));
    weir_bytes_put(w, e->actions, steps * (size_t)e->action_dim * sizeof(float));
    put_own(w, &e->qpos_own, steps * (size_t)e->qpos_dim);
    put_own(w, &e->actions_own, steps * (size_t)e->action_dim);
    for (int i = 0; i < e->n_maps; i++)
        put_map(w, &e->maps[i], e->names[i]);
}

/* ---- reading ---- */

/* Returns n bytes, which are padded to a multiple of 8. Sets bad and returns NULL if fewer remain. */
void *weir_bytes_get(struct weir_bytes_reader *c, uint64_t n)
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

static void *get_array(struct weir_bytes_reader *c, uint64_t count, size_t element)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, element, &bytes))
        c->bad = true;
    return c->bad ? NULL : weir_bytes_get(c, bytes);
}

/* Allocates an array that the episode owns. */
static void *allocate(struct weir_bytes_reader *c, size_t n, size_t bytes)
{
    void *memory = calloc(n, bytes);
    c->no_memory |= !memory;
    c->bad |= !memory;
    return memory;
}

char *weir_bytes_get_text(struct weir_bytes_reader *c)
{
    const uint64_t *n = weir_bytes_get(c, sizeof *n);
    char *text = n && *n ? weir_bytes_get(c, *n) : NULL;
    if (text && text[*n - 1] != '\0')
        c->bad = true;
    return c->bad ? NULL : text;
}

/* ---- reading an episode ---- */

static void get_kind(struct weir_bytes_reader *c, struct weir_frame_map *map)
{
    const char *name = weir_bytes_get_text(c);
    int kind = name ? weir_frame_kind_stored(name) : -1;
    c->bad = c->bad || kind < 0;
    map->kind = kind < 0 ? WEIR_FRAME_IMAGE : (enum weir_frame_kind)kind;
}

static void get_blocks(struct weir_bytes_reader *c, struct weir_frame_map *map)
{
    const struct blocks_fields *fields = weir_bytes_get(c, sizeof *fields);
    struct weir_blocks *blocks = fields ? map->blocks = allocate(c, 1, sizeof *blocks) : NULL;
    if (!blocks) {
        c->bad = true;
        return;
    }
    unsigned char filtered; /* one byte, because a bool with a value other than 0 or 1 is undefined */
    memcpy(&filtered, &fields->grid.filtered, 1);
    if (filtered > 1) {
        c->bad = true;
        return;
    }
    blocks->grid = fields->grid;
    blocks->filters = fields->filters;
    blocks->before = fields->before;
    blocks->channels = fields->channels;
    blocks->is_planar = fields->is_planar != 0;
    memcpy(blocks->fill, fields->fill, sizeof blocks->fill);
    bool fine = blocks->grid.rank >= 1 && blocks->grid.rank <= WEIR_GRID_RANK_MAX && blocks->filters.n >= 0 &&
                blocks->filters.n <= WEIR_FILTERS_MAX && weir_blocks_init(blocks);
    if (!fine || blocks->row_bytes != map->row_bytes || blocks->before >= blocks->rows ||
        blocks->grid.dims[0] < (uint64_t)map->frames + blocks->before)
        c->bad = true;
    blocks->chunks = get_array(c, blocks->n_chunks, sizeof *blocks->chunks);
}

/* Parsed lengths are only hints. A length becomes trusted when this process has read the frame. */
static void get_ends(struct weir_bytes_reader *c, struct weir_frame_map *map)
{
    uint64_t frames = (uint64_t)map->frames;
    map->ends = get_array(c, frames, sizeof *map->ends);
    bool padded = map->rows == WEIR_ROWS_PADDED || map->rows == WEIR_ROWS_STRINGS;
    for (uint64_t t = 0; t < frames && map->ends; t++)
        if (!padded || atomic_load_explicit(&map->ends[t].bytes, memory_order_relaxed) > map->row_bytes)
            c->bad = true; /* also refuses lengths with WEIR_END_KNOWN set */
}

static void get_map(struct weir_bytes_reader *c, struct weir_frame_map *map, char name[WEIR_NAME_MAX], int steps)
{
    const struct map_fields *fields = weir_bytes_get(c, sizeof *fields);
    if (!fields || fields->frames < steps || fields->storage < 0 || fields->storage > WEIR_STORED_EXTENTS ||
        fields->rows < 0 || fields->rows > WEIR_ROWS_VLEN || fields->row_bytes > INT32_MAX || fields->width < 0 ||
        fields->height < 0) {
        c->bad = true;
        return;
    }
    *map = (struct weir_frame_map){.width = fields->width,
                                   .height = fields->height,
                                   .frames = fields->frames,
                                   .storage = (enum weir_storage)fields->storage,
                                   .rows = (enum weir_rows)fields->rows,
                                   .row_bytes = fields->row_bytes,
                                   .base = fields->base};
    uint64_t frames = (uint64_t)map->frames;
    map->key = weir_bytes_get_text(c);
    get_kind(c, map);
    map->why = weir_bytes_get_text(c);
    const char *kept = weir_bytes_get(c, WEIR_NAME_MAX);
    if (kept)
        snprintf(name, WEIR_NAME_MAX, "%.*s", WEIR_NAME_MAX - 1, kept);
    if (map->storage == WEIR_STORED_CHUNKS)
        map->offsets = get_array(c, frames, sizeof *map->offsets);
    if (map->storage == WEIR_STORED_HEAP)
        map->slots = get_array(c, frames, sizeof *map->slots);
    if (map->storage == WEIR_STORED_EXTENTS)
        map->extents = get_array(c, frames, sizeof *map->extents);
    if (fields->has_ends)
        get_ends(c, map);
    if (map->storage == WEIR_STORED_BLOCKS && !c->bad)
        get_blocks(c, map);
    if (!map->key || (map->storage == WEIR_STORED_LIBRARY && !map->why))
        c->bad = true;
}

static void get_texts(struct weir_bytes_reader *c, struct weir_episode *e)
{
    const uint64_t *n = weir_bytes_get(c, sizeof *n);
    char *texts = n && *n ? weir_bytes_get(c, *n) : NULL;
    int count = texts ? weir_texts_count(texts, *n) : 0;
    if (c->bad || count < 0) {
        c->bad = true;
        return;
    }
    e->n_texts = count;
    e->texts = texts;
    e->texts_bytes = texts ? *n : 0;
}

static bool is_below(int32_t value, int32_t end)
{
    return value >= 0 && value < end;
}

/* Parses state and actions. If their original types were kept, parses those arrays too. */
static void get_numbers(struct weir_bytes_reader *c, const struct episode_fields *fields, struct weir_episode *e)
{
    uint64_t qpos = (uint64_t)e->steps * (uint64_t)e->qpos_dim, actions = (uint64_t)e->steps * (uint64_t)e->action_dim;
    e->qpos = get_array(c, qpos, sizeof(float));
    e->actions = get_array(c, actions, sizeof(float));
    if (!fields->has_own)
        return;
    e->qpos_own.type = (enum weir_number_type)fields->qpos_type;
    e->actions_own.type = (enum weir_number_type)fields->action_type;
    e->qpos_own.values = get_array(c, qpos, weir_number_bytes(e->qpos_own.type));
    e->actions_own.values = get_array(c, actions, weir_number_bytes(e->actions_own.type));
}

void weir_bytes_get_episode(struct weir_bytes_reader *c, struct weir_episode *e)
{
    const struct episode_fields *fields = weir_bytes_get(c, sizeof *fields);
    if (!fields || fields->steps < 1 || fields->rows_cut < 0 || fields->qpos_dim < 1 || fields->action_dim < 1 ||
        !is_below(fields->n_maps, WEIR_CAMERAS_MAX + 1) || !is_below(fields->note, WEIR_NOTES) ||
        !is_below(fields->is_bgr, 2) || !is_below(fields->has_own, 2) ||
        !is_below(fields->qpos_type, WEIR_NUMBER_TYPES) || !is_below(fields->action_type, WEIR_NUMBER_TYPES)) {
        c->bad = true;
        return;
    }
    size_t before = c->left;
    *e = (struct weir_episode){.steps = fields->steps,
                               .rows_cut = fields->rows_cut,
                               .qpos_dim = fields->qpos_dim,
                               .action_dim = fields->action_dim,
                               .n_maps = fields->n_maps,
                               .note = (enum weir_note)fields->note,
                               .is_bgr = fields->is_bgr,
                               .is_lent = true};
    const char *layout = weir_bytes_get_text(c);
    e->layout = layout ? weir_layout_by_name(layout) : NULL;
    e->root = weir_bytes_get_text(c);
    e->qpos_key = weir_bytes_get_text(c);
    e->action_key = weir_bytes_get_text(c);
    e->passed_over = weir_bytes_get_text(c);
    e->left_out = weir_bytes_get_text(c);
    e->not_used = weir_bytes_get_text(c);
    get_texts(c, e);
    get_numbers(c, fields, e);
    e->maps = allocate(c, (size_t)e->n_maps + 1, sizeof *e->maps);
    e->names = allocate(c, (size_t)e->n_maps + 1, sizeof *e->names);
    if (!e->maps || !e->names || !e->layout || !e->root || !e->qpos_key || !e->action_key)
        c->bad = true;
    for (int i = 0; i < e->n_maps && !c->bad; i++)
        get_map(c, &e->maps[i], e->names[i], e->steps);
    e->bytes = sizeof *e + before - c->left;
}

static bool copy_lent(void *pointer, size_t bytes)
{
    void **at = pointer, *copy = *at ? malloc(bytes ? bytes : 1) : NULL;
    bool fine = !*at || copy;
    if (copy)
        memcpy(copy, *at, bytes);
    *at = copy;
    return fine;
}

static bool copy_lent_text(char **text)
{
    return copy_lent(text, *text ? strlen(*text) + 1 : 0);
}

int weir_episode_copy_lent(struct weir_episode *e)
{
    size_t steps = (size_t)e->steps;
    bool fine = copy_lent_text(&e->root);
    fine &= copy_lent_text(&e->qpos_key);
    fine &= copy_lent_text(&e->action_key);
    fine &= copy_lent_text(&e->passed_over);
    fine &= copy_lent_text(&e->left_out);
    fine &= copy_lent_text(&e->not_used);
    fine &= copy_lent(&e->texts, e->texts_bytes);
    fine &= copy_lent(&e->qpos, steps * (size_t)e->qpos_dim * sizeof *e->qpos);
    fine &= copy_lent(&e->actions, steps * (size_t)e->action_dim * sizeof *e->actions);
    fine &= copy_lent(&e->qpos_own.values, steps * (size_t)e->qpos_dim * weir_number_bytes(e->qpos_own.type));
    fine &= copy_lent(&e->actions_own.values, steps * (size_t)e->action_dim * weir_number_bytes(e->actions_own.type));
    for (int i = 0; i < e->n_maps; i++) {
        struct weir_frame_map *map = &e->maps[i];
        fine &= copy_lent_text(&map->key);
        fine &= copy_lent(&map->ends, (size_t)map->frames * sizeof *map->ends);
    }
    e->is_lent = false;
    return fine ? 0 : -ENOMEM;
}

/* ---- checks of parsed episodes ---- */

enum { DIM_MAX = 65536, SIDE_MAX = 65500 }; /* same limits as in builder.c */

static bool inside(uint64_t offset, uint64_t length, uint64_t file_bytes)
{
    return offset <= file_bytes && length <= file_bytes - offset;
}

static bool pixels_fit(const struct weir_frame_map *map)
{
    if (weir_frame_is_encoded(map->kind))
        return map->rows != WEIR_ROWS_PIXELS && map->width == 0 && map->height == 0 && map->row_bytes > 0;
    return map->rows == WEIR_ROWS_PIXELS && map->width > 0 && map->width <= SIDE_MAX && map->height > 0 &&
           map->height <= SIDE_MAX && weir_frame_raw_bytes(map->kind, map->width, map->height) == map->row_bytes;
}

static bool offsets_fit(const struct weir_frame_map *map, uint64_t file_bytes)
{
    for (int t = 0; t < map->frames; t++)
        if (map->offsets[t] != WEIR_CHUNK_NONE && map->offsets[t] != WEIR_CHUNK_BAD &&
            !inside(map->offsets[t], map->row_bytes, file_bytes))
            return false;
    return map->rows != WEIR_ROWS_VLEN;
}

static bool slots_fit(const struct weir_frame_map *map, uint64_t file_bytes)
{
    for (int t = 0; t < map->frames; t++) {
        const struct weir_heap_slot *slot = &map->slots[t];
        uint64_t payload = atomic_load_explicit(&slot->payload, memory_order_relaxed);
        if (slot->ref.address == WEIR_CHUNK_BAD && slot->ref.length == 1 && payload == 0)
            continue; /* the frame's reference is lost */
        if (slot->ref.address > file_bytes || (payload && !inside(payload, slot->ref.length, file_bytes)))
            return false;
    }
    return map->rows == WEIR_ROWS_VLEN;
}

static bool blocks_fit(const struct weir_blocks *blocks, uint64_t file_bytes)
{
    for (uint32_t i = 0; i < blocks->n_chunks; i++) {
        const struct weir_chunk *chunk = &blocks->chunks[i];
        bool lost = chunk->offset == WEIR_CHUNK_BAD && chunk->bytes == 0;
        if (chunk->offset != WEIR_CHUNK_NONE && !lost && !inside(chunk->offset, chunk->bytes, file_bytes))
            return false;
    }
    return weir_filters_can_undo(&blocks->filters);
}

static bool extents_fit(const struct weir_frame_map *map, uint64_t file_bytes)
{
    for (int t = 0; t < map->frames; t++)
        if (map->extents[t].length > INT32_MAX || !inside(map->extents[t].offset, map->extents[t].length, file_bytes))
            return false;
        else if (map->rows == WEIR_ROWS_PIXELS && map->extents[t].length != map->row_bytes)
            return false;
    return map->rows == WEIR_ROWS_VLEN || map->rows == WEIR_ROWS_PIXELS;
}

static bool storage_fits(const struct weir_frame_map *map, uint64_t file_bytes)
{
    uint64_t all;
    switch (map->storage) {
    case WEIR_STORED_CONTIGUOUS:
        return map->rows != WEIR_ROWS_VLEN && !__builtin_mul_overflow((uint64_t)map->frames, map->row_bytes, &all) &&
               inside(map->base, all, file_bytes);
    case WEIR_STORED_CHUNKS:
        return offsets_fit(map, file_bytes);
    case WEIR_STORED_BLOCKS:
        return map->rows != WEIR_ROWS_VLEN && blocks_fit(map->blocks, file_bytes);
    case WEIR_STORED_HEAP:
        return slots_fit(map, file_bytes);
    case WEIR_STORED_EXTENTS:
        return extents_fit(map, file_bytes);
    case WEIR_STORED_LIBRARY:
        return true;
    case WEIR_STORED_VIDEO:
        return false;
    }
    return false;
}

bool weir_index_shapes_fit(const struct weir_episode *episode)
{
    bool sane = episode->qpos_dim <= DIM_MAX && episode->action_dim <= DIM_MAX;
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = pixels_fit(&episode->maps[i]);
    return sane;
}

bool weir_index_file_is_sane(const struct weir_episode *episode, uint64_t file_bytes)
{
    bool sane = weir_index_shapes_fit(episode);
    for (int i = 0; i < episode->n_maps && sane; i++)
        sane = storage_fits(&episode->maps[i], file_bytes);
    return sane;
}
