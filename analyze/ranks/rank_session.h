/* rank_session.h: the table over ranks during a run. Each rank publishes a record every few epochs; rank 0 prints.
 *
 *     struct weir_rank_session *session;                        NULL with one rank: all calls accept it
 *     weir_rank_session_open(&session, &config, &err);
 *     ... after some epochs, on every rank:
 *     weir_rank_session_publish(session, &record);              copies; never waits for the network
 *     ... now and then, such as after each batch:
 *     if (weir_rank_session_ready(session))                     only on rank 0, when all ranks have reported or are
 * missing weir_rank_session_print(session, stdout);
 *     ... at the end:
 *     weir_rank_session_finish(session, 30);                    rank 0 waits for the last records, then ready and print
 *     weir_rank_session_close(&session);
 *
 * No call is collective: a rank that has died delays nothing. All calls belong to one thread, except that a thread of
 * the session does the network calls and reports ranks that fall silent on stderr. */
#ifndef WEIR_ANALYZE_RANKS_RANK_SESSION_H
#define WEIR_ANALYZE_RANKS_RANK_SESSION_H

#include "analyze/ranks/rank_record.h"

#include <stdbool.h>
#include <stdio.h>

struct weir_rank_session;

struct weir_rank_session_config {
    int rank, world_size;
    const char *name; /* of what is compared, such as "run": the same on all ranks, different for each session */
    const char *host; /* of the store of torch.distributed; NULL = MASTER_ADDR and MASTER_PORT */
    int port;
    double beat_s;  /* time between signs of life; 0 = 5 s */
    double limit_s; /* a rank without one for this long is missing; 0 = 30 s */
};

/* Opens a session with its thread. *session is NULL, and the result 0, with a single rank. Returns -ENOENT if there is
 * no store, with a message that names what to do instead, or another error; the run can continue without a session. */
int weir_rank_session_open(struct weir_rank_session **session, const struct weir_rank_session_config *config,
                           struct weir_err *err);
void weir_rank_session_publish(struct weir_rank_session *session, const struct weir_rank_record *record);

/* Rank 0: returns whether a table can be printed. Costs a few ns until a rank's record arrives. */
bool weir_rank_session_ready(struct weir_rank_session *session);
/* Rank 0: prints the oldest table that has not been printed, or writes its members into the open object. */
void weir_rank_session_print(struct weir_rank_session *session, FILE *out);
void weir_rank_session_json(struct weir_rank_session *session, struct weir_json *json);
/* Returns whether all tables have been printed, or are not for this rank to print. */
bool weir_rank_session_printed(const struct weir_rank_session *session);
/* Returns whether the store is gone, so that no further reports can arrive. */
bool weir_rank_session_lost(struct weir_rank_session *session);
/* Rank 0: waits until the last table is ready, but at most wait_s, and not for a store that is gone; then
 * weir_rank_session_ready returns true unless it has been printed. Earlier tables are dropped. Other ranks do not wait.
 */
void weir_rank_session_finish(struct weir_rank_session *session, double wait_s);

/* Ends the session's thread until weir_rank_session_resume: fork() without threads. */
void weir_rank_session_pause(struct weir_rank_session *session);
void weir_rank_session_resume(struct weir_rank_session *session);

/* Reports that this rank has ended, waits at most 2 s until that is sent, and sets *session to NULL. */
void weir_rank_session_close(struct weir_rank_session **session);

#endif
