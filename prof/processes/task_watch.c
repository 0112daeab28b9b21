#include "prof/processes/task_watch.h"
#include "weir/base.h"

#include <string.h>
#include <unistd.h>

static const char *const names[WEIR_TASK_USES] = {
    [WEIR_TASK_ON_CORE] = "on core", [WEIR_TASK_CORE_WAIT] = "core-wait", [WEIR_TASK_STORAGE] = "storage",
    [WEIR_TASK_LOCK] = "lock",       [WEIR_TASK_SLEEP] = "sleep",         [WEIR_TASK_IDLE] = "idle",
    [WEIR_TASK_OTHER] = "other",
};

const char *weir_task_use_name(enum weir_task_use use)
{
    return names[use];
}

/* ---- kernel functions ---- */

/* Functions in which threads sleep on Linux 4.18 to 6.18, by prefix. The first match applies. */
static const struct {
    const char *prefix;
    enum weir_task_use use;
} functions[] = {
    {"futex", WEIR_TASK_LOCK},
    {"rwsem_", WEIR_TASK_LOCK},
    {"__mutex_lock", WEIR_TASK_LOCK},
    {"hrtimer_nanosleep", WEIR_TASK_SLEEP},
    {"do_nanosleep", WEIR_TASK_SLEEP},
    {"poll_schedule_timeout", WEIR_TASK_IDLE},
    {"do_sys_poll", WEIR_TASK_IDLE},
    {"do_select", WEIR_TASK_IDLE},
    {"ep_poll", WEIR_TASK_IDLE},
    {"do_epoll_wait", WEIR_TASK_IDLE},
    {"pipe_", WEIR_TASK_IDLE},
    {"anon_pipe_", WEIR_TASK_IDLE},
    {"unix_stream_", WEIR_TASK_IDLE},
    {"__skb_wait_for_more_packets", WEIR_TASK_IDLE},
    {"inet_csk_accept", WEIR_TASK_IDLE},
    {"do_wait", WEIR_TASK_IDLE},
    {"do_sigtimedwait", WEIR_TASK_IDLE},
    {"sigsuspend", WEIR_TASK_IDLE},
    {"folio_wait_", WEIR_TASK_STORAGE},
    {"wait_on_page_", WEIR_TASK_STORAGE},
    {"__lock_page", WEIR_TASK_STORAGE},
    {"__folio_lock", WEIR_TASK_STORAGE},
    {"io_schedule", WEIR_TASK_STORAGE},
    {"submit_bio_wait", WEIR_TASK_STORAGE},
    {"blk", WEIR_TASK_STORAGE},
    {"rq_qos_wait", WEIR_TASK_STORAGE},
    {"__iomap_dio", WEIR_TASK_STORAGE},
    {"do_blockdev_direct_IO", WEIR_TASK_STORAGE},
    {"io_cqring_wait", WEIR_TASK_STORAGE},
    {"read_events", WEIR_TASK_STORAGE},
    {"rpc_wait_bit_killable", WEIR_TASK_STORAGE},
    {"sk_wait_data", WEIR_TASK_STORAGE}, /* blocking receive, as from an object store */
    {"wait_woken", WEIR_TASK_STORAGE},
    {"tcp_", WEIR_TASK_STORAGE},
    {"nfs", WEIR_TASK_STORAGE},
    {"ceph_", WEIR_TASK_STORAGE},
    {"request_wait_answer", WEIR_TASK_STORAGE},
    {"fuse_", WEIR_TASK_STORAGE},
    {"cl_sync_io_wait", WEIR_TASK_STORAGE},
    {"ptlrpc_", WEIR_TASK_STORAGE},
};

enum weir_task_use weir_task_use_of(char state, const char *function)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strncmp(function, functions[i].prefix, strlen(functions[i].prefix)) == 0)
            return functions[i].use;
    return state == 'D' ? WEIR_TASK_STORAGE : WEIR_TASK_OTHER;
}

/* ---- samples ---- */

void weir_task_watch_begin(struct weir_task_watch *watch, const char *root, pid_t pid, pid_t tid)
{
    *watch = (struct weir_task_watch){.root = root, .pid = pid, .tid = tid, .wait_fd = -1};
    watch->known = weir_task_times_read(&watch->then, root, pid, tid);
    watch->at_ns = weir_clock_monotonic_ns();
}

