/* The table of codecs and the decoder names that users can select. */
#include "decoders/convert_priv.h"
#include "decoders/decoder_ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A frame is decoded by the selected decoder if that supports it, otherwise by the first row that does. */
static const struct weir_decoder_ops *const rows[] = {
    &weir_decoder_turbo,  &weir_decoder_nvjpeg, &weir_decoder_hybrid, &weir_decoder_png,  &weir_decoder_jpeg2000,
    &weir_decoder_jpegxl, &weir_decoder_raw,    &weir_decoder_video,  &weir_decoder_null, &weir_decoder_turbo_original,
};
enum { ROWS = sizeof rows / sizeof rows[0], NAMES = 256 };

const struct weir_decoder_ops *weir_decoder_ops_at(int row)
{
    return row >= 0 && row < ROWS ? rows[row] : NULL;
}

int weir_decoder_find(const char *name)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i]->selectable && strcmp(rows[i]->name, name) == 0)
            return i;
    return -1;
}

/* Also true for a codec that was not built in: its row reports the missing library. */
static bool decodes(const struct weir_decoder_ops *ops, enum weir_frame_kind kind)
{
    return (ops->decode || ops->why_not) && (ops->no_pixels || ops->kinds & WEIR_KIND(kind));
}

int weir_decoder_row_for(int preferred, enum weir_frame_kind kind, const uint8_t *bytes, size_t length)
{
    if (kind == WEIR_FRAME_IMAGE)
        kind = weir_frame_kind_of(bytes, length);
    if (kind == WEIR_FRAME_IMAGE)
        kind = WEIR_FRAME_JPEG;
    if (preferred >= 0 && decodes(rows[preferred], kind))
        return preferred;
    for (int i = 0; i < ROWS; i++)
        if (!rows[i]->no_pixels && decodes(rows[i], kind))
            return i;
    return -1;
}

size_t weir_frame_end(const uint8_t *bytes, size_t length)
{
    enum weir_frame_kind kind = weir_frame_kind_of(bytes, length);
    for (int i = 0; i < ROWS; i++)
        if (rows[i]->end && rows[i]->kinds & WEIR_KIND(kind))
            return rows[i]->end(bytes, length);
    return 0;
}

bool weir_decoder_scales(enum weir_frame_kind kind)
{
    return rows[weir_decoder_row_for(-1, kind, NULL, 0)]->scales;
}

/* ---- names ---- */

bool weir_decoder_row(int i, const char **name, const char **summary, const char **why_not)
{
    const struct weir_decoder_ops *ops = weir_decoder_ops_at(i);
    if (!ops)
        return false;
    *name = ops->name;
    *summary = ops->summary;
    *why_not = ops->why_not;
    return true;
}

void weir_decoder_library(char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < ROWS; i++)
        if (rows[i]->library && length < size) {
            rows[i]->library(text + length, size - length);
            length = strlen(text);
            snprintf(text + length, size - length, "; ");
            length = strlen(text);
        }
    snprintf(text + length, size - length, "rows converted by %s", weir_convert_name());
}

/* option: prefix of the error message. other: a valid name that is not in the table, or "". */
static int check_name(const char *engine, const char *option, const char *other, struct weir_err *err)
{
    char names[NAMES];
    int row = weir_decoder_find(engine);
    if (row >= 0 && rows[row]->why_not)
        return weir_err_set(err, -ENOTSUP, "decoder %s is not available: %s", engine, rows[row]->why_not);
    if (row >= 0)
        return 0;
    snprintf(names, sizeof names, "%s", other);
    for (int i = 0; i < ROWS; i++)
        if (rows[i]->selectable)
            snprintf(names + strlen(names), NAMES - strlen(names), "%s%s", names[0] ? ", " : "", rows[i]->name);
    return weir_err_set(err, -EINVAL, "%sunknown JPEG decoder \"%.100s\"; choose one of %s", option, engine, names);
}

int weir_decoder_check(const char *engine, struct weir_err *err)
{
    return check_name(engine, "", "", err);
}

enum weir_decode_where weir_decoder_where(const char *engine)
{
    int row = weir_decoder_find(engine);
    return row < 0 ? WEIR_DECODE_ON_CPU : rows[row]->where;
}

bool weir_decoder_on_gpu(const char *engine)
{
    return weir_decoder_where(engine) != WEIR_DECODE_ON_CPU;
}

const char *weir_decoder_at(enum weir_decode_where where)
{
    int row = 0;
    while (!rows[row]->selectable || rows[row]->where != where)
        row++;
    return rows[row]->name;
}

int weir_decoder_check_device(const char *engine, bool gpu, struct weir_err *err)
{
    if (strcmp(engine, "auto") == 0)
        return 0;
    int rc = check_name(engine, "--decoder: ", "auto", err);
    if (rc < 0 || gpu || !weir_decoder_on_gpu(engine))
        return rc;
    return weir_err_set(err, -EINVAL, "--decoder %s decodes into a GPU's memory; add --device cuda or use --decoder %s",
                        engine, weir_decoder_at(WEIR_DECODE_ON_CPU));
}

int weir_decoder_ready(const char *engine, int gpu, struct weir_err *err)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i]->name, engine) == 0)
            return rows[i]->ready ? rows[i]->ready(gpu, err) : 0;
    return 0;
}
