#include "analyze/ranks/rank_session.h"
#include "analyze/ranks/rank_verdict.h"
#include "base/terminal.h"
#include "prof/ranks/rank_exchange.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t LOOK_NS = 100000000u; /* between looks at the records that have arrived */
static const double CLOSE_S = 2;

struct weir_rank_session {
    struct weir_rank_session_config config; /* its pointers are not used after open */
    struct weir_exchange *exchange;
    struct weir_rank_status mine;
    struct weir_rank_history history;
    int tables; /* records published */

    /* Rank 0. */
    int printed; /* number of the last table printed */
    bool ready;
    uint64_t published_ns[WEIR_RANK_RECORDS]; /* when this rank published a table, by its number */
    int looked_at;                            /* number of the table of the last look */
    uint64_t looked_ns, seen;                 /* the last look, and the number of texts that had arrived */
    struct weir_rank *ranks;
    struct weir_rank_status *statuses; /* records of ranks point into it */

    /* The exchange's thread of rank 0. */
    pthread_mutex_t opening; /* held until exchange is set */
    bool *warned;
    struct weir_rank_status heard;
    char text[WEIR_EXCHANGE_TEXT];
    char look_text[WEIR_EXCHANGE_TEXT]; /* of the caller's thread */
};

/* ---- what is known of a rank ---- */

/* Fills in a rank from its latest text. table: number of the table to print. */
static void judge_presence(struct weir_rank *rank, const struct weir_rank_status *status, bool known, int table,
                           uint64_t quiet_ns, double limit_s)
{
    const struct weir_rank_record *last =
        known && status->n_records > 0 ? &status->records[status->n_records - 1] : NULL;
    rank->quiet_s = (double)quiet_ns / 1e9;
    rank->pid = known ? status->pid : 0;
    rank->epoch = last ? last->epoch_last : 0;
    rank->record = NULL;
    snprintf(rank->host, sizeof rank->host, "%s", known ? status->host : "");
    for (int i = known ? status->n_records : 0; i-- > 0;) /* a rank can be ahead */
        if (status->records[i].table >= table)
            rank->record = &status->records[i];
    bool quiet = rank->quiet_s >= limit_s;
    if (!known)
        rank->presence = quiet ? WEIR_RANK_NEVER : WEIR_RANK_BEHIND;
    else if (rank->record)
        rank->presence = WEIR_RANK_REPORTED;
    else if (status->ended)
        rank->presence = WEIR_RANK_ENDED;
    else if (weir_rank_status_dead(status))
        rank->presence = WEIR_RANK_DIED;
    else
        rank->presence = quiet ? WEIR_RANK_SILENT : WEIR_RANK_BEHIND;
    if (rank->presence == WEIR_RANK_BEHIND)
        rank->record = last;
}

/* ---- the exchange's thread: ranks that fall silent while this one trains, or is stuck in a collective ---- */

static void watch_ranks(void *user)
{
    struct weir_rank_session *session = user;
    pthread_mutex_lock(&session->opening);
    struct weir_exchange *exchange = session->exchange;
    pthread_mutex_unlock(&session->opening);
    char why[256];
    bool readable = exchange && weir_exchange_connected(exchange, why, sizeof why) && !why[0];
    for (int r = 1; readable && r < session->config.world_size; r++) {
        struct weir_rank rank = {.rank = r};
        uint64_t quiet_ns;
        char line[512];
        bool known = weir_exchange_read(exchange, r, session->text, sizeof session->text, &quiet_ns) &&
                     weir_rank_status_read(&session->heard, session->text) == 0;
        judge_presence(&rank, &session->heard, known, INT32_MAX, quiet_ns, session->config.limit_s);
        bool missing =
            rank.presence == WEIR_RANK_DIED || rank.presence == WEIR_RANK_SILENT || rank.presence == WEIR_RANK_NEVER;
        if (missing && !session->warned[r] && weir_rank_missing_text(&rank, line, sizeof line))
            fprintf(stderr, "weir: %s\n", line);
        session->warned[r] = missing;
    }
}

/* ---- opening ---- */

/* The key tells the attempts of an elastic run apart: torchrun keeps its store when it restarts the ranks. */
static void name_key(char *key, size_t size, const char *name)
{
    const char *run = getenv("TORCHELASTIC_RUN_ID"), *attempt = getenv("TORCHELASTIC_RESTART_COUNT");
    snprintf(key, size, "%.40s/%.10s/%.40s", run ? run : "0", attempt ? attempt : "0", name);
}

