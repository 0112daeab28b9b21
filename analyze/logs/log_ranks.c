#include "analyze/logs/log_ranks.h"
#include "analyze/logs/log_lines.h"
#include "analyze/logs/log_read.h"
#include "base/numbers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 16384 };

/* ---- one log ---- */

/* Returns the rank in a name such as run.rank3.jsonl; -1 = none. */
static int rank_of_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *at = strstr(slash ? slash + 1 : path, ".rank");
    char *end;
    long rank = at ? strtol(at + 5, &end, 10) : -1;
    return at && end != at + 5 && (*end == '.' || !*end) && rank >= 0 && rank <= 1 << 20 ? (int)rank : -1;
}

static void keep_epoch(struct weir_rank_log *log, const struct weir_epoch_line *line)
{
    if (line->interrupted || line->train_s <= 0)
        return;
    if (log->n_epochs == WEIR_RANK_LOG_EPOCHS)
        memmove(log->epochs, log->epochs + 1, (size_t)--log->n_epochs * sizeof log->epochs[0]);
    log->epochs[log->n_epochs].epoch = line->epoch;
    log->epochs[log->n_epochs].train_s = line->train_s;
    log->epochs[log->n_epochs++].wait_s = line->train_s * line->data_wait_fraction;
}

/* A log that was appended to has several runs; the last one counts. */
static void begin_run(struct weir_rank_log *log, const struct weir_log_used *used)
{
    *log =
        (struct weir_rank_log){.path = log->path, .rank = used->rank, .world_size = used->world_size, .pid = used->pid};
    snprintf(log->host, sizeof log->host, "%s", used->host);
    log->readable = true;
    if (used->world_size <= 1)
        log->rank = -1;
}

static void keep(struct weir_rank_log *log, const struct weir_log_record *record)
{
    log->readable = true;
    if (record->type == WEIR_LOG_RUN)
        begin_run(log, &record->used);
    else if (record->type == WEIR_LOG_EPOCH)
        keep_epoch(log, &record->epoch);
    else if (record->type == WEIR_LOG_WHATIF)
        log->rank = -1;
    else if (record->type == WEIR_LOG_STAGES && weir_rank_record_fill(&log->record, &record->report)) {
        log->has_record = true;
        log->final = record->report.final;
    }
}

int weir_rank_log_read(struct weir_rank_log *log, const char *path)
{
    struct weir_lines lines;
    struct weir_err err = WEIR_ERR_NONE;
    *log = (struct weir_rank_log){.path = path, .rank = rank_of_name(path)};
    FILE *in = fopen(path, "rb");
    struct weir_log_record *record = in ? calloc(1, sizeof *record) : NULL;
    int code = in && !record ? -ENOMEM : 0;
    if (in && record) {
        weir_lines_open(&lines, in);
        bool ours = weir_lines_peek(&lines) > 0 && weir_log_recognised(lines.text, lines.length);
        while (ours && (code = weir_log_next(&lines, record, &err)) == WEIR_LOG_RECORD)
            keep(log, record);
        log->cut = code == WEIR_LOG_CUT || (code < 0 && code != -ENOMEM);
        if (!ours)
            log->rank = -1;
        weir_log_record_clear(record);
        weir_lines_close(&lines);
    }
    free(record);
    if (in)
        fclose(in);
    return code == -ENOMEM ? code : 0;
}

bool weir_rank_log_runs(const struct weir_rank_log *log)
{
    struct weir_rank_status here;
    weir_rank_status_here(&here, 0, 1);
    return log->pid <= 0 || strcmp(log->host, here.host) != 0 || kill(log->pid, 0) == 0 || errno != ESRCH;
}

/* ---- all logs ---- */

/* The lines of one epoch, of the logs that have it. */
struct epoch_lines {
    int n, longest, waiting; /* indices of the longest epoch and of the longest wait */
    int rank[WEIR_RANK_LOGS];
    double train_s[WEIR_RANK_LOGS], wait_s[WEIR_RANK_LOGS];
};

static void add_line(struct epoch_lines *lines, const struct weir_rank_log *log, int epoch)
{
    for (int i = 0; i < log->n_epochs && log->rank >= 0 && log->has_record; i++) {
        if (log->epochs[i].epoch != epoch)
            continue;
        int at = lines->n++;
        lines->rank[at] = log->rank;
        lines->train_s[at] = log->epochs[i].train_s;
        lines->wait_s[at] = log->epochs[i].wait_s;
        lines->longest = lines->train_s[at] > lines->train_s[lines->longest] ? at : lines->longest;
        lines->waiting = lines->wait_s[at] > lines->wait_s[lines->waiting] ? at : lines->waiting;
        return;
    }
}

static double median_without(const double *values, int n, int left_out)
{
    double others[WEIR_RANK_LOGS];
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (i != left_out)
            others[kept++] = values[i];
    return weir_median(others, (size_t)kept);
}

