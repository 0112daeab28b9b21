#include "pipeline/work/coalesce.h"
#include "base/grow.h"
#include "datasets/open_dataset.h"
#include "decoders/video/video.h"
#include "pipeline/samples/defaults.h"
#include "pipeline/work/image.h"
#include "pipeline/work/worker.h"
#include "weir/stages.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

bool weir_coalesce_applies(const struct weir_shared *shared, const struct weir_slot *slot, int sample, int camera)
{
    int rows;
    return weir_shares_blocks(shared->setup.dataset, slot->order[slot->rank[sample]].episode, camera, &rows);
}

/* ---- claiming ---- */

/* Claims the frames of one camera that the sample at this index owns. Returns false if another task has claimed them.
 */
static bool claim(struct weir_worker *worker, struct weir_slot *slot, int at, int camera)
{
    uint8_t *claimed = &slot->claimed[slot->order[at].sample * worker->shared->setup.layout.n_cameras + camera];
    if (*claimed)
        return false;
    *claimed = true;
    worker->gather.members[worker->gather.n_members++] = (struct weir_member){slot, at};
    return true;
}

/* The blocks to load: those that the windows of a range of samples touch. */
struct span {
    int episode, camera, first, last; /* first and last: numbers of blocks */
};

static struct span claim_current(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera)
{
    const struct weir_setup *setup = &worker->shared->setup;
    const struct weir_slot_order *order = slot->order;
    int from, to;
    weir_sharing_group(setup, order, slot->plan.n, slot->rank[sample], camera, &from, &to);
    int first = to, last = from;
    for (int i = from; i < to; i++)
        if (claim(worker, slot, i, camera)) {
            first = i < first ? i : first;
            last = i;
        }
    worker->gather.n_current = worker->gather.n_members;
    return (struct span){order[from].episode, camera, weir_sharing_first_block(setup, &order[first], camera),
                         weir_sharing_last_block(setup, &order[last], camera)};
}

/* Returns the index in slot->order of the first sample whose (episode, t) is not less than the given one. */
static int lower_bound(const struct weir_slot *slot, int episode, int t)
{
    const struct weir_slot_order *order = slot->order;
    return WEIR_FIRST(i, slot->plan.n, order[i].episode > episode || (order[i].episode == episode && order[i].t >= t));
}

/* Claims samples of one later batch whose windows are within the blocks. */
static void claim_of_slot(struct weir_worker *worker, struct weir_slot *slot, const struct span *span, int most)
{
    const struct weir_setup *setup = &worker->shared->setup;
    int begin = weir_block_begin(setup->dataset, span->episode, span->camera, span->first);
    int t = begin <= 0 ? 0 : begin - setup->windows.first;
    for (int i = lower_bound(slot, span->episode, t); i < slot->plan.n && worker->gather.n_members < most; i++) {
        const struct weir_slot_order *at = &slot->order[i];
        if (at->episode != span->episode || weir_sharing_last_block(setup, at, span->camera) > span->last)
            return;
        /* If the claim succeeds, the slot is not complete: the sample's own task has not begun, since it would have
         * claimed the sample. */
        if (claim(worker, slot, i, span->camera))
            weir_completion_add_task(slot);
    }
}

/* Returns how many samples of later batches may join those of the task's batch. */
static int most_joining(const struct weir_worker *worker, const struct span *span)
{
    const struct weir_batch_layout *layout = &worker->shared->setup.layout;
    int camera = span->camera, rows = 1;
    weir_shares_blocks(worker->shared->setup.dataset, span->episode, camera, &rows);
    size_t frames = (size_t)(span->last - span->first + 1) * (size_t)rows;
    size_t fitting = WEIR_COALESCE_BYTES / layout->image_bytes[camera];
    frames /= weir_image_is_direct(worker, span->episode, camera) ? 1 : 2;
    frames = frames < fitting ? frames : fitting;
    frames = frames < WEIR_COALESCE_FRAMES ? frames : WEIR_COALESCE_FRAMES;
    return (int)frames / weir_layout_frames(layout, camera);
}

