/* Combines the tables of a plain log: parts of a sample's time, parts of the loop's time, and the data wait. */
#include "analyze/logs/log_plain.h"
#include "analyze/verdict/verdict.h"
#include "base/terminal.h"
#include "base/text.h"
#include "weir/stages.h"

#include <math.h>
#include <string.h>

struct part {
    const char *name;
    double total_s;
    bool work; /* the stage contains no other stage */
};

struct parts {
    int n;
    struct part parts[WEIR_LOADER_STAGES];
    double whole_s; /* 0 = unknown */
};

struct summary {
    struct parts sample, loop;
    bool by_epochs;      /* loop.whole_s comes from the epochs' times; otherwise it is the sum of the loop's stages */
    double wait;         /* fraction of the loop's time spent waiting for data; -1 = unknown */
    double wait_at_most; /* upper limit of `wait`, used if it is unknown; -1 = also unknown */
    double decode;       /* fraction of a sample's time spent decoding; -1 = the log has no such stage */
    enum weir_data_bound bound;
};

/* ---- the figures ---- */

/* Excludes copies to the GPU, because scripts time them inside the forward pass, and Weir times them with the GPU's
 * clock. */
static bool in_loop(const struct weir_stage_info *info)
{
    return info->consumer && strcmp(info->name, "08") > 0;
}

static bool in_sample(const struct weir_stage_info *info)
{
    return !info->consumer && info->kind != WEIR_KIND_WAIT && info->kind != WEIR_KIND_LOOP;
}

static const struct part *find(const struct parts *parts, const char *name)
{
    for (int i = 0; i < parts->n; i++)
        if (strcmp(parts->parts[i].name, name) == 0)
            return &parts->parts[i];
    return NULL;
}

static double total_of(const struct parts *parts, const char *name)
{
    const struct part *part = find(parts, name);
    return part ? part->total_s : 0;
}

/* Collects the stages, sorted by stage number instead of their order in the log. Skips the spans in Weir's own tables:
 * samples overlap there, so spans do not show the workers' time. */
static void gather(struct summary *summary, const struct weir_plain_log *log, const double *total_s)
{
    const struct weir_totals *totals = &log->totals;
    for (int number = 0; number < weir_stage_count(); number++) {
        const struct weir_stage_info *info = weir_stage_info(number);
        if (!info || !(in_loop(info) || in_sample(info)))
            continue;
        if (log->periodic && in_sample(info) && info->kind != WEIR_KIND_WORK)
            continue;
        struct parts *to = info->consumer ? &summary->loop : &summary->sample;
        for (int i = 0; i < totals->n_stages && to->n < WEIR_LOADER_STAGES; i++)
            if (strcmp(totals->names[i], info->name) == 0)
                to->parts[to->n++] = (struct part){info->name, total_s[i], info->kind == WEIR_KIND_WORK};
    }
}

static double sum(const struct parts *parts)
{
    double sum_s = 0;
    for (int i = 0; i < parts->n; i++)
        sum_s += parts->parts[i].total_s;
    return sum_s;
}

/* Returns the time of a sample. In a script's log, this is the time of __getitem__ or the sum of its parts; in Weir's
 * log, it is the workers' time. */
static double sample_s(const struct summary *summary, bool of_weir)
{
    const struct parts *sample = &summary->sample;
    double images_s = total_of(sample, "03_read_images_total");
    double inside_s = fmax(total_of(sample, "03a_read_one_camera"), total_of(sample, "03b_image_decode"));
    if (of_weir)
        return sum(sample);
    double parts_s = fmax(images_s, inside_s) + total_of(sample, "01_file_cache") + total_of(sample, "02_read_qpos") +
                     total_of(sample, "04_read_actions") + total_of(sample, "05_to_tensor_normalize");
    return fmax(total_of(sample, "00_TOTAL_getitem"), parts_s);
}

/* Returns the time of the epochs that the tables cover. */
static double epochs_s(const struct weir_plain_log *log)
{
    double sum_s = 0;
    const struct weir_totals_table *last = &log->totals.tables[log->totals.n_tables - 1];
    for (size_t i = 0; i < log->n_epochs; i++) {
        const struct weir_plain_epoch *epoch = &log->epochs[i];
        if (last->final || epoch->line < last->line)
            sum_s += epoch->total_s >= 0 ? epoch->total_s : fmax(epoch->train_s, 0) + fmax(epoch->val_s, 0);
    }
    return sum_s;
}

