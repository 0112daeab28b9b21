#include "analyze/ranks/rank_session.h"
#include "analyze/watch/watch_text.h"
#include "base/ranks.h"
#include "python/watch/watch_module.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
    struct weir_watch *watch;
    int loader;
    struct weir_rank_session *session; /* NULL = nothing is compared */
} ranks;

/* A forked child is no rank. The session's thread exists in the parent only. */
static void in_child(void)
{
    ranks.session = NULL;
}

static void begin(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void weir_watch_launched(int *rank, int *world_size)
{
    struct weir_launched launched;
    weir_ranks_launched(&launched, NULL, NULL);
    bool is_rank = launched.rank >= 0;
    *rank = is_rank ? launched.rank : 0;
    *world_size = is_rank ? launched.world_size : 1;
}

int weir_watch_ranks(struct weir_watch *watch, int loader, int rank, int world_size, const char *host, int port,
                     char *why, size_t why_size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct weir_err err = WEIR_ERR_NONE;
    const struct weir_rank_session_config config = {
        .rank = rank, .world_size = world_size, .name = "watch", .host = host, .port = port};
    int rc = !watch || ranks.session ? weir_err_set(&err, -EBUSY, "the ranks are compared already")
                                     : weir_rank_session_open(&ranks.session, &config, &err);
    pthread_once(&once, begin);
    if (rc < 0 && why && why_size > 0)
        snprintf(why, why_size, "%s", err.text);
    if (rc < 0)
        return rc;
    ranks.watch = watch;
    ranks.loader = loader;
    return 0;
}

void weir_watch_ranks_publish(void)
{
    struct weir_loader_report *report = ranks.session ? malloc(sizeof *report) : NULL;
    struct weir_rank_record record;
    struct weir_watch_about about;
    if (report && weir_watch_report_take(ranks.watch, ranks.loader, false, report, &about) == 0) {
        if (weir_rank_record_fill(&record, report))
            weir_rank_session_publish(ranks.session, &record);
        weir_loader_report_clear(report);
    }
    free(report);
}

static int take_table(char **text)
{
    size_t size;
    FILE *out = open_memstream(text, &size);
    if (!out)
        return 0;
    weir_rank_session_print(ranks.session, out);
    if (fclose(out) == 0)
        return 1;
    free(*text);
    *text = NULL;
    return 0;
}

int weir_watch_ranks_table(char **text)
{
    *text = NULL;
    return ranks.session && weir_rank_session_ready(ranks.session) ? take_table(text) : 0;
}

void weir_watch_ranks_pause(int pause)
{
    if (pause)
        weir_rank_session_pause(ranks.session);
    else
        weir_rank_session_resume(ranks.session);
}

int weir_watch_ranks_end(double wait_s, char **text)
{
    *text = NULL;
    if (!ranks.session)
        return 0;
    weir_rank_session_finish(ranks.session, wait_s);
    int rc = weir_watch_ranks_table(text);
    weir_rank_session_close(&ranks.session);
    return rc;
}
