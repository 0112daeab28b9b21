#include "base/document.h"
#include "base/field_rows.h"
#include "base/grow.h"
#include "base/shortage.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/info_print.h"
#include "cli/progress.h"
#include "pipeline/survey.h"
#include "pipeline/verify/verify.h"
#include "weir/base.h"
#include "weir/loader.h"
#include "weir/report.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMED_MAX = 10 };

struct verify_options {
    struct weir_loader_config loader;
    int num_workers;
    bool fast, json, wide;
};

#define FIELD(field) .offset = offsetof(struct verify_options, field)

static const struct weir_opt verify_opts[] = {
    {"num-workers", WEIR_OPT_INT, FIELD(num_workers), "N", "auto", "threads", 1, WEIR_WORKERS_MAX, true,
     .unit = "threads", .details = "auto is one per usable core."},
    {"fast", WEIR_OPT_FLAG, FIELD(fast), NULL, NULL, "check of headers, sizes and frame locations only",
     .details = "Does not decode frames, compare checksums or detect repeated frames."},
    {"json", WEIR_OPT_FLAG, FIELD(json), NULL, NULL, "JSON output, one object"},
    {"wide", WEIR_OPT_FLAG, FIELD(wide), NULL, NULL, "no wrapping", .details = "Pipes and files are never wrapped."},
};

/* Lengths of the episodes of one dataset. */
struct lengths {
    char *path;
    int episodes, differ; /* differ: number of episodes whose length differs from the median */
    struct weir_lengths range;
    int n_named; /* entries in named: the episodes whose lengths differ most from the median */
    struct odd_length {
        char *episode;
        int steps;
    } named[NAMED_MAX];
};

struct verification {
    const struct verify_options *options;
    struct weir_document document;
    struct weir_progress progress;
    struct weir_verify_totals totals;
    struct lengths *datasets;
    int n;
};

/* ---- findings ---- */

static void put_kind(struct weir_json *json, const void *kind)
{
    enum weir_finding_kind found = *(const enum weir_finding_kind *)kind;
    weir_json_text(json, "kind", weir_finding_name(found));
    weir_json_bool(json, "unreadable", weir_finding_class(found) == WEIR_FINDING_UNREADABLE);
    weir_json_bool(json, "wrong", weir_finding_class(found) == WEIR_FINDING_WRONG);
}

#define S struct weir_finding
static const struct weir_field finding_rows[] = {
    WRITTEN_AT(put_kind, kind), PLAIN("file", file),           PLAIN("dataset", dataset),       KNOWN("t", t),
    PLAIN("frames", frames),    KNOWN("dimension", dimension), PLAIN("dimensions", dimensions), PLAIN("text", text),
};
static WEIR_FIELDS(finding_fields, finding_rows);
#undef S

static void found(void *user, const struct weir_finding *finding)
{
    struct verification *v = user;
    weir_progress_clear();
    weir_document_object(&v->document, NULL, &finding_fields, finding);
    fprintf(weir_document_text(&v->document, NULL, 2), "%s%s\n",
            weir_finding_class(finding->kind) == WEIR_FINDING_REMARK ? "note: " : "", finding->text);
    weir_document_stream(&v->document); /* prints it now */
}

static void progress(void *user, uint64_t done, uint64_t total)
{
    struct verification *v = user;
    weir_rate_progress(&v->progress, "verifying", done, total);
}

/* ---- lengths ---- */

static double from_median(const struct lengths *lengths, int steps)
{
    return fabs(steps - lengths->range.median);
}

/* Returns the episode, among those not in named, whose length differs most from the median; -1 if none differs. */
static int next_odd(const struct weir_dataset *dataset, const struct lengths *lengths, const int *named)
{
    int odd = -1;
    for (int e = 0; e < lengths->episodes; e++) {
        double distance = from_median(lengths, weir_dataset_steps(dataset, e));
        bool taken = distance == 0;
        for (int i = 0; i < lengths->n_named && !taken; i++)
            taken = named[i] == e;
        if (!taken && (odd < 0 || distance > from_median(lengths, weir_dataset_steps(dataset, odd))))
            odd = e;
    }
    return odd;
}

