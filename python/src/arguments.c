#include "python/src/arguments.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* What a word behind it is made of. */
enum value { NUMBER, WORD, SIZE, REST };

struct argument {
    const char *option, *name;
    enum value value;
};

static const struct argument *find_argument(const char *option, size_t n)
{
    static const struct argument arguments[] = {
        {"action-keys", "action_keys", NUMBER},
        {"allow-external", "allow_external", NUMBER},
        {"allow-ragged", "allow_ragged", NUMBER},
        {"batch-size", "batch_size", NUMBER},
        {"cameras", "cameras", NUMBER},
        {"crop", "crop", NUMBER},
        {"decode-cache", "decode_cache", WORD},
        {"decoder", "decoder", WORD},
        {"deterministic", "deterministic", NUMBER},
        {"device", "device", WORD},
        {"drop-last", "drop_last", NUMBER},
        {"image-keys", "image_keys", NUMBER},
        {"image-size", "image_size", SIZE},
        {"index", "index", NUMBER},
        {"io", "io", WORD},
        {"max-batches", "max_batches", NUMBER},
        {"no-shuffle", "shuffle=False", NUMBER},
        {"num-workers", "num_workers", NUMBER},
        {"on-error", "on_error", WORD},
        {"num-epochs", "num_epochs", NUMBER},
        {"output", "image_dtype", WORD},
        {"prefetch", "prefetch_factor", NUMBER},
        {"profile", "weir.profile()", REST},
        {"qpos-keys", "qpos_keys", NUMBER},
        {"rank", "rank", NUMBER},
        {"sampling", "sampling", NUMBER},
        {"seed", "seed", NUMBER},
        {"seconds", "more batches", REST},
        {"split", "file_split", WORD},
        {"train-split", "train_split", NUMBER},
        {"world-size", "world_size", NUMBER},
        {"wrap", "wrap", NUMBER},
    };
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (strlen(arguments[i].option) == n && memcmp(arguments[i].option, option, n) == 0)
            return &arguments[i];
    return NULL;
}

/* The argument with that value; 0 when it has none like that. */
static int write_value(char *to, size_t room, const struct argument *argument, const char *word, int bytes)
{
    int width, height;
    char last;
    bool is_number = *word >= '0' && *word <= '9';
    if (bytes == 0 || argument->value == REST || (argument->value == NUMBER && !is_number))
        return 0;
    if (argument->value == NUMBER)
        return snprintf(to, room, "%s=%.*s", argument->name, bytes, word);
    if (argument->value == SIZE)
        return sscanf(word, "%6dx%6d%c", &width, &height, &last) == 2
                   ? snprintf(to, room, "%s=(%d, %d)", argument->name, width, height)
                   : 0;
    return snprintf(to, room, "%s=\"%.*s\"", argument->name, bytes, word);
}

/* What is at "--" in the text; *end: what follows it there. The bytes written, 0 when it is no argument. */
static size_t name_argument(char *to, size_t room, const char *at, const char **end)
{
    size_t n = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
    const struct argument *argument = find_argument(at + 2, n);
    if (!argument)
        return 0;
    const char *after = at + 2 + n;
    size_t word = *after == ' ' ? strcspn(after + 1, " ,;)\n") : 0;
    word -= word > 0 && after[word] == ':';
    int bytes = write_value(to, room, argument, after + 1, (int)word);
    *end = bytes > 0 || argument->value == REST ? after + (word > 0) + word : after;
    if (bytes == 0)
        bytes = snprintf(to, room, "%s", argument->name);
    return bytes > 0 && (size_t)bytes < room ? (size_t)bytes : 0;
}

void weir_name_arguments(char *to, size_t room, const char *text)
{
    for (const char *at = text; *at && room > 1;) {
        const char *end = at + 1;
        bool begins = strncmp(at, "--", 2) == 0 && (at == text || at[-1] == ' ' || at[-1] == '(');
        size_t n = begins ? name_argument(to, room, at, &end) : 0;
        if (n == 0) {
            *to = *at;
            n = 1;
            end = at + 1;
        }
        to += n;
        room -= n;
        at = end;
    }
    *to = '\0';
}
