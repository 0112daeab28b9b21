/* Combines the tables of a plain log: parts of a sample's time, parts of the loop's time, and the data wait. */
#include "analyze/causes/thresholds.h"
#include "analyze/logs/log_plain.h"
#include "analyze/verdict/stage_advice.h"
#include "base/field_rows.h"
#include "base/terminal.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

struct part {
    const char *name;
    double total_s;
    uint64_t count;
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
    struct weir_diagnosis found;
    double load_s, steps_s; /* loading in all workers together; the loop's stages without the wait */
    double collate_s;       /* of a script, which collates after __getitem__ */
    uint64_t steps;         /* training steps; 0 = not timed */
    struct weir_stage_times times;
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
static void gather(struct summary *summary, const struct weir_plain_log *log, const struct weir_totals_whole *whole)
{
    const struct weir_totals *totals = &log->totals;
    for (int number = 0; number < weir_stage_count(); number++) {
        const struct weir_stage_info *info = weir_stage_info(number);
        if (!info || !(in_loop(info) || in_sample(info)))
            continue;
        if (log->periodic && in_sample(info) && info->kind != WEIR_KIND_WORK)
            continue;
        struct parts *to = info->consumer ? &summary->loop : &summary->sample;
        for (int i = 0; i < totals->n_stages && to->n < WEIR_LOADER_STAGES; i++) {
            if (strcmp(totals->names[i], info->name) != 0)
                continue;
            if (number == WEIR_STAGE_COLLATE && !log->periodic)
                summary->collate_s = whole->total_s[i];
            else
                to->parts[to->n++] =
                    (struct part){info->name, whole->total_s[i], whole->count[i], info->kind == WEIR_KIND_WORK};
        }
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
    summary->found.at_most = summary->wait < 0;
    summary->found.wait = summary->wait < 0 ? summary->wait_at_most : summary->wait;
    if (summary->wait >= 0 || (summary->wait_at_most >= 0 && weir_data_bound(summary->wait_at_most) == WEIR_BOUND_NO))
        summary->found.bound = weir_data_bound(summary->found.wait);
}

/* Returns the loop's largest part that gets no advice. */
static double other_s(const struct parts *loop)
{
    static const char *const advised[] = {"08_wait_for_data", "20_train_forward_pass", "21_backward"};
    double most_s = 0;
    for (int i = 0; i < loop->n; i++) {
        bool is_advised = false;
        for (size_t k = 0; k < sizeof advised / sizeof *advised; k++)
            is_advised |= strcmp(loop->parts[i].name, advised[k]) == 0;
        most_s = is_advised ? most_s : fmax(most_s, loop->parts[i].total_s);
    }
    return most_s;
}

/* Whether there are too few training steps for advice, because the first ones contain what happens once. */
static bool is_short(const struct summary *summary)
{
    return summary->steps > 0 && summary->steps < WEIR_VERDICT_BATCHES_LONG;
}

/* Compares the loop's stages with the time that loading takes of the loop. Workers load in parallel, so without the
 * wait that time is at most the epochs' time in no stage, or the loading itself, as with num_workers=0. */
static void fill_times(struct summary *summary, const struct weir_plain_log *log)
{
    const struct parts *loop = &summary->loop;
    struct weir_stage_times *times = &summary->times;
    bool of_weir = log->periodic;
    bool trains = find(loop, "21_backward") || !of_weir; /* weir run only simulates a step */
    double rest_s = loop->whole_s - sum(loop), wait_s = total_of(loop, "08_wait_for_data");
    summary->steps_s = sum(loop) - wait_s;
    summary->load_s = summary->sample.whole_s + summary->collate_s;
    *times = (struct weir_stage_times){.bound = summary->found.bound,
                                       .step = of_weir && !log->of_script ? WEIR_SUBJECT_LOADER : WEIR_SUBJECT_JOB,
                                       .loader = of_weir ? WEIR_SUBJECT_LOADER : WEIR_SUBJECT_JOB,
                                       .sample_s = summary->sample.whole_s,
                                       .decode_s = summary->decode < 0 ? -1 : summary->decode * summary->sample.whole_s,
                                       .forward_s = trains ? total_of(loop, "20_train_forward_pass") : 0,
                                       .backward_s = total_of(loop, "21_backward"),
                                       .other_s = other_s(loop)};
    const struct part *forward = find(loop, "20_train_forward_pass"), *backward = find(loop, "21_backward");
    summary->steps = forward ? forward->count : backward ? backward->count : 0;
    if (summary->steps_s <= 0 || is_short(summary))
        return;
    if (summary->wait >= 0) {
        times->data_s = wait_s;
        times->data = "08_wait_for_data";
    } else {
        bool is_rest = summary->by_epochs && (rest_s < summary->load_s || summary->load_s <= 0);
        times->data_s = is_rest ? rest_s : summary->load_s;
        times->data = is_rest ? "the epochs' time in no stage" : summary->collate_s > 0 ? "01 to 06" : "01 to 05";
        times->data_at_most = summary->by_epochs;
    }
    bool whole = summary->wait >= 0 || summary->by_epochs;
    times->whole_s = whole ? loop->whole_s : summary->steps_s + summary->load_s;
    times->whole = whole ? "the loop's time" : "all timed stages";
    if (summary->by_epochs)
        times->other_s = fmax(times->other_s, rest_s - (summary->wait >= 0 ? 0 : times->data_s));
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

/* Names the stage that takes longest, or what the log lacks. */
static void remark(struct summary *summary)
{
    char *text = summary->found.remark;
    size_t size = sizeof summary->found.remark;
    bool not_bound = summary->found.bound == WEIR_BOUND_NO;
    const struct parts *parts = not_bound ? &summary->loop : &summary->sample;
    const struct part *most = largest(parts);
    if (summary->found.bound != WEIR_BOUND_UNKNOWN && most && parts->whole_s > 0)
        snprintf(text, size, "The largest part of %s is %s, %.0f %%.",
                 not_bound ? "the loop's time" : "a sample's time", most->name, 100 * most->total_s / parts->whole_s);
    else if (summary->found.bound != WEIR_BOUND_UNKNOWN)
        return;
    else if (find(&summary->loop, "08_wait_for_data"))
        snprintf(text, size,
                 "Cannot tell whether training waits for data: the log has neither epoch lines nor other stages of the "
                 "loop to compare "
                 "08_wait_for_data with; time the step's stages too.");
    else if (summary->wait_at_most >= 0)
        snprintf(text, size,
                 "Cannot tell whether training waits for data: the log has no stage 08_wait_for_data, and the loop's "
                 "other stages leave %.0f %% of "
                 "the epochs' time for it; time the loader's next() as that stage.",
                 100 * summary->wait_at_most);
    else
        snprintf(text, size,
                 "Cannot tell whether training waits for data: the log has no stage 08_wait_for_data; time the "
                 "loader's next() as that stage.");
}

static void summarise(struct summary *summary, const struct weir_plain_log *log)
{
    struct weir_totals_whole whole;
    *summary = (struct summary){.wait = -1, .wait_at_most = -1, .decode = -1};
    weir_totals_whole(&log->totals, weir_plain_cumulative(log), &whole);
    if (weir_loader_stages() == 0)
        gather(summary, log, &whole);
    summary->sample.whole_s = sample_s(summary, log->periodic);
    const struct part *decode = find(&summary->sample, "03b_image_decode");
    if (decode && summary->sample.whole_s > 0)
        summary->decode = decode->total_s / summary->sample.whole_s;
    fill_wait(summary, log);
    fill_times(summary, log);
    remark(summary);
}

/* ---- tables of shares ---- */

static void add_share(struct weir_plain_shares *table, const char *name, double total_s, double whole_s,
                      const char *example)
{
    table->rows[table->n++] = (struct weir_plain_share){name, total_s, whole_s > 0 ? total_s / whole_s : -1, example};
}

static void add_parts(struct weir_plain_shares *table, const struct parts *parts, bool with_rest)
{
    table->n = 0;
    for (int i = 0; i < parts->n; i++)
        add_share(table, parts->parts[i].name, parts->parts[i].total_s, parts->whole_s, NULL);
    if (with_rest)
        add_share(table, "unattributed", parts->whole_s - sum(parts), parts->whole_s, NULL);
}

/* Compares a script's stages, each counted once, with the shares that the guide to this table publishes. Weir's own
 * loader and policy are others, and a log without the main stages has no comparable shares. Returns whether the table
 * was filled in. */
static bool add_example(struct weir_plain_shares *table, const struct summary *summary,
                        const struct weir_plain_log *log)
{
    const struct parts *sample = &summary->sample, *loop = &summary->loop;
    double whole_s = summary->load_s + summary->steps_s, decode_s = total_of(sample, "03b_image_decode");
    double forward_s = total_of(loop, "20_train_forward_pass"), backward_s = total_of(loop, "21_backward");
    double images_s = fmax(total_of(sample, "03_read_images_total"), total_of(sample, "03a_read_one_camera"));
    double read_s = fmax(images_s - decode_s, 0) + total_of(sample, "01_file_cache") +
                    total_of(sample, "02_read_qpos") + total_of(sample, "04_read_actions");
    if (log->periodic || decode_s <= 0 || forward_s <= 0 || backward_s <= 0)
        return false;
    snprintf(table->title, sizeof table->title,
             "shares of all timed stages, %.*fs in total, and one published example (4 cameras, batch_size 4, "
             "chunk_size 20)",
             log->totals.decimals, whole_s);
    table->n = 0;
    add_share(table, "image decoding", decode_s, whole_s, "40-50 %");
    add_share(table, "forward pass", forward_s, whole_s, "20-30 %");
    add_share(table, "backward pass", backward_s, whole_s, "15-25 %");
    add_share(table, "reading data", read_s, whole_s, "5-10 %");
    add_share(table, "other", fmax(whole_s - decode_s - forward_s - backward_s - read_s, 0), whole_s, "5-10 %");
    return true;
}

static int fill_shares(struct weir_plain_shares tables[WEIR_PLAIN_SHARES], const struct summary *summary,
                       const struct weir_plain_log *log)
{
    const struct parts *sample = &summary->sample, *loop = &summary->loop;
    int n = 0, decimals = log->totals.decimals;
    if (sample->whole_s > 0) {
        snprintf(tables[n].title, sizeof tables[n].title,
                 log->periodic ? "shares of the workers' work, %.*fs in total (samples overlap)"
                               : "shares of a sample's time, %.*fs in total (a stage includes the stages inside it)",
                 decimals, sample->whole_s);
        add_parts(&tables[n++], sample, false);
    }
    if (loop->n > 0 && loop->whole_s > 0) {
        snprintf(tables[n].title, sizeof tables[n].title, "shares of the loop's time, %.*fs in total, %s", decimals,
                 loop->whole_s, summary->by_epochs ? "from the epoch lines" : "the sum of its stages");
        add_parts(&tables[n++], loop, summary->by_epochs);
    }
    return n + add_example(&tables[n], summary, log);
}

int weir_plain_shares(const struct weir_plain_log *log, struct weir_plain_shares tables[WEIR_PLAIN_SHARES])
{
    struct summary summary;
    if (log->totals.n_tables == 0)
        return 0;
    summarise(&summary, log);
    return fill_shares(tables, &summary, log);
}

/* ---- printing ---- */

void weir_plain_shares_print(FILE *out, const struct weir_plain_log *log)
{
    enum { NAME_WIDTH = 22 }; /* width of the loader's longest stage name */
    struct weir_plain_shares tables[WEIR_PLAIN_SHARES];
    int n = weir_plain_shares(log, tables);
    for (int i = 0; i < n; i++) {
        struct weir_wrap wrap;
        fputc('\n', out);
        fprintf(weir_wrap_open(&wrap, out, 2, NULL), "%s:\n", tables[i].title);
        weir_wrap_close(&wrap);
        for (int k = 0; k < tables[i].n; k++) {
            const struct weir_plain_share *row = &tables[i].rows[k];
            char total[40];
            snprintf(total, sizeof total, "%.*fs", log->totals.decimals, row->total_s);
            fprintf(out, "%s%*s %11s %6.1f %%", row->name, NAME_WIDTH - weir_text_width(row->name), "", total,
                    100 * row->share);
            if (row->example)
                fprintf(out, "  example %7s", row->example);
            fputc('\n', out);
        }
    }
}

/* Returns the number of workers from which loading could keep up with the loop; 0 = the log does not show it. */
static int workers_least(const struct summary *summary)
{
    bool is_open = summary->wait < 0 && summary->found.bound != WEIR_BOUND_NO && !is_short(summary);
    double least = summary->steps_s > 0 ? ceil(summary->load_s / summary->steps_s) : 0;
    return is_open && least <= 1e6 ? (int)least : 0;
}

/* Says what the stages of loading allow, because workers load in parallel with the loop. If the epochs leave less time
 * than loading took, the epoch lines may also cover other steps than the tables. */
static void print_workers(FILE *out, const struct summary *summary)
{
    const struct weir_stage_times *times = &summary->times;
    int least = workers_least(summary);
    if (least == 0)
        return;
    fprintf(out, "  workers: loading took %.2fs in all processes together, the loop's timed stages %.2fs; ",
            summary->load_s, summary->steps_s);
    if (summary->by_epochs && summary->load_s > summary->loop.whole_s)
        fprintf(out, "the epochs took %.2fs, so workers load in parallel; ", summary->loop.whole_s);
    else if (times->data_s < summary->load_s)
        fputs("the log does not show num_workers; ", out);
    else
        fprintf(out,
                "the log does not show num_workers: with 0, training waits for all of the loading, %.0f %% of the "
                "time; ",
                100 * times->data_s / times->whole_s);
    fprintf(out, "from num_workers=%d on, loading could keep up\n", least);
}

static void print_rest(FILE *out, const void *user)
{
    const struct summary *summary = user;
    print_workers(out, summary);
    weir_stage_advice_print(out, &summary->times);
    if (summary->times.step == WEIR_SUBJECT_JOB && summary->times.whole_s > 0)
        fputs("  if its timers do not call torch.cuda.synchronize(), a GPU's work is in the stage that waits for it\n",
              out);
    if (is_short(summary))
        fprintf(out, "  too few training steps for advice on stages: %d (it needs %d)\n", (int)summary->steps,
                WEIR_VERDICT_BATCHES_LONG);
    if (summary->decode < 0)
        fputs("  the 40 % rule needs the stage 03b_image_decode\n", out);
    fputs("  such a log does not show CPU time, percentiles, waits for storage or for a core, individual files or "
          "cameras; `weir run DATA --log FILE` records them\n",
          out);
}

void weir_plain_verdict_print(FILE *out, const struct weir_plain_log *log)
{
    struct summary summary;
    summarise(&summary, log);
    weir_diagnosis_print(out, &summary.found, print_rest, &summary);
}

void weir_plain_verdict_lines(FILE *out, const struct weir_plain_log *log)
{
    struct summary summary;
    summarise(&summary, log);
    weir_diagnosis_lines(out, &summary.found, print_rest, &summary);
}

/* ---- JSON ---- */

#define S struct weir_plain_share
static const struct weir_field share_rows[] = {
    PLAIN("name", name),
    PLAIN("total_s", total_s),
    KNOWN("share", share),
    PLAIN("example", example),
};
static WEIR_FIELDS(example_fields, share_rows);
static const struct weir_fields share_fields = {share_rows, 3};
#undef S

static void json_parts(struct weir_json *json, const char *key, const struct parts *parts)
{
    struct weir_plain_shares table;
    add_parts(&table, parts, false);
    weir_json_object(json, key);
    weir_json_double(json, "whole_s", parts->whole_s);
    weir_fields_array(json, "stages", &share_fields, table.rows, table.n, sizeof *table.rows);
    weir_json_end(json, '}');
}

static void json_example(struct weir_json *json, const struct summary *summary, const struct weir_plain_log *log)
{
    struct weir_plain_shares table;
    if (!add_example(&table, summary, log)) {
        weir_json_null(json, "published_example");
        return;
    }
    weir_json_object(json, "published_example");
    weir_json_int(json, "cameras", 4);
    weir_json_int(json, "batch_size", 4);
    weir_json_int(json, "chunk_size", 20);
    weir_fields_array(json, "parts", &example_fields, table.rows, table.n, sizeof *table.rows);
    weir_json_end(json, '}');
}

void weir_plain_verdict_json(struct weir_json *json, const struct weir_plain_log *log)
{
    struct summary summary;
    summarise(&summary, log);
    weir_json_object(json, "verdict");
    weir_json_text(json, "data_bound", weir_data_bound_name(summary.found.bound));
    weir_json_known(json, "data_wait_fraction", summary.wait);
    weir_json_known(json, "data_wait_at_most", summary.wait_at_most);
    weir_json_known(json, "decode_share", summary.decode);
    weir_json_bool(json, "decode_rule", summary.decode > WEIR_VERDICT_DECODE_RULE);
    weir_json_bool(json, "loop_by_epochs", summary.by_epochs);
    weir_json_known(json, "workers_least", workers_least(&summary) > 0 ? workers_least(&summary) : -1);
    weir_stage_advice_json(json, &summary.times);
    json_parts(json, "sample", &summary.sample);
    json_parts(json, "loop", &summary.loop);
    json_example(json, &summary, log);
    weir_json_end(json, '}');
}

double weir_plain_wait(const struct weir_plain_log *log)
{
    struct summary summary;
    if (log->totals.n_tables == 0)
        return -1;
    summarise(&summary, log);
    return summary.wait;
}
