#include "base/sized.h"

#include <errno.h>
#include <string.h>

/* Larger than any version will be: what has more is a struct that nobody initialised. */
enum { SIZE_MAX_SANE = 65536 };

int weir_sized_copy(void *full, size_t full_size, size_t least, const void *given, const char *type,
                    struct weir_err *err)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < least || size > SIZE_MAX_SANE)
        return weir_err_set(err, -EINVAL,
                            "%s: its size is %zu, and this library knows it from %zu bytes on; set size to "
                            "sizeof(%s), as the function for its defaults does",
                            type, size, least, type);
    for (size_t i = full_size; i < size; i++)
        if (((const unsigned char *)given)[i] != 0)
            return weir_err_set(err, -ENOTSUP,
                                "%s: the option at byte %zu is set, which this older library does not have (it knows "
                                "%zu bytes of %zu); leave it at its default, or install the libweir that the program "
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
