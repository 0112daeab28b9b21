/* libFuzzer: parses arbitrary bytes as a --config file. Writing the parsed options and parsing them again must give the
 * same options. */
#include "cli/options.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct weir_config_file first, second;
    struct weir_err err = WEIR_ERR_NONE;
    if (size > WEIR_CONFIG_BYTES)
        return 0;
    char *text = malloc(size + 1), *written = NULL;
    size_t length = 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (weir_config_parse(&first, text, size, &err) == 0) {
        FILE *out = open_memstream(&written, &length);
        for (size_t i = 0; i < first.n; i++)
            require(weir_config_write(out, first.lines[i].name, first.lines[i].value));
        fclose(out);
        require(weir_config_parse(&second, written, length, &err) == 0 && second.n == first.n);
        for (size_t i = 0; i < first.n; i++)
            require(strcmp(first.lines[i].name, second.lines[i].name) == 0 &&
                    strcmp(first.lines[i].value, second.lines[i].value) == 0);
    } else {
        require(atoi(err.text) >= 1 && first.n <= WEIR_CONFIG_LINES);
    }
    free(written);
    free(text);
    return 0;
}
