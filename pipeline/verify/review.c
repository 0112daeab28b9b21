/* Findings about a dataset's tables, and about videos that are right but expensive. */
#include "base/shortage.h"
#include "datasets/open_dataset.h"
#include "pipeline/samples/probe.h"
#include "pipeline/verify/findings.h"

#include <errno.h>
#include <stdio.h>

/* Pictures to decode per random frame from which a camera is reported; 1.5 with a key frame every 2 pictures, which is
 * LeRobot's default. */
static const double PICTURES_MANY = 4;

struct reviewed {
    const char *path;
    const struct weir_verify_config *config;
    struct weir_verify_totals *totals;
};

static int found(void *user, const struct weir_reviewed *reviewed)
{
    static const enum weir_finding_kind kinds[WEIR_REVIEW_KINDS] = {
        [WEIR_REVIEW_TABLES] = WEIR_FOUND_TABLE,   [WEIR_REVIEW_VIDEO] = WEIR_FOUND_VIDEO,
        [WEIR_REVIEW_NUMBERS] = WEIR_FOUND_NUMBER, [WEIR_REVIEW_STATS] = WEIR_FOUND_STATS,
        [WEIR_REVIEW_MISSING] = WEIR_FOUND_NOTE,
    };
    const struct reviewed *r = user;
    struct weir_finding finding = {.kind = kinds[reviewed->kind],
                                   .file = r->path,
                                   .dataset = reviewed->part,
                                   .t = (int)reviewed->t,
                                   .frames = reviewed->t >= 0,
                                   .dimension = -1,
                                   .why = reviewed->why};
    weir_finding_report(&finding, r->config, r->totals);
    return 0;
}

int weir_review_files(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                      struct weir_verify_totals *totals, struct weir_err *err)
{
    int rc = 0;
    for (int i = 0; i < weir_dataset_files(dataset) && rc == 0; i++) {
        struct weir_dataset_file file;
        struct weir_err why = WEIR_ERR_NONE;
        weir_dataset_file(dataset, i, &file);
        struct reviewed r = {file.path, config, totals};
        rc = weir_dataset_review(dataset, i, config->episodes, found, &r, &why);
        if (rc == 0)
            continue;
        if (weir_is_shortage(rc))
            return weir_err_set(err, rc, "%s: %s", file.path, why.text);
        weir_finding_of_file(WEIR_FOUND_FILE, file.path, NULL, why.text, config, totals);
        rc = 0;
    }
    return rc;
}

void weir_findings_described_sizes(const struct weir_dataset *dataset, const struct weir_camera_probe *probes,
                                   const struct weir_verify_config *config, struct weir_verify_totals *totals)
{
    for (int camera = 0; camera < weir_dataset_cameras(dataset); camera++) {
        int width, height;
        char why[128];
        const struct weir_camera_probe *probe = &probes[camera];
        if (!weir_dataset_described_size(dataset, camera, &width, &height) || probe->width == 0 ||
            (width == probe->width && height == probe->height))
            continue;
        snprintf(why, sizeof why,
                 "its images are %dx%d, but the dataset describes them as %dx%d; correct the description", probe->width,
                 probe->height, width, height);
        weir_finding_of_file(WEIR_FOUND_TABLE, weir_dataset_episode_path(dataset, 0),
                             weir_dataset_camera_key(dataset, 0, camera), why, config, totals);
    }
}

void weir_findings_key_frames(const struct weir_dataset *dataset, const struct weir_verify_config *config,
                              struct weir_verify_totals *totals)
{
    for (int camera = 0; camera < weir_dataset_cameras(dataset); camera++) {
        struct weir_video_facts facts;
        char why[256];
        if (!weir_dataset_video_facts(dataset, camera, &facts) || facts.random_pictures < PICTURES_MANY)
            continue;
        snprintf(why, sizeof why,
                 "a key frame every %u pictures (median; at most %u): a random frame costs %.3g decoded pictures (1.5 "
                 "with a key frame every 2); encode the videos again, or use weir convert --frames jpeg:95",
                 facts.group_median, facts.group_max, facts.random_pictures);
        weir_finding_of_file(WEIR_FOUND_KEY_FRAMES, config->data, weir_dataset_camera(dataset, camera)->name, why,
                             config, totals);
    }
}
