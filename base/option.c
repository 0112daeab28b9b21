#include "base/option.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- from a string ---- */

static int check_bounds(const struct weir_opt *opt, double value, const char *text, struct weir_err *err)
{
    if (opt->max <= opt->min || (value >= opt->min && value <= opt->max))
        return 0;
    return weir_err_set(err, -EINVAL, "--%s %s: must be from %.12g to %.12g%s%s%s", opt->name, text, opt->min, opt->max,
                        opt->unit ? " " : "", opt->unit ? opt->unit : "", opt->allow_auto ? ", or auto" : "");
}

static int too_large(const struct weir_opt *opt, const char *text, struct weir_err *err)
{
    return weir_err_set(err, -EINVAL, "--%s %s: too large", opt->name, text);
}

static bool ends_number(const char *text, const char *end)
{
    return end != text && *end == '\0';
}

static int parse_int(const struct weir_opt *opt, const char *text, int *out, struct weir_err *err)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (!ends_number(text, end))
        return weir_err_set(err, -EINVAL, "--%s '%s': must be a whole number%s", opt->name, text,
                            opt->allow_auto ? " or auto" : "");
    int rc = check_bounds(opt, (double)value, text, err);
    if (rc == 0 && (errno == ERANGE || value < INT_MIN || value > INT_MAX))
        return too_large(opt, text, err);
    *out = (int)value;
    return rc;
}

static int parse_uint64(const struct weir_opt *opt, const char *text, uint64_t *out, struct weir_err *err)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (!ends_number(text, end) || strchr(text, '-'))
        return weir_err_set(err, -EINVAL, "--%s '%s': must be a whole number of at least 0", opt->name, text);
    if (errno == ERANGE)
        return too_large(opt, text, err);
    *out = value;
    return check_bounds(opt, (double)value, text, err);
}

static int parse_double(const struct weir_opt *opt, const char *text, double *out, struct weir_err *err)
{
    char *end;
    double value = strtod(text, &end);
    end += opt->unit && strcmp(opt->unit, "%") == 0 && end > text && *end == '%';
    if (!ends_number(text, end) || !isfinite(value))
        return weir_err_set(err, -EINVAL, "--%s '%s': must be a number", opt->name, text);
    *out = value;
    return check_bounds(opt, value, text, err);
}

static int parse_enum(const struct weir_opt *opt, const char *text, int *out, struct weir_err *err)
{
    char choice[WEIR_OPTION_TEXT];
    const char *at = opt->value;
    for (int i = 0; at; i++) {
        weir_option_choice(opt->value, i, choice);
        if (*choice && strcmp(choice, text) == 0) {
            *out = i;
            return 0;
        }
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    return weir_err_set(err, -EINVAL, "--%s '%s': must be one of %s", opt->name, text, opt->value);
}

static int parse_size(const struct weir_opt *opt, const char *text, struct weir_opt_size *out, struct weir_err *err)
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
        return weir_err_set(err, -EINVAL, "--%s '%s': must be WIDTHxHEIGHT, such as 640x480", opt->name, text);
    int rc = check_bounds(opt, (double)width, text, err);
    if (rc == 0)
        rc = check_bounds(opt, (double)height, text, err);
    if (rc == 0 && (width > INT_MAX || height > INT_MAX))
        return too_large(opt, text, err);
    *out = (struct weir_opt_size){(int)width, (int)height};
    return rc;
}

static int parse_bytes(const struct weir_opt *opt, const char *text, uint64_t *out, struct weir_err *err)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (!ends_number(text, end + (unit != NULL)) || end == text || strchr(text, '-'))
        return weir_err_set(err, -EINVAL, "--%s '%s': must be a number of bytes, such as 512M or 2G", opt->name, text);
    if (errno == ERANGE || value > (uint64_t)INT64_MAX >> shift)
        return too_large(opt, text, err);
    *out = value << shift;
    return 0;
}

static void set_auto(const struct weir_opt *opt, void *field)
{
    if (opt->kind == WEIR_OPT_BYTES)
        *(uint64_t *)field = opt->zero_is_auto ? 0 : WEIR_OPT_BYTES_AUTO;
    else
        *(int *)field = opt->zero_is_auto ? 0 : WEIR_OPT_AUTO;
}

int weir_option_parse(const struct weir_opt *opt, const char *text, void *values, struct weir_err *err)
{
    void *field = (char *)values + opt->offset;
    if (opt->kind != WEIR_OPT_FLAG && text[0] == '\0' && !opt->allow_empty)
        return weir_err_set(err, -EINVAL, "--%s: the value is empty; specify %s", opt->name, opt->value);
    if (opt->allow_auto && strcmp(text, "auto") == 0) {
        set_auto(opt, field);
        return 0;
    }
    switch (opt->kind) {
    case WEIR_OPT_FLAG:
        *(bool *)field = true;
        return 0;
    case WEIR_OPT_INT:
        return parse_int(opt, text, field, err);
    case WEIR_OPT_UINT64:
        return parse_uint64(opt, text, field, err);
    case WEIR_OPT_DOUBLE:
        return parse_double(opt, text, field, err);
    case WEIR_OPT_TEXT:
        *(const char **)field = text;
        return 0;
    case WEIR_OPT_ENUM:
        return parse_enum(opt, text, field, err);
    case WEIR_OPT_SIZE:
        return parse_size(opt, text, field, err);
    case WEIR_OPT_BYTES:
        return parse_bytes(opt, text, field, err);
    }
    return 0;
}

/* ---- to a string ---- */

