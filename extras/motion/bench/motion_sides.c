/* motion_sides: measures a motion step (motion.h) for several sides, which are interleaved: both variants, and the
 * variant ops with each piece of the usual advice and with all of it. In each round it runs several steps of each side
 * and waits for the last one. With --serve, another program (motion_torch.py) schedules the sides: it writes the name
 * of a side as a line to stdin and reads the ms per step. --dump writes clips, queries and results for comparison. */
#include "base/hash.h"
#include "bench/series.h"
#include "cli/options.h"
#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/motion.h"
#include "weir/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 10, ADVICE = 6, WARM_UP = 2 };

static const char *const names[SIDES] = {"fused",     "ops",       "indices",      "in_place_lerp", "fast_slerp",
                                         "rotations", "no_copies", "preallocated", "all_advice",    NULL};
enum { FUSED, OPS, FIRST_ADVICE, ALL_ADVICE = FIRST_ADVICE + ADVICE };

struct side_options {
    int num_envs, num_steps_to_use, threads, in_a_row, rounds;
    bool cuda, serve;
    const char *sides, *dump;
};

static const struct weir_opt side_opts[] = {
    {"num-envs", WEIR_OPT_INT, .offset = offsetof(struct side_options, num_envs), "N", "4096", "environments", 1, 1e8},
    {"num-steps-to-use", WEIR_OPT_INT, .offset = offsetof(struct side_options, num_steps_to_use), "N", "1",
     "queries per environment", 1, 4096},
    {"threads", WEIR_OPT_INT, .offset = offsetof(struct side_options, threads), "N", "auto", "CPU threads", 1, 1024,
     true},
    {"in-a-row", WEIR_OPT_INT, .offset = offsetof(struct side_options, in_a_row), "N", "20", "steps per trial", 1, 1e6},
    {"rounds", WEIR_OPT_INT, .offset = offsetof(struct side_options, rounds), "N", "30",
     "measured rounds, after two warm-up rounds", 1, SERIES_MAX},
    {"sides", WEIR_OPT_TEXT, .offset = offsetof(struct side_options, sides), "A,B,...", NULL,
     "sides to measure: fused, ops, indices, in_place_lerp, fast_slerp, rotations, no_copies, preallocated, "
     "all_advice"},
    {"cuda", WEIR_OPT_FLAG, .offset = offsetof(struct side_options, cuda), NULL, NULL, "computation on GPU 0"},
    {"serve", WEIR_OPT_FLAG, .offset = offsetof(struct side_options, serve), NULL, NULL,
     "trials requested on standard input"},
    {"dump", WEIR_OPT_TEXT, .offset = offsetof(struct side_options, dump), "FILE", NULL,
     "file for clips, queries and the results of fused"},
};

struct sides {
    const struct side_options *options;
    struct weir_motion_clips *clips;
    int64_t *clip_of;
    float *times;
    struct weir_motion *motion[SIDES]; /* NULL: not selected */
    struct series ms[SIDES];
};

/* ---- queries ---- */

static double random_of(uint64_t env, uint64_t use)
{
    const uint64_t key[2] = {env, use};
    return (double)(weir_hash64(key, sizeof key) >> 11) * 0x1p-53;
}

static int draw(struct sides *s, struct weir_err *err)
{
    size_t envs = (size_t)s->options->num_envs, steps = (size_t)s->options->num_steps_to_use;
    s->clip_of = calloc(envs, sizeof *s->clip_of);
    s->times = calloc(envs * steps, sizeof *s->times);
    if (!s->clip_of || !s->times)
        return weir_err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < envs; i++) {
        s->clip_of[i] = (int64_t)(random_of(i, 0) * (double)s->clips->clips);
        for (size_t j = 0; j < steps; j++)
            s->times[i * steps + j] =
                (float)(random_of(i, 1) * s->clips->clip[s->clip_of[i]].duration_s + 0.02 * (double)j);
    }
    return 0;
}

static struct weir_motion_advice advice_of(int side)
{
    bool on[ADVICE];
    for (int i = 0; i < ADVICE; i++)
        on[i] = side == FIRST_ADVICE + i || side == ALL_ADVICE;
    return (struct weir_motion_advice){on[0], on[1], on[2], on[3], on[4], on[5]};
}

