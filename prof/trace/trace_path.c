#include "base/files.h"
#include "weir/trace.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Replaces special characters, because TensorBoard's plugin splits the name at dots. */
static void clean(char *name)
{
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '-' && *name != '_')
            *name = '-';
}

static void own_name(char *name, size_t size)
{
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof host - 1) != 0 || !*host)
        snprintf(host, sizeof host, "localhost");
    snprintf(name, size, "%s_%ld", host, (long)getpid());
}

int weir_trace_path(char *path, size_t size, const char *folder, const char *worker, bool gzip, struct weir_err *err)
{
    char name[NAME_MAX + 1];
    struct timespec now;
    int rc = weir_folders_make(folder);
    if (rc < 0)
        return weir_err_set(err, rc, "%s: cannot create the folder for traces: %s; choose a writable folder", folder,
                            strerror(-rc));
    if (worker && *worker)
        snprintf(name, sizeof name, "%s", worker);
    else
        own_name(name, sizeof name);
    clean(name);
    clock_gettime(CLOCK_REALTIME, &now);
    int length = snprintf(path, size, "%s/%s.%" PRId64 ".pt.trace.json%s", folder, name,
                          now.tv_sec * INT64_C(1000000000) + now.tv_nsec, gzip ? ".gz" : "");
    if (length < 0 || (size_t)length >= size)
        return weir_err_set(err, -ENAMETOOLONG,
                            "%s: the path of a trace would be too long; choose a folder with a "
                            "shorter path",
                            folder);
    return 0;
}