void weir_option_choice(const char *choices, int index, char text[WEIR_OPTION_TEXT])
{
    const char *at = choices;
    for (int i = 0; i < index && at; i++) {
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    snprintf(text, WEIR_OPTION_TEXT, "%.*s", at ? (int)strcspn(at, "|") : 0, at ? at : "");
}

void weir_option_key(char *key, size_t size, const char *name)
{
    snprintf(key, size, "%s", name);
    for (char *c = key; *c; c++)
        if (*c == '-')
            *c = '_';
}

static bool is_auto(const struct weir_opt *opt, const void *field)
{
    if (!opt->allow_auto)
        return false;
    if (opt->kind == WEIR_OPT_BYTES)
        return *(const uint64_t *)field == (opt->zero_is_auto ? 0 : WEIR_OPT_BYTES_AUTO);
    return *(const int *)field == (opt->zero_is_auto ? 0 : WEIR_OPT_AUTO);
}

const char *weir_option_text(const struct weir_opt *opt, const void *values, char buffer[WEIR_OPTION_TEXT])
{
    const void *field = (const char *)values + opt->offset;
    const struct weir_opt_size *size = field;
    if (is_auto(opt, field))
        return "auto";
    *buffer = '\0';
    switch (opt->kind) {
    case WEIR_OPT_FLAG:
        return *(const bool *)field ? "true" : "false";
    case WEIR_OPT_TEXT:
        return *(const char *const *)field;
    case WEIR_OPT_INT:
        snprintf(buffer, WEIR_OPTION_TEXT, "%d", *(const int *)field);
        break;
    case WEIR_OPT_UINT64:
    case WEIR_OPT_BYTES:
        snprintf(buffer, WEIR_OPTION_TEXT, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case WEIR_OPT_DOUBLE:
        snprintf(buffer, WEIR_OPTION_TEXT, "%.15g", *(const double *)field);
        break;
    case WEIR_OPT_ENUM:
        weir_option_choice(opt->value, *(const int *)field, buffer);
        break;
    case WEIR_OPT_SIZE:
        snprintf(buffer, WEIR_OPTION_TEXT, "%dx%d", size->width, size->height);
        break;
    }
    return buffer;
}

const char *weir_option_typed(const struct weir_opt *opt, const void *values, char buffer[WEIR_OPTION_TEXT])
{
    const char *text = weir_option_text(opt, values, buffer);
    if (opt->kind == WEIR_OPT_FLAG)
        return strcmp(text, "true") == 0 ? "" : NULL;
    if (opt->kind == WEIR_OPT_SIZE && strcmp(text, "0x0") == 0)
        return NULL;
    return text && *text && !(opt->preset && strcmp(opt->preset, text) == 0) ? text : NULL;
}

int weir_option_check(const struct weir_opt *opt, const void *values, struct weir_err *err)
{
    const void *field = (const char *)values + opt->offset;
    const struct weir_opt_size *size = field;
    char buffer[WEIR_OPTION_TEXT];
    if (opt->max <= opt->min || is_auto(opt, field))
        return 0;
    const char *text = weir_option_text(opt, values, buffer);
    if (opt->kind == WEIR_OPT_INT)
        return check_bounds(opt, *(const int *)field, text, err);
    if (opt->kind == WEIR_OPT_DOUBLE)
        return check_bounds(opt, *(const double *)field, text, err);
    if (opt->kind != WEIR_OPT_SIZE || (size->width == 0 && size->height == 0))
        return 0;
    int rc = check_bounds(opt, size->width, text, err);
    return rc == 0 ? check_bounds(opt, size->height, text, err) : rc;
}

void weir_option_json(const struct weir_opt *opt, const void *values, struct weir_json *json)
{
    const void *field = (const char *)values + opt->offset;
    char key[WEIR_OPTION_TEXT], buffer[WEIR_OPTION_TEXT];
    weir_option_key(key, sizeof key, opt->name);
    const char *text = weir_option_text(opt, values, buffer);
    if (opt->kind == WEIR_OPT_FLAG)
        weir_json_bool(json, key, *(const bool *)field);
    else if (opt->kind == WEIR_OPT_INT && !is_auto(opt, field))
        weir_json_int(json, key, *(const int *)field);
    else if ((opt->kind == WEIR_OPT_UINT64 || opt->kind == WEIR_OPT_BYTES) && !is_auto(opt, field))
        weir_json_uint(json, key, *(const uint64_t *)field);
    else if (opt->kind == WEIR_OPT_DOUBLE)
        weir_json_double(json, key, *(const double *)field);
    else
        weir_json_text(json, key, text);
}

/* Larger than the struct of any version, so a larger size is an uninitialised value. */
enum { SIZE_MAX_SANE = 65536 };

int weir_sized_copy(void *full, size_t full_size, size_t least, const void *given, const char *type,
                    struct weir_err *err)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < least || size > SIZE_MAX_SANE)
        return weir_err_set(err, -EINVAL,
                            "%s: its size is %zu, which no version of this struct has (at least %zu); set it to "
                            "sizeof(%s), as the function for its defaults does",
                            type, size, least, type);
    for (size_t i = full_size; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return weir_err_set(err, -ENOTSUP,
                                "%s: the option at byte %zu is set, but this older library does not have it (it knows "
                                "%zu of %zu bytes); leave it at its default, or install the libweir that the program "
                                "was built with",
                                type, i, full_size, size);
    memcpy(full, given, size < full_size ? size : full_size);
    memcpy(full, &full_size, sizeof full_size);
    return 0;
}

void weir_sized_fill(void *out, size_t size, const void *full, size_t full_size)
{
    memset(out, 0, size);
    memcpy(out, full, size < full_size ? size : full_size);
    memcpy(out, &size, sizeof size);
}
