/* Converts batches to Python objects, and manages the ownership of their memory. */
#include "base/text.h"
#include "python/src/array.h"
#include "python/src/loader_parts.h"
#include "python/src/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- batches in use ---- */

static void forget(struct weir_loader_object *self, int i)
{
    weir_lent_drop(self->out[i].lent);
    self->n_out--;
    memmove(&self->out[i], &self->out[i + 1], (size_t)(self->n_out - i) * sizeof self->out[0]);
}

/* Returns unreferenced batches to the loader. Batches on a GPU have already been returned by their last reference. */
static void sweep(struct weir_loader_object *self)
{
    for (int i = self->n_out - 1; i >= 0; i--)
        if (weir_lent_is_free(self->out[i].lent)) {
            if (!self->lender)
                weir_loader_release(self->loader, self->out[i].batch);
            forget(self, i);
        }
}

/* Gives the memory of the oldest batch in use to the program. */
static int keep_oldest(struct weir_loader_object *self, struct weir_err *err)
{
    int rc = weir_lent_keep(self->out[0].lent, self->loader, self->out[0].batch, err);
    if (rc == 0)
        forget(self, 0);
    return rc;
}

void weir_batches_leave(struct weir_loader_object *self)
{
    struct weir_err err = WEIR_ERR_NONE;
    weir_loader_finish(self->loader);
    for (int i = self->n_out - 1; i >= 0; i--)
        if (weir_lent_is_free(self->out[i].lent))
            forget(self, i); /* closing the loader frees its memory */
    while (self->n_out > 0 && keep_oldest(self, &err) == 0)
        continue; /* cannot fail, because a finished loader allocates no replacement */
}

/* Warns once if the program collects batches. Keeping only a few costs almost nothing. */
static int warn_once(struct weir_loader_object *self)
{
    enum { BYTES = 100 * 1000 * 1000 };
    struct weir_loader_facts facts;
    weir_loader_facts(self->loader, &facts);
    double bytes = (double)weir_lent_kept_bytes() + (double)facts.slot_bytes;
    if (self->warned || bytes < BYTES)
        return 0;
    self->warned = true;
    char text[200];
    snprintf(text, sizeof text,
             "batches that the program keeps take %s (%s each) in addition to the loader's own; drop unneeded "
             "batches, or keep copies of the parts that you need",
             weir_size(bytes).text, weir_size((double)facts.slot_bytes).text);
    self->busy = true; /* the warning can run other threads of the program */
    int rc = PyErr_WarnEx(PyExc_RuntimeWarning, text, 1);
    self->busy = false;
    return rc;
}

/* Makes room for another batch in use. */
static int make_room(struct weir_loader_object *self)
{
    struct weir_err err = WEIR_ERR_NONE;
    sweep(self);
    if (self->n_out < WEIR_OUT_MAX)
        return 0;
    if (warn_once(self) < 0)
        return -1;
    int rc;
    self->busy = true; /* on a GPU, keep_oldest waits until the batch is complete */
    Py_BEGIN_ALLOW_THREADS rc = keep_oldest(self, &err);
    Py_END_ALLOW_THREADS self->busy = false;
    return weir_py_check(rc, &err);
}

/* ---- entries of a batch ---- */

void weir_batches_clear_entries(struct weir_loader_object *self)
{
    for (int i = 0; i < self->n_entries; i++)
        Py_CLEAR(self->entries[i].key);
    self->n_entries = 0;
}

static int add_entry(struct weir_loader_object *self, const char *key, int tensor, int camera)
{
    PyObject *text = weir_py_text(key);
    if (!text)
        return -1;
    PyUnicode_InternInPlace(&text);
    self->entries[self->n_entries++] = (struct weir_entry){text, tensor, camera};
    return 0;
}

/* Returns whether batches have the names of a LeRobot dataset's features. */
static bool has_features(const struct weir_loader_object *self)
{
    return self->keys == WEIR_KEYS_LEROBOT && self->make;
}

/* Returns the index of a camera, or -1. */
static int camera_named(const struct weir_dataset *dataset, const char *name)
{
    for (int c = 0; c < weir_dataset_cameras(dataset); c++)
        if (strcmp(weir_dataset_camera(dataset, c)->name, name) == 0)
            return c;
    return -1;
}

/* Writes the name of a feature: of the camera with this name, or the name itself. */
static void feature_of(const struct weir_loader_object *self, const char *name, char *text, size_t size)
{
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    int camera = camera_named(dataset, name);
    const char *key = camera < 0 ? name : weir_dataset_camera_key(dataset, 0, camera);
    const char *slash = camera < 0 ? NULL : strrchr(key, '/');
    snprintf(text, size, "%s", slash ? slash + 1 : key);
}

