#include "cli/option_values.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bad_value(const struct weir_option_origin *origin, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int bad_value(const struct weir_option_origin *origin, const char *format, ...)
{
    struct weir_err err = WEIR_ERR_NONE;
    char text[sizeof err.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (origin->file)
        return weir_usage_error(origin->command, "%s:%d: %s", origin->file, origin->line, text);
    return weir_usage_error(origin->command, "%s", text);
}

static int out_of_bounds(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text)
{
    return bad_value(origin, "--%s %s is out of bounds: %.12g to %.12g", opt->name, text, opt->min, opt->max);
}

static bool within(const struct weir_opt *opt, double value)
{
    return opt->max <= opt->min || (value >= opt->min && value <= opt->max);
}

static bool ends_number(const char *text, const char *end)
{
    return end != text && *end == '\0';
}

static int parse_int(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text, int *out)
{
    if (opt->allow_auto && strcmp(text, "auto") == 0) {
        *out = WEIR_OPT_AUTO;
        return 0;
    }
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (!ends_number(text, end))
        return bad_value(origin, "--%s needs a whole number%s, not '%s'", opt->name, opt->allow_auto ? " or auto" : "",
                         text);
    if (!within(opt, (double)value))
        return out_of_bounds(origin, opt, text);
    if (errno == ERANGE || value < INT_MIN || value > INT_MAX)
        return bad_value(origin, "--%s %s is too large", opt->name, text);
    *out = (int)value;
    return 0;
}

static int parse_uint64(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text,
                        uint64_t *out)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (!ends_number(text, end) || strchr(text, '-'))
        return bad_value(origin, "--%s needs a whole number from 0, not '%s'", opt->name, text);
    if (errno == ERANGE)
        return bad_value(origin, "--%s %s is too large", opt->name, text);
    if (!within(opt, (double)value))
        return out_of_bounds(origin, opt, text);
    *out = value;
    return 0;
}

static int parse_double(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text,
                        double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (!ends_number(text, end) || !isfinite(value))
        return bad_value(origin, "--%s needs a number, not '%s'", opt->name, text);
    if (!within(opt, value))
        return out_of_bounds(origin, opt, text);
    *out = value;
    return 0;
}

static int parse_enum(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text, int *out)
{
    const char *at = opt->value;
    for (int i = 0; at; i++) {
        size_t n = strcspn(at, "|");
        if (strlen(text) == n && strncmp(at, text, n) == 0) {
            *out = i;
            return 0;
        }
        at = at[n] ? at + n + 1 : NULL;
    }
    return bad_value(origin, "--%s '%s' is not one of %s", opt->name, text, opt->value);
}

static int parse_size(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text,
                      struct weir_opt_size *out)
{
    char *end;
    long width = strtol(text, &end, 10), height = 0;
    bool ok = end != text && (*end == 'x' || *end == 'X');
    if (ok) {
        const char *second = end + 1;
        height = strtol(second, &end, 10);
        ok = ends_number(second, end);
    }
    if (!ok || width <= 0 || height <= 0)
        return bad_value(origin, "--%s needs WIDTHxHEIGHT such as 640x480, not '%s'", opt->name, text);
    if (!within(opt, (double)width) || !within(opt, (double)height))
        return out_of_bounds(origin, opt, text);
    if (width > INT_MAX || height > INT_MAX)
        return bad_value(origin, "--%s %s is too large", opt->name, text);
    *out = (struct weir_opt_size){(int)width, (int)height};
    return 0;
}

static int parse_bytes(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text,
                       uint64_t *out)
{
    static const char units[] = "KMGT";
    if (opt->allow_auto && strcmp(text, "auto") == 0) {
        *out = WEIR_OPT_BYTES_AUTO;
        return 0;
    }
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (!ends_number(text, end + (unit != NULL)) || end == text || strchr(text, '-'))
        return bad_value(origin, "--%s needs bytes such as 512M or 2G, not '%s'", opt->name, text);
    if (errno == ERANGE || value > (uint64_t)INT64_MAX >> shift)
        return bad_value(origin, "--%s %s is too large", opt->name, text);
    *out = value << shift;
    return 0;
}

int weir_option_set(const struct weir_option_origin *origin, const struct weir_opt *opt, const char *text, void *values)
{
    void *field = (char *)values + opt->offset;
    if (opt->kind != WEIR_OPT_FLAG && text[0] == '\0' && !opt->allow_empty)
        return bad_value(origin, "--%s has an empty value", opt->name);
    switch (opt->kind) {
    case WEIR_OPT_FLAG:
        *(bool *)field = true;
        return 0;
    case WEIR_OPT_INT:
        return parse_int(origin, opt, text, field);
    case WEIR_OPT_UINT64:
        return parse_uint64(origin, opt, text, field);
    case WEIR_OPT_DOUBLE:
        return parse_double(origin, opt, text, field);
    case WEIR_OPT_TEXT:
        *(const char **)field = text;
        return 0;
    case WEIR_OPT_ENUM:
        return parse_enum(origin, opt, text, field);
    case WEIR_OPT_SIZE:
        return parse_size(origin, opt, text, field);
    case WEIR_OPT_BYTES:
        return parse_bytes(origin, opt, text, field);
    }
    return 0;
}

/* ---- and back ---- */

void weir_option_choice(const struct weir_opt *opt, int index, char text[WEIR_OPTION_TEXT])
{
    const char *at = opt->value;
    for (int i = 0; i < index && at; i++) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    snprintf(text, WEIR_OPTION_TEXT, "%.*s", at ? (int)strcspn(at, "|") : 0, at ? at : "");
}

static void write_value(const struct weir_opt *opt, const void *field, char text[WEIR_OPTION_TEXT])
{
    const struct weir_opt_size *size = field;
    *text = '\0';
    switch (opt->kind) {
    case WEIR_OPT_INT:
        if (opt->allow_auto && *(const int *)field == WEIR_OPT_AUTO)
            snprintf(text, WEIR_OPTION_TEXT, "auto");
        else
            snprintf(text, WEIR_OPTION_TEXT, "%d", *(const int *)field);
        break;
    case WEIR_OPT_UINT64:
    case WEIR_OPT_BYTES:
        if (opt->allow_auto && *(const uint64_t *)field == WEIR_OPT_BYTES_AUTO)
            snprintf(text, WEIR_OPTION_TEXT, "auto");
        else
            snprintf(text, WEIR_OPTION_TEXT, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case WEIR_OPT_DOUBLE:
        snprintf(text, WEIR_OPTION_TEXT, "%.15g", *(const double *)field);
        break;
    case WEIR_OPT_ENUM:
        weir_option_choice(opt, *(const int *)field, text);
        break;
    case WEIR_OPT_SIZE:
        if (size->width > 0)
            snprintf(text, WEIR_OPTION_TEXT, "%dx%d", size->width, size->height);
        break;
    case WEIR_OPT_FLAG:
    case WEIR_OPT_TEXT:
        break;
    }
}

const char *weir_option_typed(const struct weir_opt *opt, const void *values, char buffer[WEIR_OPTION_TEXT])
{
    const void *field = (const char *)values + opt->offset;
    const char *text = buffer;
    if (opt->kind == WEIR_OPT_FLAG)
        return *(const bool *)field ? "" : NULL;
    if (opt->kind == WEIR_OPT_TEXT)
        text = *(const char *const *)field;
    else
        write_value(opt, field, buffer);
    if (!text || !*text || (opt->preset && strcmp(opt->preset, text) == 0))
        return NULL;
    return text;
}
