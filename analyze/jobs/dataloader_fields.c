/* The members of the object "watch" in a log line (docs/internals/log-format.md). */
#include "analyze/jobs/dataloader.h"
#include "base/field_rows.h"

#define SAME(member)  PLAIN(#member, member)
#define MAYBE(member) KNOWN(#member, member)
#define TEXT(member)  WEIR_FIELD(S, #member, member, WEIR_FIELD_SHOWN | WEIR_FIELD_OPTIONAL)

#define S struct weir_watch_settings
static const struct weir_field settings[] = {
    MAYBE(num_workers),
    MAYBE(prefetch_factor),
    MAYBE(batch_size),
    MAYBE(pin_memory),
    MAYBE(persistent_workers),
    MAYBE(in_order),
    MAYBE(cuda),
    MAYBE(iterable),
    MAYBE(any_iterable),
    MAYBE(torch_threads),
    MAYBE(cv2_threads),
    MAYBE(headroom),
    MAYBE(hdf5_opened),
    MAYBE(zone_ns),
    MAYBE(world_size),
    MAYBE(dataset_length),
    MAYBE(batches_per_epoch),
    MAYBE(weir_items_s),
    MAYBE(watched_items_s),
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

#define S struct weir_task_shares
static const struct weir_field shares[] = {
    SAME(seconds),
    PLAIN("storage", of[WEIR_TASK_STORAGE]),
    PLAIN("lock", of[WEIR_TASK_LOCK]),
    PLAIN("sleep", of[WEIR_TASK_SLEEP]),
    PLAIN("idle", of[WEIR_TASK_IDLE]),
    PLAIN("other", of[WEIR_TASK_OTHER]),
};
static WEIR_FIELDS(shares_fields, shares);
#undef S

#define S struct weir_thread_figures
static const struct weir_field worker[] = {
    PLAIN("worker", id),
    SAME(wall_s),
    SAME(busy_s),
    SAME(wait_s),
    SAME(start_s),
    SAME(batches),
    SAME(items),
    SAME(batch_s),
    SAME(spread),
    SAME(cpu_s),
    SAME(delay_s),
    SAME(asked_of_s),
    MEMBER_IF("sampled", shares_fields, shares, seconds),
};
static WEIR_FIELDS(worker_fields, worker);
#undef S

#define S struct weir_watch_item
static const struct weir_field item[] = {MAYBE(index), MAYBE(worker), SAME(s), TEXT(file)};
static WEIR_FIELDS(item_fields, item);
#undef S

#define S struct weir_watch_file
static const struct weir_field file[] = {TEXT(name), SAME(count), SAME(mean_s), SAME(max_s)};
static WEIR_FIELDS(file_fields, file);
#undef S

#define S struct weir_watch_unseen
static const struct weir_field unseen[] = {TEXT(what)};
static WEIR_FIELDS(unseen_fields, unseen);
#undef S

#define S struct weir_dataloader_figures
static const struct weir_field ready[] = {
    PLAIN("requests", ready_known), PLAIN("mean", ready_mean), PLAIN("min", ready_min),
    PLAIN("max", ready_max),        PLAIN("none", ready_none),
};
static WEIR_FIELDS(ready_fields, ready);

static const struct weir_field waits[] = {
    PLAIN("none_ready_s", wait_none_s),
    PLAIN("out_of_order_s", wait_order_s),
    PLAIN("due_ready_s", wait_due_s),
    PLAIN("unknown_s", wait_unknown_s),
};
static WEIR_FIELDS(wait_fields, waits);

static const struct weir_field headroom[] = {
    SAME(windows),     SAME(given_up),     SAME(held_s), SAME(window_batches), SAME(window_s),
    SAME(window_sd_s), SAME(rest_batches), SAME(rest_s), SAME(rest_sd_s),
};
static WEIR_FIELDS(headroom_fields, headroom);

static const struct weir_field figures[] = {
    TEXT(name),
    MEMBER("settings", settings_fields, settings),
    SAME(requests),
    SAME(batches),
    SAME(items),
    SAME(loop_s),
    SAME(wait_s),
    SAME(run_first_s),
    OBJECT("ready", ready_fields),
    OBJECT("waits", wait_fields),
    SAME(epochs),
    SAME(first_waits),
    SAME(first_wait_s),
    SAME(startups),
    SAME(startup_s),
    OBJECT("headroom", headroom_fields),
    MAYBE(n_threads),
    MAYBE(others_in_worker),
    MEMBER_IF("loop_sampled", shares_fields, loop.shares, seconds),
    ARRAY("workers", worker_fields, workers, n_workers),
    ARRAY("slowest_items", item_fields, slowest.items, slowest.n_items),
    ARRAY("slowest_files", file_fields, slowest.files, slowest.n_files),
    PLAIN("files_seen", slowest.files_seen),
    PLAIN("files_mean_s", slowest.files_mean_s),
    SAME(paths_s),
    SAME(paths),
    ARRAY("unseen", unseen_fields, slowest.unseen, slowest.n_unseen),
};
WEIR_FIELDS(weir_watch_fields, figures);
#undef S
