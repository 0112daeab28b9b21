#include "base/beside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel knows what is mapped there by its whole path; the linker only as it was asked for it, and a program as it
 * was called. */
static int file_of(const void *ours, char path[PATH_MAX])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    if (!maps)
        return -errno;
    errno = 0;
    while (!found && getline(&line, &size, maps) > 0) {
        uintptr_t from, to;
        const char *name = strchr(line, '/'); /* nothing before it has one */
        if (!name || sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) != 2)
            continue;
        found = (uintptr_t)ours >= from && (uintptr_t)ours < to;
        if (found)
            snprintf(path, PATH_MAX, "%s", name);
    }
    int rc = found ? 0 : errno ? -errno : -ENOENT;
    free(line);
    fclose(maps);
    return rc;
}

int weir_path_beside(const void *ours, const char *relative, char path[PATH_MAX])
{
    char file[PATH_MAX], joined[2 * PATH_MAX];
    int rc = file_of(ours, file);
    path[0] = '\0';
    if (rc < 0)
        return rc;
    *strrchr(file, '/') = '\0';
    snprintf(joined, sizeof joined, "%s/%s", file, relative);
    if (realpath(joined, path))
        return 0;
    rc = -errno;
    path[0] = '\0';
    return rc;
}
