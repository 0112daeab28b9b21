#include "python/src/session.h"

#include <stdlib.h>
#include <string.h>

enum { PERIODS_MAX = 256, NO_STAGE = WEIR_STAGE_MAX };

/* A period of the thread's time that stages cover. Periods are in chronological order and do not overlap. */
struct period {
    uint64_t start, end;
    uint64_t busy; /* time covered by stages; less than end - start if the period was merged from two */
    int stage;     /* NO_STAGE if it was merged from periods of different stages */
    bool logged;
};

struct history {
    bool has_logged;
    int n;
    struct period periods[PERIODS_MAX];
};

static uint64_t began; /* time of the import of weir, in ticks */
static __thread struct history *history __attribute__((tls_model("initial-exec")));
static uint64_t inside[WEIR_STAGE_MAX][WEIR_STAGE_MAX + 1]; /* ticks that the first stage spent inside the second */

static struct history *mine(void)
{
    if (!history)
        history = calloc(1, sizeof *history);
    return history;
}

void weir_history_end(void)
{
    free(history);
    history = NULL;
}

void weir_history_reset(void)
{
    memset(inside, 0, sizeof inside);
}

/* Returns the stage of the surrounding zone, or NO_STAGE for the zone around the whole program. */
static int parent_index(const struct weir_zone_now *around)
{
    const struct weir_stage_info *info = weir_stage_info(around->stage);
    return info && info->kind != WEIR_KIND_LOOP ? around->stage : NO_STAGE;
}

/* Merges the older half of the periods in pairs. */
static void make_room(struct history *h)
{
    int kept = 0, half = h->n / 2;
    for (int i = 0; i + 1 < half; i += 2) {
        struct period *a = &h->periods[i], *b = &h->periods[i + 1];
        h->periods[kept++] = (struct period){.start = a->start,
                                             .end = b->end,
                                             .busy = a->busy + b->busy,
                                             .stage = a->stage == b->stage ? a->stage : NO_STAGE};
    }
    int first = half & ~1;
    memmove(&h->periods[kept], &h->periods[first], (size_t)(h->n - first) * sizeof h->periods[0]);
    h->n -= first - kept;
}

static void insert(struct history *h, int at, const struct period *period)
{
    if (h->n == PERIODS_MAX) {
        int n = h->n;
        make_room(h);
        at = at > n - h->n ? at - (n - h->n) : 0;
    }
    memmove(&h->periods[at + 1], &h->periods[at], (size_t)(h->n - at) * sizeof h->periods[0]);
    h->periods[at] = *period;
    h->n++;
}

void weir_history_closed(const struct weir_zone_now *zone)
{
    struct history *h = mine();
    if (!h || zone->stage < 0)
        return;
    uint64_t now = weir_clock_ticks();
    struct weir_zone_now around = weir_zone_now();
    while (h->n > 0 && h->periods[h->n - 1].start >= zone->start)
        h->n--;
    if (h->n == PERIODS_MAX)
        make_room(h);
    h->periods[h->n++] =
        (struct period){.start = zone->start, .end = now, .busy = now - zone->start, .stage = zone->stage};
    inside[zone->stage][parent_index(&around)] += now - zone->start;
}

/* ---- calls timed by the program ---- */

struct call {
    int stage;
    uint64_t ticks, start, end, slack;
    struct weir_zone_now around;
};

/* Finds the first period that begins inside the call, and the ticks of the call that stages cover. Returns false if the
 * call cannot have ended just now, because its start would precede the surrounding zone or lie within another stage. */
static bool find_inside(const struct history *h, const struct call *call, int *first, uint64_t *covered)
{
    *covered = 0;
    *first = h->n;
    if (call->start + call->slack < call->around.start)
        return false;
    for (int i = h->n - 1; i >= 0 && h->periods[i].end > call->start; i--) {
        const struct period *p = &h->periods[i];
        if (p->start + call->slack < call->start) /* p began earlier, by more than clock inaccuracy */
            return p->end <= call->start + call->slack;
        *first = i;
        *covered += p->busy;
    }
    return true;
}

/* Finds the latest gap, at or before the one that precedes period `last`, that has room for the call. Returns the index
 * of the period after the gap, or -1 if there is no such gap. */
