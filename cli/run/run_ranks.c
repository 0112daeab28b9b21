#include "cli/run/run_ranks.h"
#include "cli/progress.h"

#include <string.h>
#include <time.h>

static const double WAIT_S = 30, INTERRUPTED_S = 2;

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
    if (weir_rank_session_open(&ranks->session, &config, &err) < 0 && of->rank == 0)
        fprintf(stderr, "weir %s: %s; after the run, weir report prints it from the logs of all ranks (--log %s)\n",
                command, err.text, log ? log : "FILE.jsonl");
}

const struct weir_report_addition *weir_run_ranks_addition(struct weir_run_ranks *ranks,
                                                           const struct weir_report_addition *addition)
{
    ranks->next = addition;
    return ranks->session ? &ranks->addition : addition;
}

static void write_line(struct weir_run_ranks *ranks, FILE *out)
{
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_json_text(&json, "type", "ranks");
    weir_rank_session_json(ranks->session, &json);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fflush(out);
}

void weir_run_ranks_poll(struct weir_run_ranks *ranks)
{
    if (!ranks->session || !weir_rank_session_ready(ranks->session))
        return;
    weir_progress_clear();
    if (ranks->lines)
        write_line(ranks, ranks->out);
    else
        weir_rank_session_print(ranks->session, ranks->out);
    if (ranks->log)
        write_line(ranks, ranks->log);
}

void weir_run_ranks_finish(struct weir_run_ranks *ranks, const volatile sig_atomic_t *interrupted)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    uint64_t begun_ns = weir_clock_monotonic_ns();
    for (bool waits = ranks->session != NULL; waits && !weir_rank_session_printed(ranks->session);) {
        double waited_s = (double)(weir_clock_monotonic_ns() - begun_ns) / 1e9;
        waits = waited_s < (*interrupted ? INTERRUPTED_S : WAIT_S);
        weir_run_ranks_poll(ranks);
        nanosleep(&nap, NULL);
    }
    weir_rank_session_finish(ranks->session, 0);
    if (ranks->session)
        weir_run_ranks_poll(ranks);
    weir_rank_session_close(&ranks->session);
}