/* Adds one entry per camera for a tensor that contains several: with a prefix and the camera's name, or with prefix
 * NULL by the name of its feature. */
static int add_cameras(struct weir_loader_object *self, int tensor, bool depth, const char *prefix)
{
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    char key[WEIR_NAME_MAX + 64];
    int rc = 0;
    for (int c = 0, i = 0; c < weir_dataset_cameras(dataset) && rc == 0; c++) {
        const struct weir_camera *camera = weir_dataset_camera(dataset, c);
        if (weir_frame_is_depth(camera->kind) != depth)
            continue;
        if (prefix)
            snprintf(key, sizeof key, "%s%s", prefix, camera->name);
        else
            feature_of(self, camera->name, key, sizeof key);
        rc = add_entry(self, key, tensor, i++);
    }
    return rc;
}

/* Adds the tensors of a dataset in another format under names like LeRobot's. */
static int add_like_lerobot(struct weir_loader_object *self, int tensor, const char *name)
{
    static const struct {
        const char *name, *key;
    } same[] = {{"qpos", "observation.state"},
                {"actions", "action"},
                {"is_pad", "action_is_pad"},
                {"is_pad/qpos", "observation.state_is_pad"}};
    char key[WEIR_NAME_MAX + 64];
    if (strcmp(name, "images") == 0)
        return add_cameras(self, tensor, false, "observation.images.");
    if (strcmp(name, "depth") == 0)
        return add_cameras(self, tensor, true, "observation.depth.");
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(name, same[i].name) == 0)
            return add_entry(self, same[i].key, tensor, -1);
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    int camera = strncmp(name, "is_pad/", 7) == 0 ? camera_named(dataset, name + 7) : -1;
    bool is_depth = camera >= 0 && weir_frame_is_depth(weir_dataset_camera(dataset, camera)->kind);
    if (strncmp(name, "is_pad/", 7) == 0)
        snprintf(key, sizeof key, "observation.%s.%s_is_pad", is_depth ? "depth" : "images", name + 7);
    else
        snprintf(key, sizeof key, "observation.%.*s.%s", (int)strcspn(name, "/"), name, strchr(name, '/') + 1);
    return add_entry(self, key, tensor, -1);
}

/* Adds the tensors of a LeRobot dataset under the names of its features. State and actions are among the columns. */
static int add_feature(struct weir_loader_object *self, int tensor, const char *name)
{
    char key[WEIR_NAME_MAX + 64];
    const char *slash = strchr(name, '/');
    if (strcmp(name, "images") == 0 || strcmp(name, "depth") == 0)
        return add_cameras(self, tensor, *name == 'd', NULL);
    if (!slash || strcmp(name, "is_pad/qpos") == 0)
        return 0;
    feature_of(self, slash + 1, key, sizeof key - sizeof "_is_pad");
    if (strncmp(name, "is_pad/", 7) == 0)
        strcat(key, "_is_pad");
    return add_entry(self, key, tensor, -1);
}

/* Sorts the entries in the order of the keys' list. Others come last. */
static int sort_entries(struct weir_loader_object *self)
{
    for (int i = 1; i < self->n_entries; i++)
        for (int k = i; k > 0; k--) {
            struct weir_entry entry = self->entries[k];
            Py_ssize_t before = PySequence_Index(self->make, self->entries[k - 1].key);
            PyErr_Clear();
            Py_ssize_t mine = PySequence_Index(self->make, entry.key);
            PyErr_Clear();
            if (mine < 0 || (before >= 0 && before <= mine))
                break;
            self->entries[k] = self->entries[k - 1];
            self->entries[k - 1] = entry;
        }
    return PyErr_Occurred() ? -1 : 0;
}

/* The texts of tasks or subtasks, and the column of their numbers. */
static const struct numbered {
    const char *key, *column;
    const char *(*text)(const struct weir_dataset *dataset, int episode, int64_t number);
} numbered[] = {{"task", "task_index", weir_dataset_task}, {"subtask", "subtask_index", weir_dataset_subtask}};