static int find_gap(const struct history *h, const struct call *call, int last)
{
    for (int i = last; i >= 0; i--) {
        uint64_t from = i > 0 ? h->periods[i - 1].end : 0;
        uint64_t to = i < h->n ? h->periods[i].start : call->end;
        from = from > call->around.start ? from : call->around.start;
        if (to <= from)
            return -1;
        if (to - from + call->slack >= call->ticks)
            return i;
    }
    return -1;
}

/* Returns whether the call seems to contain a call that was logged just before it, but also fits into the gap before
 * everything that it seems to contain. If so, the program logs several consecutive calls together. */
static bool follows(const struct history *h, const struct call *call, int first)
{
    const struct period *last = h->n > 0 ? &h->periods[h->n - 1] : NULL;
    uint64_t at_once = (uint64_t)(20e3 / weir_clock_ns_per_tick());
    return last && last->logged && call->end - last->end < at_once && first < h->n && find_gap(h, call, first) == first;
}

static void place_now(struct history *h, const struct call *call, int first, uint64_t own)
{
    int around = parent_index(&call->around);
    uint64_t start = first < h->n && h->periods[first].start < call->start ? h->periods[first].start : call->start;
    uint64_t busy = own;
    for (int i = first; i < h->n; i++) {
        const struct period *p = &h->periods[i];
        busy += p->busy;
        if (p->stage == NO_STAGE || p->stage == call->stage)
            continue;
        uint64_t *from = &inside[p->stage][around], moved = p->busy < *from ? p->busy : *from;
        *from -= moved;
        inside[p->stage][call->stage] += p->busy;
    }
    h->n = first;
    insert(h, first, &(struct period){start, call->end, busy, call->stage, true});
}

static void place_before(struct history *h, const struct call *call, int next)
{
    uint64_t to = next < h->n ? h->periods[next].start : call->end;
    insert(h, next, &(struct period){to > call->ticks ? to - call->ticks : 0, to, call->ticks, call->stage, true});
}

void weir_history_begin(void)
{
    weir_clock_init();
    began = weir_clock_ticks();
}

/* A thread is timed from its first stage onwards, but the first logged call may have begun earlier. Moves the start of
 * the thread's time back to the start of this call, unless the call would have begun before the import. In that case it
 * was timed in another process. */
static void begin_with(struct history *h, struct call *call)
{
    bool is_outermost = call->start < call->around.start && parent_index(&call->around) == NO_STAGE;
    if (!h->has_logged && is_outermost && call->start >= began) {
        weir_thread_backdate(call->around.start - call->start);
        call->around = weir_zone_now();
    }
    h->has_logged = true;
}

void weir_history_logged(int stage, uint64_t ticks)
{
    struct history *h = mine();
    uint64_t now = weir_clock_ticks(), covered = 0, own = 0;
    struct call call = {stage, ticks, now > ticks ? now - ticks : 0, now, ticks / 64, weir_zone_now()};
    call.slack += (uint64_t)(5e3 / weir_clock_ns_per_tick());
    if (h)
        begin_with(h, &call);
    const struct weir_stage_info *info = weir_stage_info(stage);
    int first = 0;
    uint64_t most = weir_zone_own();
    bool ends_now = h && find_inside(h, &call, &first, &covered);
    if (ends_now && !follows(h, &call, first)) {
        own = ticks > covered ? ticks - covered : 0;
        own = own < most ? own : most;
        place_now(h, &call, first, own);
    } else if (h && info && info->consumer) {
        int next = find_gap(h, &call, ends_now ? first : h->n);
        own = next < 0 ? 0 : ticks < most ? ticks : most;
        if (next >= 0)
            place_before(h, &call, next);
    }
    weir_zone_logged(stage, ticks, own);
    inside[stage][parent_index(&call.around)] += ticks;
}

int weir_history_parent(int stage)
{
    int most = NO_STAGE;
    for (int i = 0; i < WEIR_STAGE_MAX; i++)
        if (inside[stage][i] > inside[stage][most])
            most = i;
    return most == NO_STAGE ? -1 : most;
}
