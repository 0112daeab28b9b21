/* log_words.h: grammar of training logs: durations, labels, and epochs such as "Epoch 3/10". Strings must be clean
 * UTF-8. */
#ifndef WEIR_ANALYZE_LOGS_LOG_WORDS_H
#define WEIR_ANALYZE_LOGS_LOG_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_times {
    double total_s, train_s, val_s; /* -1 = not printed */
};

static const struct weir_times weir_no_times = {-1, -1, -1};

const char *weir_skip_spaces(const char *text);

/* Reads digits with an optional fraction and thousands separators. Returns the number of bytes read, or 0 if there is
 * no number. */
size_t weir_read_decimal(const char *text, double *value);

/* Reads a duration such as 12.3s, 12.3秒, 850ms, 1.5 min, 1分23秒 or 1:02:03. A number without a unit is multiplied by
 * unit_s. Returns the number of bytes read, or 0 if there is no duration. */
size_t weir_read_duration(const char *text, double unit_s, double *seconds);
bool weir_plausible_time(double seconds);

/* Returns the rest of text after `word` and its colon (ASCII or full width), or NULL. */
const char *weir_after_label(const char *text, const char *word);

/* Finds the last epoch named before `end`, because an unfinished progress bar can name an older epoch on the same line.
 * Returns the position after the name, or NULL. count is 0 if it is not printed. */
const char *weir_find_epoch(const char *text, const char *end, int *epoch, int *count);

/* Reads the times in text (训练耗时, 验证耗时, 总耗时) and returns their number. text starts after the epoch's number.
 * If there is no number, it starts at the line's start, and 总耗时 within a sentence is the time of the whole training.
 * Other times are counted in *left. */
int weir_find_times(const char *text, bool epoch_named, struct weir_times *times, uint64_t *left);

#endif
