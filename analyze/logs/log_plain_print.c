#include "analyze/logs/log_plain.h"

#include "base/text.h"

#include <inttypes.h>

static void epoch_cell(FILE *out, double seconds)
{
    char text[40] = "-";
    if (seconds >= 0)
        snprintf(text, sizeof text, "%.2fs", seconds);
    fprintf(out, " %12s", text);
}

static void heading(FILE *out, const char *text, int width)
{
    fprintf(out, " %*s%s", width - weir_text_width(text), "", text);
}

static void print_epochs(FILE *out, const struct weir_plain_log *log)
{
    static const char *const heads[5] = {"epoch", "total", "train", "val", "line"};
    if (log->n_epochs == 0)
        return;
    putc('\n', out);
    heading(out, heads[0], 11);
    for (int i = 1; i < 4; i++)
        heading(out, heads[i], 12);
    heading(out, heads[4], 9);
    putc('\n', out);
    for (size_t i = 0; i < log->n_epochs; i++) {
        const struct weir_plain_epoch *epoch = &log->epochs[i];
        char name[32];
        if (epoch->epoch_count > 0)
            snprintf(name, sizeof name, "%d/%d", epoch->epoch, epoch->epoch_count);
        else
            snprintf(name, sizeof name, "%d", epoch->epoch);
        fprintf(out, " %11s", name);
        epoch_cell(out, epoch->total_s);
        epoch_cell(out, epoch->train_s);
        epoch_cell(out, epoch->val_s);
        fprintf(out, " %9" PRIu64 "\n", epoch->line);
    }
}

static const char *nature(const struct weir_plain_log *log, bool cumulative)
{
    static const char *const texts[4] = {
        "one table",
        "tables that name the epochs that they cover",
        "tables that look cumulative: each continues the counts of the previous one",
        "tables that do not look cumulative: each seems to start from zero",
    };
    if (log->totals.n_tables == 1)
        return texts[0];
    if (log->periodic)
        return texts[1];
    return texts[cumulative ? 2 : 3];
}

/* Returns the lines of a training program to print, or NULL if the log's own tables show more. */
static const struct weir_trainer_log *trainer_of(const struct weir_plain_log *log)
{
    return log->totals.n_tables > 0 ? NULL : weir_trainers_found(&log->trainers);
}

void weir_plain_print(FILE *out, const struct weir_plain_log *log, enum weir_lang lang)
{
    bool cumulative = weir_plain_cumulative(log);
    const struct weir_trainer_log *trainer = trainer_of(log);
    if (trainer)
        weir_trainer_print(out, trainer, lang);
    if (trainer && log->n_epochs == 0)
        return;
    if (trainer)
        putc('\n', out);
    fprintf(out, "plain training log: %zu tables, %zu epochs\n", log->totals.n_tables, log->n_epochs);
    if (log->totals.n_tables > 0)
        weir_plain_verdict_print(out, log);
    print_epochs(out, log);
    if (log->totals.n_tables == 0)
        return;
    fprintf(out, "\n%s\n", nature(log, cumulative));
    for (size_t i = 0; i < log->totals.n_tables; i++)
        if (!log->totals.tables[i].closed) {
            fputs("* this table has no closing line and may be incomplete\n", out);
            break;
        }
    weir_totals_print(out, &log->totals, cumulative);
    weir_plain_shares_print(out, log);
}

static void json_seconds(struct weir_json *json, const char *key, double seconds)
{
    if (seconds < 0)
        weir_json_null(json, key);
    else
        weir_json_double(json, key, seconds);
}

void weir_plain_json(struct weir_json *json, const struct weir_plain_log *log)
{
    bool cumulative = weir_plain_cumulative(log);
    const struct weir_trainer_log *trainer = trainer_of(log);
    weir_json_text(json, "kind", "plain");
    weir_json_array(json, "epochs");
    for (size_t i = 0; i < log->n_epochs; i++) {
        const struct weir_plain_epoch *epoch = &log->epochs[i];
        weir_json_object(json, NULL);
        weir_json_int(json, "epoch", epoch->epoch);
        if (epoch->epoch_count > 0)
            weir_json_int(json, "epoch_count", epoch->epoch_count);
        else
            weir_json_null(json, "epoch_count");
        json_seconds(json, "total_s", epoch->total_s);
        json_seconds(json, "train_s", epoch->train_s);
        json_seconds(json, "val_s", epoch->val_s);
        weir_json_uint(json, "line", epoch->line);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_json_bool(json, "cumulative", cumulative);
    weir_totals_json(json, &log->totals, cumulative);
    if (log->totals.n_tables > 0)
        weir_plain_verdict_json(json, log);
    else if (trainer)
        weir_trainer_verdict_json(json, trainer);
    else
        weir_json_null(json, "verdict");
    weir_trainer_json(json, trainer);
    weir_json_uint(json, "rows_cut", log->rows_cut);
    weir_json_uint(json, "times_left", log->times_left);
}
