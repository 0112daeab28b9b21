#include "analyze/logs/log_words.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *weir_skip_spaces(const char *text)
{
    while (*text == ' ')
        text++;
    return text;
}

/* Returns whether text is a comma followed by exactly three digits. */
static bool thousands(const char *text)
{
    return text[0] == ',' && strspn(text + 1, "0123456789") == 3;
}

size_t weir_read_decimal(const char *text, double *value)
{
    size_t at = 0;
    double number = 0, scale = 1;
    while (at < 24 && (isdigit((unsigned char)text[at]) || (at > 0 && thousands(text + at)))) {
        if (text[at] != ',')
            number = 10 * number + (text[at] - '0');
        at++;
    }
    if (at == 0 || isdigit((unsigned char)text[at]))
        return 0;
    if (text[at] == '.' && isdigit((unsigned char)text[at + 1])) {
        for (at++; isdigit((unsigned char)text[at]); at++)
            if (scale < 1e15) {
                number = 10 * number + (text[at] - '0');
                scale *= 10;
            }
    }
    *value = number / scale;
    return at;
}

/* Reads a unit of time. The table lists longer names first, because "m" is a prefix of "ms" and "min". */
static size_t unit(const char *text, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {
        {"毫秒", 1e-3}, {"微秒", 1e-6}, {"纳秒", 1e-9},  {"秒钟", 1},    {"秒", 1},    {"分钟", 60},
        {"分", 60},     {"小时", 3600}, {"时", 3600},    {"seconds", 1}, {"sec", 1},   {"minutes", 60},
        {"mins", 60},   {"min", 60},    {"hours", 3600}, {"ms", 1e-3},   {"us", 1e-6}, {"µs", 1e-6},
        {"ns", 1e-9},   {"s", 1},       {"m", 60},       {"h", 3600},
    };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t n = strlen(units[i].name);
        if (strncmp(text, units[i].name, n) != 0)
            continue;
        if (isalpha((unsigned char)text[0]) && isalpha((unsigned char)text[n]))
            continue;
        *seconds = units[i].seconds;
        return n;
    }
    return 0;
}

/* Reads the rest of a time such as 1:02:03 after the first number. */
static size_t clock_rest(const char *text, double *seconds)
{
    size_t at = 0;
    for (int fields = 0; fields < 2 && text[at] == ':'; fields++) {
        double part;
        size_t n = weir_read_decimal(text + at + 1, &part);
        if (n == 0 || part >= 60)
            break;
        *seconds = 60 * *seconds + part;
        at += 1 + n;
    }
    return at;
}

size_t weir_read_duration(const char *text, double unit_s, double *seconds)
{
    const char *at = weir_skip_spaces(text);
    double sum = 0, number, scale;
    size_t n = weir_read_decimal(at, &number);
    if (n == 0)
        return 0;
    at += n;
    n = clock_rest(at, &number);
    if (n > 0) {
        *seconds = number;
        return (size_t)(at + n - text);
    }
    for (;;) {
        const char *after = weir_skip_spaces(at);
        n = unit(after, &scale);
        scale = n ? scale : unit_s;
        /* Divides, because 14.39 / 1000 is correctly rounded but 14.39 * 0.001 is not. */
        sum += scale < 1 ? number / (1 / scale) : number * scale;
        if (n == 0)
            break;
        at = after + n;
        /* Times such as 1分23秒 continue with a smaller unit, but "12.3s (0.2min)" does not. */
        size_t more = scale >= 60 ? weir_read_decimal(weir_skip_spaces(at), &number) : 0;
        if (more == 0 || unit(weir_skip_spaces(weir_skip_spaces(at) + more), &unit_s) == 0 || unit_s >= scale)
            break;
        at = weir_skip_spaces(at) + more;
    }
    *seconds = sum;
    return (size_t)(at - text);
}

bool weir_plausible_time(double seconds)
{
    return seconds >= 0 && seconds < 1e12;
}

const char *weir_after_label(const char *text, const char *word)
{
    for (const char *found = strstr(text, word); found; found = strstr(found + 1, word)) {
        const char *at = weir_skip_spaces(found + strlen(word));
        if (*at == ':')
            return at + 1;
        if (strncmp(at, "：", strlen("：")) == 0)
            return at + strlen("：");
    }
    return NULL;
}

static bool ends_with(const char *start, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - start) >= n && memcmp(end - n, word, n) == 0;
}

