#include "pipeline/verify/findings.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *weir_finding_name(enum weir_finding_kind kind)
{
    static const char *const names[WEIR_FOUND_KINDS] = {
        [WEIR_FOUND_EPISODE] = "episode", [WEIR_FOUND_FRAME] = "frame",           [WEIR_FOUND_SIZE] = "size",
        [WEIR_FOUND_FILE] = "file",       [WEIR_FOUND_CHECKSUM] = "checksum",     [WEIR_FOUND_FILL] = "fill",
        [WEIR_FOUND_DENIED] = "denied",   [WEIR_FOUND_OUTLIER] = "outlier",       [WEIR_FOUND_STILL] = "still",
        [WEIR_FOUND_REPEAT] = "repeat",   [WEIR_FOUND_DIMENSION] = "dimension",   [WEIR_FOUND_NOTE] = "note",
        [WEIR_FOUND_TABLE] = "table",     [WEIR_FOUND_VIDEO] = "video",           [WEIR_FOUND_NUMBER] = "number",
        [WEIR_FOUND_STATS] = "stats",     [WEIR_FOUND_KEY_FRAMES] = "key-frames",
    };
    return names[kind];
}

const char *weir_finding_noun(enum weir_finding_kind kind, uint64_t n)
{
    static const char *const nouns[WEIR_FOUND_KINDS][2] = {
        [WEIR_FOUND_EPISODE] = {"episode", "episodes"},
        [WEIR_FOUND_FRAME] = {"range of frames", "ranges of frames"},
        [WEIR_FOUND_SIZE] = {"range of frames of another size", "ranges of frames of another size"},
        [WEIR_FOUND_FILE] = {"changed file", "changed files"},
        [WEIR_FOUND_CHECKSUM] = {"wrong checksum", "wrong checksums"},
        [WEIR_FOUND_TABLE] = {"table that disagrees", "tables that disagree"},
        [WEIR_FOUND_VIDEO] = {"video that does not match its rows", "videos that do not match their rows"},
        [WEIR_FOUND_NUMBER] = {"number that is not finite", "numbers that are not finite"},
        [WEIR_FOUND_STATS] = {"wrong statistic", "wrong statistics"},
        [WEIR_FOUND_KEY_FRAMES] = {"camera with distant key frames", "cameras with distant key frames"},
        [WEIR_FOUND_DENIED] = {"path without read permission", "paths without read permission"},
        [WEIR_FOUND_FILL] = {"range of frames with lost chunks", "ranges of frames with lost chunks"},
        [WEIR_FOUND_OUTLIER] = {"outlier", "outliers"},
        [WEIR_FOUND_STILL] = {"still camera", "still cameras"},
        [WEIR_FOUND_REPEAT] = {"repeated image", "repeated images"},
        [WEIR_FOUND_DIMENSION] = {"range of constant dimensions", "ranges of constant dimensions"},
        [WEIR_FOUND_NOTE] = {"note", "notes"},
    };
    return nouns[kind][n != 1];
}

enum weir_finding_class weir_finding_class(enum weir_finding_kind kind)
{
    return kind < WEIR_FOUND_TABLE  ? WEIR_FINDING_UNREADABLE
           : kind < WEIR_FOUND_FILL ? WEIR_FINDING_WRONG
                                    : WEIR_FINDING_REMARK;
}

/* ---- lists ---- */

static int reserve(struct weir_findings *list, int more)
{
    if (list->n + more <= list->capacity)
        return 0;
    int capacity = 2 * list->capacity > list->n + more ? 2 * list->capacity : list->n + more;
    void *runs = realloc(list->runs, sizeof *list->runs * (size_t)capacity);
    if (!runs)
        return -ENOMEM;
    list->runs = runs;
    list->capacity = capacity;
    return 0;
}

static bool goes_on(const struct weir_finding_run *run, int t, enum weir_finding_kind kind, const char *why)
{
    return run->t + run->frames == t && run->kind == kind && strcmp(run->why, why) == 0;
}

static int add_run(struct weir_findings *list, int t, int frames, enum weir_finding_kind kind, const char *why)
{
    char *copy = reserve(list, 1) == 0 ? strdup(why) : NULL;
    if (!copy)
        return -ENOMEM;
    list->runs[list->n++] = (struct weir_finding_run){t, frames, kind, copy};
    return 0;
}

int weir_findings_add(struct weir_findings *list, int t, enum weir_finding_kind kind, const char *why)
{
    if (list->n > 0 && goes_on(&list->runs[list->n - 1], t, kind, why)) {
        list->runs[list->n - 1].frames++;
        return 0;
    }
    return add_run(list, t, 1, kind, why);
}

int weir_findings_move(struct weir_findings *list, struct weir_findings *from)
{
    if (from->n == 0)
        return 0;
    if (reserve(list, from->n) < 0)
        return -ENOMEM;
    memcpy(list->runs + list->n, from->runs, sizeof *from->runs * (size_t)from->n);
    list->n += from->n;
    from->n = 0;
    return 0;
}