static void fill_wait(struct summary *summary, const struct weir_plain_log *log)
{
    const struct part *wait = find(&summary->loop, "08_wait_for_data");
    double stages_s = sum(&summary->loop), log_s = epochs_s(log);
    summary->by_epochs = log_s > 0 && log_s >= 0.99 * stages_s;
    summary->loop.whole_s = summary->by_epochs ? fmax(log_s, stages_s) : stages_s;
    summary->wait = summary->wait_at_most = -1;
    bool whole = summary->loop.whole_s > 0 && (summary->by_epochs || (wait && summary->loop.n > 1));
    if (whole && wait)
        summary->wait = wait->total_s / summary->loop.whole_s;
    else if (whole && summary->loop.n > 0)
        summary->wait_at_most = 1 - stages_s / summary->loop.whole_s;
    if (summary->wait >= 0)
        summary->bound = weir_data_bound(summary->wait);
    else if (summary->wait_at_most >= 0 && weir_data_bound(summary->wait_at_most) == WEIR_BOUND_NO)
        summary->bound = WEIR_BOUND_NO;
}

static void summarise(struct summary *summary, const struct weir_plain_log *log, bool cumulative)
{
    double total_s[WEIR_TOTALS_STAGES_MAX];
    *summary = (struct summary){.wait = -1, .wait_at_most = -1, .decode = -1};
    weir_totals_whole(&log->totals, cumulative, total_s);
    if (weir_loader_stages() == 0)
        gather(summary, log, total_s);
    summary->sample.whole_s = sample_s(summary, log->periodic);
    const struct part *decode = find(&summary->sample, "03b_image_decode");
    if (decode && summary->sample.whole_s > 0)
        summary->decode = decode->total_s / summary->sample.whole_s;
    fill_wait(summary, log);
}

/* Returns the largest stage that contains no other stage, or NULL if no stage was called. */
static const struct part *largest(const struct parts *parts)
{
    const struct part *most = NULL;
    for (int i = 0; i < parts->n; i++)
        if (parts->parts[i].work && parts->parts[i].total_s > (most ? most->total_s : 0))
            most = &parts->parts[i];
    return most;
}

/* ---- printing ---- */

static void print_part(FILE *out, const char *name, double total_s, double whole_s, int decimals)
{
    enum { NAME_WIDTH = 22 }; /* width of the loader's longest stage name */
    char total[40];
    snprintf(total, sizeof total, "%.*fs", decimals, total_s);
    fprintf(out, "%s%*s %11s %6.1f %%\n", name, NAME_WIDTH - weir_text_width(name), "", total, 100 * total_s / whole_s);
}

static void print_parts(FILE *out, const struct parts *parts, bool with_rest, int decimals)
{
    for (int i = 0; i < parts->n; i++)
        print_part(out, parts->parts[i].name, parts->parts[i].total_s, parts->whole_s, decimals);
    if (with_rest)
        print_part(out, "unattributed", parts->whole_s - sum(parts), parts->whole_s, decimals);
}

static void print_shares(FILE *out, const struct summary *summary, const struct weir_plain_log *log)
{
    int decimals = log->totals.decimals;
    const struct parts *sample = &summary->sample, *loop = &summary->loop;
    if (sample->whole_s > 0) {
        if (log->periodic)
            fprintf(out, "\nshares of the workers' work, %.*fs in total (samples overlap):\n", decimals,
                    sample->whole_s);
        else
            fprintf(out, "\nshares of a sample's time, %.*fs in total (a stage includes the stages inside it):\n",
                    decimals, sample->whole_s);
        print_parts(out, sample, false, decimals);
    }
    if (loop->n > 0 && loop->whole_s > 0) {
        fprintf(out, "\nshares of the loop's time, %.*fs in total, %s:\n", decimals, loop->whole_s,
                summary->by_epochs ? "from the epoch lines" : "the sum of its stages");
        print_parts(out, loop, summary->by_epochs, decimals);
    }
}

