#include "datasets/lmdb/lmdb_hold.h"
#include "datasets/helper/helper_spawner.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOLDS_MAX = 64 /* maximum number of processes */, TIMEOUT_S = 60 /* storage may be slow */ };

struct weir_lmdb_hold {
    pid_t owner, pid;
    int fd;
};

static atomic_int holds;

static bool receive_reply(const struct weir_lmdb_hold *hold, struct weir_lmdb_reply *reply)
{
    bool fine = weir_helper_receive(hold->fd, reply, sizeof *reply, TIMEOUT_S);
    reply->text[sizeof reply->text - 1] = '\0';
    return fine;
}

static bool send_request(const struct weir_lmdb_hold *hold, const char *path)
{
    struct stat st;
    struct weir_lmdb_request request = {.mode = stat(path, &st) == 0 ? st.st_mode & 0666 : 0600};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char folder[PATH_MAX + 1] = ".", *whole;
    request.is_file = strcmp(name, "data.mdb") != 0;
    if (slash && (size_t)(slash - path) + 1 < sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    char *real = realpath(folder, NULL); /* absolute, because the process has another current folder */
    bool fine = real && asprintf(&whole, "%s/%s", real, name) >= 0;
    free(real);
    if (!fine)
        return false;
    size_t bytes = strlen(whole) + 1;
    request.path_bytes = (uint32_t)bytes;
    fine = bytes <= WEIR_LMDB_PATH_MAX && weir_helper_send(hold->fd, &request, sizeof request) &&
           weir_helper_send(hold->fd, whole, bytes);
    free(whole);
    return fine;
}

static void free_hold(struct weir_lmdb_hold *hold)
{
    close(hold->fd);
    weir_helper_reap(hold->pid);
    free(hold);
    atomic_fetch_sub(&holds, 1);
}

/* Starts the process of a hold. */
static struct weir_lmdb_hold *start(char why[WEIR_LMDB_HOLD_WHY])
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_lmdb_hold *hold = NULL;
    bool too_many = atomic_fetch_add(&holds, 1) >= HOLDS_MAX;
    if (!WEIR_HAVE_LMDB)
        snprintf(why, WEIR_LMDB_HOLD_WHY, "built without liblmdb");
    else if (too_many)
        snprintf(why, WEIR_LMDB_HOLD_WHY, "%d other files already have one", HOLDS_MAX);
    else if (!(hold = calloc(1, sizeof *hold)))
        snprintf(why, WEIR_LMDB_HOLD_WHY, "out of memory");
    else if (weir_helper_spawn(WEIR_HELPER_LMDB, &hold->pid, &hold->fd, &err) < 0)
        snprintf(why, WEIR_LMDB_HOLD_WHY, "%.*s", WEIR_LMDB_HOLD_WHY - 1, err.text);
    else
        hold->owner = getpid();
    if (hold && hold->owner)
        return hold;
    free(hold);
    atomic_fetch_sub(&holds, 1);
    return NULL;
}

struct weir_lmdb_hold *weir_lmdb_hold(const char *path, uint64_t *transaction, char why[WEIR_LMDB_HOLD_WHY])
{
    struct weir_lmdb_hold *hold = start(why);
    struct weir_lmdb_reply reply = {0};
    if (!hold)
        return NULL;
    if (!send_request(hold, path) || !receive_reply(hold, &reply))
        snprintf(why, WEIR_LMDB_HOLD_WHY, "the process for it did not reply");
    else if (reply.rc)
        snprintf(why, WEIR_LMDB_HOLD_WHY, "%s", reply.text);
    else if (!reply.is_locked)
        snprintf(why, WEIR_LMDB_HOLD_WHY, "the file system is read-only");
    else {
        *transaction = reply.transaction;
        return hold;
    }
    free_hold(hold);
    return NULL;
}

bool weir_lmdb_hold_renew(struct weir_lmdb_hold *hold, uint64_t *transaction)
{
    const char order = WEIR_LMDB_RENEW;
    struct weir_lmdb_reply reply;
    bool fine = weir_helper_send(hold->fd, &order, 1) && receive_reply(hold, &reply) && reply.rc == 0;
    *transaction = fine ? reply.transaction : 0;
    return fine;
}

void weir_lmdb_hold_release(void *of)
{
    struct weir_lmdb_hold *hold = of;
    const char order = WEIR_LMDB_END;
    struct weir_lmdb_reply reply;
    if (!hold)
        return;
    if (hold->owner != getpid()) {
        close(hold->fd);
        free(hold);
        return;
    }
    if (weir_helper_send(hold->fd, &order, 1))
        receive_reply(hold, &reply); /* after this reply the transaction has ended, so the process can be killed */
    free_hold(hold);
}
