/* The process that holds a read transaction through liblmdb, which opens the file and reads only its meta pages. */
#include "base/files.h"
#include "datasets/helper/helper_spawner.h"
#include "datasets/lmdb/lmdb_hold.h"

#if WEIR_HAVE_LMDB
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int begin(MDB_env *env, MDB_txn **txn)
{
    int rc = mdb_txn_begin(env, NULL, MDB_RDONLY, txn);
    if (rc == MDB_MAP_RESIZED) { /* a writer has enlarged the file */
        rc = mdb_env_set_mapsize(env, 0);
        rc = rc ? rc : mdb_txn_begin(env, NULL, MDB_RDONLY, txn);
    }
    return rc;
}

/* Opens the lock file. It is never closed, because closing any descriptor of a file releases all POSIX locks of the
 * process on it. */
static int open_lock(const struct weir_lmdb_request *request, const char *path, struct weir_err *err)
{
    char lock[PATH_MAX];
    int folder = (int)(strlen(path) - strlen("data.mdb"));
    int n = request->is_file ? snprintf(lock, sizeof lock, "%s-lock", path)
                             : snprintf(lock, sizeof lock, "%.*slock.mdb", folder, path);
    if (n < 0 || n >= (int)sizeof lock)
        return weir_err_set(err, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
    return weir_output_private(lock, O_RDWR | O_CREAT, (mode_t)request->mode, err);
}

/* liblmdb opens PATH and PATH-lock by name, follows links, and overwrites the contents of PATH-lock. So it gets a
 * folder of its own, in which these names are links to the file and to the checked descriptor. */
static int open_through(MDB_env *env, const char *path, int lock)
{
    char folder[PATH_MAX], data[PATH_MAX + 8], beside[PATH_MAX + 8], to[32];
    const char *parent = getenv("TMPDIR");
    int n = snprintf(folder, sizeof folder, "%s/weir-lmdb-XXXXXX", parent && *parent ? parent : "/tmp");
    if (n >= (int)sizeof folder || !mkdtemp(folder))
        return n >= (int)sizeof folder ? ENAMETOOLONG : errno;
    snprintf(data, sizeof data, "%s/it", folder);
    snprintf(beside, sizeof beside, "%s/it-lock", folder);
    snprintf(to, sizeof to, "/proc/self/fd/%d", lock);
    int rc = symlink(path, data) == 0 && symlink(to, beside) == 0 ? 0 : errno;
    if (rc == 0)
        rc = mdb_env_open(env, data, MDB_RDONLY | MDB_NOTLS | MDB_NOSUBDIR, 0);
    unlink(data);
    unlink(beside);
    rmdir(folder);
    return rc;
}

static int open_and_begin(const struct weir_lmdb_request *request, const char *path, MDB_env **env, MDB_txn **txn,
                          struct weir_err *err)
{
    int lock = open_lock(request, path, err);
    if (lock < 0)
        return -lock;
    int rc = mdb_env_create(env);
    if (rc == 0)
        rc = open_through(*env, path, lock);
    return rc ? rc : begin(*env, txn);
}

static struct weir_lmdb_reply describe(int rc, MDB_env *env, MDB_txn *txn, const struct weir_err *err)
{
    struct weir_lmdb_reply reply = {.rc = rc};
    MDB_envinfo info;
    if (rc) {
        snprintf(reply.text, sizeof reply.text, "%.*s", (int)sizeof reply.text - 1,
                 err->code ? err->text : mdb_strerror(rc));
        return reply;
    }
    mdb_env_info(env, &info);
    reply.is_locked = info.me_numreaders > 0; /* liblmdb works without a lock on a read-only file system */
    reply.transaction = mdb_txn_id(txn);
    return reply;
}

static void serve(int fd, const struct weir_lmdb_request *request, const char *path)
{
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    char order = WEIR_LMDB_END;
    struct weir_err err = WEIR_ERR_NONE;
    int rc = open_and_begin(request, path, &env, &txn, &err);
    struct weir_lmdb_reply reply = describe(rc, env, txn, &err);
    /* If this process were killed, its entry would remain in the reader table and keep writers from reusing pages. From
     * here on it only waits on its socket, and notices when the loader closes it. */
    prctl(PR_SET_PDEATHSIG, 0);
    while (weir_helper_send(fd, &reply, sizeof reply) && weir_helper_receive(fd, &order, 1, -1) &&
           order == WEIR_LMDB_RENEW) {
        if (txn)
            mdb_txn_abort(txn);
        txn = NULL;
        rc = begin(env, &txn);
        reply = describe(rc, env, txn, &err);
    }
    if (txn)
        mdb_txn_abort(txn);
    if (env)
        mdb_env_close(env);
    weir_helper_send(fd, &reply, sizeof reply);
}

void weir_lmdb_hold_serve(int fd)
{
    struct weir_lmdb_request request;
    if (!weir_helper_receive(fd, &request, sizeof request, -1) || request.path_bytes > WEIR_LMDB_PATH_MAX)
        return;
    char *path = malloc(request.path_bytes + 1);
    if (path && weir_helper_receive(fd, path, request.path_bytes, -1))
        serve(fd, &request, path);
    free(path);
}
#else
void weir_lmdb_hold_serve(int fd)
{
    (void)fd;
}
#endif
