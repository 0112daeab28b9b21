/* Conversion of a window's ticks to trace times, together with GPU records that use the same clock. */
#include "prof/gpu/gpu_join_priv.h"
#include "prof/record/window_priv.h"
#include "weir/base.h"
#include "weir/recorder.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX = 8 };

/* The records of a fake recorder. */
struct weir_gpu_records {
    struct weir_gpu_record at[MAX];
    size_t n;
};

static void each(struct weir_gpu_records *records, void (*on_record)(void *user, const struct weir_gpu_record *record),
                 void *user)
{
    for (size_t i = 0; i < records->n; i++)
        on_record(user, &records->at[i]);
}

static const struct weir_gpu_trace_ops ops = {.each = each};

static void add_call(struct weir_gpu_records *records, const char *name, uint64_t start_ns, uint64_t end_ns)
{
    records->at[records->n] = (struct weir_gpu_record){.kind = WEIR_GPU_RECORD_RUNTIME,
                                                       .name = name,
                                                       .start_ns = start_ns,
                                                       .end_ns = end_ns,
                                                       .tid = getpid(),
                                                       .correlation = (uint32_t)records->n + 1};
    records->n++;
}

static struct weir_slot2 range_slot(weir_name name, uint64_t start, uint64_t end)
{
    return (struct weir_slot2){start, weir_record_word((uint32_t)(end - start), name, WEIR_RECORD_RANGE, 0)};
}

/* Returns the trace of a window from `begin` to `end`. `slots` are the ranges of its thread, which also has an
 * unfinished range that starts at `open`. */
static struct weir_trace *trace_of(uint64_t begin, uint64_t end, struct weir_slot2 *slots, size_t n, uint64_t open,
                                   struct weir_gpu_records *records)
{
    struct weir_take take = {.tid = getpid(), .name = "thread", .slots = slots, .n = n};
    struct weir_open_copy unfinished = {getpid(), "thread", weir_name_intern("open", WEIR_CAT_CPU_OP), open};
    struct weir_gpu_take gpu = {.ops = &ops, .records = records};
    const struct weir_window window = {.begin = begin,
                                       .end = end,
                                       .begin_unix_ns = INT64_C(1700000000000000000),
                                       .store = {.takes = &take, .n_takes = 1},
                                       .open = &unfinished,
                                       .n_open = 1,
                                       .gpu = &gpu};
    const struct weir_export how = {.data_wait = "wait"};
    struct weir_trace *trace;
    cr_assert_eq(weir_window_trace(&window, &how, &trace), 0);
    return trace;
}

static const struct weir_event *find(const struct weir_trace *trace, const char *name)
{
    for (size_t i = 0; i < trace->n_events; i++)
        if (strcmp(weir_trace_text(trace, trace->events[i].name), name) == 0)
            return &trace->events[i];
    cr_assert_fail("no %s", name);
    return NULL;
}

static int64_t end_of(const struct weir_event *event)
{
    return event->start_ns + event->duration_ns;
}

/* Ticks of 3/8 ns, for which rounding errors at the start and end of ranges are largest. */
static void use_slow_ticks(void)
{
    weir_clock.ns_per_tick_32 = UINT64_C(3) << 29;
}

Test(window_trace, one_tick_is_one_time_whoever_read_it, .init = use_slow_ticks)
{
    weir_name name = weir_name_intern("range", WEIR_CAT_CPU_OP);
    for (uint64_t shift = 0; shift < 64; shift++) {
        uint64_t begin = 1000000 + shift % 8, start = begin + 8000, inner = start + 800 + shift / 8;
        uint64_t end = inner + 4001, stop = end + 8000 + shift / 8;
        struct weir_slot2 slots[] = {range_slot(name, start, end)};
        struct weir_gpu_records records = {.n = 0};
        add_call(&records, "in range", weir_clock_to_ns(inner), weir_clock_to_ns(end));
        add_call(&records, "in open", weir_clock_to_ns(end + 4000), weir_clock_to_ns(stop) + 1000000);
        struct weir_trace *trace = trace_of(begin, stop, slots, 1, end + 800, &records);
        cr_assert_eq(end_of(find(trace, "in range")), end_of(find(trace, "range")) - 1, "%lu", shift);
        cr_assert_eq(end_of(find(trace, "in open")), end_of(find(trace, "open")) - 1, "%lu", shift);
        cr_assert_eq(end_of(find(trace, "open")), trace->end_ns);
        cr_assert_eq(find(trace, "in range")->start_ns - trace->begin_ns,
                     (int64_t)(weir_clock_to_ns(inner) - weir_clock_to_ns(begin)));
        weir_trace_free(&trace);
    }
}

static void use_ns(void)
{
    weir_clock.ns_per_tick_32 = UINT64_C(1) << 32;
}

