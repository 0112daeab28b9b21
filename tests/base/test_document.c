/* Documents of every writer, and the columns of field tables. */
#include "base/document.h"
#include "base/field_rows.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

struct camera {
    const char *name;
    uint64_t reads;
    double p99_s, share, wall_s, work_s, bytes, rate;
    const char *note;
};

static double twice(const void *camera)
{
    return 2 * ((const struct camera *)camera)->rate;
}

static void print_range(FILE *out, const void *camera)
{
    fprintf(out, "%.0f-%.0f", ((const struct camera *)camera)->rate, twice(camera));
}

#define S struct camera
static const struct weir_field inner[] = {
    PLAIN("wall_s", wall_s, SECONDS("wall", 3, .priority = 2)),
    PLAIN(NULL, work_s, PERCENT("work", 1, .whole = offsetof(S, wall_s))),
};
static WEIR_FIELDS(inner_fields, inner);
static const struct weir_field rows[] = {
    PLAIN("name", name, COLUMN("camera", .left = true, .shrink_to = 8)),
    PLAIN("reads", reads, COLUMN("reads")),
    KNOWN("p99_s", p99_s, TIME("p99")),
    KNOWN("share", share, PERCENT("share", 0)),
    {.type = WEIR_FIELD_GROUP, .inner = &inner_fields},
    POSITIVE("bytes", bytes, SIZE("bytes")),
    PLAIN("images_per_s", rate, COLUMN("images/s", .decimals = 1)),
    DERIVED("twice", twice),
    CELL("range", print_range, .left = true),
    PLAIN(NULL, note, COLUMN("note", .left = true, .optional = true)),
};
static WEIR_FIELDS(fields, rows);
#undef S

static const struct camera cameras[] = {
    {"left", 12, 0.0123, 0.256, 2, 1, 3 << 20, 7.25, ""},
    {"a camera with a long name", 3, -1, -1, 0, 0, 0, NAN, ""},
};

static bool is_left(const void *camera)
{
    return ((const struct camera *)camera)->reads == 12;
}

static void describe(struct weir_document *document, bool (*shown)(const void *))
{
    fputs("one text that is wrapped: it is longer than\nthe line\n", weir_document_text(document, "text", 2));
    fputs("for people\n", weir_document_text(document, NULL, 0));
    weir_document_members(document, &inner_fields, &cameras[0]);
    weir_document_begin(document, "list", '[');
    weir_document_object(document, NULL, &inner_fields, &cameras[0]);
    weir_document_object(document, NULL, &inner_fields, NULL);
    weir_document_end(document, ']');
    weir_document_table(document, "cameras", &fields, cameras, 2, sizeof *cameras, shown);
    weir_document_table(document, NULL, &fields, cameras, 1, sizeof *cameras, NULL);
    if (weir_document_stream(document))
        fputs("printed by a function\n", weir_document_stream(document));
}

static void check(const struct weir_document_writer *writer, const char *columns, bool (*shown)(const void *),
                  const char *expected)
{
    struct weir_document document;
    char *memory = NULL;
    size_t size;
    FILE *out = open_memstream(&memory, &size);
    setenv("COLUMNS", columns, 1);
    weir_document_open(&document, writer, out);
    describe(&document, shown);
    weir_document_close(&document);
    fclose(out);
    cr_assert_str_eq(memory, expected);
    free(memory);
}

Test(document, terminal)
{
    check(&weir_terminal_writer, "40", is_left,
          "one text that is wrapped: it is longer\n  than\nthe line\nfor people\n"
          "camera  reads      p99  share   work  bytes  images/s  range\n"
          "left       12  12.30ms    26%  50.0%     3M       7.2  7-14\n"
          "camera  reads      p99  share   work  bytes  images/s  range\n"
          "left       12  12.30ms    26%  50.0%     3M       7.2  7-14\n"
          "printed by a function\n");
    check(&weir_terminal_writer, "100", NULL,
          "one text that is wrapped: it is longer than\nthe line\nfor people\n"
          "camera                     reads      p99  share    wall   work  bytes  images/s  range\n"
          "left                          12  12.30ms    26%  2.000s  50.0%     3M       7.2  7-14\n"
          "a camera with a long name      3        -      -  0.000s   0.0%      -         -  nan-nan\n"
          "camera  reads      p99  share    wall   work  bytes  images/s  range\n"
          "left       12  12.30ms    26%  2.000s  50.0%     3M       7.2  7-14\n"
          "printed by a function\n");
}

Test(document, json)
{
    check(&weir_json_writer, "40", is_left,
          "{\n  \"schema\": 1,\n"
          "  \"text\": \"one text that is wrapped: it is longer than\\nthe line\",\n"
          "  \"wall_s\": 2,\n"
          "  \"list\": [\n    {\n      \"wall_s\": 2\n    },\n    null\n  ],\n"
          "  \"cameras\": [\n"
          "    {\n      \"name\": \"left\",\n      \"reads\": 12,\n      \"p99_s\": 0.0123,\n      \"share\": 0.256,\n"
          "      \"wall_s\": 2,\n      \"bytes\": 3145728,\n      \"images_per_s\": 7.25,\n      \"twice\": 14.5\n    "
          "},\n"
          "    {\n      \"name\": \"a camera with a long name\",\n      \"reads\": 3,\n      \"p99_s\": null,\n"
          "      \"share\": null,\n      \"wall_s\": 0,\n      \"bytes\": null,\n      \"images_per_s\": null,\n"
          "      \"twice\": null\n    }\n  ]\n}\n");
}
