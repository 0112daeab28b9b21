/* motion_dump: reads motions and writes them to stdout. Usage: motion_dump [--root BODY] [--key-bodies A,B]
 * [--loop never|always] [--peak FILE] [--queries FILE] PATH... It writes a line of JSON, then the arrays root_pos_w,
 * root_quat, root_vel_w, root_ang_vel_w, dof_pos, dof_vel and key_body_pos_w as float32. If the motions cannot be read,
 * it prints one line on stderr and exits with status 1. --peak writes the peak memory in bytes to FILE. With --queries,
 * FILE contains the int64 clips of all queries and then the float32 times of all queries. In place of the arrays, the
 * program then writes motion_reference's results: the float64 value and tolerance of each number. */
#include "base/resources.h"
#include "extras/motion/clips/motion_clips.h"
#include "extras/motion/tests/motion_reference.h"
#include "weir/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_names(struct weir_json *json, const char *key, char (*names)[WEIR_MOTION_NAME], size_t n)
{
    if (!names) {
        weir_json_null(json, key);
        return;
    }
    weir_json_array(json, key);
    for (size_t i = 0; i < n; i++)
        weir_json_text(json, NULL, names[i]);
    weir_json_end(json, ']');
}

static void print_head(const struct weir_motion_clips *c)
{
    struct weir_json json;
    weir_json_open(&json, stdout, false);
    weir_json_object(&json, NULL);
    weir_json_uint(&json, "frames", c->frames);
    weir_json_uint(&json, "dofs", c->dofs);
    weir_json_uint(&json, "bodies", c->bodies);
    print_names(&json, "dof_names", c->dof_names, c->dofs);
    print_names(&json, "body_names", c->body_names, c->bodies);
    weir_json_array(&json, "clips");
    for (size_t i = 0; i < c->clips; i++) {
        weir_json_object(&json, NULL);
        weir_json_text(&json, "name", c->clip[i].name);
        weir_json_uint(&json, "first", c->clip[i].first_frame);
        weir_json_uint(&json, "frames", c->clip[i].frames);
        weir_json_double(&json, "fps", c->clip[i].fps);
        weir_json_double(&json, "duration", c->clip[i].duration_s);
        weir_json_bool(&json, "loop", c->clip[i].loop);
        weir_json_end(&json, '}');
    }
    weir_json_end(&json, ']');
    weir_json_end(&json, '}');
    weir_json_close(&json);
}

static void write_peak(const char *path)
{
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%llu\n", (unsigned long long)weir_peak_rss_bytes());
    fclose(file);
}

static size_t width_of(const struct weir_motion_clips *c, int result)
{
    if (result == WEIR_MOTION_DOF_POS || result == WEIR_MOTION_DOF_VEL)
        return c->dofs;
    if (result == WEIR_MOTION_KEY_BODY_POS_B)
        return 3 * c->bodies;
    return result == WEIR_MOTION_ROOT_QUAT ? 4 : 3;
}

static int write_references(const struct weir_motion_clips *c, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return 2;
    size_t n = (size_t)ftell(file) / (sizeof(int64_t) + sizeof(float));
    int64_t *clips = calloc(n, sizeof *clips);
    float *times = calloc(n, sizeof *times);
    struct motion_number *numbers = calloc(3 * c->bodies + c->dofs + 4, sizeof *numbers);
    rewind(file);
    if (!clips || !times || !numbers || fread(clips, sizeof *clips, n, file) != n ||
        fread(times, sizeof *times, n, file) != n)
        return 2;
    fclose(file);
    for (size_t i = 0; i < n; i++)
        for (int result = 0; result < WEIR_MOTION_RESULTS; result++) {
            motion_reference(c, clips[i], times[i], result, numbers);
            fwrite(numbers, sizeof *numbers, width_of(c, result), stdout);
        }
    free(clips);
    free(times);
    free(numbers);
    return 0;
}

static void write_arrays(const struct weir_motion_clips *c)
{
    const struct {
        const float *values;
        size_t width;
    } arrays[] = {{c->root_pos_w, 3},
                  {c->root_quat, 4},
                  {c->root_vel_w, 3},
                  {c->root_ang_vel_w, 3},
                  {c->dof_pos, c->dofs},
                  {c->dof_vel, c->dofs},
                  {c->key_body_pos_w, 3 * c->bodies}};
    for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; k++)
        fwrite(arrays[k].values, arrays[k].width * sizeof(float), c->frames, stdout);
}

int main(int argc, char **argv)
{
    const char *peak = NULL, *queries = NULL;
    struct weir_motion_read_options options = {0};
    struct weir_motion_clips *c;
    struct weir_err err = WEIR_ERR_NONE;
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--root") == 0)
            options.root_body = argv[i + 1];
        else if (strcmp(argv[i], "--key-bodies") == 0)
            options.key_bodies = argv[i + 1];
        else if (strcmp(argv[i], "--loop") == 0)
            options.loop = argv[i + 1][0] == 'a' ? WEIR_MOTION_LOOP_ALWAYS : WEIR_MOTION_LOOP_NEVER;
        else if (strcmp(argv[i], "--peak") == 0)
            peak = argv[i + 1];
        else if (strcmp(argv[i], "--queries") == 0)
            queries = argv[i + 1];
        else
            return 2;
    }
    int rc = weir_motion_read_paths(&c, (const char *const *)argv + i, (size_t)(argc - i), &options, &err);
    write_peak(peak);
    if (rc < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    print_head(c);
    if (queries)
        rc = write_references(c, queries);
    else
        write_arrays(c);
    weir_motion_clips_free(&c);
    return rc;
}