static bool name_odd(const struct weir_dataset *dataset, struct lengths *lengths)
{
    int named[NAMED_MAX];
    for (int e; lengths->n_named < NAMED_MAX && (e = next_odd(dataset, lengths, named)) >= 0;) {
        const char *group = weir_dataset_episode_group(dataset, e);
        char *episode;
        if (asprintf(&episode, "%s%s%s", weir_dataset_episode_path(dataset, e), *group ? ": " : "", group) < 0)
            return false;
        named[lengths->n_named] = e;
        lengths->named[lengths->n_named].steps = weir_dataset_steps(dataset, e);
        lengths->named[lengths->n_named++].episode = episode;
    }
    return true;
}

static bool fill_lengths(const struct weir_dataset *dataset, const char *path, struct lengths *lengths)
{
    *lengths = (struct lengths){.path = strdup(path), .episodes = weir_dataset_episodes(dataset)};
    if (!lengths->path || !weir_lengths_of(dataset, &lengths->range))
        return false;
    for (int e = 0; e < lengths->episodes; e++)
        lengths->differ += from_median(lengths, weir_dataset_steps(dataset, e)) > 0;
    return name_odd(dataset, lengths);
}

static void drop(struct verification *v)
{
    for (int i = 0; i < v->n; i++) {
        for (int k = 0; k < v->datasets[i].n_named; k++)
            free(v->datasets[i].named[k].episode);
        free(v->datasets[i].path);
    }
    free(v->datasets);
}

static int note_lengths(struct verification *v, const struct weir_dataset *dataset, const char *path,
                        struct weir_err *err)
{
    if (!weir_grow(&v->datasets, (size_t)v->n, sizeof *v->datasets) ||
        !fill_lengths(dataset, path, &v->datasets[v->n++]))
        return weir_err_set(err, -ENOMEM, "out of memory");
    return 0;
}

static void print_lengths(FILE *out, const struct lengths *lengths, bool several)
{
    char name[4096];
    snprintf(name, sizeof name, "%s: ", lengths->path);
    weir_text_printable(name);
    fprintf(out, "%slengths: min %d, median %g, max %d", several ? name : "", lengths->range.min, lengths->range.median,
            lengths->range.max);
    if (lengths->differ > 0)
        fprintf(out, "; %d of %d episodes differ from the median%s", lengths->differ, lengths->episodes,
                lengths->differ > lengths->n_named ? ", the most different ones" : "");
    for (int i = 0; i < lengths->n_named; i++) {
        snprintf(name, sizeof name, "%s", lengths->named[i].episode);
        weir_text_printable(name);
        fprintf(out, "%s %s (%d)", i ? "," : ":", name, lengths->named[i].steps);
    }
    fprintf(out, "\n");
}

#define S struct odd_length
static const struct weir_field odd_rows[] = {
    PLAIN("episode", episode),
    PLAIN("steps", steps),
};
static WEIR_FIELDS(odd_fields, odd_rows);
#undef S

#define S struct lengths
static const struct weir_field length_rows[] = {
    {.type = WEIR_FIELD_GROUP, .inner = &weir_lengths_fields, WEIR_FIELD_AT(S, range)},
    PLAIN("differ", differ),
    ARRAY("odd", odd_fields, named, n_named),
};
static WEIR_FIELDS(length_fields, length_rows);
static const struct weir_field dataset_rows[] = {
    PLAIN("path", path),
    PLAIN("episodes", episodes),
    OBJECT("lengths", length_fields),
};
static WEIR_FIELDS(dataset_fields, dataset_rows);
#undef S

/* ---- the summary ---- */

static uint64_t count(const struct weir_verify_totals *totals, enum weir_finding_class class)
{
    uint64_t n = 0;
    for (int kind = 0; kind < WEIR_FOUND_KINDS; kind++)
        n += weir_finding_class((enum weir_finding_kind)kind) == class ? totals->found[kind] : 0;
    return n;
}

/* Names what was found, on the first line of the summary. */
static void add_verdict(struct weir_document *document, const struct weir_verify_totals *totals)
{
    FILE *out = weir_document_text(document, NULL, 2);
    bool any = false;
    document->text.highlight = true;
    fputs("findings:", out);
    for (int kind = 0; kind < WEIR_FOUND_KINDS; kind++) {
        if (totals->found[kind] == 0)
            continue;
        fprintf(out, "%s %llu %s", any ? "," : "", (unsigned long long)totals->found[kind],
                weir_finding_noun((enum weir_finding_kind)kind, totals->found[kind]));
        any = true;
    }
    fprintf(out, "%s; %llu %s unusable\n", any ? "" : " none", (unsigned long long)totals->bad_frames,
            totals->bad_frames == 1 ? "frame is" : "frames are");
}

