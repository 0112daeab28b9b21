#include "analyze/logs/log_ranks.h"
#include "cli/progress.h"
#include "cli/run/run_serve.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double WAIT_S = 30, START_S = 10, INTERRUPTED_S = 2;

static void publish(void *user, struct weir_loader_report *report)
{
    struct weir_run_ranks *ranks = user;
    struct weir_rank_record record;
    if (ranks->next->begin)
        ranks->next->begin(ranks->next->user, report);
    if (weir_rank_record_fill(&record, report))
        weir_rank_session_publish(ranks->session, &record);
}

static void print_next(void *user, FILE *out, const struct weir_loader_report *report, enum weir_lang lang)
{
    const struct weir_run_ranks *ranks = user;
    if (ranks->next->print)
        ranks->next->print(ranks->next->user, out, report, lang);
}

static void json_next(void *user, struct weir_json *json, const struct weir_loader_report *report)
{
    const struct weir_run_ranks *ranks = user;
    if (ranks->next->json)
        ranks->next->json(ranks->next->user, json, report);
}

void weir_run_ranks_open(struct weir_run_ranks *ranks, const struct weir_ranks *of, const char *command,
                         const char *log)
{
    const struct weir_rank_session_config config = {.rank = of->rank, .world_size = of->world_size, .name = command};
    struct weir_err err = WEIR_ERR_NONE;
    ranks->addition = (struct weir_report_addition){publish, print_next, json_next, ranks};
    int rc = weir_rank_session_open(&ranks->session, &config, &err);
    if (rc == 0 || of->rank > 0 || !of->source) /* --rank without a launcher: there may be no other ranks */
        return;
    ranks->logs = log;
    ranks->world_size = of->world_size;
    fprintf(stderr, "weir %s: %s; %s\n", command, err.text,
            log ? "rank 0 prints it at the end, from the logs of all ranks in its folder"
                : "with --log FILE, rank 0 prints it at the end, from the logs of all ranks");
}

const struct weir_report_addition *weir_run_ranks_addition(struct weir_run_ranks *ranks,
                                                           const struct weir_report_addition *addition)
{
    ranks->next = addition;
    return ranks->session ? &ranks->addition : addition;
}

/* Writes a log line of the session's table, or of one made from logs. */
static void write_line(FILE *out, struct weir_rank_session *session, const struct weir_rank_logs *found)
{
    struct weir_document document;
    weir_document_open(&document, &weir_line_writer, out);
    weir_document_fact(&document, "type", "ranks");
    if (session)
        weir_rank_session_json(session, document.json);
    else
        weir_rank_table_json(document.json, &found->verdict, found->ranks, found->n);
    weir_document_close(&document);
}

void weir_run_ranks_poll(struct weir_run_ranks *ranks)
{
    if (!ranks->session || !weir_rank_session_ready(ranks->session))
        return;
    weir_progress_clear();
    if (ranks->lines)
        write_line(ranks->out, ranks->session, NULL);
    else
        weir_rank_session_print(ranks->session, ranks->out);
    if (ranks->log)
        write_line(ranks->log, ranks->session, NULL);
}

/* ---- without a store: from the logs ---- */

/* Returns the log of a rank, whose path differs from that of rank 0 in the number; NULL without memory. */
static char *log_of_rank(const char *path, int rank)
{
    static const char zero[] = ".rank0";
    const char *slash = strrchr(path, '/'), *at = strstr(slash ? slash : path, zero);
    char *name = NULL;
    if (!at || asprintf(&name, "%.*s.rank%d%s", (int)(at - path), path, rank, at + sizeof zero - 1) < 0)
        return NULL;
    return name;
}

/* Reads the logs. Returns how long to wait for them: for ranks that still run, or have not begun their log. */
static double read_logs(struct weir_rank_log *logs, char **paths, int n)
{
    double wait_s = 0;
    for (int i = 0; i < n; i++) {
        weir_rank_log_read(&logs[i], paths[i]);
        if (!logs[i].readable)
            wait_s = fmax(wait_s, START_S);
        else if (!logs[i].final && weir_rank_log_runs(&logs[i]))
            wait_s = WAIT_S;
    }
    return wait_s;
}

static void print_logs(const struct weir_run_ranks *ranks, const struct weir_rank_log *logs, int n)
{
    struct weir_rank_logs found;
    char why[400];
    if (weir_rank_logs_compare(&found, logs, n, why, sizeof why) < 0 || found.n == 0)
        return;
    weir_progress_clear();
    if (ranks->lines)
        write_line(ranks->out, NULL, &found);
    else
        weir_rank_table_print(ranks->out, &found.verdict, found.ranks, found.n);
    if (ranks->log)
        write_line(ranks->log, NULL, &found);
    weir_rank_logs_free(&found);
}

static void finish_logs(const struct weir_run_ranks *ranks, const volatile sig_atomic_t *interrupted)
{
    const struct timespec nap = {.tv_nsec = 200000000};
    int n = ranks->world_size < WEIR_RANK_LOGS ? ranks->world_size : WEIR_RANK_LOGS;
    struct weir_rank_log *logs = calloc((size_t)n, sizeof *logs);
    char *paths[WEIR_RANK_LOGS] = {0};
    bool all = logs != NULL;
    for (int i = 0; i < n && all; i++)
        all = (paths[i] = log_of_rank(ranks->logs, i)) != NULL;
    uint64_t begun_ns = weir_clock_monotonic_ns();
    while (all) {
        double wait_s = read_logs(logs, paths, n);
        wait_s = *interrupted ? fmin(wait_s, INTERRUPTED_S) : wait_s;
        if ((double)(weir_clock_monotonic_ns() - begun_ns) / 1e9 >= wait_s)
            break;
        nanosleep(&nap, NULL);
    }
    if (all)
        print_logs(ranks, logs, n);
    for (int i = 0; i < n; i++)
        free(paths[i]);
    free(logs);
}

void weir_run_ranks_finish(struct weir_run_ranks *ranks, const volatile sig_atomic_t *interrupted)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    if (ranks->logs)
        finish_logs(ranks, interrupted);
    uint64_t begun_ns = weir_clock_monotonic_ns();
    for (bool waits = ranks->session != NULL; waits && !weir_rank_session_printed(ranks->session);) {
        double waited_s = (double)(weir_clock_monotonic_ns() - begun_ns) / 1e9;
        waits = waited_s < (*interrupted ? INTERRUPTED_S : WAIT_S) && !weir_rank_session_lost(ranks->session);
        weir_run_ranks_poll(ranks);
        nanosleep(&nap, NULL);
    }
    weir_rank_session_finish(ranks->session, 0);
    if (ranks->session)
        weir_run_ranks_poll(ranks);
    weir_rank_session_close(&ranks->session);
}