/* For CUPTI versions that have a clock of their own, which is only compared with ours. */
Test(window_trace, a_call_is_cut_at_the_end_of_its_range_by_the_clocks_error_and_no_more, .init = use_ns)
{
    struct weir_slot2 slots[] = {
        range_slot(weir_name_intern("outer", WEIR_CAT_USER_ANNOTATION), 2000, 9000),
        range_slot(weir_name_intern("inner", WEIR_CAT_CPU_OP), 3000, 5000),
    };
    struct weir_gpu_records records = {.n = 0};
    add_call(&records, "a little", 4000, 5000 + WEIR_GPU_CLOCK_ERROR_NS);
    add_call(&records, "too much", 4500, 5001 + WEIR_GPU_CLOCK_ERROR_NS);
    add_call(&records, "outer's", 6000, 9002);
    add_call(&records, "nobody's", 9003, 9500);
    struct weir_trace *trace = trace_of(1000, 20000, slots, 2, 10000, &records);
    cr_assert_eq(end_of(find(trace, "a little")), end_of(find(trace, "inner")) - 1);
    cr_assert_eq(end_of(find(trace, "too much")) - end_of(find(trace, "inner")), 1 + WEIR_GPU_CLOCK_ERROR_NS);
    cr_assert_eq(end_of(find(trace, "outer's")), end_of(find(trace, "outer")) - 1);
    cr_assert_eq(find(trace, "nobody's")->duration_ns, 497);
    weir_trace_free(&trace);
}

/* Returns the end time as computed by readers in Python and JavaScript, where ts and dur are doubles in us. */
static double end_as_read(const struct weir_event *event)
{
    char start[32], duration[32];
    snprintf(start, sizeof start, "%ld.%03ld", (long)event->start_ns / 1000, (long)event->start_ns % 1000);
    snprintf(duration, sizeof duration, "%ld.%03ld", (long)event->duration_ns / 1000, (long)event->duration_ns % 1000);
    return strtod(start, NULL) + strtod(duration, NULL);
}

Test(window_trace, what_ends_together_is_nested_for_readers_with_doubles, .init = use_ns)
{
    static const char *const names[] = {"first", "second", "third", "fourth"};
    uint64_t ten_days = UINT64_C(864000000000000), end = ten_days + 50000;
    for (uint64_t shift = 0; shift < 500; shift++) {
        struct weir_slot2 slots[4];
        for (int i = 0; i < 4; i++)
            slots[i] = range_slot(weir_name_intern(names[i], WEIR_CAT_CPU_OP),
                                  ten_days + 7 * shift + (uint64_t)(i == 3 ? 2 : i) * (31 + shift), end + shift);
        struct weir_gpu_records records = {.n = 0};
        struct weir_trace *trace = trace_of(1000, end + 1000, slots, 4, end + 500, &records);
        cr_assert_lt(trace->begin_ns, INT64_C(86400) * 1000000000);
        cr_assert_eq(trace->base_unix_ns + trace->begin_ns, INT64_C(1700000000000000000));
        for (int i = 1; i < 4; i++) {
            const struct weir_event *outer = find(trace, names[i - 1]), *inner = find(trace, names[i]);
            cr_assert_lt(end_as_read(inner), end_as_read(outer), "%s in %s", names[i], names[i - 1]);
            cr_assert_eq(end_of(inner), end_of(outer) - 1);
        }
        cr_assert_eq(end_of(find(trace, names[0])) - trace->begin_ns, (int64_t)(end + shift - 1000));
        weir_trace_free(&trace);
    }
}

/* Ranges of a thread that touch, as consecutive laps do, with ranges inside that end together with them. */
Test(window_trace, what_touches_is_disjoint_for_readers_with_doubles, .init = use_ns)
{
    enum { PARTS = 4, DEPTH = 3 };
    uint64_t ten_days = UINT64_C(864000000000000);
    for (uint64_t shift = 0; shift < 500; shift++) {
        struct weir_slot2 slots[PARTS * DEPTH];
        uint64_t at = ten_days + 7 * shift, length = 31 + shift;
        char name[16];
        for (int i = 0; i < PARTS * DEPTH; i++) {
            snprintf(name, sizeof name, "part %d.%d", i / DEPTH, i % DEPTH);
            uint64_t start = at + (uint64_t)(i / DEPTH) * length;
            slots[i] =
                range_slot(weir_name_intern(name, WEIR_CAT_CPU_OP), start + 9 * (uint64_t)(i % DEPTH), start + length);
        }
        struct weir_gpu_records records = {.n = 0};
        struct weir_trace *trace =
            trace_of(1000, at + 100000, slots, PARTS * DEPTH, at + PARTS * length + 1000, &records);
        const struct weir_event *outer[DEPTH] = {NULL};
        for (int i = 0; i < PARTS * DEPTH; i++) {
            snprintf(name, sizeof name, "part %d.%d", i / DEPTH, i % DEPTH);
            const struct weir_event *range = find(trace, name);
            int depth = i % DEPTH;
            double start = (double)range->start_ns / 1000;
            for (int k = 0; k < DEPTH && i >= DEPTH && depth == 0; k++)
                cr_assert_leq(end_as_read(outer[k]), start, "depth %d before %s", k, name);
            cr_assert(depth == 0 || end_as_read(range) < end_as_read(outer[depth - 1]), "%s", name);
            cr_assert_geq(end_of(range), range->start_ns);
            outer[depth] = range;
        }
        const struct weir_event *first = find(trace, "part 0.0"), *last = find(trace, "part 3.0");
        cr_assert_eq(first->duration_ns, (int64_t)length - 1, "it ends before the next one begins");
        cr_assert_eq(last->duration_ns, (int64_t)length, "nothing follows the last one");
        weir_trace_free(&trace);
    }
}
