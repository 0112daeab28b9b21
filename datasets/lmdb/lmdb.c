/* LMDB files: one file with all episodes of a dataset. */
#include "base/claims.h"
#include "base/shortage.h"
#include "base/text.h"
#include "datasets/format_ops.h"
#include "datasets/index.h"
#include "datasets/lmdb/lmdb_hold.h"
#include "datasets/lmdb/lmdb_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reading {
    const struct weir_lmdb_episodes *found;
    const struct weir_raw_file *raw;
};

static int describe(void *user, int i, const struct weir_dataset_config *config, struct weir_episode *episode,
                    struct weir_err *err)
{
    const struct reading *reading = user;
    const struct weir_lmdb_schema *schema = &reading->found->schema;
    struct weir_lmdb_store store = {{&weir_store_lmdb, false}, schema, &reading->found->episodes[i], reading->raw};
    *episode =
        (struct weir_episode){.layout = &weir_layout_weir, .is_bgr = schema->copy.is_bgr, .bytes = sizeof *episode};
    if (asprintf(&episode->root, "e%08u", store.episode->number) < 0)
        return weir_no_memory(err);
    int rc = weir_lmdb_episode_check(&store, err);
    if (rc == 0)
        rc = weir_episode_describe(&store.store, episode, config, err);
    const char *unlisted = store.episode->unlisted;
    if (rc == 0 && *unlisted)
        rc = weir_episode_leave_out(episode, err,
                                    "camera %s is left out: key \"dataset\" does not list it with its codec", unlisted);
    return rc;
}

/* ---- the transaction to read ---- */

/* Reads the state after the held transaction. Transaction N + 2 overwrites the meta page of transaction N. So as long
 * as the other page is older than this one, this page is not being written. */
static int held_state(struct weir_lmdb_hold *hold, uint64_t transaction, const struct weir_raw_file *raw,
                      struct weir_lmdb_state *state, struct weir_err *err)
{
    static const uint64_t patience_ns =
        10000000000; /* limits time instead of attempts, because on a busy machine the writer gets the cores */
    uint64_t end_ns = weir_clock_monotonic_ns() + patience_ns;
    do {
        struct weir_lmdb_state states[2];
        int rc = weir_lmdb_states(states, raw, err);
        if (rc < 0)
            return rc;
        *state = states[transaction & 1];
        if (state->transaction == transaction && states[~transaction & 1].transaction <= transaction)
            return 0;
        if (!weir_lmdb_hold_renew(hold, &transaction))
            return weir_err_set(err, -EIO,
                                "the process that holds the file's read transaction ended; open the file again");
    } while (weir_clock_monotonic_ns() < end_ns);
    return weir_err_set(err, -EBUSY,
                        "another process keeps writing to the file; open the file when the writer is done");
}

/* Chooses the newest state. If no transaction is held, it is only valid until someone writes to the file. */
static int choose_state(struct weir_file_result *result, const char *path, struct weir_raw_file *raw,
                        struct weir_lmdb_state *state)
{
    struct weir_file_index *file = &result->file;
    struct weir_lmdb_state states[2];
    uint64_t transaction;
    char why[WEIR_LMDB_HOLD_WHY];
    int rc = weir_lmdb_states(states, raw, &result->err);
    if (rc < 0)
        return rc;
    *state = *weir_lmdb_newest(states);
    file->held = weir_lmdb_hold(path, &transaction, why);
    if (!file->held)
        return asprintf(&file->note,
                        "no read transaction is held (%s), so a writer can reuse pages that are being read; do not "
                        "write to the file while it is open",
                        why) < 0
                   ? weir_no_memory(&result->err)
                   : 0;
    file->release = weir_lmdb_hold_release;
    file->file.may_be_written = true;
    rc = held_state(file->held, transaction, raw, state, &result->err);
    struct stat st; /* the file may have grown before the commit */
    if (rc == 0 && fstat(*(const int *)raw->user, &st) == 0 && (uint64_t)st.st_size > raw->size_bytes)
        file->file.size_bytes = raw->size_bytes = (uint64_t)st.st_size;
    return rc;
}

/* Checks what the numbers take, which are read and copied. */
static int check_claim(const struct weir_lmdb_episodes *found, int fd, uint64_t file_bytes, struct weir_err *err)
{
    uint64_t stored;
    if (weir_claim_fits_file(2 * found->numbers_bytes, fd, file_bytes, &stored))
        return 0;
    return weir_err_set(err, -EFBIG,
                        "its numbers have %llu MiB, but the file stores only %llu bytes; was it copied completely?",
                        (unsigned long long)found->numbers_bytes >> 20, (unsigned long long)stored);
}

static int open_lmdb(struct weir_file_result *result, const char *path, struct weir_opening *opening)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return weir_err_set(&result->err, -errno, "%s; %s", strerror(errno), weir_open_advice(-errno));
    struct weir_raw_file raw = {weir_raw_read, &fd, 0, result->file.file.size_bytes};
    struct weir_lmdb_state state;
    struct weir_lmdb_episodes found = {0};
    int rc = choose_state(result, path, &raw, &state);
    if (rc == 0)
        rc = weir_lmdb_episodes_find(&found, &state, &raw, &result->err);
    if (rc == 0)
        rc = check_claim(&found, fd, raw.size_bytes, &result->err);
    if (rc == 0)
        rc = weir_file_describe_episodes(result, found.n, opening->config, describe, &(struct reading){&found, &raw});
    weir_lmdb_episodes_free(&found);
    close(fd);
    return rc;
}

/* Accepts "data.mdb" in a folder, next to lock.mdb, and single files (MDB_NOSUBDIR). */
static bool is_lmdb(const char *name)
{
    bool ends = weir_text_ends_any_case(name, ".mdb") || weir_text_ends_any_case(name, ".lmdb");
    return ends && strcmp(name, "lock.mdb") != 0;
}

const struct weir_format_ops weir_format_lmdb = {
    .name = "lmdb",
    .summary = "LMDB, one key per frame: a folder with data.mdb, or a file .mdb or .lmdb",
    .names = is_lmdb,
    .open = open_lmdb,
    .beside = "lock.mdb",
    .is_held = true,
};