static int find_store(const struct weir_rank_session_config *config, struct weir_store_address *address,
                      struct weir_err *err)
{
    if (!config->host) {
        int rc = weir_store_from_environment(address, err);
        weir_err_prefix(err, "no table over ranks during the run");
        return rc;
    }
    *address = (struct weir_store_address){.port = config->port};
    if (strlen(config->host) >= sizeof address->host)
        return weir_err_set(err, -EINVAL, "%.40s...: too long for a host name", config->host);
    memcpy(address->host, config->host, strlen(config->host) + 1);
    return 0;
}

static void free_session(struct weir_rank_session *session)
{
    pthread_mutex_destroy(&session->opening);
    free(session->ranks);
    free(session->statuses);
    free(session->warned);
    free(session);
}

static int open_session(struct weir_rank_session *session, struct weir_err *err)
{
    struct weir_rank_session_config *config = &session->config;
    struct weir_exchange_config exchange = {.rank = config->rank,
                                            .world_size = config->world_size,
                                            .beat_s = config->beat_s,
                                            .gathered = watch_ranks,
                                            .user = session};
    size_t n = config->rank == 0 ? (size_t)config->world_size : 0;
    int rc = find_store(config, &exchange.address, err);
    name_key(exchange.key, sizeof exchange.key, config->name);
    if (rc == 0 && n > 0) {
        session->ranks = calloc(n, sizeof *session->ranks);
        session->statuses = calloc(n, sizeof *session->statuses);
        session->warned = calloc(n, sizeof *session->warned);
        if (!session->ranks || !session->statuses || !session->warned)
            rc = weir_err_set(err, -ENOMEM, "out of memory");
    }
    if (rc < 0)
        return rc;
    weir_rank_status_here(&session->mine, config->rank, config->world_size);
    pthread_mutex_lock(&session->opening);
    rc = weir_exchange_open(&session->exchange, &exchange, err);
    pthread_mutex_unlock(&session->opening);
    return rc;
}

int weir_rank_session_open(struct weir_rank_session **out, const struct weir_rank_session_config *config,
                           struct weir_err *err)
{
    *out = NULL;
    if (config->world_size <= 1)
        return 0;
    if (config->rank < 0 || config->rank >= config->world_size)
        return weir_err_set(err, -EINVAL, "rank %d of %d is not valid", config->rank, config->world_size);
    struct weir_rank_session *session = calloc(1, sizeof *session);
    if (!session)
        return weir_err_set(err, -ENOMEM, "out of memory");
    session->config = *config;
    if (session->config.limit_s <= 0)
        session->config.limit_s = 30;
    pthread_mutex_init(&session->opening, NULL);
    int rc = open_session(session, err);
    if (rc < 0) {
        free_session(session);
        return rc;
    }
    *out = session;
    return 0;
}

/* ---- records ---- */

static void send_status(struct weir_rank_session *session)
{
    weir_rank_status_write(&session->mine, session->look_text, WEIR_EXCHANGE_TEXT - 32);
    weir_exchange_publish(session->exchange, session->look_text);
}

void weir_rank_session_publish(struct weir_rank_session *session, const struct weir_rank_record *record)
{
    if (!session)
        return;
    struct weir_rank_record numbered = *record;
    numbered.table = ++session->tables;
    weir_rank_status_add(&session->mine, &numbered);
    session->published_ns[numbered.table % WEIR_RANK_RECORDS] = weir_clock_monotonic_ns();
    session->ready = false;
    session->looked_ns = session->seen = 0;
    send_status(session);
}

/* Returns the number of the next table to print. Ranks keep only their last records, so older tables are skipped. */
static int next_table(const struct weir_rank_session *session)
{
    int oldest = session->tables - WEIR_RANK_RECORDS + 1;
    return session->printed + 1 > oldest ? session->printed + 1 : oldest;
}

static bool is_pending(const struct weir_rank_session *session)
{
    return session->config.rank == 0 && session->printed < session->tables;
}

/* Reads the texts of all ranks for a table. Returns whether none of them is still expected to report. Ranks that are
 * alive but far behind are expected for a limited time. */
static bool look(struct weir_rank_session *session, int table)
{
    const struct weir_rank_status *mine = &session->mine;
    const struct weir_rank_record *last = &mine->records[mine->n_records - 1 - (session->tables - table)];
    bool complete = true;
    session->ranks[0] = (struct weir_rank){.pid = mine->pid, .epoch = last->epoch_last, .record = last};
    memcpy(session->ranks[0].host, mine->host, sizeof mine->host);
    for (int r = 1; r < session->config.world_size; r++) {
        uint64_t quiet_ns;
        struct weir_rank_status *status = &session->statuses[r];
        bool known =
            weir_exchange_read(session->exchange, r, session->look_text, sizeof session->look_text, &quiet_ns) &&
            weir_rank_status_read(status, session->look_text) == 0;
        session->ranks[r] = (struct weir_rank){.rank = r};
        judge_presence(&session->ranks[r], status, known, table, quiet_ns, session->config.limit_s);
        complete = complete && session->ranks[r].presence != WEIR_RANK_BEHIND;
    }
    return complete || (double)(weir_clock_monotonic_ns() - session->published_ns[table % WEIR_RANK_RECORDS]) / 1e9 >=
                           session->config.limit_s;
}

