/* The rule for files on servers: too few requests in flight, latency, bandwidth, or a server that limits the
 * requests. */
#include "analyze/verdict/verdict_priv.h"
#include "base/numbers.h"
#include "prof/report/report_fields.h"

#include <math.h>

/* Returns the time per image for which workers wait for requests: those of read-ahead, and their own. */
static double waited_s(const struct weir_demands *d, const struct weir_loader_report *report)
{
    const struct weir_report_row *ahead = weir_demands_row(report, "09e_wait_for_read_ahead", WEIR_SIDE_WORKER);
    return (ahead ? ahead->self_s : 0) / d->images + d->blocked_read * weir_demands_asleep_s(d);
}

/* Returns the row of the stage on the side with most requests, or NULL. */
static const struct weir_report_row *first_bytes(const struct weir_loader_report *report)
{
    const struct weir_report_row *ahead = weir_demands_row(report, "03l_first_byte", WEIR_SIDE_HELPER);
    const struct weir_report_row *own = weir_demands_row(report, "03l_first_byte", WEIR_SIDE_WORKER);
    return !own || (ahead && ahead->count > own->count) ? ahead : own;
}

/* Whether read-ahead has as many requests in flight as it may. */
static bool is_full(const struct weir_report_server *server)
{
    return server->limit > 0 && server->in_flight >= WEIR_VERDICT_IN_FLIGHT * server->limit;
}

static enum weir_cause kind_of_server(const struct weir_report_server *server, const struct weir_report_row *first)
{
    double queued = first->min_s > 0 ? server->wait_s / first->min_s : 1;
    bool is_bound = server->limit_fixed || server->limit >= server->limit_most;
    if ((double)server->limited >= WEIR_VERDICT_REFUSED * (double)server->requests)
        return WEIR_CAUSE_SERVER_LIMIT;
    if (!is_full(server))
        return WEIR_CAUSE_SERVER_LATENCY;
    return is_bound && queued < WEIR_VERDICT_QUEUED ? WEIR_CAUSE_FEW_IN_FLIGHT : WEIR_CAUSE_SERVER_BANDWIDTH;
}

/* Says why, with the times to the first byte. */
static void say_server(const struct weir_verdict_case *c, struct weir_diagnosis_cause *cause,
                       const struct weir_report_row *first)
{
    const struct weir_report_server *server = &c->report->server;
    const char *host = *server->host ? server->host : "the server";
    double wait = weir_percent(cause->share), s = c->report->steps.train_s + c->report->steps.val_s;
    char mean[24], least[24];
    weir_report_time(mean, server->wait_s);
    weir_report_time(least, first->min_s);
    if (cause->cause == WEIR_CAUSE_FEW_IN_FLIGHT)
        weir_diagnosis_say(cause,
                           "too few requests to %s are in flight: %.0f on average, at most %d%s, with %s to the first "
                           "byte; the workers wait for them %.0f %% of their time",
                           host, server->in_flight, server->limit, server->limit_fixed ? " (--io-depth)" : "", mean,
                           wait);
    else if (cause->cause == WEIR_CAUSE_SERVER_LATENCY)
        weir_diagnosis_say(cause,
                           "the latency of %s is the limit: %s to the first byte of a request; the workers wait for "
                           "requests %.0f %% of their time, with only %.0f in flight on average",
                           host, mean, wait, server->in_flight);
    else if (cause->cause == WEIR_CAUSE_SERVER_BANDWIDTH)
        weir_diagnosis_say(cause,
                           "the bandwidth of %s, or of the link to it, is the limit: %.1f MB/s; with %.0f requests in "
                           "flight, the first byte takes %s (at least %s), and the workers wait %.0f %% of their time",
                           host, (double)server->bytes / s / 1e6, server->in_flight, mean, least, wait);
    else
        weir_diagnosis_say(cause,
                           "%s limits the requests: it refused %.0f %% of them (429, 503), and the workers wait for "
                           "requests %.0f %% of their time",
                           host, weir_percent((double)server->limited / (double)server->requests), wait);
}

void weir_rule_server(struct weir_verdict_case *c)
{
    const struct weir_demands *d = c->demands;
    const struct weir_report_server *server = &c->report->server;
    const struct weir_report_row *first = first_bytes(c->report);
    double s = c->report->steps.train_s + c->report->steps.val_s;
    if (server->requests == 0 || !first || s <= 0)
        return;
    double wait_s = waited_s(d, c->report), share = wait_s * d->rate / fmax(d->workers, 1);
    struct weir_change without = weir_change_cheaper(d, 0, wait_s);
    if (share >= WEIR_VERDICT_BLOCKED || weir_verdict_waits_for_reads(c))
        say_server(c, weir_verdict_add(c, kind_of_server(server, first), share, &without), first);
}
