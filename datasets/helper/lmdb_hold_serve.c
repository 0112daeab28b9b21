/* The process that holds a read transaction by liblmdb, which opens the file and looks at its meta pages only. */
#include "datasets/helper/hdf5_helper_protocol_priv.h"
#include "datasets/helper/lmdb_hold_priv.h"

#if WEIR_HAVE_LMDB
#include <errno.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static int begin(MDB_env *env, MDB_txn **txn)
{
    int rc = mdb_txn_begin(env, NULL, MDB_RDONLY, txn);
    if (rc == MDB_MAP_RESIZED) { /* a writer made the file larger meanwhile */
        rc = mdb_env_set_mapsize(env, 0);
        rc = rc ? rc : mdb_txn_begin(env, NULL, MDB_RDONLY, txn);
    }
    return rc;
}

static int open_and_begin(const struct weir_lmdb_request *request, const char *path, MDB_env **env, MDB_txn **txn)
{
    unsigned flags = MDB_RDONLY | MDB_NOTLS | (request->is_file ? MDB_NOSUBDIR : 0);
    int rc = mdb_env_create(env);
    if (rc == 0)
        rc = mdb_env_open(*env, path, flags, request->mode);
    return rc ? rc : begin(*env, txn);
}

static struct weir_lmdb_reply describe(int rc, MDB_env *env, MDB_txn *txn)
{
    struct weir_lmdb_reply reply = {.rc = rc};
    MDB_envinfo info;
    if (rc) {
        snprintf(reply.text, sizeof reply.text, "%s", mdb_strerror(rc));
        return reply;
    }
    mdb_env_info(env, &info);
    reply.is_locked = info.me_numreaders > 0; /* on a read-only file system liblmdb does without */
    reply.transaction = mdb_txn_id(txn);
    return reply;
}

static void serve(int fd, const struct weir_lmdb_request *request, const char *path)
{
    MDB_env *env = NULL;
    MDB_txn *txn = NULL;
    char order = WEIR_LMDB_END;
    int rc = open_and_begin(request, path, &env, &txn);
    struct weir_lmdb_reply reply = describe(rc, env, txn);
    /* Killed it would leave its entry in the table of readers, which keeps writers from reusing pages. From here on it
     * only waits for its socket, whose end it notices. */
    prctl(PR_SET_PDEATHSIG, 0);
    while (weir_helper_send(fd, &reply, sizeof reply) && weir_helper_receive(fd, &order, 1, -1) &&
           order == WEIR_LMDB_RENEW) {
        if (txn)
            mdb_txn_abort(txn);
        txn = NULL;
        rc = begin(env, &txn);
        reply = describe(rc, env, txn);
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
