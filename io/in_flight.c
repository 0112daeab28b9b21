/* The throughput with `limit` requests in flight is limit / (mean time of a request). More requests in flight raise it
 * until the link or the server is busy all the time; from there on, each request only takes longer. The limit is
 * doubled while that is worth it, then raised and lowered in turns by a quarter, and each step is taken back unless the
 * throughput rises, or does not fall. A server that refuses requests lowers it. */
#include "io/in_flight.h"

static const double FIRST_GROWTH = 2, GROWTH = 1.25, CUT = 0.7;
static const double WORTH = 0.3;  /* of the growth, that the throughput must gain */
static const double LOSS = 0.95;  /* throughput that a lower limit must keep */
static const double FULL = 0.875; /* of the limit, in flight: readers then wait for requests, and not the reverse */
static const double REQUEST_CPU_S = 30e-6; /* what a request costs, apart from its latency */
static const double DECAY = 0.98;          /* of the best rate, per window */
static const uint64_t PAUSE_NS = 1000 * 1000;
enum { PAUSE_PART = 8, PAUSE_LEAST = 16 }; /* a pause is at most this part of the latency */
static const uint64_t WINDOW_NS = 20 * 1000 * 1000, CUT_NS = 100 * 1000 * 1000;
enum {
    LEAST = 16, /* unless the server refuses requests: bridges pauses of the thread that starts them */
    HOLD = 4,
    HOLD_CUT = 16,
    HOLD_MOST = 64,
    GAP_LEAST = 4 << 10,
    GAP_MOST = 256 << 10
};

static void begin_window(struct weir_in_flight *f, uint64_t now_ns)
{
    f->begin_ns_ = f->at_ns_ = now_ns;
    f->last_first_ns_ = f->first_ns_ ? f->first_ns_ : f->last_first_ns_;
    f->full_ns_ = f->bytes_ = f->first_ns_ = f->took_ns_ = 0;
    f->done_ = 0;
}

void weir_in_flight_begin(struct weir_in_flight *f, int most, bool is_fixed, size_t gap_bytes, uint64_t now_ns)
{
    *f = (struct weir_in_flight){.is_fixed_ = is_fixed, .most_ = most, .gap_bytes = gap_bytes, .growth_ = FIRST_GROWTH};
    f->limit = is_fixed || most < WEIR_IN_FLIGHT_START ? most : WEIR_IN_FLIGHT_START;
    f->next_hold_ = HOLD;
    begin_window(f, now_ns);
}

/* Accounts for the time since the last event. */
static void pass(struct weir_in_flight *f, uint64_t now_ns)
{
    if (f->flying_ >= FULL * f->limit)
        f->full_ns_ += now_ns - f->at_ns_;
    f->at_ns_ = now_ns;
}

void weir_in_flight_queued(struct weir_in_flight *f, uint64_t now_ns)
{
    pass(f, now_ns);
    f->flying_++;
}

/* Reading a gap occupies the link for gap / rate. A request occupies one of `limit` places for its latency. */
static void set_gap(struct weir_in_flight *f)
{
    uint64_t first_ns = f->last_first_ns_ && f->last_first_ns_ < f->first_ns_ ? f->last_first_ns_ : f->first_ns_;
    double request_s = REQUEST_CPU_S + (double)first_ns / 1e9 / f->limit, gap = f->best_rate_ * request_s;
    f->gap_bytes = gap < GAP_LEAST ? GAP_LEAST : gap > GAP_MOST ? GAP_MOST : (size_t)gap;
}

/* Changes the limit for a trial. */
static void try_factor(struct weir_in_flight *f, double factor, double throughput)
{
    int limit = (int)(factor * f->limit + 0.5);
    if (factor < 1 && limit < LEAST)
        limit = f->limit < LEAST ? f->limit : LEAST;
    f->before_ = f->limit;
    f->base_ = throughput;
    f->limit = limit > f->most_ ? f->most_ : limit;
    f->is_trial_ = f->is_new_ = f->limit != f->before_;
}

static bool is_kept(const struct weir_in_flight *f, double throughput)
{
    double growth = (double)f->limit / f->before_;
    return throughput >= f->base_ * (growth > 1 ? 1 + WORTH * (growth - 1) : LOSS);
}

/* Decides about the limit at the end of a window. */
static void decide(struct weir_in_flight *f, double throughput)
{
    if (f->is_new_) { /* its first requests were started before the limit was changed */
        f->is_new_ = false;
    } else if (f->is_trial_ && is_kept(f, throughput)) {
        f->next_hold_ = HOLD;
        try_factor(f, f->is_down_ ? 1 / GROWTH : f->growth_, throughput);
    } else if (f->is_trial_) {
        f->limit = f->before_;
        f->is_trial_ = false;
        f->is_down_ = !f->is_down_;
        f->growth_ = GROWTH;
        f->hold_ = f->next_hold_;
        f->next_hold_ = 2 * f->hold_ < HOLD_MOST ? 2 * f->hold_ : HOLD_MOST;
    } else if (f->hold_ > 0) {
        f->hold_--;
    } else {
        try_factor(f, f->is_down_ ? 1 / GROWTH : f->growth_, throughput);
        f->is_down_ ^= !f->is_trial_; /* at the bound */
    }
}

static void end_window(struct weir_in_flight *f, uint64_t now_ns)
{
    uint64_t ns = now_ns - f->begin_ns_;
    double rate = (double)f->bytes_ / ((double)ns / 1e9), faded = DECAY * f->best_rate_ + (1 - DECAY) * rate;
    f->best_rate_ = rate > faded ? rate : faded;
    if (f->first_ns_)
        set_gap(f);
    if (!f->is_fixed_ && f->full_ns_ >= ns / 2)
        decide(f, (double)f->limit * f->done_ / (double)(f->took_ns_ + 1));
    begin_window(f, now_ns);
}

void weir_in_flight_done(struct weir_in_flight *f, uint64_t now_ns, size_t bytes, uint64_t first_byte_ns,
                         uint64_t took_ns)
{
    pass(f, now_ns);
    f->flying_--;
    f->bytes_ += bytes;
    f->took_ns_ += took_ns;
    f->done_++;
    if (first_byte_ns && (!f->first_ns_ || first_byte_ns < f->first_ns_))
        f->first_ns_ = first_byte_ns;
    if (f->done_ >= 2 * f->limit && now_ns - f->begin_ns_ >= WINDOW_NS)
        end_window(f, now_ns);
}

uint64_t weir_in_flight_pause_ns(const struct weir_in_flight *f)
{
    uint64_t ns = f->last_first_ns_ / PAUSE_PART;
    return f->flying_ < PAUSE_LEAST || !f->last_first_ns_ ? 0 : ns < PAUSE_NS ? ns : PAUSE_NS;
}

void weir_in_flight_refused(struct weir_in_flight *f, uint64_t now_ns)
{
    if (f->is_fixed_ || (f->cut_ns_ && now_ns - f->cut_ns_ < CUT_NS))
        return;
    int less = (int)(CUT * f->limit);
    less = less > WEIR_IN_FLIGHT_LEAST ? less : WEIR_IN_FLIGHT_LEAST;
    f->limit = less < f->limit ? less : f->limit;
    f->cut_ns_ = now_ns;
    f->is_trial_ = f->is_new_ = f->is_down_ = false;
    f->growth_ = GROWTH;
    f->hold_ = HOLD_CUT;
    begin_window(f, now_ns);
}