static int open_side(struct sides *s, int side, struct weir_err *err)
{
    struct weir_motion_config config;
    weir_motion_config_default(&config);
    config.clips = s->clips;
    config.envs = (size_t)s->options->num_envs;
    config.steps = s->options->num_steps_to_use;
    config.variant = side == FUSED ? WEIR_MOTION_FUSED : WEIR_MOTION_OPS;
    config.advice = advice_of(side);
    config.threads = s->options->threads == WEIR_OPT_AUTO ? 0 : s->options->threads;
    config.gpu = s->options->cuda ? 0 : -1;
    int rc = weir_motion_open(&s->motion[side], &config, err);
    return rc == 0 ? weir_motion_set(s->motion[side], s->clip_of, s->times, err) : rc;
}

static int open_sides(struct sides *s, struct weir_err *err)
{
    const char *list = s->options->sides;
    int rc = weir_motion_synthetic(&s->clips, &(struct weir_motion_synthetic){.loop = true}, err);
    if (rc == 0)
        rc = draw(s, err);
    for (int side = 0; side < SIDES && names[side] && rc == 0; side++) {
        size_t length = strlen(names[side]);
        bool wanted = !list;
        for (const char *at = list; at && !wanted; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
            wanted = strncmp(at, names[side], length) == 0 && (at[length] == ',' || at[length] == '\0');
        if (wanted)
            rc = open_side(s, side, err);
    }
    return rc;
}

/* ---- trials ---- */

/* Runs one trial and returns its ms per step, or a negative number with the reason in err. */
static double turn(struct sides *s, int side, struct weir_err *err)
{
    int rc = weir_motion_finish(s->motion[side], err);
    uint64_t start_ns = weir_clock_monotonic_ns();
    for (int i = 0; i < s->options->in_a_row && rc == 0; i++)
        rc = weir_motion_update(s->motion[side], err);
    if (rc == 0)
        rc = weir_motion_finish(s->motion[side], err);
    return rc < 0 ? -1 : (double)(weir_clock_monotonic_ns() - start_ns) / 1e6 / s->options->in_a_row;
}

static int serve(struct sides *s, struct weir_err *err)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        int side = 0;
        line[strcspn(line, "\n")] = '\0';
        while (names[side] && strcmp(names[side], line) != 0)
            side++;
        if (!names[side] || !s->motion[side])
            return weir_err_set(err, -EINVAL, "side %s does not exist or is not selected", line);
        double ms = turn(s, side, err);
        if (ms < 0)
            return err->code;
        printf("%.6f\n", ms);
        fflush(stdout);
    }
    return 0;
}

static int take_rounds(struct sides *s, struct weir_err *err)
{
    for (int round = 0; round < s->options->rounds + WARM_UP; round++)
        for (int i = 0; i < SIDES; i++) {
            int side = (i + round) % SIDES;
            double ms = s->motion[side] ? turn(s, side, err) : 0;
            if (ms < 0)
                return err->code;
            if (s->motion[side] && round >= WARM_UP)
                series_add(&s->ms[side], ms);
        }
    return 0;
}

static void print_rounds(const struct sides *s)
{
    double queries = (double)s->options->num_envs * s->options->num_steps_to_use;
    printf("%-14s %9s %10s %10s %10s %14s %12s\n", "side", "operators", "median ms", "min", "p99", "queries/s",
           "ops / this");
    for (int side = 0; side < SIDES; side++) {
        const struct series *ms = &s->ms[side];
        struct series ratio;
        if (!s->motion[side])
            continue;
        series_ratio(&s->ms[OPS], ms, &ratio);
        printf("%-14s %9d %10.4f %10.4f %10.4f %14.0f", names[side], weir_motion_operators(s->motion[side]),
               series_at(ms, 0.5), series_at(ms, 0), series_at(ms, 0.99), queries / series_at(ms, 0.5) * 1e3);
        if (ratio.n > 0)
            printf(" %12.2f", series_at(&ratio, 0.5));
        putchar('\n');
    }
}

/* ---- the --dump file ---- */

static void put(FILE *out, const void *numbers, size_t n, size_t size)
{
    fwrite(numbers, size, n, out);
}

