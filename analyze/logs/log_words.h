/* log_words.h: the small grammar of training logs: durations, labels, "Epoch 3/10". Texts are clean UTF-8. */
#ifndef WEIR_ANALYZE_LOGS_LOG_WORDS_H
#define WEIR_ANALYZE_LOGS_LOG_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_times {
    double total_s, train_s, val_s; /* -1 = not written */
};

static const struct weir_times weir_no_times = {-1, -1, -1};

const char *weir_skip_spaces(const char *text);

/* Digits with an optional fraction and thousands' commas. Returns the bytes read, 0 when there is no number. */
size_t weir_read_decimal(const char *text, double *value);

/* A duration such as 12.3s, 12.3秒, 850ms, 1.5 min, 1分23秒, 1:02:03; a bare number counts in unit_s seconds. Returns
 * the bytes read, 0 when there is none. */
size_t weir_read_duration(const char *text, double unit_s, double *seconds);
bool weir_plausible_time(double seconds);

/* The text behind word and its colon (ASCII or full width), NULL when they are not there. */
const char *weir_after_label(const char *text, const char *word);

/* Finds the last epoch that is named before end (an unfinished progress bar may name an older one on the same line).
 * Returns where the name stops, NULL for none; count is 0 where it is not written. */
const char *weir_find_epoch(const char *text, const char *end, int *epoch, int *count);

/* Reads the times named in text (训练耗时, 验证耗时, 总耗时); returns how many. text begins behind the epoch's number,
 * or with the line when it names none, where 总耗时 within a sentence is that of the whole training. left counts times
 * of something else. */
int weir_find_times(const char *text, bool epoch_named, struct weir_times *times, uint64_t *left);

#endif