/* Returns whether the epoch at word is not the current one, as in "best epoch 7". */
static bool speaks_of_another(const char *text, const char *word)
{
    static const char *const before[] = {"best", "Best", "BEST",       "at",   "@",
                                         "from", "ckpt", "checkpoint", "最佳", "最优"};
    const char *end = word;
    while (end > text && (end[-1] == ' ' || end[-1] == '_'))
        end--;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        if (!ends_with(text, end, before[i]))
            continue;
        const char *start = end - strlen(before[i]);
        if (start == text || !isalpha((unsigned char)start[-1]))
            return true;
    }
    return false;
}

/* Reads "Epoch 3/10", "Epoch [3/10]", "epoch: 3" and so on at word. Returns 0 if there is no epoch number. */
static size_t epoch_at(const char *text, const char *word, int *epoch, int *count)
{
    if ((word > text && (isalpha((unsigned char)word[-1]) || word[-1] == '_')) || speaks_of_another(text, word))
        return 0;
    const char *at = word + strlen("epoch");
    while (*at && (strchr(" :=#[(-", *at) || strncmp(at, "：", strlen("：")) == 0))
        at += *at == "："[0] ? strlen("：") : 1;
    if (!isdigit((unsigned char)*at))
        return 0;
    size_t n = strspn(at, "0123456789");
    if (n > 8 || (at[n] == '.' && isdigit((unsigned char)at[n + 1])))
        return 0;
    *epoch = atoi(at);
    *count = 0;
    at = weir_skip_spaces(at + n);
    n = *at == '/' ? strspn(weir_skip_spaces(at + 1), "0123456789") : 0;
    if (n > 0 && n <= 8) {
        at = weir_skip_spaces(at + 1);
        *count = atoi(at);
        at += n;
    }
    return (size_t)(at - word);
}

const char *weir_find_epoch(const char *text, const char *end, int *epoch, int *count)
{
    const char *found = NULL;
    for (const char *word = strcasestr(text, "epoch"); word && word < end; word = strcasestr(word + 1, "epoch")) {
        int this_epoch, this_count;
        size_t n = epoch_at(text, word, &this_epoch, &this_count);
        if (n == 0)
            continue;
        *epoch = this_epoch;
        *count = this_count;
        found = word + n;
    }
    return found;
}

static bool has_ideograph(const char *start, const char *end)
{
    for (const char *at = start; at < end;) {
        uint32_t code = 0;
        size_t n = weir_utf8_next(at, (size_t)(end - at), &code);
        if (code >= 0x3400 && code <= 0x9fff)
            return true;
        at += n ? n : 1;
    }
    return false;
}

/* Returns the member for the time whose label ends at `end`, where "耗时" begins. Returns NULL for other labels, such
 * as the time of the whole training. text starts after the epoch's number, or at the line's start if none exists. */
static double *which_time(struct weir_times *times, const char *text, const char *end, bool epoch_named)
{
    bool is_train = ends_with(text, end, "训练") || ends_with(text, end, "训练总");
    bool is_val = ends_with(text, end, "验证") || ends_with(text, end, "验证总");
    if (is_train || is_val) {
        const char *word = end - (ends_with(text, end, "总") ? strlen("训练总") : strlen("训练"));
        bool sum = ends_with(text, word, "总") || ends_with(text, word, "累计");
        bool part_of_word = word - text >= 3 && has_ideograph(word - 3, word);
        if (sum || (!epoch_named && (part_of_word || ends_with(text, end, "总"))))
            return NULL;
        return is_train ? &times->train_s : &times->val_s;
    }
    if (ends_with(text, end, "总"))
        return epoch_named || !has_ideograph(text, end - strlen("总")) ? &times->total_s : NULL;
    bool bare = end - text < 3 || !has_ideograph(end - 3, end) || ends_with(text, end, "轮");
    return epoch_named && bare ? &times->total_s : NULL;
}

int weir_find_times(const char *text, bool epoch_named, struct weir_times *times, uint64_t *left)
{
    int found = 0;
    const char *from = text;
    for (const char *word = strstr(text, "耗时"); word; word = strstr(word + 1, "耗时")) {
        const char *value = weir_skip_spaces(word + strlen("耗时"));
        if (*value == ':')
            value++;
        else if (strncmp(value, "：", strlen("：")) == 0)
            value += strlen("：");
        else
            continue;
        double seconds;
        size_t n = weir_read_duration(value, 1, &seconds);
        if (n == 0 || !weir_plausible_time(seconds))
            continue;
        double *time = which_time(times, from, word, epoch_named);
        from = value + n;
        if (!time || *time >= 0) {
            *left += 1;
            continue;
        }
        *time = seconds;
        found++;
    }
    return found;
}
