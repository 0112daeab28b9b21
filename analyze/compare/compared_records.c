/* Weir's own logs: those of weir run, weir train and weir.watch. */
#include "analyze/compare/compared_priv.h"
#include "analyze/jobs/job_verdict.h"
#include "analyze/logs/log_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where the measurements of the current run begin. A file can contain several runs. */
struct run_part {
    size_t whole, wait, stage[WEIR_COMPARED_STAGES], fastest[WEIR_COMPARED_STAGES];
    bool has_periodic;
    double rate, data_wait; /* of the last table; 0 = unknown */
};

/* ---- settings ---- */

/* Settings that name outputs, or that differ between two runs of one command. */
static bool is_setting(const char *name)
{
    static const char *const others[] = {"config.log",
                                         "config.html",
                                         "config.serve",
                                         "config.prometheus",
                                         "config.json",
                                         "config.wide",
                                         "config.lang",
                                         "config.every",
                                         "config.profile",
                                         "config.checksums",
                                         "config.state",
                                         "config.ckpt_dir",
                                         "config.max_wait",
                                         "config.schedule",
                                         "config.sort_by",
                                         "config.row_limit",
                                         "used.pid",
                                         "used.io.why",
                                         "used.decoder_why",
                                         "used.index_bytes",
                                         "machine.load_average",
                                         "machine.memory_available_bytes",
                                         "used.io.page_cache_fraction",
                                         "used.io.cold_stayed_fraction"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    return true;
}

static int put_setting(void *user, const char *name, const char *value)
{
    return is_setting(name) ? weir_compared_setting(user, name, value) : 0;
}

/* ---- measurements ---- */

static void begin_run(const struct weir_compared *compared, struct run_part *run)
{
    *run = (struct run_part){.whole = compared->whole.n, .wait = compared->wait.n};
    for (int i = 0; i < compared->n_stages; i++) {
        run->stage[i] = compared->stages[i].seconds.n;
        run->fastest[i] = compared->stages[i].fastest.n;
    }
}

static int add_whole(struct weir_compared *compared, double images_per_s, double wait)
{
    int code = images_per_s > 0 ? weir_series_add(&compared->whole, images_per_s) : 0;
    return code == 0 && wait >= 0 ? weir_series_add(&compared->wait, wait) : code;
}

/* The output of python -m weir watch --json has no epochs, so its rate is that of the table. */
static void keep_rate(struct run_part *run, const struct weir_report_steps *steps)
{
    double seconds = steps->train_s + steps->val_s;
    if (!(steps->images > 0 && seconds > 0))
        return;
    run->rate = (double)steps->images / seconds;
    run->data_wait = steps->train_s > 0 ? steps->train_wait_s / steps->train_s : -1;
}

static int end_run(struct weir_compared *compared, struct run_part *run)
{
    bool empty = compared->whole.n == run->whole && run->rate > 0;
    int code = empty ? add_whole(compared, run->rate, run->data_wait) : 0;
    weir_series_drop_first(&compared->whole, run->whole);
    weir_series_drop_first(&compared->wait, run->wait);
    for (int i = 0; i < compared->n_stages; i++) {
        weir_series_drop_first(&compared->stages[i].seconds, run->stage[i]);
        weir_series_drop_first(&compared->stages[i].fastest, run->fastest[i]);
        weir_series_drop_first(&compared->stages[i].calls, run->fastest[i]);
    }
    begin_run(compared, run);
    return code;
}

static int add_row(struct weir_compared *compared, const struct weir_report_row *row, double parts)
{
    char name[WEIR_REPORT_NAME];
    weir_report_row_name(row, name);
    int code = weir_compared_stage(compared, name, parts > 0 ? row->total_s / parts : row->mean_s);
    if (code == 0 && row->kind == WEIR_KIND_WORK && row->min_s > 0)
        code = weir_compared_fastest(compared, name, row->min_s, (double)row->count);
    return code;
}

/* Adds the stages of a table, unless periodic tables of the same run have covered its time. */
static int add_table(struct weir_compared *compared, struct run_part *run, const struct weir_log_record *record)
{
    const struct weir_loader_report *report = &record->report;
    double images = (double)report->steps.images;
    const char *per = !(images > 0) ? "call" : record->watch ? "item" : "image";
    int code = 0;
    if (report->prof.n_rows == 0 || (report->final && run->has_periodic))
        return 0;
    if (compared->per && strcmp(compared->per, per) != 0) /* a table without images among others */
        return 0;
    compared->per = per;
    run->has_periodic |= !report->final;
    for (int i = 0; i < report->prof.n_rows && code == 0; i++)
        code = add_row(compared, &report->prof.rows[i], images);
    for (int i = 0; i < report->gpu.n_rows && code == 0; i++)
        code = add_row(compared, &report->gpu.rows[i], images);
    return code;
}

static void take_found(struct weir_compared *compared, const struct weir_diagnosis *found)
{
    compared->bound = found->bound;
    snprintf(compared->cause, sizeof compared->cause, "%s",
             found->n_causes > 0 ? weir_cause_name(found->subject, found->causes[0].cause) : "");
}

static int take_verdict(struct weir_compared *compared, const struct weir_log_record *record)
{
    const struct weir_report_machine *machine = &record->report.prof.machine;
    if (record->report.prof.n_rows == 0)
        return 0;
    if (machine->used) {
        compared->others_cores = machine->others_cores;
        compared->cores = machine->cores;
    }
    if (record->watch) {
        struct weir_job_verdict *verdict = calloc(1, sizeof *verdict);
        if (!verdict)
            return -ENOMEM;
        weir_job_judge(verdict, record->watch);
        take_found(compared, &verdict->found);
        free(verdict);
        return 0;
    }
    struct weir_verdict verdict;
    weir_verdict_make(&verdict, &record->report, NULL);
    take_found(compared, &verdict.found);
    return 0;
}

static int add_record(struct weir_compared *compared, struct run_part *run, const struct weir_log_record *record)
{
    switch (record->type) {
    case WEIR_LOG_RUN:
        return end_run(compared, run) < 0 ? -ENOMEM : weir_log_settings(record, put_setting, compared);
    case WEIR_LOG_EPOCH:
        return record->epoch.interrupted
                   ? 0
                   : add_whole(compared, record->epoch.images_per_s, record->epoch.data_wait_fraction);
    case WEIR_LOG_MEASURED:
        compared->unit = "run";
        return record->measured.seconds > 0
                   ? add_whole(compared, record->measured.images_per_s, record->measured.data_wait_fraction)
                   : 0;
    case WEIR_LOG_STAGES: {
        int code = add_table(compared, run, record);
        keep_rate(run, &record->report.steps);
        if (record->watch) {
            compared->what = "a log of weir.watch";
            compared->family = "watch";
            compared->whole_name = "items/s";
        }
        return code == 0 ? take_verdict(compared, record) : code;
    }
    default:
        return 0;
    }
}

int weir_compared_records(struct weir_compared *compared, struct weir_lines *lines, struct weir_err *err)
{
    struct weir_log_record record = {0};
    struct weir_err why = WEIR_ERR_NONE;
    struct run_part *run = calloc(1, sizeof *run);
    int code = run ? 0 : -ENOMEM;
    bool whatif = false;
    compared->what = "a log of weir run";
    compared->family = "run";
    compared->unit = "epoch";
    compared->whole_name = "images/s";
    compared->more_is_better = true;
    while (code >= 0 && (code = weir_log_next(lines, &record, &why)) == WEIR_LOG_RECORD) {
        whatif |= record.type == WEIR_LOG_WHATIF;
        if (add_record(compared, run, &record) < 0)
            code = -ENOMEM;
    }
    compared->cut = code == WEIR_LOG_CUT;
    if (code >= 0 && end_run(compared, run) < 0)
        code = -ENOMEM;
    free(run);
    weir_log_record_clear(&record);
    if (code < 0 && code != -ENOMEM)
        return weir_err_set(err, code, "%s: %s", compared->path, why.text);
    if (code >= 0 && whatif && compared->whole.n == 0)
        return weir_err_set(err, -EINVAL,
                            "%s is a log of weir whatif, which compares its runs itself; weir report "
                            "prints it",
                            compared->path);
    return code < 0 ? code : 0;
}