static void claim_later(struct weir_worker *worker, const struct weir_slot *slot, const struct span *span)
{
    struct weir_slots *slots = &worker->shared->slots;
    int most = worker->gather.n_current + most_joining(worker, span);
    for (int i = 1; i < slots->n && i <= WEIR_COALESCE_SLOTS && worker->gather.n_members < most; i++) {
        uint64_t sequence = slot->plan.sequence + (uint64_t)i;
        struct weir_slot *later = weir_slot_of(slots, sequence);
        if (later->open && later->plan.sequence == sequence)
            claim_of_slot(worker, later, span, most);
    }
}

void weir_coalesce_claim(struct weir_worker *worker, struct weir_slot *slot, int sample, int camera)
{
    struct weir_slots *slots = &worker->shared->slots;
    worker->gather.n_members = worker->gather.n_current = 0;
    pthread_mutex_lock(&slots->claims);
    if (!slot->claimed[sample * worker->shared->setup.layout.n_cameras + camera]) {
        struct span span = claim_current(worker, slot, sample, camera);
        claim_later(worker, slot, &span);
    }
    pthread_mutex_unlock(&slots->claims);
}

/* ---- loading ---- */

/* Returns the maximum number of frames that a member loads: those in the range of its window that samples of its batch
 * need. */
static size_t frames_max(const struct weir_shared *shared)
{
    const struct weir_windows *windows = &shared->setup.windows;
    size_t range = (size_t)(windows->last - windows->first + 1);
    size_t needed = (size_t)shared->setup.config.batch_size * (size_t)windows->images_max;
    return range < needed ? range : needed;
}

int weir_gather_open(struct weir_gather *gather, const struct weir_shared *shared)
{
    size_t members = (size_t)shared->setup.config.batch_size + WEIR_COALESCE_FRAMES;
    size_t n = members * frames_max(shared);
    gather->capacity = (int)n;
    gather->members = malloc(members * sizeof *gather->members);
    gather->frames = malloc(n * sizeof *gather->frames);
    gather->ts = malloc(n * sizeof *gather->ts);
    gather->rows = malloc(n * sizeof *gather->rows);
    return gather->members && gather->frames && gather->ts && gather->rows ? 0 : -ENOMEM;
}

void weir_gather_close(struct weir_gather *gather)
{
    free(gather->members);
    free(gather->frames);
    free(gather->ts);
    free(gather->rows);
    free(gather->scratch);
    *gather = (struct weir_gather){0};
}

static void lose(struct weir_worker *worker, const struct weir_gather_frame *frame, int code, const char *reason)
{
    char text[WEIR_FAULT_TEXT];
    code = weir_image_fault(worker, &frame->image, code, reason, text);
    weir_dedup_complete(worker, frame->slot, frame->at, &frame->image, code, text);
}

/* Assigns memory to the rows of n frames: in the batch itself if nothing must be decoded, otherwise in scratch memory.
 */
static int lay_out(struct weir_worker *worker, int from, int n, size_t row_bytes)
{
    struct weir_gather *gather = &worker->gather;
    void *direct = weir_image_direct(worker, &gather->frames[from].image);
    size_t image_bytes = worker->shared->setup.layout.image_bytes[gather->frames[from].image.camera];
    bool in_place = direct && image_bytes == row_bytes;
    if (!in_place && (size_t)n * row_bytes > gather->scratch_bytes) {
        uint8_t *scratch = realloc(gather->scratch, (size_t)n * row_bytes);
        if (!scratch)
            return -ENOMEM;
        gather->scratch = scratch;
        gather->scratch_bytes = (size_t)n * row_bytes;
    }
    for (int i = 0; i < n; i++) {
        gather->ts[i] = gather->frames[from + i].image.t;
        gather->rows[i] =
            in_place ? gather->frames[from + i].image.destination : gather->scratch + (size_t)i * row_bytes;
    }
    return 0;
}

