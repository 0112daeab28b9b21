/* The members of the object "watch" in a log line (docs/internals/log-format.md). */
#include "analyze/watch/watch_figures.h"

#include <stddef.h>

#define PLAIN(member)      WEIR_FIELD(S, #member, member, 0)
#define KNOWN(member)      WEIR_FIELD(S, #member, member, WEIR_FIELD_KNOWN)
#define TEXT(member)       WEIR_FIELD(S, #member, member, WEIR_FIELD_SHOWN | WEIR_FIELD_OPTIONAL)
#define FIGURE(key, value) WEIR_FIELD(S, key, value, 0)
#define MEMBER(text, table, member)                                                                                    \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_OBJECT, .inner = &(table), WEIR_FIELD_AT(S, member)                          \
    }
#define MEMBER_IF(text, table, member, there)                                                                          \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_OBJECT, .inner = &(table), WEIR_FIELD_AT(S, member),                         \
        WEIR_FIELD_PRESENT(S, member.there)                                                                            \
    }
#define ARRAY(text, table, member, length)                                                                             \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_ARRAY, .inner = &(table), .offset = offsetof(S, member),                     \
        .size = sizeof(((S *)0)->member[0]), .count = offsetof(S, length),                                             \
        .max = sizeof(((S *)0)->member) / sizeof(((S *)0)->member[0])                                                  \
    }

#define S struct weir_watch_settings
static const struct weir_field settings[] = {
    KNOWN(num_workers),
    KNOWN(prefetch_factor),
    KNOWN(batch_size),
    KNOWN(pin_memory),
    KNOWN(persistent_workers),
    KNOWN(in_order),
    KNOWN(cuda),
    KNOWN(iterable),
    KNOWN(any_iterable),
    KNOWN(torch_threads),
    KNOWN(cv2_threads),
    KNOWN(headroom),
    KNOWN(hdf5_opened),
    KNOWN(zone_ns),
    KNOWN(world_size),
    KNOWN(dataset_length),
    KNOWN(batches_per_epoch),
    KNOWN(weir_items_s),
    KNOWN(watched_items_s),
    TEXT(start_method),
    TEXT(dataset),
    TEXT(collate),
    TEXT(torch_version),
    TEXT(sampler),
    TEXT(weir_path),
    TEXT(weir_sample),
};
static WEIR_FIELDS(settings_fields, settings);
#undef S

#define S struct weir_watch_shares
static const struct weir_field shares[] = {
    PLAIN(seconds), PLAIN(storage), PLAIN(lock), PLAIN(sleep), PLAIN(idle), PLAIN(other),
};
static WEIR_FIELDS(shares_fields, shares);
#undef S

#define S struct weir_watch_worker
static const struct weir_field worker[] = {
    PLAIN(worker),
    PLAIN(wall_s),
    PLAIN(busy_s),
    PLAIN(wait_s),
    PLAIN(start_s),
    PLAIN(batches),
    PLAIN(items),
    PLAIN(batch_s),
    PLAIN(spread),
    PLAIN(cpu_s),
    PLAIN(delay_s),
    PLAIN(asked_of_s),
    MEMBER_IF("sampled", shares_fields, shares, seconds),
};
static WEIR_FIELDS(worker_fields, worker);
#undef S

#define S struct weir_watch_slow_item
static const struct weir_field item[] = {KNOWN(index), KNOWN(worker), PLAIN(s), TEXT(file)};
static WEIR_FIELDS(item_fields, item);
#undef S

#define S struct weir_watch_slow_file
static const struct weir_field file[] = {TEXT(name), PLAIN(count), PLAIN(mean_s), PLAIN(max_s)};
static WEIR_FIELDS(file_fields, file);
#undef S

#define S struct weir_watch_unseen
static const struct weir_field unseen[] = {TEXT(what)};
static WEIR_FIELDS(unseen_fields, unseen);
#undef S

#define S struct weir_watch_figures
static const struct weir_field ready[] = {
    FIGURE("requests", ready_known), FIGURE("mean", ready_mean), FIGURE("min", ready_min),
    FIGURE("max", ready_max),        FIGURE("none", ready_none),
};
static WEIR_FIELDS(ready_fields, ready);

static const struct weir_field waits[] = {
    FIGURE("none_ready_s", wait_none_s),
    FIGURE("out_of_order_s", wait_order_s),
    FIGURE("due_ready_s", wait_due_s),
    FIGURE("unknown_s", wait_unknown_s),
};
static WEIR_FIELDS(wait_fields, waits);

static const struct weir_field headroom[] = {
    PLAIN(windows),     PLAIN(given_up),     PLAIN(held_s), PLAIN(window_batches), PLAIN(window_s),
    PLAIN(window_sd_s), PLAIN(rest_batches), PLAIN(rest_s), PLAIN(rest_sd_s),
};
static WEIR_FIELDS(headroom_fields, headroom);

#define OBJECT(text, table)                                                                                            \
    {                                                                                                                  \
        .key = (text), .type = WEIR_FIELD_OBJECT, .inner = &(table)                                                    \
    }
static const struct weir_field figures[] = {
    TEXT(name),
    MEMBER("settings", settings_fields, settings),
    PLAIN(requests),
    PLAIN(batches),
    PLAIN(items),
    PLAIN(loop_s),
    PLAIN(wait_s),
    PLAIN(run_first_s),
    OBJECT("ready", ready_fields),
    OBJECT("waits", wait_fields),
    PLAIN(epochs),
    PLAIN(first_waits),
    PLAIN(first_wait_s),
    PLAIN(startups),
    PLAIN(startup_s),
    OBJECT("headroom", headroom_fields),
    KNOWN(n_threads),
    KNOWN(others_in_worker),
    MEMBER_IF("loop_sampled", shares_fields, loop_shares, seconds),
    ARRAY("workers", worker_fields, workers, n_workers),
    ARRAY("slowest_items", item_fields, slow_items, n_items),
    ARRAY("slowest_files", file_fields, slow_files, n_files),
    PLAIN(files_seen),
    PLAIN(files_mean_s),
    PLAIN(paths_s),
    PLAIN(paths),
    ARRAY("unseen", unseen_fields, unseen, n_unseen),
};
WEIR_FIELDS(weir_watch_fields, figures);
#undef S
