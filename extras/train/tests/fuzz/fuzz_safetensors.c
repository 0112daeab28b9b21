/* libFuzzer target for hostile safetensors files. An accepted file is written and read again, which must give the same
 * result. The first byte of the input selects its form: a complete file, or a header followed by data, to which the
 * target adds the header's length. */
#include "extras/train/cli/safetensors.h"
#include "tests/fuzz/fuzz_bytes.h"

#include <stdio.h>
#include <unistd.h>

enum { DATA_MAX = 64, TENSORS = 4, VALUES = 4, META = 2 };

struct asked {
    float values[TENSORS][VALUES];
    struct weir_safetensor tensors[TENSORS];
    struct weir_safetensors_meta meta[META];
};

static void ask(struct asked *asked)
{
    memset(asked->values, 0x5A, sizeof asked->values);
    asked->tensors[0] = (struct weir_safetensor){"w", 2, {2, 2}, asked->values[0]};
    asked->tensors[1] = (struct weir_safetensor){"b", 1, {3}, asked->values[1]};
    asked->tensors[2] = (struct weir_safetensor){"s", 0, {0}, asked->values[2]};
    asked->tensors[3] = (struct weir_safetensor){"z", 2, {0, 5}, NULL};
    asked->meta[0] = (struct weir_safetensors_meta){"step", "before"};
    asked->meta[1] = (struct weir_safetensors_meta){"text", "before"};
}

static void put_file(const char *path, const uint8_t *data, size_t size)
{
    static const uint8_t values[DATA_MAX];
    FILE *file = fopen(path, "wb");
    require(file != NULL);
    if (size > 0 && *data & 1) {
        uint64_t length = size - 1;
        require(fwrite(&length, 1, sizeof length, file) == sizeof length);
        require(fwrite(data + 1, 1, size - 1, file) == size - 1);
        require(fwrite(values, 1, *data >> 2, file) == *data >> 2);
    } else if (size > 0) {
        require(fwrite(data + 1, 1, size - 1, file) == size - 1);
    }
    require(fclose(file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    static struct asked first, second;
    struct weir_err err = WEIR_ERR_NONE;
    if (!*path)
        snprintf(path, sizeof path, "/dev/shm/weir-fuzz-safetensors-%d", (int)getpid());
    put_file(path, data, size);
    ask(&first);
    ask(&second);
    int rc = weir_safetensors_read(path, first.tensors, TENSORS, first.meta, META, &err);
    if (rc == 0) {
        require(weir_safetensors_write(path, first.tensors, TENSORS, first.meta, META, &err) == 0);
        require(weir_safetensors_read(path, second.tensors, TENSORS, second.meta, META, &err) == 0);
    } else {
        require(rc == -EINVAL && strstr(err.text, path) == err.text && !strchr(err.text, '\n'));
    }
    require(memcmp(first.values, second.values, sizeof first.values) == 0);
    for (int i = 0; i < META; i++)
        require(strcmp(first.meta[i].value, second.meta[i].value) == 0);
    unlink(path);
    return 0;
}