/* Returns the text of a sample: of its task, or of a column of strings if `of` is NULL. */
static PyObject *text_of(const struct weir_loader_object *self, struct weir_sample sample, const struct numbered *of,
                         int column)
{
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    const char *text;
    int64_t number = 0;
    if (of) {
        weir_dataset_column_row(dataset, sample.episode, column, sample.t, &number);
        text = of->text(dataset, sample.episode, number);
    } else {
        text = weir_dataset_text_row(dataset, sample.episode, column, sample.t);
    }
    if (!text)
        return PyErr_Format(weir_py_error, "%s: episode %d, step %d: there is no %s %lld; repair meta/%ss",
                            self->config.data, sample.episode, sample.t, of ? of->key : "text", (long long)number,
                            of ? of->key : "text");
    return weir_py_shown(text);
}

/* Adds a list of the samples' texts to a batch. Returns 0, or -1 with an exception. */
static int add_texts(const struct weir_loader_object *self, const struct weir_batch *batch, PyObject *all,
                     PyObject *key, const struct numbered *of, int column)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < batch->n; i++)
        if (weir_py_append(list, text_of(self, batch->samples[i], of, column)) < 0)
            Py_CLEAR(list);
    int rc = list ? PyDict_SetItem(all, key, list) : -1;
    Py_XDECREF(list);
    return rc;
}

/* Returns the number of a column of one integer per row, or -1. */
static int integer_column(const struct weir_dataset *dataset, const char *name)
{
    for (int c = 0; c < weir_dataset_columns(dataset); c++) {
        struct weir_column_shape shape;
        if (strcmp(weir_dataset_column(dataset, c, &shape), name) == 0)
            return shape.type == WEIR_COLUMN_I64 && shape.rank == 0 ? c : -1;
    }
    return -1;
}

/* Adds "task" and "subtask" to a batch of a LeRobot dataset. Returns 0, or -1 with an exception. */
static int add_tasks(const struct weir_loader_object *self, const struct weir_batch *batch, PyObject *all)
{
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    int rc = 0;
    for (size_t i = 0; i < sizeof numbered / sizeof *numbered && rc == 0; i++) {
        int column = integer_column(dataset, numbered[i].column);
        if (column < 0 || (i > 0 && !weir_dataset_has_subtasks(dataset, 0)))
            continue;
        PyObject *key = weir_py_text(numbered[i].key);
        rc = key ? add_texts(self, batch, all, key, &numbered[i], column) : -1;
        Py_XDECREF(key);
    }
    return rc;
}

/* Adds entries for the columns of strings. */
static int add_text_entries(struct weir_loader_object *self)
{
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    int rc = 0;
    for (int c = 0; c < weir_dataset_text_columns(dataset) && self->n_entries < WEIR_ENTRIES_MAX && rc == 0; c++)
        rc = add_entry(self, weir_dataset_text_column(dataset, c), -1 - c, -1);
    return rc;
}

static int add_weir(struct weir_loader_object *self, int tensor, const char *name)
{
    char key[WEIR_NAME_MAX + 64];
    if (strncmp(name, "images", 6) == 0)
        snprintf(key, sizeof key, "image%s", name + 6);
    else
        snprintf(key, sizeof key, "%s", strcmp(name, "actions") == 0 ? "action" : name);
    return add_entry(self, key, tensor, -1);
}

