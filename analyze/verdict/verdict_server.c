/* Rules and advice for files on servers: too few requests in flight, latency, bandwidth, or a server that limits the
 * requests. */
#include "analyze/verdict/verdict_priv.h"

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

bool weir_rule_server(const struct weir_verdict_case *c, struct weir_verdict_cause *cause)
{
    const struct weir_demands *d = c->demands;
    const struct weir_report_server *server = &c->report->server;
    const struct weir_report_row *first = first_bytes(c->report);
    double s = c->report->steps.train_s + c->report->steps.val_s;
    if (server->requests == 0 || !first || s <= 0)
        return false;
    cause->cause = kind_of_server(server, first);
    cause->share = waited_s(d, c->report) * d->rate / fmax(d->workers, 1);
    cause->server.first_byte_s = server->wait_s;
    cause->server.least_s = first->min_s;
    cause->server.bytes_per_s = (double)server->bytes / s;
    return cause->share >= WEIR_VERDICT_BLOCKED || weir_verdict_waits_for_reads(c);
}

/* ---- changes ---- */

struct weir_change weir_change_no_server(const struct weir_demands *d, const struct weir_loader_report *report)
{
    return weir_change_cheaper(d, 0, waited_s(d, report));
}

int weir_verdict_in_flight(const struct weir_verdict *verdict, const struct weir_loader_report *report, double *ratio)
{
    static const double SPARE = 1.25; /* requests come in bursts */
    enum { MOST = 1024 };
    const struct weir_report_server *server = &report->server;
    double now = fmax(server->in_flight, 1), needed = ceil(SPARE * *ratio * now);
    (void)verdict;
    if (needed > MOST)
        *ratio = fmin(*ratio, MOST / now);
    return (int)fmin(fmax(needed, server->limit + 1), MOST);
}
