/* The slowest items and files of a watched loader. */
#include "prof/watch/read_priv.h"

#include <errno.h>
#include <stdlib.h>

static void path_of(const struct weir_shared_slot *slot, uint64_t hash, char name[WEIR_WATCH_PATH])
{
    name[0] = '\0';
    for (int i = 0; i < WEIR_SLOT_PATHS && hash; i++)
        if (get(&slot->paths[i].hash) == hash)
            weir_shared_text_get(name, WEIR_WATCH_PATH, slot->paths[i].name, WEIR_PATH_WORDS);
}

static void add_item(struct weir_watch_slowest *to, const struct weir_watch_item *item)
{
    int i = to->n_items < WEIR_WATCH_ITEMS ? to->n_items++ : WEIR_WATCH_ITEMS;
    for (; i > 0 && to->items[i - 1].s < item->s; i--)
        if (i < WEIR_WATCH_ITEMS)
            to->items[i] = to->items[i - 1];
    if (i < WEIR_WATCH_ITEMS)
        to->items[i] = *item;
}

/* Several workers can have seen the same item; the slowest time counts. */
void weir_watch_read_items(struct weir_watch_slowest *to, const struct weir_shared_slot *slot)
{
    for (int i = 0; i < WEIR_SLOT_ITEMS; i++) {
        int64_t index = atomic_load_explicit(&slot->slowest[i].index, memory_order_relaxed);
        struct weir_watch_item item = {
            .index = index >= 0 && index < 1ll << 49 ? (double)index : -1,
            .worker = weir_watch_role_of(slot) == WEIR_WATCH_WORKER ? weir_watch_worker_of(slot) : -1,
            .s = weir_watch_s(&slot->slowest[i].ticks)};
        int known = 0;
        while (known < to->n_items && (item.index < 0 || to->items[known].index != item.index))
            known++;
        if (item.s <= 0 || (known < to->n_items && to->items[known].s >= item.s))
            continue;
        path_of(slot, get(&slot->slowest[i].path), item.file);
        if (known < to->n_items) {
            memmove(&to->items[known], &to->items[known + 1], sizeof item * (size_t)(to->n_items - known - 1));
            to->n_items--;
        }
        add_item(to, &item);
    }
}

struct path_sum {
    uint64_t hash;
    const struct weir_shared_path *path; /* one of its entries, for the name */
    uint64_t count;
    double total_s, max_s;
};

static int by_hash(const void *a, const void *b)
{
    const struct path_sum *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static int by_mean(const void *a, const void *b)
{
    const struct path_sum *x = a, *y = b;
    if ((x->count > 1) != (y->count > 1))
        return (y->count > 1) - (x->count > 1);
    double slow = x->total_s / (double)x->count, other = y->total_s / (double)y->count;
    return (slow < other) - (slow > other);
}

static int merge_paths(struct path_sum *sums, int n)
{
    int kept = 0;
    qsort(sums, (size_t)n, sizeof *sums, by_hash);
    for (int i = 0; i < n; i++) {
        if (kept > 0 && sums[kept - 1].hash == sums[i].hash) {
            sums[kept - 1].count += sums[i].count;
            sums[kept - 1].total_s += sums[i].total_s;
            sums[kept - 1].max_s = fmax(sums[kept - 1].max_s, sums[i].max_s);
        } else {
            sums[kept++] = sums[i];
        }
    }
    return kept;
}

int weir_watch_read_files(struct weir_watch_slowest *to, const struct weir_segment *segment, int loader)
{
    uint32_t n_slots = weir_watch_slots(segment);
    struct path_sum *sums = calloc((size_t)n_slots * WEIR_SLOT_PATHS + 1, sizeof *sums);
    int n = 0;
    if (!sums)
        return -ENOMEM;
    double all_s = 0, all = 0;
    for (uint32_t i = 0; i < n_slots; i++) {
        const struct weir_shared_slot *slot = &segment->slot[i];
        if (!weir_watch_is_of(slot, loader))
            continue;
        all_s += weir_watch_s(&slot->path_total);
        all += (double)weir_watch_count(&slot->path_count);
        for (int p = 0; p < WEIR_SLOT_PATHS; p++) {
            const struct weir_shared_path *path = &slot->paths[p];
            uint64_t count = weir_watch_count(&path->count);
            if (get(&path->hash) && count)
                sums[n++] = (struct path_sum){get(&path->hash), path, count, weir_watch_s(&path->total),
                                              weir_watch_s(&path->max)};
        }
    }
    n = merge_paths(sums, n);
    qsort(sums, (size_t)n, sizeof *sums, by_mean);
    to->files_seen = n;
    to->files_mean_s = all > 0 ? all_s / all : 0;
    to->n_files = n < WEIR_WATCH_FILES ? n : WEIR_WATCH_FILES;
    for (int i = 0; i < to->n_files; i++) {
        double count = (double)sums[i].count;
        to->files[i] =
            (struct weir_watch_file){.count = count, .mean_s = sums[i].total_s / count, .max_s = sums[i].max_s};
        weir_shared_text_get(to->files[i].name, WEIR_WATCH_PATH, sums[i].path->name, WEIR_PATH_WORDS);
    }
    free(sums);
    return 0;
}