/* Loads frames from .. from + n - 1, which must all be in one block. */
static void load_frames(struct weir_worker *worker, int from, int n, size_t row_bytes)
{
    struct weir_gather *gather = &worker->gather;
    const struct weir_image *first = &gather->frames[from].image;
    int rc = lay_out(worker, from, n, row_bytes);
    const char *reason = rc < 0 ? "out of memory" : worker->fetcher.reason;
    struct weir_source_mark mark = weir_sources_mark(&worker->fetcher);
    if (rc == 0)
        rc = weir_fetch_block(&worker->fetcher, first->episode, first->camera, gather->ts, gather->rows, n);
    weir_image_fetched(worker, first, n, &mark);
    char why[WEIR_FETCH_REASON]; /* a copy, because fetching a substitute overwrites the fetcher's reason */
    snprintf(why, sizeof why, "%s", rc < 0 ? reason : "");
    for (int i = 0; i < n; i++) {
        const struct weir_gather_frame *frame = &gather->frames[from + i];
        if (rc < 0) {
            lose(worker, frame, rc, why);
            continue;
        }
        int bad = weir_image_decode(worker, &frame->image, gather->rows[i], row_bytes);
        if (bad < 0)
            lose(worker, frame, bad, weir_decoder_reason(worker->decoder));
        else
            weir_dedup_complete(worker, frame->slot, frame->at, &frame->image, 0, NULL);
    }
}

/* ---- videos ---- */

struct video_load {
    struct weir_worker *worker;
    struct weir_gather_frame *frames;
    struct weir_source_mark *mark; /* taken after the previous picture */
    char why[WEIR_FETCH_REASON];   /* reason of the first frame that could not be converted */
};

static const int NOT_DECODED = 1; /* a value of weir_gather_frame.code */

static int convert_picture(void *user, int i, const struct weir_picture *picture)
{
    struct video_load *load = user;
    struct weir_worker *worker = load->worker;
    struct weir_gather_frame *frame = &load->frames[i];
    weir_sources_unpacked(&worker->shared->sources, worker->id, &worker->fetcher, load->mark);
    frame->code = weir_image_decode(worker, &frame->image, (const uint8_t *)picture, sizeof *picture);
    if (frame->code < 0 && !load->why[0])
        snprintf(load->why, sizeof load->why, "%s", weir_decoder_reason(worker->decoder));
    return 0;
}

/* Loads frames 0 .. n - 1, which must all be in one group of pictures. Frames are completed after decoding, because
 * fetching a substitute uses the same decoder. */
static void load_video(struct weir_worker *worker, int n)
{
    struct weir_gather *gather = &worker->gather;
    struct weir_source_mark mark = weir_sources_mark(&worker->fetcher), last = mark;
    struct video_load load = {worker, gather->frames, &last, ""};
    const struct weir_image *first = &gather->frames[0].image;
    char reason[WEIR_FETCH_REASON];
    for (int i = 0; i < n; i++) {
        gather->ts[i] = gather->frames[i].image.t;
        gather->frames[i].code = NOT_DECODED;
    }
    bool has_pixels = weir_decoder_has_pixels(worker->decoder);
    int rc = n > 0 ? weir_fetch_video(&worker->fetcher, first->episode, first->camera, gather->ts, n,
                                      has_pixels ? convert_picture : NULL, &load)
                   : 0;
    for (int i = 0; i < n && rc == 0 && !has_pixels; i++)
        gather->frames[i].code = 0;
    snprintf(reason, sizeof reason, "%s", rc < 0 ? worker->fetcher.reason : "");
    if (n > 0)
        weir_image_fetched(worker, first, n, &mark);
    for (int i = 0; i < n; i++) {
        const struct weir_gather_frame *frame = &gather->frames[i];
        if (frame->code == 0)
            weir_dedup_complete(worker, frame->slot, frame->at, &frame->image, 0, NULL);
        else if (frame->code < 0)
            lose(worker, frame, frame->code, load.why);
        else
            lose(worker, frame, rc, reason);
    }
}

/* ---- gathering ---- */

static bool is_among(const struct weir_gather_frame *frames, int n, int t)
{
    for (int i = 0; i < n; i++)
        if (frames[i].image.t == t)
            return true;
    return false;
}