/* Checks that the entries are images, state, actions and padding in this order, as ACT unpacks them. */
static int check_act(struct weir_loader_object *self)
{
    static const char *const names[] = {"image", "qpos", "action", "is_pad"};
    for (int i = 0; i < 4 && !PyErr_Occurred(); i++) {
        const char *key = i < self->n_entries ? PyUnicode_AsUTF8AndSize(self->entries[i].key, NULL) : "nothing";
        if (!key || strcmp(key, names[i]) == 0)
            continue;
        PyErr_Format(weir_py_error,
                     "keys='act' requires colour cameras of one size and no depth (found %s instead of %s); specify "
                     "cameras= or image_size=(width, height)",
                     key, names[i]);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int find_entries(struct weir_loader_object *self, const struct weir_batch *batch)
{
    int rc = 0;
    for (int i = 0; i < batch->n_tensors && rc == 0; i++)
        rc = (has_features(self)                ? add_feature
              : self->keys == WEIR_KEYS_LEROBOT ? add_like_lerobot
                                                : add_weir)(self, i, batch->tensors[i].name);
    if (rc == 0 && self->keys == WEIR_KEYS_ACT)
        rc = check_act(self);
    if (rc == 0 && has_features(self) && (rc = add_text_entries(self)) == 0)
        rc = sort_entries(self);
    if (rc < 0)
        weir_batches_clear_entries(self);
    return rc;
}

/* Returns a torch tensor, or a weir.Array if torch is not used or does not have the dtype. */
static PyObject *value_of(const struct weir_loader_object *self, const struct weir_view_of *view)
{
    if (!self->from_dlpack || (view->dtype == WEIR_DTYPE_U16 && !self->has_uint16))
        return weir_array_new(view);
    PyObject *capsule = weir_array_capsule(view);
    PyObject *tensor = capsule ? PyObject_CallFunctionObjArgs(self->from_dlpack, capsule, NULL) : NULL;
    Py_XDECREF(capsule);
    if (!tensor || !view->is_bool)
        return tensor;
    PyObject *bools = PyObject_CallMethod(tensor, "view", "O", self->bool_dtype);
    Py_DECREF(tensor);
    return bools;
}

static PyObject *show(const struct weir_loader_object *self, struct weir_lent *lent, const struct weir_batch *batch)
{
    bool act = self->keys == WEIR_KEYS_ACT;
    PyObject *all = act ? PyTuple_New(self->n_entries) : PyDict_New();
    for (int i = 0; all && i < self->n_entries; i++) {
        const struct weir_entry *entry = &self->entries[i];
        struct weir_view_of view;
        if (entry->tensor < 0) {
            if (add_texts(self, batch, all, entry->key, NULL, -1 - entry->tensor) < 0)
                Py_CLEAR(all);
            continue;
        }
        weir_view_tensor(&view, lent, batch, entry->tensor);
        if (entry->camera >= 0)
            weir_view_pick(&view, 1, entry->camera);
        PyObject *value = value_of(self, &view);
        if (!value) {
            Py_CLEAR(all);
        } else if (act) {
            PyTuple_SetItem(all, i, value);
        } else {
            if (PyDict_SetItem(all, entry->key, value) < 0)
                Py_CLEAR(all);
            Py_DECREF(value);
        }
    }
    if (all && has_features(self) && add_tasks(self, batch, all) < 0)
        Py_CLEAR(all);
    if (!all || !act)
        return all;
    PyObject *named = PyObject_CallObject(self->make, all);
    Py_DECREF(all);
    return named;
}

/* Makes torch's current stream on the batch's GPU wait for the batch. Returns 0, or -1 with an exception. */
static int order(const struct weir_loader_object *self, struct weir_lent *lent)
{
    struct weir_err err = WEIR_ERR_NONE;
    if (!self->lender || !self->from_dlpack)
        return 0;
    PyObject *number = PyObject_CallFunctionObjArgs(self->current_stream, NULL);
    void *stream = number ? PyLong_AsVoidPtr(number) : NULL;
    Py_XDECREF(number);
    if (PyErr_Occurred())
        return -1;
    return weir_py_check(weir_lent_ready(lent, stream, true, &err), &err);
}

static PyObject *hand_out(struct weir_loader_object *self, struct weir_batch *batch)
{
    struct weir_lent *lent = self->lender ? weir_lent_new_on_gpu(self->lender, batch) : weir_lent_new();
    if (!lent) {
        weir_loader_release(self->loader, batch);
        return PyErr_NoMemory();
    }
    self->out[self->n_out++] = (struct weir_out){lent, batch};
    weir_lent_take(lent); /* keeps the batch in use while its arrays are created */
    bool known = self->n_entries > 0 || find_entries(self, batch) == 0;
    PyObject *all = known && order(self, lent) == 0 ? show(self, lent, batch) : NULL;
    weir_lent_drop(lent);
    return all;
}

/* Waits without the interpreter's lock. self->config.interrupted acquires the lock to check for signals. */
static int wait_for_next(struct weir_loader_object *self, struct weir_batch **batch, struct weir_err *err)
{
    int rc;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS rc = weir_loader_next(self->loader, batch, err);
    Py_END_ALLOW_THREADS self->busy = false;
    return rc;
}

PyObject *weir_batches_next(struct weir_loader_object *self, uint64_t end)
{
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_batch *batch = NULL;
    if (self->n_out > 0)
        weir_lent_step_end(self->out[self->n_out - 1].lent); /* later work on its stream belongs to later batches */
    if (make_room(self) < 0 || weir_loader_position(self->loader) >= end)
        return NULL;
    int rc = wait_for_next(self, &batch, &err);
    if (rc == -EBUSY && self->n_out > 0) { /* the only free slot belongs to a batch in use */
        err = WEIR_ERR_NONE;
        rc = keep_oldest(self, &err);
        if (rc == 0)
            rc = wait_for_next(self, &batch, &err);
    }
    if (rc > 0)
        return hand_out(self, batch);
    if (rc == -EINTR && PyErr_Occurred())
        return NULL;
    if (rc == 0)
        return PyErr_Format(weir_py_error, "the loader was stopped");
    return weir_py_raise(rc, &err);
}
