#include "analyze/logs/log_plain.h"

#include "analyze/logs/log_clean.h"
#include "analyze/logs/log_words.h"
#include "base/grow.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_FIELD = 40, RULE_MIN = 20, PREFIX_MAX = 256 };

struct weir_plain_state_ {
    struct weir_cleaner cleaner;
    bool table_open, table_has_rows;
    bool rule_before;        /* the previous line was a rule */
    bool just_closed;        /* the rule before this line ended a table */
    bool title_known;        /* a title has been read */
    bool titles_have_rules;  /* a rule precedes the first title */
    bool legend_known;       /* the open table has a legend */
    char prefix[PREFIX_MAX]; /* what the logger prints before the legend */
    struct weir_totals_table next;
    bool epoch_known;          /* a line has named an epoch */
    int epoch, epoch_count;    /* the epoch that was named last */
    bool epoch_has_row;        /* the last element of log->epochs belongs to this epoch */
    bool names_follow;         /* the log prints "Epoch N" after the epoch's times */
    struct weir_times pending; /* times of an epoch that has not been named yet */
};

int weir_plain_open(struct weir_plain_log *log)
{
    *log = (struct weir_plain_log){.totals.decimals = 2};
    log->state_ = calloc(1, sizeof *log->state_);
    if (!log->state_)
        return -ENOMEM;
    log->state_->pending = weir_no_times;
    log->state_->next.after_epoch = -1;
    weir_trainers_open(&log->trainers);
    return 0;
}

void weir_plain_close(struct weir_plain_log *log)
{
    if (log->state_)
        weir_cleaner_close(&log->state_->cleaner);
    free(log->state_);
    free(log->epochs);
    weir_totals_free(&log->totals);
    weir_trainers_close(&log->trainers);
    *log = (struct weir_plain_log){0};
}

static void table_begin(struct weir_plain_log *log, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    state->table_open = true;
    state->table_has_rows = state->legend_known = false;
    state->prefix[0] = '\0';
    state->next.line = number;
    state->next.after_epoch = state->epoch_known ? state->epoch : -1;
}

static void table_end(struct weir_plain_log *log, bool closed)
{
    struct weir_plain_state_ *state = log->state_;
    if (state->table_open && !state->table_has_rows)
        log->empty_title = state->next.line;
    if (state->table_has_rows && closed && log->totals.n_tables > 0)
        log->totals.tables[log->totals.n_tables - 1].closed = true;
    state->table_open = state->table_has_rows = false;
}

/* If titles have a rule above them, the rule before this title did not close the previous table, so that table was cut
 * off. */
static void take_title(struct weir_plain_log *log, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    if (!state->title_known)
        state->titles_have_rules = state->rule_before && !state->just_closed;
    state->title_known = true;
    if (state->just_closed && state->titles_have_rules && log->totals.n_tables > 0)
        log->totals.tables[log->totals.n_tables - 1].closed = false;
    table_end(log, false);
    table_begin(log, number);
}

static void take_legend(struct weir_plain_log *log, const char *text, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    if (!state->table_open || state->table_has_rows) {
        table_end(log, false);
        table_begin(log, number);
    }
    size_t prefix = (size_t)(strstr(text, "环节名称") - text);
    if (prefix >= PREFIX_MAX)
        return;
    state->legend_known = true;
    memcpy(state->prefix, text, prefix);
    state->prefix[prefix] = '\0';
}

/* Forgets that earlier tables covered a program's time until then: a later one contains them. */
static void supersede(struct weir_totals *totals)
{
    for (size_t i = 0; i < totals->n_tables; i++)
        totals->tables[i].final &= totals->tables[i].epoch_first > 0;
}

/* Reads "统计范围: 第 1-10 轮 ..." or "统计范围: 整个运行, ...", which weir prints above its tables. Those of programs
 * with weir.Loader say "测量部分" (all of their time) or "上次统计以来" (since the last table). */
static void take_covers(struct weir_plain_log *log, const char *text)
{
    struct weir_totals_table *next = &log->state_->next;
    const char *range = strstr(text, "第 ");
    int first = 0, last = 0;
    if (range && sscanf(range + strlen("第 "), "%7d-%7d", &first, &last) == 2 && first > 0 && last >= first) {
        next->epoch_first = first;
        next->epoch_last = last;
    }
    bool measured = strstr(text, "测量部分") != NULL;
    next->final = measured || strstr(text, "整个运行");
    if (measured)
        supersede(&log->totals);
    log->periodic = true;
    log->of_script |= measured || strstr(text, "上次统计以来");
}

/* Returns the length of the logger's prefix, or 0. The prefixes of two lines differ only in their digits. */
static size_t same_prefix(const char *prefix, const char *text)
{
    size_t at = 0;
    for (; prefix[at]; at++) {
        bool digits = isdigit((unsigned char)prefix[at]) && isdigit((unsigned char)text[at]);
        if (text[at] != prefix[at] && !digits)
            return 0;
    }
    return at;
}

/* Returns the start of the padded name, which is the 40 characters before bar, if a prefix precedes them. Otherwise
 * returns the start of the line. */