/* Completes the frame from the cache. Returns false if the cache does not contain the frame. */
static bool complete_cached(struct weir_worker *worker, const struct weir_gather_frame *frame)
{
    if (!weir_image_cached(worker, &frame->image))
        return false;
    weir_dedup_complete(worker, frame->slot, frame->at, &frame->image, 0, NULL);
    return true;
}

/* Adds a frame that a member owns to the n frames gathered, unless the frame is cached. Returns the new number of
 * frames. If the same frame has already been gathered for another batch, it is set aside until that one is loaded,
 * because the cache may then contain the frame. */
static int gather_frame(struct weir_worker *worker, const struct weir_member *member, int camera, int t, int n)
{
    struct weir_gather *gather = &worker->gather;
    struct weir_gather_frame frame = {.slot = member->slot, .at = member->at};
    if (!weir_dedup_image(&worker->shared->slots, member->slot, member->at, camera, t, &frame.image))
        return n;
    if (worker->shared->cache.memory && is_among(gather->frames, n, t))
        gather->frames[gather->capacity - ++gather->n_again] = frame;
    else if (!complete_cached(worker, &frame))
        gather->frames[n++] = frame;
    return n;
}

/* Gathers the frames of one block that the claimed samples own. */
static int gather_block(struct weir_worker *worker, int camera, int block)
{
    const struct weir_slots *slots = &worker->shared->slots;
    const struct weir_dataset *dataset = worker->shared->setup.dataset;
    int n = 0;
    worker->gather.n_again = 0;
    for (int i = 0; i < worker->gather.n_members; i++) {
        const struct weir_member *member = &worker->gather.members[i];
        for (int t = weir_order_first_owned(slots, member->slot, member->at);
             t <= weir_order_last(slots, member->slot, member->at); t++)
            if (weir_block_number(dataset, member->slot->order[member->at].episode, camera, t) == block)
                n = gather_frame(worker, member, camera, t, n);
    }
    return n;
}

/* Handles the frames set aside: completes them from the cache, and gathers those that did not fit into it. */
static int gather_again(struct weir_worker *worker)
{
    struct weir_gather *gather = &worker->gather;
    int n = 0;
    /* In array order, so that frames[n] never overwrites an unread entry. */
    for (int i = gather->n_again; i >= 1; i--) {
        struct weir_gather_frame frame = gather->frames[gather->capacity - i];
        if (!complete_cached(worker, &frame))
            gather->frames[n++] = frame;
    }
    return n;
}

static void load_limited(struct weir_worker *worker, int n, size_t row_bytes)
{
    size_t at_once = WEIR_COALESCE_SCRATCH_BYTES / row_bytes;
    int limit = at_once > 1 ? (int)at_once : 1;
    for (int i = 0; i < n; i += limit)
        load_frames(worker, i, n - i < limit ? n - i : limit, row_bytes);
}

/* Loads the n gathered frames of one block. */
static void load_block(struct weir_worker *worker, int n, bool video, size_t row_bytes)
{
    if (video)
        load_video(worker, n);
    else
        load_limited(worker, n, row_bytes);
}

void weir_coalesce_load(struct weir_worker *worker, int camera)
{
    WEIR_ZONE(WEIR_STAGE_ONE_CAMERA);
    const struct weir_setup *setup = &worker->shared->setup;
    const struct weir_gather *gather = &worker->gather;
    const struct weir_member *first = &gather->members[0], *last = &gather->members[gather->n_current - 1];
    const struct weir_slot_order *from = &first->slot->order[first->at];
    const struct weir_slot_order *to = &last->slot->order[last->at];
    struct weir_block block = {0};
    int file;
    bool video = weir_dataset_video(setup->dataset, from->episode, camera, &file) != NULL;
    if (!video)
        weir_block_of(setup->dataset, from->episode, camera, from->t, &block);
    for (int b = weir_sharing_first_block(setup, from, camera), end = weir_sharing_last_block(setup, to, camera);
         b <= end; b++) {
        load_block(worker, gather_block(worker, camera, b), video, block.row_bytes);
        load_block(worker, gather_again(worker), video, block.row_bytes);
    }
}
