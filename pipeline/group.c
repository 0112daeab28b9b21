/* Frames that lie in chunks together are loaded together: each chunk of a block is read and unpacked once for all
 * samples of the batch (and all frames of their histories) that need it. */
#include "pipeline/worker_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SCRATCH_BYTES_MAX = 64 << 20 };

static int rows_of(const struct weir_shared *shared, const struct weir_slot_order *at, int camera)
{
    int rows;
    return weir_shares_blocks(shared->dataset, at->episode, camera, &rows) ? rows : 0;
}

static int first_block(const struct weir_shared *shared, const struct weir_slot_order *at, int rows)
{
    int first = at->t - shared->layout.history + 1;
    return (first > 0 ? first : 0) / rows;
}

/* Neighbours by (episode, t) whose windows touch the same block. */
static bool are_together(const struct weir_shared *shared, const struct weir_slot_order *before,
                         const struct weir_slot_order *after, int rows)
{
    return before->episode == after->episode && first_block(shared, after, rows) <= before->t / rows;
}

bool weir_group_is_shared(const struct weir_shared *shared, const struct weir_slot *slot, int sample, int camera)
{
    return rows_of(shared, &slot->order[slot->rank[sample]], camera) > 0;
}

bool weir_group_lead(const struct weir_shared *shared, const struct weir_slot *slot, int sample, int camera,
                     struct weir_group *group)
{
    int at = slot->rank[sample], rows = rows_of(shared, &slot->order[at], camera), end = at + 1;
    if (at > 0 && are_together(shared, &slot->order[at - 1], &slot->order[at], rows))
        return false;
    while (end < slot->plan.n && are_together(shared, &slot->order[end - 1], &slot->order[end], rows))
        end++;
    *group = (struct weir_group){at, end - at, rows};
    return true;
}

/* ---- loading ---- */

int weir_gather_open(struct weir_gather *gather, const struct weir_shared *shared)
{
    size_t n = (size_t)shared->config.batch_size * (size_t)shared->layout.history;
    gather->items = malloc(n * sizeof *gather->items);
    gather->ts = malloc(n * sizeof *gather->ts);
    gather->rows = malloc(n * sizeof *gather->rows);
    return gather->items && gather->ts && gather->rows ? 0 : -ENOMEM;
}

void weir_gather_close(struct weir_gather *gather)
{
    free(gather->items);
    free(gather->ts);
    free(gather->rows);
    free(gather->scratch);
    *gather = (struct weir_gather){0};
}

static void lose(struct weir_worker *worker, struct weir_slot *slot, const struct weir_gather_item *item, int code,
                 const char *reason)
{
    char text[WEIR_FAULT_TEXT];
    weir_image_fault(worker, &item->image, code, reason, text);
    weir_share_settle(worker, slot, item->at, &item->image, code, text);
}

/* Rows for n frames: in the batch itself where nothing is to be decoded, else in scratch memory. */
static int lay_out(struct weir_worker *worker, int from, int n, size_t row_bytes)
{
    struct weir_gather *gather = &worker->gather;
    void *direct = weir_image_direct(worker, &gather->items[from].image);
    size_t image_bytes = worker->shared->layout.image_bytes[gather->items[from].image.camera];
    bool in_place = direct && image_bytes == row_bytes;
    if (!in_place && (size_t)n * row_bytes > gather->scratch_bytes) {
        uint8_t *scratch = realloc(gather->scratch, (size_t)n * row_bytes);
        if (!scratch)
            return -ENOMEM;
        gather->scratch = scratch;
        gather->scratch_bytes = (size_t)n * row_bytes;
    }
    for (int i = 0; i < n; i++) {
        gather->ts[i] = gather->items[from + i].image.t;
        gather->rows[i] = in_place ? gather->items[from + i].image.place : gather->scratch + (size_t)i * row_bytes;
    }
    return 0;
}

/* Items from .. from + n - 1, all of one block. */
static void load_items(struct weir_worker *worker, struct weir_slot *slot, int from, int n, size_t row_bytes)
{
    struct weir_gather *gather = &worker->gather;
    const struct weir_image *first = &gather->items[from].image;
    int rc = lay_out(worker, from, n, row_bytes);
    const char *reason = rc < 0 ? "out of memory" : worker->fetcher.reason;
    if (rc == 0)
        rc = weir_fetch_block(&worker->fetcher, first->episode, first->camera, gather->ts, gather->rows, n);
    for (int i = 0; i < n; i++) {
        const struct weir_gather_item *item = &gather->items[from + i];
        if (rc < 0) {
            char why[WEIR_FETCH_REASON]; /* substituting overwrites the fetcher's */
            snprintf(why, sizeof why, "%s", reason);
            lose(worker, slot, item, rc, why);
            continue;
        }
        size_t used = weir_block_used(worker->shared->dataset, item->image.episode, item->image.camera, item->image.t);
        int bad = weir_image_decode(worker, &item->image, gather->rows[i], used);
        if (bad < 0)
            lose(worker, slot, item, bad, weir_decoder_reason(worker->decoder));
        else
            weir_share_settle(worker, slot, item->at, &item->image, 0, NULL);
    }
}

/* All frames that the group needs of one block, each once, but those that the cache has. */
static int gather_block(struct weir_worker *worker, struct weir_slot *slot, int camera, const struct weir_group *group,
                        int block)
{
    const struct weir_shared *shared = worker->shared;
    int n = 0;
    for (int at = group->at; at < group->at + group->n; at++)
        for (int t = weir_order_own(&shared->slots, slot, at); t <= slot->order[at].t; t++) {
            struct weir_image image = weir_share_image(shared, slot, at, camera, t);
            if (t / group->rows != block)
                continue;
            if (weir_image_cached(worker, &image))
                weir_share_settle(worker, slot, at, &image, 0, NULL);
            else
                worker->gather.items[n++] = (struct weir_gather_item){image, at};
        }
    return n;
}

void weir_group_load(struct weir_worker *worker, struct weir_slot *slot, int camera, const struct weir_group *group)
{
    WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
    const struct weir_slot_order *first = &slot->order[group->at], *last = first + group->n - 1;
    struct weir_block block;
    weir_block_of(worker->shared->dataset, first->episode, camera, first->t, &block);
    size_t at_once = SCRATCH_BYTES_MAX / block.row_bytes;
    int limit = at_once > 1 ? (int)at_once : 1;
    for (int b = first_block(worker->shared, first, group->rows); b <= last->t / group->rows; b++) {
        int n = gather_block(worker, slot, camera, group, b);
        for (int from = 0; from < n; from += limit)
            load_items(worker, slot, from, n - from < limit ? n - from : limit, block.row_bytes);
    }
}