bool weir_rank_session_ready(struct weir_rank_session *session)
{
    if (!session || !is_pending(session) || session->ready)
        return session && session->ready;
    uint64_t now_ns = weir_clock_monotonic_ns(), changes = weir_exchange_changes(session->exchange);
    bool is_new = changes != session->seen && now_ns - session->looked_ns >= LOOK_NS;
    if (!is_new && session->looked_ns > 0 && now_ns - session->looked_ns < 10 * LOOK_NS)
        return false;
    session->looked_ns = now_ns;
    session->seen = changes;
    session->looked_at = next_table(session);
    session->ready = look(session, session->looked_at);
    return session->ready;
}

/* Makes the verdict of the last look, and remembers it for the next one. */
static void judge(struct weir_rank_session *session, struct weir_rank_verdict *verdict)
{
    weir_rank_verdict_make(verdict, session->ranks, session->config.world_size, &session->history);
    if (session->printed < session->looked_at)
        weir_rank_history_add(&session->history, verdict->slow ? verdict->slow->rank : -1, verdict->data_wait);
    session->printed = session->looked_at;
    session->ready = false;
    session->looked_ns = 0;
    if (!is_pending(session))
        weir_exchange_settle(session->exchange);
}

/* Explains a table without any other rank. */
static void say_store(struct weir_rank_session *session, FILE *out)
{
    char why[256];
    struct weir_wrap wrap;
    if (weir_exchange_connected(session->exchange, why, sizeof why) && !why[0])
        return;
    FILE *text = weir_wrap_open(&wrap, out, 2, NULL);
    fprintf(text, "ranks cannot be read: %s\n", why[0] ? why : "the store of torch.distributed has not answered yet");
    weir_wrap_close(&wrap);
}

void weir_rank_session_print(struct weir_rank_session *session, FILE *out)
{
    struct weir_rank_verdict verdict;
    if (!session || !session->ranks || session->mine.n_records == 0)
        return;
    judge(session, &verdict);
    weir_rank_table_print(out, &verdict, session->ranks, session->config.world_size);
    if (verdict.reported < session->config.world_size)
        say_store(session, out);
    fflush(out);
}

void weir_rank_session_json(struct weir_rank_session *session, struct weir_json *json)
{
    struct weir_rank_verdict verdict;
    if (!session || !session->ranks || session->mine.n_records == 0)
        return;
    judge(session, &verdict);
    weir_rank_table_json(json, &verdict, session->ranks, session->config.world_size);
}

bool weir_rank_session_printed(const struct weir_rank_session *session)
{
    return !session || !is_pending(session);
}

bool weir_rank_session_lost(struct weir_rank_session *session)
{
    return session && weir_exchange_gone(session->exchange);
}

void weir_rank_session_finish(struct weir_rank_session *session, double wait_s)
{
    if (!session || !is_pending(session))
        return;
    uint64_t until_ns = weir_clock_monotonic_ns() + (uint64_t)(wait_s > 0 ? wait_s * 1e9 : 0);
    const struct timespec nap = {.tv_nsec = (long)LOOK_NS / 2};
    session->printed = session->tables - 1; /* only the last table matters now */
    session->ready = false;
    session->looked_ns = 0;
    while (!weir_rank_session_ready(session) && !weir_rank_session_lost(session) &&
           weir_clock_monotonic_ns() < until_ns)
        nanosleep(&nap, NULL);
    session->ready = true; /* what there is, with the missing ranks named */
}

void weir_rank_session_pause(struct weir_rank_session *session)
{
    if (session)
        weir_exchange_pause(session->exchange);
}

void weir_rank_session_resume(struct weir_rank_session *session)
{
    if (session)
        weir_exchange_resume(session->exchange);
}

void weir_rank_session_close(struct weir_rank_session **address)
{
    struct weir_rank_session *session = *address;
    *address = NULL;
    if (!session)
        return;
    if (session->mine.pid != getpid())
        return; /* in a child of fork(): the parent's session */
    session->mine.ended = true;
    if (session->config.rank > 0)
        send_status(session);
    weir_exchange_close(&session->exchange, CLOSE_S);
    free_session(session);
}