static void print_checked(FILE *out, const struct verification *v, double seconds)
{
    const struct weir_verify_totals *totals = &v->totals;
    if (v->n > 1)
        fprintf(out, "datasets: %d; weir run loads one dataset, so specify its path\n", v->n);
    for (int i = 0; i < v->n; i++)
        print_lengths(out, &v->datasets[i], v->n > 1);
    if (totals->warned_frames > 0)
        fprintf(out, "warnings: %llu " WEIR_WARNED_FRAMES "\n", (unsigned long long)totals->warned_frames);
    fprintf(out, "checked: %llu episodes, %llu frames, %s%s\n", (unsigned long long)totals->episodes,
            (unsigned long long)totals->frames, weir_size((double)totals->bytes).text,
            v->options->fast ? ", headers only" : "");
    fprintf(out, "time: %.2f s, %.0f frames/s, %.1f MB/s\n", seconds, (double)totals->frames / seconds,
            (double)totals->bytes / 1e6 / seconds);
}

static void add_summary(struct verification *v, double seconds)
{
    const struct weir_verify_totals *totals = &v->totals;
    struct weir_document *document = &v->document;
    add_verdict(document, totals);
    print_checked(weir_document_text(document, NULL, 2), v, seconds);
    weir_document_table(document, "datasets", &dataset_fields, v->datasets, v->n, sizeof *v->datasets, NULL);
    weir_document_fact(document, "fast", v->options->fast);
    weir_document_fact(document, "episodes", totals->episodes);
    weir_document_fact(document, "frames", totals->frames);
    weir_document_fact(document, "bad_frames", totals->bad_frames);
    weir_document_fact(document, "warned_frames", totals->warned_frames);
    weir_document_fact(document, "bytes", totals->bytes);
    weir_document_fact(document, "seconds", seconds);
    weir_document_fact(document, "unreadable", count(totals, WEIR_FINDING_UNREADABLE));
    weir_document_fact(document, "wrong", count(totals, WEIR_FINDING_WRONG));
    weir_document_begin(document, "found", '{');
    for (int kind = 0; kind < WEIR_FOUND_KINDS; kind++)
        weir_document_fact(document, weir_finding_name((enum weir_finding_kind)kind), totals->found[kind]);
    weir_document_end(document, '}');
}

/* ---- the verification ---- */

static struct weir_verify_config config_of(struct verification *v, const char *path)
{
    int workers = v->options->num_workers;
    return (struct weir_verify_config){.workers = workers == WEIR_OPT_AUTO ? 0 : workers,
                                       .fast = v->options->fast,
                                       .on_warning = v->options->loader.on_warning,
                                       .data = path,
                                       .episodes = v->options->loader.episodes,
                                       .found = found,
                                       .progress = progress,
                                       .user = v};
}

static int verify_one(struct verification *v, struct weir_dataset *dataset, const char *path, struct weir_err *err)
{
    struct weir_verify_config config = config_of(v, path);
    weir_progress_begin(&v->progress);
    int rc = note_lengths(v, dataset, path, err);
    return rc < 0 ? rc : weir_verify(dataset, &config, &v->totals, err);
}

static int verify_group(struct verification *v, const struct weir_survey_group *group,
                        const struct weir_dataset_config *config, struct weir_err *err)
{
    struct weir_dataset_config own = *config;
    struct weir_dataset *dataset;
    own.files = group->files.paths;
    own.n_files = group->files.n;
    own.index = NULL; /* the index covers the whole folder */
    int rc = weir_dataset_open(&dataset, &own, err);
    if (rc == 0)
        rc = verify_one(v, dataset, group->path, err);
    weir_dataset_close(&dataset);
    return rc;
}

/* Verifies a folder that cannot be opened as one dataset. Reports its unreadable files, then verifies each group of
 * files that form a dataset. */
static int verify_several(struct verification *v, const struct weir_dataset_config *config, struct weir_err *err)
{
    struct weir_survey survey;
    struct weir_verify_config verify = config_of(v, config->path);
    int rc = weir_survey_open(&survey, config, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < survey.bad.n; i++)
        weir_verify_bad_episode(&verify, &v->totals, survey.bad.paths[i]);
    for (int i = 0; i < survey.n && rc == 0; i++)
        rc = verify_group(v, &survey.groups[i], config, err);
    weir_survey_close(&survey);
    return rc;
}

