/* Training logs: the classic stage tables and epoch lines, and the lines of well-known training programs. */
#include "analyze/compare/compared_priv.h"
#include "analyze/logs/log_plain.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void drop_first(struct weir_compared *compared)
{
    weir_series_drop_first(&compared->whole, 0);
    weir_series_drop_first(&compared->wait, 0);
    for (int i = 0; i < compared->n_stages; i++)
        weir_series_drop_first(&compared->stages[i].seconds, 0);
}

/* ---- training programs ---- */

/* Adds the parts of a step, the step and its wait. */
static int add_steps(struct weir_compared *compared, const struct weir_trainer *trainer,
                     const struct weir_trainer_row *row)
{
    double wait_s = weir_trainer_sum(trainer, row, WEIR_TRAINER_WAIT),
           step_s = weir_trainer_sum(trainer, row, WEIR_TRAINER_STEP);
    int code = 0;
    if (isnan(step_s))
        step_s = wait_s + weir_trainer_sum(trainer, row, WEIR_TRAINER_WORK);
    for (int i = 0; i < WEIR_TRAINER_COLUMNS && trainer->columns[i].name && code == 0; i++)
        if (trainer->columns[i].role == WEIR_TRAINER_WAIT || trainer->columns[i].role == WEIR_TRAINER_WORK)
            if (!isnan(row->values[i]))
                code = weir_compared_stage(compared, trainer->columns[i].name, row->values[i]);
    if (code == 0 && !trainer->mean_since_start)
        code = weir_series_add(&compared->whole, step_s);
    if (code == 0 && !trainer->mean_since_start && step_s > 0)
        code = weir_series_add(&compared->wait, wait_s / step_s);
    return code;
}

/* Adds the figure of a program that prints no parts of a step: its rate, or the time of its epochs. */
static int add_figure(struct weir_compared *compared, const struct weir_trainer *trainer,
                      const struct weir_trainer_row *row)
{
    static const struct {
        const char *column, *name;
        bool more_is_better;
    } figures[] = {
        {"steps_per_s", "steps/s", true}, {"train_steps_per_second", "steps/s", true}, {"epoch_s", "epoch", false}};
    for (int i = 0; i < WEIR_TRAINER_COLUMNS && trainer->columns[i].name; i++)
        for (size_t f = 0; f < sizeof figures / sizeof *figures; f++)
            if (strcmp(trainer->columns[i].name, figures[f].column) == 0 && !isnan(row->values[i])) {
                compared->whole_name = figures[f].name;
                compared->more_is_better = figures[f].more_is_better;
                return weir_series_add(&compared->whole, row->values[i]);
            }
    return 0;
}

static int add_trainer_row(struct weir_compared *compared, const struct weir_trainer *trainer,
                           const struct weir_trainer_row *row)
{
    double total_s, calls;
    if (trainer->stage) {
        compared->per = "call";
        bool found = trainer->stage(row, &total_s, &calls) && calls > 0;
        return found ? weir_compared_stage(compared, row->label, total_s / calls) : 0;
    }
    int code = add_steps(compared, trainer, row);
    return code == 0 ? add_figure(compared, trainer, row) : code;
}

static int add_trainer(struct weir_compared *compared, const struct weir_trainer_log *log)
{
    const struct weir_trainer *trainer = log->trainer;
    struct weir_trainer_wait wait;
    int code = 0;
    compared->what = trainer->title;
    compared->family = trainer->name;
    compared->unit = "line";
    compared->per = "step";
    compared->whole_name = "step";
    weir_trainer_wait_find(log, &wait);
    for (size_t i = 0; i < log->n_rows && code == 0; i++)
        code = add_trainer_row(compared, trainer, &log->rows[i]);
    if (trainer->series)
        drop_first(compared);
    if (code == 0 && wait.recorded && compared->whole.n == 0)
        code = weir_series_add(&compared->whole, wait.step_s);
    if (code == 0 && wait.recorded && compared->wait.n == 0)
        code = weir_series_add(&compared->wait, wait.fraction);
    if (wait.recorded && weir_data_bound(wait.least) == weir_data_bound(wait.most))
        compared->bound = weir_data_bound(wait.fraction);
    return code;
}

/* ---- stage tables and epoch lines ---- */

/* Adds the mean time of a stage's calls in a table, or of the calls since the table before if totals accumulate. */
static int add_cell(struct weir_compared *compared, const struct weir_totals *totals, size_t table, size_t cell,
                    bool cumulative)
{
    const struct weir_totals_cell *now = &totals->cells[cell];
    double total_s = now->total_s, count = (double)now->count;
    const struct weir_totals_table *before = cumulative && table > 0 ? &totals->tables[table - 1] : NULL;
    for (size_t i = 0; before && i < before->n_cells; i++) {
        const struct weir_totals_cell *then = &totals->cells[before->first_cell + i];
        if (then->stage == now->stage) {
            total_s -= then->total_s;
            count -= (double)then->count;
        }
    }
    return count > 0 && total_s >= 0 ? weir_compared_stage(compared, totals->names[now->stage], total_s / count) : 0;
}

static int add_tables(struct weir_compared *compared, const struct weir_plain_log *log)
{
    const struct weir_totals *totals = &log->totals;
    bool cumulative = weir_plain_cumulative(log), periodic = false;
    int code = 0;
    for (size_t t = 0; t < totals->n_tables; t++)
        periodic |= !totals->tables[t].final;
    for (size_t t = 0; t < totals->n_tables; t++) {
        const struct weir_totals_table *table = &totals->tables[t];
        if (table->final && periodic && !cumulative)
            continue;
        for (size_t i = 0; i < table->n_cells && code == 0; i++)
            code = add_cell(compared, totals, t, table->first_cell + i, cumulative);
    }
    return code;
}

static int add_plain(struct weir_compared *compared, const struct weir_plain_log *log)
{
    compared->what = "a log with stage tables or epoch lines";
    compared->family = "tables";
    compared->unit = "epoch";
    compared->per = "call";
    compared->whole_name = "epoch";
    int code = add_tables(compared, log);
    for (size_t i = 0; i < log->n_epochs && code == 0; i++)
        if (log->epochs[i].total_s >= 0)
            code = weir_series_add(&compared->whole, log->epochs[i].total_s);
    double wait = weir_plain_wait(log);
    if (code == 0 && wait >= 0)
        code = weir_series_add(&compared->wait, wait);
    compared->bound = wait >= 0 ? weir_data_bound(wait) : WEIR_BOUND_UNKNOWN;
    drop_first(compared);
    return code;
}

int weir_compared_plain(struct weir_compared *compared, struct weir_lines *lines, struct weir_err *err)
{
    struct weir_plain_log log;
    int code = weir_plain_open(&log);
    if (code < 0)
        return code;
    code = weir_plain_read(&log, lines);
    const struct weir_trainer_log *trainer = weir_trainers_found(&log.trainers);
    if (code < 0 && code != -ENOMEM)
        code = weir_err_set(err, code, "%s: line %llu: %s", compared->path, (unsigned long long)lines->number,
                            strerror(-code));
    else if (code == 0 && !weir_plain_found(&log))
        code = weir_err_set(err, -ENODATA,
                            "%s is neither a trace nor a log with measurements (%llu line%s); weir compare reads what "
                            "weir report reads, and results of --json",
                            compared->path, (unsigned long long)lines->number, lines->number == 1 ? "" : "s");
    else if (code == 0)
        code = log.totals.n_tables > 0 || log.n_epochs > 0 || !trainer ? add_plain(compared, &log)
                                                                       : add_trainer(compared, trainer);
    weir_plain_close(&log);
    return code;
}
