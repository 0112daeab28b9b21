/* libFuzzer: reads arbitrary bytes as a plain training log and prints it, as `weir report` does. */
#include "analyze/logs/log_lines.h"
#include "analyze/logs/log_plain.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

/* The output must not contain control characters, which could affect a terminal. */
static void check_output(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\n') || text[i] == 0x7f)
            abort();
}

static void print_all(const struct weir_plain_log *log)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    struct weir_json json;
    weir_plain_print(out, log, WEIR_LANG_EN);
    weir_plain_print(out, log, WEIR_LANG_ZH);
    weir_json_open(&json, out, true);
    weir_json_object(&json, NULL);
    weir_plain_json(&json, log);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fclose(out);
    check_output(text, size);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_plain_log log;
    struct weir_lines lines;
    FILE *in = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "rb") : NULL;
    if (!in)
        return 0;
    if (weir_plain_open(&log) == 0) {
        weir_lines_open(&lines, in);
        while (weir_lines_next(&lines) > 0)
            if (weir_plain_line(&log, lines.text, lines.length, lines.number) < 0)
                break;
        if (weir_plain_finish(&log) == 0)
            print_all(&log);
        weir_lines_close(&lines);
    }
    weir_plain_close(&log);
    fclose(in);
    return 0;
}