void weir_findings_free(struct weir_findings *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->runs[i].why);
    free(list->runs);
    *list = (struct weir_findings){0};
}

/* ---- repeated images ---- */

int weir_findings_repeats(struct weir_findings *list, const uint64_t *hashes, int steps, int repeat_steps)
{
    char why[128];
    int end, rc = 0;
    for (int t = 0; t < steps && rc == 0; t = end) {
        for (end = t + 1; end < steps && hashes[end] == hashes[t] && hashes[t] != 0; end++)
            continue;
        bool all = end - t == steps && steps > 1;
        if (!all && end - t < repeat_steps)
            continue;
        snprintf(why, sizeof why, all ? "all %d frames of the episode are the same" : "the same frame in %d steps",
                 end - t);
        if (hashes[t] != 0)
            rc = add_run(list, t, end - t, all ? WEIR_FOUND_STILL : WEIR_FOUND_REPEAT, why);
    }
    return rc;
}

/* ---- frames with the fill value ---- */

int weir_findings_fill(struct weir_findings *list, const struct weir_dataset *dataset, int episode, int camera)
{
    int rc = 0;
    for (int t = 0; t < weir_dataset_steps(dataset, episode) && rc == 0; t++)
        if (weir_frame_has_fill(dataset, episode, camera, t))
            rc = weir_findings_add(list, t, WEIR_FOUND_FILL,
                                   "a chunk was never written or is lost; it reads as the fill value");
    return rc;
}

/* ---- reporting ---- */

static int by_t(const void *a, const void *b)
{
    const struct weir_finding_run *left = a, *right = b;
    int order = (left->t > right->t) - (left->t < right->t);
    return order ? order : (left->kind > right->kind) - (left->kind < right->kind);
}

void weir_finding_report(struct weir_finding *finding, const struct weir_verify_config *config,
                         struct weir_verify_totals *totals)
{
    char place[1536], text[2048];
    int n = snprintf(place, sizeof place, "%.1023s%s%.400s", finding->file, finding->dataset ? ": " : "",
                     finding->dataset ? finding->dataset : "");
    bool of_state = finding->dimension >= 0;
    if (of_state && finding->t >= 0)
        n += snprintf(place + n, sizeof place - (size_t)n, "[%d]", finding->t);
    int first = of_state ? finding->dimension : finding->t, many = of_state ? finding->dimensions : finding->frames;
    if (many > 1)
        snprintf(place + n, sizeof place - (size_t)n, "%s[%d..%d]", of_state && finding->t < 0 ? "[:]" : "", first,
                 first + many - 1);
    else if (many == 1)
        snprintf(place + n, sizeof place - (size_t)n, "%s[%d]", of_state && finding->t < 0 ? "[:]" : "", first);
    snprintf(text, sizeof text, "%s: %.500s", place, finding->why);
    weir_text_printable(text);
    finding->text = text;
    totals->found[finding->kind]++;
    if (finding->kind == WEIR_FOUND_FRAME || finding->kind == WEIR_FOUND_SIZE)
        totals->bad_frames += (uint64_t)finding->frames;
    config->found(config->user, finding);
    finding->text = NULL;
}

void weir_finding_of_file(enum weir_finding_kind kind, const char *file, const char *dataset, const char *why,
                          const struct weir_verify_config *config, struct weir_verify_totals *totals)
{
    struct weir_finding finding = {
        .kind = kind, .file = file, .dataset = dataset, .t = -1, .dimension = -1, .why = why};
    weir_finding_report(&finding, config, totals);
}

void weir_findings_report(struct weir_findings *list, const struct weir_dataset *dataset, int episode, int camera,
                          const struct weir_verify_config *config, struct weir_verify_totals *totals)
{
    int next;
    const char *part = weir_frame_part(dataset, episode, camera);
    if (list->n > 0)
        qsort(list->runs, (size_t)list->n, sizeof *list->runs, by_t);
    for (int i = 0; i < list->n; i = next) {
        struct weir_finding_run run = list->runs[i];
        for (next = i + 1;
             next < list->n && goes_on(&run, list->runs[next].t, list->runs[next].kind, list->runs[next].why); next++)
            run.frames += list->runs[next].frames;
        char why[1024];
        bool is_bad = weir_finding_class(run.kind) != WEIR_FINDING_REMARK;
        snprintf(why, sizeof why, "%s%s%s", is_bad && part ? part : "", is_bad && part ? ": " : "", run.why);
        struct weir_finding finding = {.kind = run.kind,
                                       .file = weir_dataset_episode_path(dataset, episode),
                                       .dataset = weir_dataset_camera_key(dataset, episode, camera),
                                       .t = run.t,
                                       .frames = run.frames,
                                       .dimension = -1,
                                       .why = why};
        weir_finding_report(&finding, config, totals);
    }
}

