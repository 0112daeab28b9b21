#include "analyze/trials/rounds.h"
#include "analyze/trials/child.h"
#include "weir/base.h"

#include <errno.h>
#include <stdio.h>

static bool converged(const struct weir_candidate *candidate, const struct weir_rounds_config *config)
{
    struct weir_interval interval;
    weir_candidate_interval(candidate, weir_trial_images_per_s, &interval);
    return *candidate->why ||
           (candidate->n_trials >= config->rounds_min && weir_interval_converged(&interval, config->close));
}

static int count_not_converged(const struct weir_candidate *candidates, int n, const struct weir_rounds_config *config)
{
    int not_converged = 0;
    for (int i = 0; i < n; i++)
        not_converged += !converged(&candidates[i], config);
    return not_converged;
}

/* Runs one trial. Returns 0, -EINTR or -ENOMEM. Errors of the child are stored in candidate->why. */
static int run_trial(struct weir_candidate *candidate, int round, const struct weir_rounds_config *config)
{
    struct weir_child child = {0};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_trial trial;
    const struct weir_child_config command = {.program = config->program,
                                              .argv = candidate->argv,
                                              .seconds = config->trial_s,
                                              .interrupted = config->interrupted};
    int rc = config->prepare ? config->prepare(config->user, candidate, &err) : 0;
    if (rc == 0)
        rc = weir_child_run(&child, &command, &err);
    if (rc == 0)
        rc = weir_trial_parse(&trial, NULL, child.output, child.length, &err);
    weir_child_free(&child);
    if (config->interrupted && *config->interrupted) /* Ctrl-C also reached the child, which has ended early */
        return -EINTR;
    trial.round = round;
    if (rc < 0)
        snprintf(candidate->why, sizeof candidate->why, "%s", err.text);
    else if (weir_candidate_add(candidate, &trial) < 0)
        return -ENOMEM;
    return 0;
}

static int take_round(struct weir_candidate *candidates, int n, int round, const struct weir_rounds_config *config)
{
    for (int i = 0; i < n; i++) {
        struct weir_candidate *candidate = &candidates[(i + round) % n];
        if (*candidate->why)
            continue;
        if (config->interrupted && *config->interrupted)
            return -EINTR;
        if (weir_clock_monotonic_ns() >= config->end_ns)
            return -ETIME;
        int rc = run_trial(candidate, round, config);
        if (rc < 0)
            return rc;
        if (config->done)
            config->done(config->user, candidate, round, i, n);
    }
    return 0;
}

int weir_rounds_run(struct weir_candidate *candidates, int n, const struct weir_rounds_config *config,
                    struct weir_rounds_result *result)
{
    int rc = 0;
    *result = (struct weir_rounds_result){.end = WEIR_ROUNDS_ROUNDS};
    while (n > 0 && rc == 0 && result->rounds < config->rounds_max) {
        rc = take_round(candidates, n, result->rounds, config);
        if (rc < 0)
            break;
        result->rounds++;
        if (result->rounds >= config->rounds_min && count_not_converged(candidates, n, config) == 0)
            break;
    }
    result->not_converged = count_not_converged(candidates, n, config);
    if (rc == -ETIME)
        result->end = WEIR_ROUNDS_TIME;
    else if (rc == -EINTR)
        result->end = WEIR_ROUNDS_INTERRUPTED;
    else if (result->not_converged == 0)
        result->end = WEIR_ROUNDS_CONVERGED;
    return rc == -ENOMEM ? rc : 0;
}