static const char *padded_field(const char *text, const char *bar)
{
    const char *at = bar;
    for (int characters = 0; characters < NAME_FIELD && at > text; characters++)
        for (at--; at > text && ((unsigned char)*at & 0xc0) == 0x80;)
            at--;
    bool padded = bar > text && bar[-1] == ' ';
    bool boundary = at > text && strchr(" :-|]>)", at[-1]);
    return padded && boundary && *at != ' ' ? at : text;
}

/* Extracts the stage's name from the part of the line before "总计". */
static bool row_name(const struct weir_plain_state_ *state, const char *text, const char *total,
                     char name[WEIR_TOTALS_NAME_SIZE])
{
    const char *end = total;
    while (end > text && (end[-1] == ' '))
        end--;
    if (end > text && end[-1] == '|')
        end--;
    else if (end - text >= 3 && memcmp(end - 3, "｜", 3) == 0)
        end -= 3;
    else
        return false;
    const char *bar = end > text && end[-1] == ' ' ? end - 1 : end;
    const char *start = state->legend_known ? text + same_prefix(state->prefix, text) : text;
    if (start == text && (!state->legend_known || state->prefix[0]))
        start = padded_field(text, bar);
    while (end > start && end[-1] == ' ')
        end--;
    start = start < end ? weir_skip_spaces(start) : end;
    size_t length = (size_t)(end - start);
    if (length >= WEIR_TOTALS_NAME_SIZE)
        for (length = WEIR_TOTALS_NAME_SIZE - 1; length > 0 && ((unsigned char)start[length] & 0xc0) == 0x80;)
            length--;
    memcpy(name, start, length);
    name[length] = '\0';
    return length > 0;
}

struct row {
    char name[WEIR_TOTALS_NAME_SIZE];
    double total_s, mean_s;
    uint64_t count;
};

enum row_found { ROW_NONE, ROW_CUT, ROW_WHOLE };

static enum row_found parse_row(const struct weir_plain_state_ *state, const char *text, struct row *row)
{
    const char *total = strstr(text, "总计");
    const char *value = total ? weir_after_label(total, "总计") : NULL;
    if (!value || !row_name(state, text, total, row->name))
        return ROW_NONE;
    size_t n = weir_read_duration(value, 1, &row->total_s);
    const char *calls = weir_after_label(value, "调用");
    if (n == 0 || !weir_plausible_time(row->total_s))
        return *weir_skip_spaces(value) == '\0' ? ROW_CUT : ROW_NONE;
    if (!calls)
        return ROW_CUT;
    double count;
    n = weir_read_decimal(weir_skip_spaces(calls), &count);
    if (n == 0 || count > 9e15)
        return *weir_skip_spaces(calls) == '\0' ? ROW_CUT : ROW_NONE;
    if (strncmp(weir_skip_spaces(weir_skip_spaces(calls) + n), "次", strlen("次")) != 0)
        return ROW_CUT;
    row->count = (uint64_t)count;
    const char *mean = weir_after_label(calls, "平均");
    n = mean ? weir_read_duration(mean, 1e-3, &row->mean_s) : 0;
    bool cut = n > 0 && mean[n] == '\0' && isdigit((unsigned char)mean[n - 1]);
    if (n == 0 || cut || !weir_plausible_time(row->mean_s))
        row->mean_s = row->count ? row->total_s / (double)row->count : 0;
    return ROW_WHOLE;
}

static int take_row(struct weir_plain_log *log, const struct row *row, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    /* A repeated name means that a new table has begun without a heading. */
    if (!state->table_open || (state->table_has_rows && weir_totals_has(&log->totals, row->name))) {
        table_end(log, false);
        table_begin(log, number);
    }
    if (!state->table_has_rows) {
        int code = weir_totals_begin_table(&log->totals, &state->next);
        if (code < 0)
            return code;
        state->next = (struct weir_totals_table){.after_epoch = -1};
        state->table_has_rows = true;
    }
    return weir_totals_add(&log->totals, row->name, row->total_s, row->count, row->mean_s);
}

static bool is_rule(const char *text)
{
    size_t length = strlen(text), run = 0;
    while (length > 0 && text[length - 1] == ' ')
        length--;
    while (run < length && text[length - 1 - run] == '=')
        run++;
    return run >= RULE_MIN;
}

static int new_epoch(struct weir_plain_log *log, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    if (log->n_epochs == WEIR_PLAIN_EPOCHS_MAX) {
        log->epochs_dropped++;
        state->epoch_has_row = false;
        return 0;
    }
    if (!weir_grow(&log->epochs, log->n_epochs, sizeof *log->epochs))
        return -ENOMEM;
    log->epochs[log->n_epochs++] = (struct weir_plain_epoch){state->epoch, state->epoch_count, -1, -1, -1, number};
    state->epoch_has_row = true;
    return 0;
}

static bool fill(double *slot, double value)
{
    if (value < 0)
        return true;
    if (*slot >= 0)
        return false;
    *slot = value;
    return true;
}