/* Copies the path with which the text of an error begins, "PATH: why": the longest one that exists, or is in a folder
 * that cannot be searched. Returns its length; 0 = none exists. */
static size_t path_of(const char *text, char path[PATH_MAX])
{
    size_t length = 0;
    struct stat st;
    for (const char *at = strstr(text, ": "); at && at - text < PATH_MAX; at = strstr(at + 1, ": ")) {
        snprintf(path, PATH_MAX, "%.*s", (int)(at - text), text);
        if (lstat(path, &st) == 0 || (length == 0 && errno == EACCES))
            length = (size_t)(at - text);
    }
    snprintf(path, PATH_MAX, "%.*s", (int)length, text);
    return length;
}

/* Reads "DATASET[t][dimension]: why". name: memory for the name of the dataset. */
static void read_place(struct weir_finding *finding, const char *text, char name[PATH_MAX])
{
    size_t length = strcspn(text, "[:");
    int t, dimension, end = 0;
    if (length == 0 || length >= PATH_MAX || sscanf(text + length, "[%d][%d]:%n", &t, &dimension, &end) != 2 || !end)
        return;
    snprintf(name, PATH_MAX, "%.*s", (int)length, text);
    finding->dataset = name;
    finding->t = t;
    finding->dimension = dimension;
    finding->dimensions = 1;
}

void weir_verify_bad_episode(const struct weir_verify_config *config, struct weir_verify_totals *totals,
                             const char *text)
{
    struct weir_finding finding = {.kind = WEIR_FOUND_EPISODE, .text = text, .t = -1, .dimension = -1};
    char path[PATH_MAX], name[PATH_MAX];
    size_t length = path_of(text, path);
    if (length > 0) {
        if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0 && errno == EACCES)
            finding.kind = WEIR_FOUND_DENIED;
        finding.file = path;
        finding.why = text + length + 2;
        read_place(&finding, finding.why, name);
    }
    totals->found[finding.kind]++;
    config->found(config->user, &finding);
}

/* ---- state and actions ---- */

/* Sets varies[d] if dimension d has more than one value. values: the values of the first step. */
static void compare_rows(const struct weir_dataset *dataset, bool actions, int dim, const float *values, bool *varies)
{
    for (int e = 0; e < weir_dataset_episodes(dataset); e++) {
        const float *rows = actions ? weir_dataset_actions(dataset, e) : weir_dataset_qpos(dataset, e);
        for (int t = 0; t < weir_dataset_steps(dataset, e); t++)
            for (int d = 0; d < dim; d++)
                varies[d] = varies[d] || rows[(size_t)t * (size_t)dim + (size_t)d] != values[d];
    }
}

static void report_dimensions(const struct weir_dataset *dataset, bool actions, int first, int n, float value,
                              uint64_t steps, const struct weir_verify_config *config,
                              struct weir_verify_totals *totals)
{
    char why[128];
    snprintf(why, sizeof why, "is %g in all %llu steps", (double)value, (unsigned long long)steps);
    struct weir_finding finding = {.kind = WEIR_FOUND_DIMENSION,
                                   .file = config->data,
                                   .dataset = actions ? weir_dataset_action_key(dataset, 0)
                                                      : weir_dataset_qpos_key(dataset, 0),
                                   .t = -1,
                                   .dimension = first,
                                   .dimensions = n,
                                   .why = why};
    weir_finding_report(&finding, config, totals);
}

static int report_constant(const struct weir_dataset *dataset, bool actions, const struct weir_verify_config *config,
                           struct weir_verify_totals *totals)
{
    int dim = actions ? weir_dataset_action_dim(dataset) : weir_dataset_qpos_dim(dataset);
    const float *values = actions ? weir_dataset_actions(dataset, 0) : weir_dataset_qpos(dataset, 0);
    uint64_t steps = 0;
    bool *varies = calloc((size_t)dim + 1, sizeof *varies);
    if (!varies)
        return -ENOMEM;
    for (int e = 0; e < weir_dataset_episodes(dataset); e++)
        steps += (uint64_t)weir_dataset_steps(dataset, e);
    compare_rows(dataset, actions, dim, values, varies);
    int next;
    for (int d = 0; d < dim && steps > 1; d = next) {
        for (next = d + 1; next < dim && !varies[d] && !varies[next] && values[next] == values[d];)
            next++;
        if (!varies[d])
            report_dimensions(dataset, actions, d, next - d, values[d], steps, config, totals);
    }
    free(varies);
    return 0;
}

int weir_findings_dimensions(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                             struct weir_verify_totals *totals)
{
    int rc = report_constant(dataset, false, config, totals);
    return rc < 0 ? rc : report_constant(dataset, true, config, totals);
}
