/* Strings in HDF5 episodes: attributes of the file and of the episode's group, scalar string datasets, and LIBERO's
 * JSON. */
#include "pipeline/survey.h"
#include "tests/fixtures/loader_fixture.h"
#include "weir/dataset.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <hdf5.h>
#include <string.h>

TestSuite(h5_texts, .init = fixture_open, .fini = fixture_close);

enum how { VARIABLE, FIXED, PAIR };

static hid_t fine(hid_t id)
{
    cr_assert_geq(id, 0);
    return id;
}

static void put_number(hid_t file, const char *name, hid_t type, const void *value)
{
    hid_t space = fine(H5Screate(H5S_SCALAR)), id = fine(H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Awrite(id, type, value);
    H5Aclose(id);
    H5Sclose(space);
}

/* Writes a string as an attribute of an object, or as a dataset in it. */
static void put(hid_t file, const char *object, const char *name, const char *value, enum how how, bool dataset)
{
    const char *pair[2] = {value, value};
    hsize_t two = 2;
    hid_t type = fine(H5Tcopy(H5T_C_S1)), place = fine(H5Oopen(file, object, H5P_DEFAULT));
    hid_t space = fine(how == PAIR ? H5Screate_simple(1, &two, NULL) : H5Screate(H5S_SCALAR));
    H5Tset_size(type, how == FIXED ? strlen(value) : H5T_VARIABLE);
    hid_t id = fine(dataset ? H5Dcreate2(place, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                            : H5Acreate2(place, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
    const void *from = how == FIXED ? (const void *)value : pair;
    cr_assert_geq(dataset ? H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, from) : H5Awrite(id, type, from), 0);
    H5Oclose(place);
    H5Sclose(space);
    H5Tclose(type);
    dataset ? H5Dclose(id) : H5Aclose(id);
}

static const char *texts_of(const char *data, int episode)
{
    static char all[2048];
    struct weir_dataset_config config = {.size = sizeof config, .path = data};
    struct weir_dataset *dataset;
    struct weir_err err = WEIR_ERR_NONE;
    const char *key, *value;
    all[0] = '\0';
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    for (int i = 0; weir_dataset_text(dataset, episode, i, &key, &value); i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s=%s;", key, value);
    weir_dataset_close(&dataset);
    return all;
}

/* ---- attributes that determine the content of batches ---- */

static const char *open_with_attribute(const char *name, const char *value, int number, int *rc, bool *is_bgr)
{
    static struct weir_err err;
    char folder[16];
    static int folders;
    snprintf(folder, sizeof folder, "data%d", folders++);
    const char *data = fixture_synth(folder, "act", 1, 4, 16, 16, "top");
    hid_t file = fine(H5Fopen(fixture_episode(data, "act", 0), H5F_ACC_RDWR, H5P_DEFAULT));
    if (value)
        put(file, "/", name, value, VARIABLE, false);
    else {
        put_number(file, name, H5T_NATIVE_INT, &number);
    }
    H5Fclose(file);
    struct weir_dataset *dataset = NULL;
    struct weir_dataset_config config = {.size = sizeof config, .path = data};
    err = (struct weir_err)WEIR_ERR_NONE;
    *rc = weir_dataset_open(&dataset, &config, &err);
    *is_bgr = *rc == 0 && weir_dataset_is_bgr(dataset);
    weir_dataset_close(&dataset);
    return err.text;
}

/* Other values are refused: with a damaged "bgr", red and blue would be swapped silently. */
Test(h5_texts, colours_that_are_neither_rgb_nor_bgr)
{
    int rc;
    bool is_bgr;
    const char *text = open_with_attribute("weir_color", "rgb", 0, &rc, &is_bgr);
    cr_assert(rc == 0 && !is_bgr, "%s", text);
    text = open_with_attribute("weir_color", "bgr", 0, &rc, &is_bgr);
    cr_assert(rc == 0 && is_bgr, "%s", text);
    text = open_with_attribute("weir_color", "bgs", 0, &rc, &is_bgr);
    cr_assert_eq(rc, -EBADMSG);
    cr_assert_not_null(strstr(text, "attribute weir_color must be rgb or bgr, not \"bgs\""), "%s", text);
    text = open_with_attribute("weir_color", NULL, 1, &rc, &is_bgr);
    cr_assert_eq(rc, -EBADMSG);
    cr_assert_not_null(strstr(text, "attribute weir_color is not a string"), "%s", text);
}

/* Damages the version field of the attribute's message, which is 8 bytes before the name. */
static void damage_attribute(const char *path, const char *name)
{
    FILE *file = fopen(path, "r+");
    cr_assert_not_null(file);
    static char bytes[1 << 20];
    size_t n = fread(bytes, 1, sizeof bytes, file);
    char *at = memmem(bytes, n, name, strlen(name) + 1);
    cr_assert_not_null(at, "%s", name);
    fseek(file, at - 8 - bytes, SEEK_SET);
    fputc(77, file);
    fclose(file);
}

/* Unreadable attributes are errors, because they matter. For example, `compress` distinguishes cobot_magic files, whose
 * actions are the next states, from ACT files with real actions. */
Test(h5_texts, attributes_that_cannot_be_read)
{
    static const char *const names[] = {"compress", "weir_color"};
    for (int i = 0; i < 2; i++) {
        const char *data = fixture_synth(names[i], "act", 1, 4, 16, 16, "top");
        const char *path = fixture_episode(data, "act", 0);
        hid_t file = fine(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT)), space = fine(H5Screate(H5S_SCALAR));
        signed char no = 0;
        hid_t id = fine(H5Acreate2(file, names[i], H5T_STD_I8LE, space, H5P_DEFAULT, H5P_DEFAULT));
        H5Awrite(id, H5T_NATIVE_SCHAR, &no);
        H5Aclose(id);
        H5Sclose(space);
        H5Fclose(file);
        struct weir_dataset *dataset = NULL;
        struct weir_dataset_config config = {.size = sizeof config, .path = data};
        struct weir_err err = WEIR_ERR_NONE;
        if (i == 0) {
            cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
            cr_assert_str_eq(weir_dataset_layout(dataset, 0), "agilex");
            weir_dataset_close(&dataset);
        }
        damage_attribute(path, names[i]);
        cr_assert_eq(weir_dataset_open(&dataset, &config, &err), -EBADMSG, "%s", names[i]);
        cr_assert_not_null(strstr(err.text, "of the file's root, cannot be read (HDF5: bad version number"), "%s",
                           err.text);
        cr_assert_not_null(strstr(err.text, "; a newer HDF5 wrote the file (write it with libver="), "%s", err.text);
    }
}

Test(h5_texts, of_a_file)
{
    const char *data = fixture_synth("act", "act", 1, 4, 16, 16, "top");
    hid_t file = fine(H5Fopen(fixture_episode(data, "act", 0), H5F_ACC_RDWR, H5P_DEFAULT));
    put(file, "/", "language_instruction", "pick \xc3\xa4 cup", VARIABLE, false);
    put(file, "/", "fixed", "abc", FIXED, false);
    put(file, "/", "pair", "no", PAIR, false);
    put(file, "/observations", "language_instruction", "of another object", VARIABLE, false);
    put(file, "/", "task", "a dataset", VARIABLE, true);
    put(file, "/", "language_raw", "another", FIXED, true);
    H5Fclose(file);
    cr_assert_str_eq(texts_of(data, 0),
                     "language_raw=another;task=a dataset;fixed=abc;language_instruction=pick \xc3\xa4 cup;");
}

Test(h5_texts, of_a_file_of_many)
{
    const char *data = fixture_synth("libero", "libero", 2, 4, 16, 16, NULL);
    char path[512];
    snprintf(path, sizeof path, "%s/demo.hdf5", data);
    hid_t file = fine(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    cr_assert_geq(H5Adelete_by_name(file, "/data", "problem_info", H5P_DEFAULT), 0);
    put(file, "/data", "problem_info", "{\"language_instruction\": [\"close\", \" it\"], \"x\": 1}", VARIABLE, false);
    put(file, "/data/demo_1", "task", "second", VARIABLE, false);
    H5Fclose(file);
    cr_assert_str_eq(texts_of(data, 0), "language_instruction=close it;");
    cr_assert_str_eq(texts_of(data, 1), "task=second;language_instruction=close it;");
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = data};
    struct weir_err err = WEIR_ERR_NONE;
    char line[1024];
    file = fine(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT));
    cr_assert_geq(H5Adelete_by_name(file, "/data", "problem_info", H5P_DEFAULT), 0);
    put(file, "/data", "problem_info", "{\"language_instruction\": ", VARIABLE, false);
    H5Fclose(file);
    cr_assert_eq(weir_dataset_open(&dataset, &config, &err), 0, "%s", err.text);
    cr_assert(weir_dataset_left_out(dataset, 0, line, sizeof line));
    cr_assert_not_null(strstr(line, "attribute problem_info is left out: not a JSON object"), "%s", line);
    weir_dataset_close(&dataset);
}

/* ---- attributes that all episodes share ---- */

static void set_number(const char *data, int episode, const char *name, double value)
{
    hid_t file = fine(H5Fopen(fixture_episode(data, "act", episode), H5F_ACC_RDWR, H5P_DEFAULT));
    if (H5Aexists(file, name) > 0)
        H5Adelete(file, name);
    if (value >= 0)
        put_number(file, name, H5T_NATIVE_DOUBLE, &value);
    H5Fclose(file);
}

static int open_with_index(const char *data, struct weir_err *err)
{
    struct weir_dataset *dataset;
    struct weir_dataset_config config = {.size = sizeof config, .path = data, .index = fixture_path("kept.index")};
    *err = (struct weir_err)WEIR_ERR_NONE;
    int rc = weir_dataset_open(&dataset, &config, err);
    weir_dataset_close(&dataset);
    return rc;
}

Test(h5_texts, episodes_of_other_recordings_are_named)
{
    struct weir_err err;
    const char *data = fixture_synth("sim", "act", 3, 4, 16, 16, "top");
    cr_assert_eq(open_with_index(data, &err), 0, "%s", err.text);
    set_number(data, 0, "sim", -1);
    set_number(data, 1, "fps", 50);
    cr_assert_eq(open_with_index(data, &err), 0, "%s", err.text); /* unknown is no difference */
    set_number(data, 0, "fps", 50);
    set_number(data, 2, "fps", 30);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(open_with_index(data, &err), -EBADMSG);
        cr_assert(strstr(err.text, "episode_2.hdf5: is not of the same dataset as ") &&
                      strstr(err.text, "episode_0.hdf5: fps: 30 instead of 50; the folder contains several datasets"),
                  "%s", err.text);
    }
    set_number(data, 2, "fps", 50);
    cr_assert_eq(open_with_index(data, &err), 0, "%s", err.text);
    set_number(data, 0, "sim", 1);
    set_number(data, 2, "sim", 0);
    cr_assert_eq(open_with_index(data, &err), -EBADMSG, "two files are from the index");
    cr_assert_not_null(strstr(err.text, "sim: 0 instead of 1"), "%s", err.text);
}

Test(h5_texts, episodes_between_do_not_hide_other_recordings)
{
    struct weir_err err;
    struct weir_survey survey;
    const char *data = fixture_synth("between", "act", 5, 4, 16, 16, "top");
    for (int e = 0; e < 5; e++)
        set_number(data, e, "sim", -1);
    set_number(data, 1, "fps", 50);
    set_number(data, 3, "fps", 30); /* episode 2, the last one that was taken, does not say */
    struct weir_dataset_config config = {.size = sizeof config, .path = data};
    cr_assert_eq(open_with_index(data, &err), -EBADMSG);
    cr_assert(strstr(err.text, "episode_3.hdf5: is not of the same dataset as ") &&
                  strstr(err.text, "episode_1.hdf5: fps: 30 instead of 50; the folder contains several datasets"),
              "%s", err.text);
    cr_assert_eq(weir_survey_open(&survey, &config, &err), 0, "%s", err.text);
    cr_assert_eq(survey.n, 2, "%d datasets", survey.n);
    cr_assert_eq(survey.groups[0].files.n, 4);
    weir_survey_close(&survey);
    set_number(data, 3, "fps", 50);
    cr_assert_eq(open_with_index(data, &err), 0, "%s", err.text);
}