static void print_doubt(FILE *out, const struct summary *summary)
{
    fputs("verdict: Cannot tell whether training waits for data: ", out);
    if (find(&summary->loop, "08_wait_for_data"))
        fputs("the log has neither epoch lines nor other stages of the loop to compare 08_wait_for_data with; time the "
              "step's stages too.\n",
              out);
    else if (summary->wait_at_most >= 0)
        fprintf(out,
                "the log has no stage 08_wait_for_data, and the loop's other stages leave %.0f %% of the epochs' time "
                "for it; time the loader's next() as that stage.\n",
                100 * summary->wait_at_most);
    else
        fputs("the log has no stage 08_wait_for_data; time the loader's next() as that stage.\n", out);
}

static void print_verdict(FILE *out, const struct summary *summary)
{
    if (summary->bound == WEIR_BOUND_UNKNOWN) {
        print_doubt(out, summary);
        return;
    }
    bool at_most = summary->wait < 0;
    weir_verdict_lead_print(out, summary->bound, at_most ? summary->wait_at_most : summary->wait, at_most, false,
                            "time");
    const struct parts *parts = summary->bound == WEIR_BOUND_NO ? &summary->loop : &summary->sample;
    const struct part *most = largest(parts);
    const char *whole = parts == &summary->loop ? "the loop's time" : "a sample's time";
    if (most && parts->whole_s > 0)
        fprintf(out, "The largest part of %s is %s, %.0f %%.", whole, most->name, 100 * most->total_s / parts->whole_s);
    putc('\n', out);
}

void weir_plain_verdict_print(FILE *out, const struct weir_plain_log *log, bool cumulative)
{
    struct summary summary;
    struct weir_wrap wrap;
    summarise(&summary, log, cumulative);
    print_verdict(weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL), &summary);
    wrap.highlight = true;
    weir_wrap_close(&wrap);
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    if (summary.decode >= 0)
        weir_decode_rule_print(text, summary.decode, summary.bound);
    else
        fputs("  the 40 % rule needs the stage 03b_image_decode\n", text);
    fputs("  such a log does not show CPU time, percentiles, waits for storage or for a core, individual files or "
          "cameras; `weir run DATA --log FILE` records them\n",
          text);
    weir_wrap_close(&wrap);
}

void weir_plain_shares_print(FILE *out, const struct weir_plain_log *log, bool cumulative)
{
    struct summary summary;
    summarise(&summary, log, cumulative);
    print_shares(out, &summary, log);
}

/* ---- JSON ---- */

static void json_parts(struct weir_json *json, const char *key, const struct parts *parts)
{
    weir_json_object(json, key);
    weir_json_double(json, "whole_s", parts->whole_s);
    weir_json_array(json, "stages");
    for (int i = 0; i < parts->n; i++) {
        weir_json_object(json, NULL);
        weir_json_text(json, "name", parts->parts[i].name);
        weir_json_double(json, "total_s", parts->parts[i].total_s);
        weir_json_known(json, "share", parts->whole_s > 0 ? parts->parts[i].total_s / parts->whole_s : -1);
        weir_json_end(json, '}');
    }
    weir_json_end(json, ']');
    weir_json_end(json, '}');
}

void weir_plain_verdict_json(struct weir_json *json, const struct weir_plain_log *log, bool cumulative)
{
    struct summary summary;
    summarise(&summary, log, cumulative);
    weir_json_object(json, "verdict");
    weir_json_text(json, "data_bound", weir_data_bound_name(summary.bound));
    weir_json_known(json, "data_wait_fraction", summary.wait);
    weir_json_known(json, "data_wait_at_most", summary.wait_at_most);
    weir_json_known(json, "decode_share", summary.decode);
    weir_json_bool(json, "decode_rule", summary.decode > WEIR_VERDICT_DECODE_RULE);
    weir_json_bool(json, "loop_by_epochs", summary.by_epochs);
    json_parts(json, "sample", &summary.sample);
    json_parts(json, "loop", &summary.loop);
    weir_json_end(json, '}');
}

double weir_plain_wait(const struct weir_plain_log *log, bool cumulative)
{
    struct summary summary;
    if (log->totals.n_tables == 0)
        return -1;
    summarise(&summary, log, cumulative);
    return summary.wait;
}
