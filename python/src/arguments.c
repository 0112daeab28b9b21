#include "python/src/arguments.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct argument {
    const char *option, *name;
    bool is_word; /* its value follows */
};

static const struct argument *find_argument(const char *option, size_t n)
{
    static const struct argument arguments[] = {
        {"action-keys", "action_keys", false},
        {"allow-external", "allow_external", false},
        {"allow-ragged", "allow_ragged", false},
        {"batch-size", "batch_size", false},
        {"crop", "crop", false},
        {"decode-cache", "decode_cache", false},
        {"decoder", "decoder", true},
        {"deterministic", "deterministic", false},
        {"device", "device", true},
        {"drop-last", "drop_last", false},
        {"image-keys", "image_keys", false},
        {"index", "index", false},
        {"io", "io", true},
        {"max-batches", "max_batches", false},
        {"no-shuffle", "shuffle=False", false},
        {"num-workers", "num_workers", false},
        {"on-error", "on_error", true},
        {"prefetch", "prefetch_factor", false},
        {"qpos-keys", "qpos_keys", false},
        {"rank", "rank", false},
        {"sampling", "sampling", false},
        {"seed", "seed", false},
        {"split", "file_split", true},
        {"train-split", "train_split", false},
        {"world-size", "world_size", false},
        {"wrap", "wrap", false},
    };
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (strlen(arguments[i].option) == n && memcmp(arguments[i].option, option, n) == 0)
            return &arguments[i];
    return NULL;
}

/* What is at "--" in the text; *end: what follows it there. The bytes written, 0 when it is no argument. */
static size_t name_argument(char *to, size_t room, const char *at, const char **end)
{
    size_t n = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
    const struct argument *argument = find_argument(at + 2, n);
    if (!argument)
        return 0;
    const char *after = at + 2 + n;
    size_t word = argument->is_word && *after == ' ' ? strcspn(after + 1, " ,;") : 0;
    word -= word > 0 && after[word] == ':';
    *end = word > 0 ? after + 1 + word : after;
    int bytes = word > 0 ? snprintf(to, room, "%s=\"%.*s\"", argument->name, (int)word, after + 1)
                         : snprintf(to, room, "%s", argument->name);
    return bytes > 0 && (size_t)bytes < room ? (size_t)bytes : 0;
}

void weir_name_arguments(char *to, size_t room, const char *text)
{
    for (const char *at = text; *at && room > 1;) {
        const char *end = at + 1;
        bool begins = strncmp(at, "--", 2) == 0 && (at == text || at[-1] == ' ');
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
