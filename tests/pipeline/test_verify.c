/* Cases of weir_verify that tests/golden/sessions/verify.sh cannot cover: files that change during verification,
 * findings of several threads out of order, and the limits of repeated images. */
#include "pipeline/verify/findings.h"
#include "tests/fixtures/loader_fixture.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

TestSuite(verify, .init = fixture_open, .fini = fixture_close);

enum { TEXT_MAX = 8192 };

/* All findings, one line each: "kind text". */
struct told {
    char text[TEXT_MAX];
    const char *touch; /* file to change at the first finding; NULL = none */
    uint64_t done, total;
};

static void found(void *user, const struct weir_finding *finding)
{
    struct told *told = user;
    size_t n = strlen(told->text);
    snprintf(told->text + n, sizeof told->text - n, "%s %s\n", weir_finding_name(finding->kind), finding->text);
    struct timespec times[2] = {{1, 0}, {1, 0}};
    if (told->touch)
        cr_assert_eq(utimensat(AT_FDCWD, told->touch, times, 0), 0);
    told->touch = NULL;
}

static void progress(void *user, uint64_t done, uint64_t total)
{
    struct told *told = user;
    cr_assert(done >= told->done && done <= total);
    told->done = done;
    told->total = total;
}

static struct weir_verify_totals verify(const char *data, int workers, struct told *told)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_dataset *dataset;
    struct weir_verify_totals totals = {0};
    struct weir_dataset_config config = {.size = sizeof config, .path = data, .depth = true, .tolerant = true};
    struct weir_verify_config how = {
        .workers = workers, .data = data, .found = found, .progress = progress, .user = told};
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert_eq(weir_verify(dataset, &how, &totals, &err), 0, "%s", err.text);
    weir_dataset_close(&dataset);
    return totals;
}

Test(verify, faults_in_a_row_are_one_line_whoever_found_them)
{
    static struct told told, again;
    char expected[TEXT_MAX];
    const char *data = fixture_synth("long", "act-jpeg", 1, 200, 32, 32, "top");
    for (int t = 60; t < 135; t++) /* more frames than a thread takes at a time */
        fixture_damage(data, 0, 0, t, FIXTURE_NO_SOI);
    fixture_damage(data, 0, 0, 199, FIXTURE_NO_SOI);
    struct weir_verify_totals totals = verify(data, 4, &told);
    const char *file = fixture_episode(data, "act-jpeg", 0);
    cr_assert_eq(totals.found[WEIR_FOUND_FRAME], 2);
    cr_assert_eq(totals.bad_frames, 76);
    cr_assert_eq(totals.frames, 200);
    snprintf(expected, sizeof expected, "frame %s: /observations/images/top[60..134]: Not a JPEG", file);
    cr_assert_eq(strncmp(told.text, expected, strlen(expected)), 0, "%s", told.text);
    cr_assert(strstr(told.text, "top[199]: Not a JPEG"), "%s", told.text);
    verify(data, 1, &again);
    cr_assert_str_eq(told.text, again.text);
}

Test(verify, a_file_that_changes_meanwhile_is_named)
{
    static struct told told;
    char expected[TEXT_MAX];
    const char *data = fixture_synth("changing", "act-jpeg", 1, 3, 32, 32, "top");
    fixture_damage(data, 0, 0, 1, FIXTURE_NO_SOI);
    told.touch = fixture_episode(data, "act-jpeg", 0);
    struct weir_verify_totals totals = verify(data, 2, &told);
    cr_assert_eq(totals.found[WEIR_FOUND_FILE], 1, "%s", told.text);
    cr_assert_eq(totals.found[WEIR_FOUND_FRAME], 1, "%s", told.text);
    snprintf(expected, sizeof expected, "\nfile %s: ", fixture_episode(data, "act-jpeg", 0));
    cr_assert(strstr(told.text, expected), "%s", told.text);
}

/* Expects these repeats of at least three steps, each as "kind first+frames". */
static void expect_repeats(const char *hashes, const char *expected)
{
    uint64_t values[32];
    int steps = (int)strlen(hashes);
    char text[256] = "";
    struct weir_findings list = {0};
    for (int t = 0; t < steps; t++)
        values[t] = (uint64_t)(hashes[t] - '0');
    cr_assert_eq(weir_findings_repeats(&list, values, steps, 3), 0);
    for (int i = 0; i < list.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %d+%d", i ? ", " : "",
                 weir_finding_name(list.runs[i].kind), list.runs[i].t, list.runs[i].frames);
    cr_assert_str_eq(text, expected, "%s: %s", hashes, text);
    weir_findings_free(&list);
}

Test(verify, pictures_that_repeat)
{
    expect_repeats("1234", "");
    expect_repeats("1122", "");
    expect_repeats("1112", "repeat 0+3");
    expect_repeats("12221333", "repeat 1+3, repeat 5+3");
    expect_repeats("11111", "still 0+5");
    expect_repeats("11", "still 0+2");
    expect_repeats("1", "");      /* a single image is not a repeat */
    expect_repeats("000000", ""); /* bad frames do not count as equal */
    expect_repeats("1101111", "repeat 3+4");
}
