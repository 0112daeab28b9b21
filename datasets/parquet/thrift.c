#include "datasets/parquet/thrift.h"

enum { DEPTH_MAX = 32 };

static void fail(struct weir_thrift *t)
{
    t->is_bad = true;
    t->at = t->end;
}

static uint8_t byte(struct weir_thrift *t)
{
    if (t->at < t->end)
        return *t->at++;
    fail(t);
    return 0;
}

static uint64_t varint(struct weir_thrift *t)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t b = byte(t);
        value |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return value;
    }
    fail(t);
    return 0;
}

int64_t weir_thrift_integer(struct weir_thrift *t)
{
    uint64_t value = varint(t);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

int weir_thrift_field(struct weir_thrift *t, int *id)
{
    uint8_t header = byte(t);
    int type = header & 15;
    if (header == 0)
        return 0;
    int64_t next = header >> 4 ? *id + (header >> 4) : weir_thrift_integer(t);
    if (t->is_bad || type > WEIR_THRIFT_STRUCT || next < 0 || next > INT16_MAX) {
        fail(t);
        return 0;
    }
    *id = (int)next;
    return type;
}

const uint8_t *weir_thrift_bytes(struct weir_thrift *t, size_t *length)
{
    uint64_t n = varint(t);
    const uint8_t *bytes = t->at;
    if (t->is_bad || n > (size_t)(t->end - t->at)) {
        fail(t);
        *length = 0;
        return NULL;
    }
    t->at += n;
    *length = (size_t)n;
    return bytes;
}

uint32_t weir_thrift_list(struct weir_thrift *t, int *type)
{
    uint8_t header = byte(t);
    uint64_t n = header >> 4 == 15 ? varint(t) : header >> 4;
    *type = header & 15;
    if (n > (size_t)(t->end - t->at)) {
        fail(t);
        return 0;
    }
    return (uint32_t)n;
}

static void skip_elements(struct weir_thrift *t, uint64_t n, int type)
{
    for (uint64_t i = 0; i < n && !t->is_bad; i++)
        if (type == WEIR_THRIFT_TRUE || type == WEIR_THRIFT_FALSE)
            byte(t); /* in a list, a bool takes a byte */
        else
            weir_thrift_skip(t, type);
}

static void skip_map(struct weir_thrift *t)
{
    uint64_t n = varint(t);
    uint8_t types = n ? byte(t) : 0;
    if (n > (size_t)(t->end - t->at))
        fail(t);
    for (uint64_t i = 0; i < n && !t->is_bad; i++) {
        skip_elements(t, 1, types >> 4);
        skip_elements(t, 1, types & 15);
    }
}

static void skip_struct(struct weir_thrift *t)
{
    int id = 0, type;
    while ((type = weir_thrift_field(t, &id)) != 0)
        weir_thrift_skip(t, type);
}

void weir_thrift_skip(struct weir_thrift *t, int type)
{
    size_t length;
    if (t->depth == DEPTH_MAX) {
        fail(t);
        return;
    }
    t->depth++;
    if (type == WEIR_THRIFT_BYTE) {
        byte(t);
    } else if (type >= WEIR_THRIFT_I16 && type <= WEIR_THRIFT_I64) {
        varint(t);
    } else if (type == WEIR_THRIFT_DOUBLE) {
        for (int i = 0; i < 8; i++)
            byte(t);
    } else if (type == WEIR_THRIFT_BINARY) {
        weir_thrift_bytes(t, &length);
    } else if (type == WEIR_THRIFT_LIST || type == WEIR_THRIFT_SET) {
        uint32_t n = weir_thrift_list(t, &type);
        skip_elements(t, n, type);
    } else if (type == WEIR_THRIFT_MAP) {
        skip_map(t);
    } else if (type == WEIR_THRIFT_STRUCT) {
        skip_struct(t);
    } else if (type != WEIR_THRIFT_TRUE && type != WEIR_THRIFT_FALSE) {
        fail(t);
    }
    t->depth--;
}
