#include "analyze/trials/rotation.h"
#include "analyze/trials/trial.h"
#include "weir/base.h"

#include <errno.h>
#include <stdio.h>

static bool converged(const struct weir_cell *cell, const struct weir_rotation_config *config)
{
    struct weir_interval interval;
    weir_cell_interval(cell, weir_turn_images_per_s, &interval);
    return *cell->why || (cell->n_turns >= config->rounds_min && weir_interval_converged(&interval, config->close));
}

static int count_not_converged(const struct weir_cell *cells, int n, const struct weir_rotation_config *config)
{
    int not_converged = 0;
    for (int i = 0; i < n; i++)
        not_converged += !converged(&cells[i], config);
    return not_converged;
}

/* 0, -EINTR, -ENOMEM. What went wrong with the child is the cell's. */
static int take_turn(struct weir_cell *cell, int round, const struct weir_rotation_config *config)
{
    struct weir_trial trial = {0};
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_turn turn;
    const struct weir_trial_config child = {
        .program = config->program, .argv = cell->argv, .seconds = config->turn_s, .interrupted = config->interrupted};
    int rc = config->prepare ? config->prepare(config->user, cell, &err) : 0;
    if (rc == 0)
        rc = weir_trial_run(&trial, &child, &err);
    if (rc == 0)
        rc = weir_turn_parse(&turn, trial.output, trial.length, &err);
    weir_trial_free(&trial);
    if (config->interrupted && *config->interrupted) /* Ctrl-C reaches the child, too: it ended early */
        return -EINTR;
    turn.round = round;
    if (rc < 0)
        snprintf(cell->why, sizeof cell->why, "%s", err.text);
    else if (weir_cell_add(cell, &turn) < 0)
        return -ENOMEM;
    return 0;
}

static int take_round(struct weir_cell *cells, int n, int round, const struct weir_rotation_config *config)
{
    for (int i = 0; i < n; i++) {
        struct weir_cell *cell = &cells[(i + round) % n];
        if (*cell->why)
            continue;
        if (config->interrupted && *config->interrupted)
            return -EINTR;
        if (weir_clock_monotonic_ns() >= config->end_ns)
            return -ETIME;
        int rc = take_turn(cell, round, config);
        if (rc < 0)
            return rc;
        if (config->done)
            config->done(config->user, cell, round, i, n);
    }
    return 0;
}

int weir_rotation_run(struct weir_cell *cells, int n, const struct weir_rotation_config *config,
                      struct weir_rotation_result *result)
{
    int rc = 0;
    *result = (struct weir_rotation_result){.end = WEIR_ROTATION_ROUNDS};
    while (n > 0 && rc == 0 && result->rounds < config->rounds_max) {
        rc = take_round(cells, n, result->rounds, config);
        if (rc < 0)
            break;
        result->rounds++;
        if (result->rounds >= config->rounds_min && count_not_converged(cells, n, config) == 0)
            break;
    }
    result->not_converged = count_not_converged(cells, n, config);
    if (rc == -ETIME)
        result->end = WEIR_ROTATION_TIME;
    else if (rc == -EINTR)
        result->end = WEIR_ROTATION_INTERRUPTED;
    else if (result->not_converged == 0)
        result->end = WEIR_ROTATION_CONVERGED;
    return rc == -ENOMEM ? rc : 0;
}