static void dump_clips(FILE *out, const struct sides *s)
{
    const struct weir_motion_clips *c = s->clips;
    for (size_t i = 0; i < c->clips; i++)
        put(out, (const int64_t[]){(int64_t)c->clip[i].first_frame, (int64_t)c->clip[i].frames, c->clip[i].loop}, 3,
            sizeof(int64_t));
    for (size_t i = 0; i < c->clips; i++)
        put(out, (const float[]){(float)c->clip[i].duration_s}, 1, sizeof(float));
    put(out, c->root_pos_w, 3 * c->frames, sizeof(float));
    put(out, c->root_quat, 4 * c->frames, sizeof(float));
    put(out, c->root_vel_w, 3 * c->frames, sizeof(float));
    put(out, c->root_ang_vel_w, 3 * c->frames, sizeof(float));
    put(out, c->dof_pos, c->dofs * c->frames, sizeof(float));
    put(out, c->dof_vel, c->dofs * c->frames, sizeof(float));
    put(out, c->key_body_pos_w, 3 * c->bodies * c->frames, sizeof(float));
}

static int dump_results(FILE *out, struct weir_motion *motion, size_t queries, struct weir_err *err)
{
    int rc = weir_motion_fetch(motion, err);
    for (int result = 0; result < WEIR_MOTION_RESULTS && rc == 0; result++) {
        size_t numbers = queries * (size_t)weir_motion_result_width(motion, result);
        float *values = calloc(numbers, sizeof *values);
        rc = values ? weir_motion_result(motion, result, values, err) : weir_err_set(err, -ENOMEM, "out of memory");
        if (rc == 0)
            put(out, values, numbers, sizeof *values);
        free(values);
    }
    return rc;
}

static int dump(struct sides *s, struct weir_err *err)
{
    size_t envs = (size_t)s->options->num_envs, queries = envs * (size_t)s->options->num_steps_to_use;
    const struct weir_motion_clips *c = s->clips;
    FILE *out = fopen(s->options->dump, "we");
    if (!out || !s->motion[FUSED])
        return weir_err_set(err, -EIO, "%s: cannot be written, or side fused is not selected", s->options->dump);
    put(out,
        (const int64_t[]){(int64_t)c->clips, (int64_t)c->frames, (int64_t)c->dofs, (int64_t)c->bodies, (int64_t)envs,
                          s->options->num_steps_to_use},
        6, sizeof(int64_t));
    dump_clips(out, s);
    put(out, s->clip_of, envs, sizeof *s->clip_of);
    put(out, s->times, queries, sizeof *s->times);
    int rc = dump_results(out, s->motion[FUSED], queries, err);
    bool bad = ferror(out) != 0;
    if (fclose(out) != 0 || bad)
        rc = weir_err_set(err, -EIO, "%s: cannot be written", s->options->dump);
    return rc;
}

/* ---- main ---- */

static int run(const struct weir_command *command, int argc, char **argv)
{
    struct side_options o;
    struct sides s = {.options = &o};
    struct weir_err err = WEIR_ERR_NONE;
    int n_args;
    enum weir_parse parsed = weir_options_parse(command, &o, sizeof o, argc, argv, NULL, &n_args);
    if (parsed != WEIR_PARSE_RUN)
        return parsed == WEIR_PARSE_HELP ? 0 : 2;
    int rc = open_sides(&s, &err);
    for (int side = 0; side < SIDES && rc == 0; side++)
        if (s.motion[side]) {
            printf("%s, %d x %d queries, %d steps in a row\n", weir_motion_engine(s.motion[side]), o.num_envs,
                   o.num_steps_to_use, o.in_a_row);
            break;
        }
    fflush(stdout);
    if (rc == 0 && o.dump)
        rc = dump(&s, &err);
    if (rc == 0)
        rc = o.serve ? serve(&s, &err) : take_rounds(&s, &err);
    if (rc == 0 && !o.serve)
        print_rounds(&s);
    if (rc < 0)
        fprintf(stderr, "motion_sides: %s\n", err.text);
    for (int side = 0; side < SIDES; side++)
        weir_motion_close(&s.motion[side]);
    weir_motion_clips_free(&s.clips);
    free(s.clip_of);
    free(s.times);
    return rc < 0 ? 1 : 0;
}

static const struct weir_command command = {
    .name = "motion_sides",
    .summary = "time motion steps for each variant and piece of advice",
    .opts = side_opts,
    .n_opts = sizeof side_opts / sizeof side_opts[0],
    .run = run,
};

int main(int argc, char **argv)
{
    return command.run(&command, argc, argv);
}
