/* Describes a loader's dataset as Python objects. */
#include "python/src/loader_parts.h"
#include "python/src/py.h"

#include <stdlib.h>

static PyObject *episodes(const struct weir_dataset *dataset)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < weir_dataset_episodes(dataset); i++)
        if (weir_py_append(list, Py_BuildValue("(NNis)", weir_py_text(weir_dataset_episode_path(dataset, i)),
                                               weir_py_text(weir_dataset_episode_group(dataset, i)),
                                               weir_dataset_steps(dataset, i), weir_dataset_layout(dataset, i))) < 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *cameras(const struct weir_loader_object *self, const struct weir_dataset *dataset)
{
    struct weir_loader_facts facts;
    weir_loader_facts(self->loader, &facts);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < weir_dataset_cameras(dataset); i++) {
        const struct weir_camera *camera = weir_dataset_camera(dataset, i);
        if (weir_py_append(list, Py_BuildValue("(Nsii)", weir_py_text(camera->name), weir_frame_kind_name(camera->kind),
                                               facts.image_width[i], facts.image_height[i])) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *floats(const double *values, int n)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++)
        if (weir_py_append(list, PyFloat_FromDouble(values[i])) < 0)
            Py_CLEAR(list);
    return list;
}

/* Adds the mean and deviation of qpos or action. Returns 0, or -1 with an exception. */
static int put_stats(PyObject *dict, const struct weir_loader_object *self, bool actions)
{
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    int n, dim = actions ? weir_dataset_action_dim(dataset) : weir_dataset_qpos_dim(dataset);
    const int *training = weir_sampler_episodes(weir_loader_sampler(self->loader), WEIR_SPLIT_TRAIN, &n);
    double *mean = malloc(2 * ((size_t)dim + 1) * sizeof *mean), *std = mean ? mean + dim : NULL;
    int rc = mean ? weir_dataset_stats(dataset, training, n, actions, mean, std) : -1;
    if (rc < 0)
        PyErr_NoMemory();
    else if (weir_py_put(dict, actions ? "action_mean" : "qpos_mean", floats(mean, dim)) < 0 ||
             weir_py_put(dict, actions ? "action_std" : "qpos_std", floats(std, dim)) < 0)
        rc = -1;
    free(mean);
    return rc < 0 ? -1 : 0;
}

PyObject *weir_loader_describe(const struct weir_loader_object *self)
{
    const struct weir_dataset *dataset = weir_loader_dataset(self->loader);
    PyObject *dict = PyDict_New(), *statistics = PyDict_New();
    if (!dict || !statistics || put_stats(statistics, self, false) < 0 || put_stats(statistics, self, true) < 0 ||
        weir_py_put(dict, "episodes", episodes(dataset)) < 0 ||
        weir_py_put(dict, "cameras", cameras(self, dataset)) < 0 ||
        PyDict_SetItemString(dict, "statistics", statistics) < 0)
        Py_CLEAR(dict);
    Py_XDECREF(statistics);
    return dict;
}