static int verify_data(struct verification *v, const char *path, struct weir_err *err)
{
    const struct verify_options *o = v->options;
    struct weir_dataset_config config = {.size = sizeof config,
                                         .path = path,
                                         .depth = true,
                                         .tolerant = true,
                                         .progress = weir_index_progress,
                                         .user = &v->progress};
    weir_loader_options_dataset(&o->loader, &config);
    config.split = config.split ? config.split : "all";
    struct weir_dataset *dataset;
    struct weir_err why = WEIR_ERR_NONE;
    weir_progress_begin(&v->progress);
    int rc = weir_dataset_open(&dataset, &config, &why);
    if (rc == -EBADMSG)
        return verify_several(v, &config, err);
    if (rc < 0)
        return weir_err_set(err, rc, "%s", why.text);
    rc = verify_one(v, dataset, path, err);
    weir_dataset_close(&dataset);
    return rc;
}

/* Returns an error if some data could not be checked for lack of permission, which says nothing about the data. */
static int check_denied(const struct weir_verify_totals *totals, struct weir_err *err)
{
    uint64_t n = totals->found[WEIR_FOUND_DENIED];
    if (n == 0)
        return 0;
    return weir_err_set(err, -EACCES, "%llu %s could not be checked; run it as a user who may read the data",
                        (unsigned long long)n, weir_finding_noun(WEIR_FOUND_DENIED, n));
}

static int verify_main(const struct weir_command *command, int argc, char **argv)
{
    struct verify_options o;
    const char *path;
    int n;
    enum weir_parse parse = weir_options_parse(command, &o, sizeof o, argc, argv, &path, &n);
    if (parse != WEIR_PARSE_RUN)
        return weir_parse_status(parse);
    struct weir_err err = WEIR_ERR_NONE;
    struct verification v = {.options = &o};
    uint64_t start_ns = weir_clock_monotonic_ns();
    weir_terminal_set_wide(o.wide || (!isatty(STDOUT_FILENO) && !getenv("COLUMNS"))); /* one line per finding */
    weir_document_open(&v.document, o.json ? &weir_json_writer : &weir_terminal_writer, stdout);
    weir_document_fact(&v.document, "path", path);
    weir_document_begin(&v.document, "findings", '[');
    int rc = verify_data(&v, path, &err);
    bool is_complete = rc == 0;
    rc = rc < 0 ? rc : check_denied(&v.totals, &err);
    double seconds = (double)(weir_clock_monotonic_ns() - start_ns + 1) / 1e9;
    weir_progress_clear();
    weir_document_end(&v.document, ']');
    weir_document_fact(&v.document, "error", rc < 0 ? err.text : NULL);
    if (o.json || is_complete)
        add_summary(&v, seconds);
    weir_document_close(&v.document);
    drop(&v);
    if (rc < 0)
        return weir_cli_fail(command, &err);
    uint64_t faults = count(&v.totals, WEIR_FINDING_UNREADABLE) + count(&v.totals, WEIR_FINDING_WRONG);
    return faults > 0 ? WEIR_EXIT_FOUND : WEIR_EXIT_SUCCESS;
}

const struct weir_command weir_cmd_verify = {
    .name = "verify",
    .summary = "read and decode a whole dataset, and report every fault",
    .group = WEIR_GROUP_DATASETS,
    .args = "DATA",
    .min_args = 1,
    .max_args = 1,
    .arg_paths = {WEIR_PATH_READ},
    .opts = verify_opts,
    .n_opts = sizeof verify_opts / sizeof verify_opts[0],
    .sets = (const struct weir_opt_set[])WEIR_DATASET_SETS(offsetof(struct verify_options, loader)),
    .takes_config = true,
    .examples = "weir verify episodes/\tAll unusable frames, and anything suspicious.\n"
                "weir verify episodes/ --fast --json\tHeaders only, as one JSON object.\n",
    .notes = "Prints one line per finding, as FILE: DATASET[frame]: reason. The exit status is 3 if data is "
             "unusable or wrong, and 1 if there is no permission to read all of it. Lines that begin with note: do not "
             "affect "
             "it. They report, for example, a camera that "
             "shows the same picture for at least 30 steps in a row, or a dimension of the state or actions "
             "that never changes.",
    .run = verify_main,
};
