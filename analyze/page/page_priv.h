/* page_priv.h: shared by the files that collect and write a page. */
#ifndef WEIR_ANALYZE_PAGE_PAGE_PRIV_H
#define WEIR_ANALYZE_PAGE_PAGE_PRIV_H

#include "analyze/logs/log_plain.h"
#include "analyze/page/page.h"
#include "analyze/page/page_html.h"
#include "analyze/verdict/verdict.h"
#include "analyze/watch/watch_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEIR_PAGE_POINTS = 1024, /* from here on, pairs of neighbouring epochs or tables are merged */
    WEIR_PAGE_STAGES = 48,
    WEIR_PAGE_SETTINGS = 256,
    WEIR_PAGE_NAME = 160,
    WEIR_PAGE_TRACE = 4096,
};

/* One epoch, or several merged ones. Sums, so that merging adds. */
struct weir_page_epoch {
    int first, last;
    double total_s, train_s, wait_s, images;
    double wait_min, wait_max;   /* fractions of the training time */
    double rate_min, rate_max;   /* images/s */
    double total_min, total_max; /* seconds of an epoch */
};

/* The time of one stage table, or of several merged ones. */
struct weir_page_table {
    int first, last;
    double requests, ready; /* requests for batches, and the sum of the batches ready at each */
    int ready_min, ready_max;
    double images;
    float stage_s[WEIR_PAGE_STAGES]; /* total time, in the order of the run's stages */
};

struct weir_page_setting {
    char name[WEIR_PAGE_NAME], value[WEIR_PAGE_NAME];
};

struct weir_page_run {
    char log[WEIR_PAGE_NAME]; /* name of the log */
    int rank, world_size;     /* world_size 0 = unknown */
    int n_settings;
    struct weir_page_setting *settings; /* owned, like the other arrays */
    struct weir_start_line start;       /* first_batch_s 0 = unknown */
    bool is_measured;
    struct weir_measured_line measured;
    size_t n_epochs, n_tables;
    struct weir_page_epoch *epochs;
    struct weir_page_table *tables;
    int n_stages;
    char stages[WEIR_PAGE_STAGES][WEIR_REPORT_NAME];
    struct weir_loader_report *report;     /* the newest table, in the end that of the whole run; NULL = none; owned */
    struct weir_dataloader_figures *watch; /* of the same table; NULL = not a watched loader; owned */
    struct weir_plain_log *plain;          /* a plain log, which has no report; NULL = another; owned */
    char trace[WEIR_PAGE_TRACE];           /* path of the newest trace of --profile; empty = none */
};

struct weir_page {
    enum weir_lang lang;
    int n_runs;
    struct weir_page_run *runs[WEIR_PAGE_RUNS];
    const struct weir_rank_verdict *rank_verdict; /* NULL = no table over ranks */
    const struct weir_rank *ranks;
    int n_ranks;
};

/* Context of the functions that write sections. */
struct weir_page_out {
    FILE *out;
    enum weir_lang lang;
    int next_id; /* of elements that others refer to */
    const struct weir_page_run *run;
};

/* Write the beginning and the end of a page. */
void weir_page_head(FILE *out, enum weir_lang lang, const char *title);
void weir_page_foot(FILE *out);

/* Returns the value of a setting, such as "config.data", or NULL. */
const char *weir_page_setting(const struct weir_page_run *run, const char *name);

/* Write a section of a run, or nothing if the run lacks its data. Return 0 or -ENOMEM. */
int weir_page_verdict(struct weir_page_out *page);
void weir_page_over_time(struct weir_page_out *page);
void weir_page_stages(struct weir_page_out *page);
void weir_page_shares(struct weir_page_out *page);
void weir_page_latency(struct weir_page_out *page);
void weir_page_threads(struct weir_page_out *page);
int weir_page_timeline(struct weir_page_out *page);
void weir_page_settings(struct weir_page_out *page);

/* Writes the section of the ranks, if there are any. */
void weir_page_ranks(struct weir_page_out *page, const struct weir_page *of);

/* The style sheet, the script, and their SHA-256 sums (generated from page.css and page.js). */
extern const unsigned char weir_page_css[], weir_page_js[];
extern const unsigned char weir_page_css_sha256[32], weir_page_js_sha256[32];
extern const size_t weir_page_css_size, weir_page_js_size;

#endif
