#include "base/folders.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

int weir_folders_make(const char *folder)
{
    char path[PATH_MAX];
    struct stat st;
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
        return -ENAMETOOLONG;
    for (char *at = path + 1; *path && *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST && stat(path, &st) != 0)
            return -errno;
        *at = '/';
    }
    if (mkdir(path, 0777) == 0)
        return 0;
    int rc = -errno;
    if (stat(path, &st) != 0)
        return rc;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}