void weir_task_watch_keep_open(struct weir_task_watch *watch)
{
    if (watch->wait_fd < 0)
        watch->wait_fd = weir_task_wait_open(watch->root, watch->pid, watch->tid);
}

void weir_task_watch_end(struct weir_task_watch *watch)
{
    if (watch->wait_fd >= 0)
        close(watch->wait_fd);
    watch->wait_fd = -1;
}

/* A thread without a function runs, is ready, or has just woken up, unless the kernel hides the name. Only its state
 * shows that, and whether it has ended. */
bool weir_task_watch_sample(struct weir_task_watch *watch)
{
    char function[WEIR_TASK_WAIT];
    struct weir_task_stat stat = {.state = 'S'};
    bool known = watch->wait_fd >= 0 ? weir_task_wait_read_at(function, watch->wait_fd)
                                     : weir_task_wait_read(function, watch->root, watch->pid, watch->tid);
    if (!known &&
        (!weir_task_stat_read(&stat, watch->root, watch->pid, watch->tid) || stat.state == 'Z' || stat.state == 'X')) {
        watch->ended = true;
        return false;
    }
    if (known || stat.state == 'D') {
        enum weir_task_use use = weir_task_use_of(stat.state, function);
        watch->asleep[use == WEIR_TASK_LOCK && watch->lock_is_queue ? WEIR_TASK_IDLE : use]++;
    }
    if (known)
        memcpy(watch->function, function, sizeof function);
    return true;
}

/* Divides the remaining time among the reasons for sleeping. */
static void divide(struct weir_task_shares *shares, const unsigned asleep[WEIR_TASK_USES], double left)
{
    unsigned n = 0;
    for (int use = 0; use < WEIR_TASK_USES; use++)
        n += asleep[use];
    for (int use = 0; use < WEIR_TASK_USES && n > 0; use++)
        shares->of[use] += left * asleep[use] / n;
    if (n == 0)
        shares->of[WEIR_TASK_OTHER] += left;
}

void weir_task_shares_add(struct weir_task_shares *total, const struct weir_task_shares *more)
{
    double seconds = total->seconds + more->seconds;
    for (int use = 0; use < WEIR_TASK_USES && more->seconds > 0; use++)
        total->of[use] = (total->of[use] * total->seconds + more->of[use] * more->seconds) / seconds;
    total->seconds = seconds;
}

void weir_task_shares_subtract(struct weir_task_shares *total, const struct weir_task_shares *then)
{
    double seconds = total->seconds - then->seconds;
    for (int use = 0; use < WEIR_TASK_USES && then->seconds > 0 && seconds > 0; use++) {
        double rest_s = total->of[use] * total->seconds - then->of[use] * then->seconds;
        total->of[use] = rest_s > 0 ? rest_s / seconds : 0;
    }
    total->seconds = seconds > 0 ? seconds : 0;
}

void weir_task_watch_take(struct weir_task_watch *watch, struct weir_task_shares *shares)
{
    struct weir_task_times now;
    uint64_t at_ns = weir_clock_monotonic_ns();
    memset(shares, 0, sizeof *shares);
    if (watch->known && weir_task_times_read(&now, watch->root, watch->pid, watch->tid) && at_ns > watch->at_ns &&
        now.run_ns >= watch->then.run_ns && now.delay_ns >= watch->then.delay_ns) {
        double wall_ns = (double)(at_ns - watch->at_ns);
        double run = (double)(now.run_ns - watch->then.run_ns) / wall_ns;
        double delay = (double)(now.delay_ns - watch->then.delay_ns) / wall_ns;
        double sum = run + delay > 1 ? run + delay : 1; /* the two files are not read at the same instant */
        shares->seconds = wall_ns / 1e9;
        shares->of[WEIR_TASK_ON_CORE] = run / sum;
        shares->of[WEIR_TASK_CORE_WAIT] = delay / sum;
        divide(shares, watch->asleep, 1 - (run + delay) / sum);
        watch->then = now;
    }
    memset(watch->asleep, 0, sizeof watch->asleep);
    watch->at_ns = at_ns;
}