static bool clashes(const struct weir_plain_epoch *row, const struct weir_times *times)
{
    return (row->total_s >= 0 && times->total_s >= 0) || (row->train_s >= 0 && times->train_s >= 0) ||
           (row->val_s >= 0 && times->val_s >= 0);
}

/* Assigns times to the current epoch. If the line also names the epoch, and its row has times already, this is a second
 * run of the same epoch. */
static int give_times(struct weir_plain_log *log, const struct weir_times *times, bool named, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    struct weir_plain_epoch *row = state->epoch_has_row ? &log->epochs[log->n_epochs - 1] : NULL;
    if (!row || (named && clashes(row, times))) {
        int code = new_epoch(log, number);
        if (code < 0 || !state->epoch_has_row)
            return code;
        row = &log->epochs[log->n_epochs - 1];
    }
    log->times_left += !fill(&row->total_s, times->total_s);
    log->times_left += !fill(&row->train_s, times->train_s);
    log->times_left += !fill(&row->val_s, times->val_s);
    return 0;
}

static void name_epoch(struct weir_plain_state_ *state, int epoch, int count)
{
    bool same = state->epoch_known && state->epoch == epoch;
    if (!same)
        state->epoch_has_row = false;
    if (!same || count > 0)
        state->epoch_count = count;
    state->epoch_known = true;
    state->epoch = epoch;
}

static int take_epoch(struct weir_plain_log *log, const char *text, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    const char *times_at = strstr(text, "耗时");
    int epoch = 0, count = 0;
    const char *behind = weir_find_epoch(text, times_at ? times_at : text + strlen(text), &epoch, &count);
    if (behind)
        name_epoch(state, epoch, count);
    if (!times_at)
        return 0;
    struct weir_times times = weir_no_times;
    if (weir_find_times(behind ? behind : text, behind != NULL, &times, &log->times_left) == 0)
        return 0;
    if (!behind && !state->epoch_known)
        state->names_follow = true;
    if (!behind && state->names_follow) {
        log->times_left += !fill(&state->pending.total_s, times.total_s);
        log->times_left += !fill(&state->pending.train_s, times.train_s);
        log->times_left += !fill(&state->pending.val_s, times.val_s);
        return 0;
    }
    int code = give_times(log, &times, behind != NULL, number);
    if (code == 0 && behind && state->names_follow && state->epoch_has_row) {
        code = give_times(log, &state->pending, false, number);
        state->pending = weir_no_times;
    }
    return code;
}

/* Processes a line that is not a rule. */
static int take_line(struct weir_plain_log *log, const char *line, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    struct row row;
    if (strstr(line, "性能分析统计")) {
        take_title(log, number);
        return 0;
    }
    if (strstr(line, "环节名称")) {
        take_legend(log, line, number);
        return 0;
    }
    if (weir_after_label(line, "统计范围")) {
        take_covers(log, line);
        return 0;
    }
    enum row_found found = parse_row(state, line, &row);
    log->rows_cut += found == ROW_CUT && state->table_open;
    if (found != ROW_NONE)
        return found == ROW_WHOLE ? take_row(log, &row, number) : 0;
    return take_epoch(log, line, number);
}

int weir_plain_line(struct weir_plain_log *log, const char *text, size_t length, uint64_t number)
{
    struct weir_plain_state_ *state = log->state_;
    int code = weir_clean_line(&state->cleaner, text, length);
    if (code < 0)
        return code;
    if (!state->cleaner.utf8 && log->not_utf8++ == 0)
        log->first_not_utf8 = number;
    const char *line = state->cleaner.text;
    if (*weir_skip_spaces(line) == '\0')
        return 0;
    /* A line such as "===== Epoch 3 =====" is not only a rule. */
    bool rule = is_rule(line) && !strcasestr(line, "epoch") && !strstr(line, "耗时");
    bool closes = rule && state->table_has_rows;
    if (closes)
        table_end(log, true);
    code = rule ? 0 : take_line(log, line, number);
    if (code == 0)
        code = weir_trainers_line(&log->trainers, line, number);
    state->rule_before = rule;
    state->just_closed = closes;
    return code;
}

int weir_plain_finish(struct weir_plain_log *log)
{
    struct weir_plain_state_ *state = log->state_;
    table_end(log, false);
    weir_totals_drop_empty(&log->totals);
    weir_totals_find_whole(&log->totals);
    log->times_left += (state->pending.total_s >= 0) + (state->pending.train_s >= 0) + (state->pending.val_s >= 0);
    return weir_trainers_finish(&log->trainers);
}

int weir_plain_read(struct weir_plain_log *log, struct weir_lines *lines)
{
    int code;
    while ((code = weir_lines_next(lines)) > 0) {
        code = weir_plain_line(log, lines->text, lines->length, lines->number);
        if (code < 0)
            break;
    }
    int finished = weir_plain_finish(log);
    return code < 0 ? code : finished;
}

bool weir_plain_found(const struct weir_plain_log *log)
{
    return log->totals.n_tables > 0 || log->n_epochs > 0 || weir_trainers_found(&log->trainers);
}

bool weir_plain_cumulative(const struct weir_plain_log *log)
{
    return !log->periodic && weir_totals_cumulative(&log->totals);
}