/* Adds an epoch to the history: its slow rank as its line shows it, and the median wait. */
static void add_epoch(struct weir_rank_history *history, const struct weir_rank_log *logs, int n, int epoch)
{
    struct epoch_lines lines = {0};
    double shares[WEIR_RANK_LOGS];
    for (int i = 0; i < n; i++)
        add_line(&lines, &logs[i], epoch);
    if (lines.n < 2)
        return;
    for (int i = 0; i < lines.n; i++)
        shares[i] = lines.wait_s[i] / lines.train_s[i];
    double longest_s = lines.train_s[lines.longest];
    bool independent = longest_s >= (1 + WEIR_RANK_SKEW) * median_without(lines.train_s, lines.n, lines.longest);
    double excess_s = lines.wait_s[lines.waiting] - median_without(lines.wait_s, lines.n, lines.waiting);
    bool is_slow = independent || excess_s >= WEIR_RANK_EXCESS * longest_s;
    int slow = lines.rank[independent ? lines.longest : lines.waiting];
    weir_rank_history_add(history, is_slow ? slow : -1, weir_median(shares, (size_t)lines.n));
}

static void fill_history(struct weir_rank_history *history, const struct weir_rank_log *logs, int n)
{
    *history = (struct weir_rank_history){0};
    const struct weir_rank_log *first = NULL;
    for (int i = 0; i < n && !first; i++)
        first = logs[i].rank >= 0 && logs[i].has_record ? &logs[i] : NULL;
    for (int i = 0; first && i < first->n_epochs; i++)
        add_epoch(history, logs, n, first->epochs[i].epoch);
}

/* Checks that the logs belong to different ranks of one run. Returns its number of ranks, or 0. */
static int find_world(const struct weir_rank_log *logs, int n, char *why, size_t size)
{
    int world = 0, of_ranks = 0, largest = -1;
    for (int i = 0; i < n; i++) {
        of_ranks += logs[i].rank >= 0;
        largest = logs[i].rank > largest ? logs[i].rank : largest;
        if (logs[i].rank < 0 || logs[i].world_size == 0)
            continue;
        if (world > 0 && world != logs[i].world_size) {
            snprintf(why, size, "%s is of a run with %d ranks, and another log is of one with %d", logs[i].path,
                     logs[i].world_size, world);
            return 0;
        }
        world = logs[i].world_size;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (logs[i].rank >= 0 && logs[i].rank == logs[j].rank) {
                snprintf(why, size, "%s and %s are both of rank %d", logs[j].path, logs[i].path, logs[i].rank);
                return 0;
            }
    world = world == 0 ? largest + 1 : world; /* logs without the number of ranks */
    if (world > RANKS_MAX)
        snprintf(why, size, "%d ranks: the table is limited to %d", world, RANKS_MAX);
    return of_ranks >= 2 && world > largest && world <= RANKS_MAX ? world : 0;
}

static void fill_rank(struct weir_rank *rank, const struct weir_rank_log *log)
{
    int last = log->n_epochs > 0 ? log->epochs[log->n_epochs - 1].epoch : 0;
    rank->pid = log->pid;
    rank->epoch = last;
    snprintf(rank->host, sizeof rank->host, "%s", log->host);
    rank->record = log->has_record ? &log->record : NULL;
    rank->presence = log->has_record && log->final && !log->cut ? WEIR_RANK_REPORTED : WEIR_RANK_LOG;
    const char *cut = log->cut ? " in the middle of a line" : "";
    if (!log->readable)
        snprintf(rank->why, sizeof rank->why, "%.120s has no complete line", log->path);
    else if (last > 0)
        snprintf(rank->why, sizeof rank->why, "%.100s ends%s after epoch %d, %s", log->path, cut, last,
                 log->final        ? "and has the last table"
                 : log->has_record ? "without the last table"
                                   : "without a table");
    else
        snprintf(rank->why, sizeof rank->why, "%.100s ends%s before the first epoch did", log->path, cut);
}

int weir_rank_logs_compare(struct weir_rank_logs *logs, const struct weir_rank_log *of, int n, char *why,
                           size_t why_size)
{
    struct weir_rank_history history;
    *logs = (struct weir_rank_logs){0};
    *why = '\0';
    int world = find_world(of, n < WEIR_RANK_LOGS ? n : WEIR_RANK_LOGS, why, why_size);
    if (world == 0)
        return 0;
    logs->ranks = calloc((size_t)world, sizeof *logs->ranks);
    if (!logs->ranks)
        return -ENOMEM;
    logs->n = world;
    for (int r = 0; r < world; r++) {
        logs->ranks[r] = (struct weir_rank){.rank = r, .presence = WEIR_RANK_LOG};
        snprintf(logs->ranks[r].why, sizeof logs->ranks[r].why, "its log is missing");
    }
    for (int i = 0; i < n; i++)
        if (of[i].rank >= 0)
            fill_rank(&logs->ranks[of[i].rank], &of[i]);
    fill_history(&history, of, n);
    if (history.n > 0)
        history.n--; /* the last epoch is part of the last table */
    weir_rank_verdict_make(&logs->verdict, logs->ranks, logs->n, &history);
    return 0;
}

void weir_rank_logs_free(struct weir_rank_logs *logs)
{
    free(logs->ranks);
    *logs = (struct weir_rank_logs){0};
}
