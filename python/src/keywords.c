/* The keywords of weir.Loader, which come from the table of the loader's options. */
#include "pipeline/loader_options.h"
#include "python/src/loader_parts.h"
#include "python/src/py.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- the option table for Python ---- */

static void keyword_of(const struct weir_opt *opt, char name[WEIR_OPTION_TEXT])
{
    weir_option_key(name, WEIR_OPTION_TEXT, opt->keyword ? opt->keyword : opt->name);
}

/* Returns the kind of value that the option has, which determines how Python converts it. */
static const char *kind_of(const struct weir_opt *opt)
{
    static const char *const kinds[] = {
        [WEIR_OPT_FLAG] = "flag", [WEIR_OPT_INT] = "int",     [WEIR_OPT_UINT64] = "int", [WEIR_OPT_DOUBLE] = "float",
        [WEIR_OPT_TEXT] = "text", [WEIR_OPT_ENUM] = "choice", [WEIR_OPT_SIZE] = "size",  [WEIR_OPT_BYTES] = "bytes"};
    if (opt->is_list)
        return "names";
    return opt->path != WEIR_PATH_NONE ? "path" : opt->allow_auto ? "auto" : kinds[opt->kind];
}

/* Gets the default as a Python expression. */
static void preset_of(const struct weir_opt *opt, char text[WEIR_OPTION_TEXT])
{
    bool is_word = opt->kind == WEIR_OPT_TEXT || opt->kind == WEIR_OPT_ENUM || opt->allow_auto;
    if (opt->keyword_preset)
        snprintf(text, WEIR_OPTION_TEXT, "%s", opt->keyword_preset);
    else if (opt->kind == WEIR_OPT_FLAG)
        snprintf(text, WEIR_OPTION_TEXT, "%s", opt->keyword_inverted ? "True" : "False");
    else if (!opt->preset)
        snprintf(text, WEIR_OPTION_TEXT, "None");
    else
        snprintf(text, WEIR_OPTION_TEXT, is_word ? "'%s'" : "%s", opt->preset);
}

static PyObject *row_of(const struct weir_opt *opt)
{
    char name[WEIR_OPTION_TEXT], preset[WEIR_OPTION_TEXT], old[WEIR_OPTION_TEXT], text[1024], help[2 * sizeof text];
    const char *choices = opt->keyword_choices                    ? opt->keyword_choices
                          : opt->value && strchr(opt->value, '|') ? opt->value
                                                                  : "";
    const char *details = opt->keyword_details ? opt->keyword_details : opt->details;
    keyword_of(opt, name);
    preset_of(opt, preset);
    weir_option_key(old, sizeof old, opt->old_name ? opt->old_name : "");
    const char *values = opt->keyword_inverted ? "False: " : opt->kind == WEIR_OPT_SIZE ? "(width, height): " : "";
    snprintf(text, sizeof text, "%s%s%s%s", values, opt->help, details ? ". " : "", details ? details : "");
    weir_name_keywords(help, sizeof help, text);
    return Py_BuildValue("(sssssss)", name, kind_of(opt), preset, choices, help, old,
                         opt->old_keyword ? opt->old_keyword : "");
}

static PyObject *loader_keywords(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    for (const struct weir_opt *opt = weir_loader_opts; list && opt->name; opt++)
        if (opt->users & WEIR_FOR_PYTHON && weir_py_append(list, row_of(opt)) < 0)
            Py_CLEAR(list);
    return list;
}

int weir_keywords_begin(PyObject *module)
{
    static PyMethodDef methods[] = {{"_loader_keywords", loader_keywords, METH_NOARGS, NULL}, {0}};
    weir_loader_options_complete();
    return PyModule_AddFunctions(module, methods);
}

/* ---- values ---- */

/* Returns a new reference to bytes without zero bytes. A str is encoded as UTF-8, and bytes are returned unchanged.
 * Returns NULL for other values, with or without an exception. */
static PyObject *bytes_of(PyObject *value)
{
    char *text;
    PyObject *bytes = PyBytes_Check(value)     ? Py_NewRef(value)
                      : PyUnicode_Check(value) ? PyUnicode_AsEncodedString(value, "utf-8", "surrogateescape")
                                               : NULL;
    if (bytes && PyBytes_AsStringAndSize(bytes, &text, NULL) < 0)
        Py_CLEAR(bytes);
    return bytes;
}

/* Sets a string field, which points into bytes that self->texts keeps alive. */
static bool set_text(struct weir_loader_object *self, const char **field, PyObject *value)
{
    PyObject *bytes = bytes_of(value);
    bool kept = bytes && PyList_Append(self->texts, bytes) == 0;
    if (kept)
        *field = PyBytes_AsString(bytes);
    Py_XDECREF(bytes);
    return kept;
}

static bool set_int(int *field, PyObject *value)
{
    long number = PyLong_AsLong(value);
    *field = (int)number;
    return number >= INT_MIN && number <= INT_MAX;
}

static bool set_field(struct weir_loader_object *self, const struct weir_opt *opt, PyObject *value)
{
    void *field = (char *)&self->config + opt->offset;
    switch (opt->kind) {
    case WEIR_OPT_FLAG:
        *(bool *)field = (value == Py_True) != opt->keyword_inverted;
        return PyBool_Check(value);
    case WEIR_OPT_INT:
    case WEIR_OPT_ENUM:
        return set_int(field, value);
    case WEIR_OPT_UINT64:
    case WEIR_OPT_BYTES:
        *(uint64_t *)field = PyLong_AsUnsignedLongLong(value);
        return true;
    case WEIR_OPT_DOUBLE:
        *(double *)field = PyFloat_AsDouble(value);
        return true;
    case WEIR_OPT_TEXT:
        return set_text(self, field, value);
    case WEIR_OPT_SIZE:
        return PyArg_ParseTuple(value, "ii", &((struct weir_opt_size *)field)->width,
                                &((struct weir_opt_size *)field)->height);
    }
    return false;
}

static const char *wanted(const struct weir_opt *opt)
{
    static const char *const kinds[] = {[WEIR_OPT_FLAG] = "True or False",
                                        [WEIR_OPT_INT] = "a 32-bit int",
                                        [WEIR_OPT_UINT64] = "an int from 0 to 2**64 - 1",
                                        [WEIR_OPT_DOUBLE] = "a number",
                                        [WEIR_OPT_TEXT] = "a str without zero bytes",
                                        [WEIR_OPT_ENUM] = "a 32-bit int",
                                        [WEIR_OPT_SIZE] = "two 32-bit ints",
                                        [WEIR_OPT_BYTES] = "an int from 0 to 2**64 - 1"};
    return kinds[opt->kind];
}

static int set_keyword(struct weir_loader_object *self, const struct weir_opt *opt, PyObject *dict)
{
    char name[WEIR_OPTION_TEXT];
    keyword_of(opt, name);
    PyObject *value = PyDict_GetItemString(dict, name);
    if (!value)
        return 0;
    if (set_field(self, opt, value) && !PyErr_Occurred())
        return 0;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
        !PyErr_ExceptionMatches(PyExc_OverflowError))
        return -1; /* keeps other exceptions, such as MemoryError or an exception of the value's own methods */
    PyErr_Format(PyExc_ValueError, "%s must be %s, not %.100R", name, wanted(opt), value);
    return -1;
}

int weir_loader_options(struct weir_loader_object *self, PyObject *path, PyObject *dict)
{
    weir_loader_config_default(&self->config);
    Py_XDECREF(self->texts);
    self->texts = PyList_New(0);
    if (!self->texts || !set_text(self, &self->config.data, path))
        return -1;
    for (const struct weir_opt *opt = weir_loader_opts; opt->name; opt++)
        if (opt->users & WEIR_FOR_PYTHON && set_keyword(self, opt, dict) < 0)
            return -1;
    return 0;
}

/* ---- replacing the program's options in messages ---- */

/* Options that are not keywords of the loader but have a counterpart in Python. */
static const struct {
    const char *option, *name;
} others[] = {{"profile", "weir.profile()"}, {"seconds", "more batches"}};

/* Returns the index of word among the choices, or -1 if it is not one of them. */
static int choice_of(const char *choices, const char *word)
{
    char choice[WEIR_OPTION_TEXT];
    const char *at = choices;
    for (int i = 0; at; i++) {
        weir_option_choice(choices, i, choice);
        if (strcmp(choice, word) == 0)
            return i;
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    return -1;
}

/* Writes an assignment such as "batch_size=8" for the word after "--batch-size ". Returns the bytes written, or 0 if
 * the word is not a value of the option. */
static int write_value(char *to, size_t room, const char *name, const struct weir_opt *opt, const char *word)
{
    int width, height, choice = opt->kind == WEIR_OPT_ENUM ? choice_of(opt->value, word) : -1;
    char last, python[WEIR_OPTION_TEXT];
    bool is_number = (*word >= '0' && *word <= '9') || (*word == '-' && word[1]);
    bool is_text = opt->kind == WEIR_OPT_TEXT && (strchr(opt->value, '|') || strcmp(opt->value, "NAME") == 0);
    if (!*word || opt->kind == WEIR_OPT_FLAG)
        return 0;
    if (opt->kind == WEIR_OPT_SIZE)
        return sscanf(word, "%6dx%6d%c", &width, &height, &last) == 2
                   ? snprintf(to, room, "%s=(%d, %d)", name, width, height)
                   : 0;
    if (opt->kind == WEIR_OPT_BYTES || is_text)
        return snprintf(to, room, "%s=\"%s\"", name, word);
    if (opt->kind == WEIR_OPT_ENUM) {
        weir_option_choice(opt->keyword_choices ? opt->keyword_choices : opt->value, choice, python);
        return choice < 0 ? 0 : snprintf(to, room, "%s=\"%s\"", name, python);
    }
    return is_number && opt->kind != WEIR_OPT_TEXT ? snprintf(to, room, "%s=%s", name, word) : 0;
}

static const struct weir_opt *find(const char *option, size_t n)
{
    for (const struct weir_opt *opt = weir_loader_opts; opt->name; opt++)
        if (opt->users & WEIR_FOR_PYTHON && strlen(opt->name) == n && memcmp(opt->name, option, n) == 0)
            return opt;
    return NULL;
}

/* Writes the keyword for the option that begins at `at`, and sets *end to the rest of the text. Returns the bytes
 * written, or 0 if there is no such keyword. */
static size_t name_keyword(char *to, size_t room, const char *at, const char **end)
{
    char name[WEIR_OPTION_TEXT], value[512];
    size_t n = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
    const struct weir_opt *opt = find(at + 2, n);
    const char *after = at + 2 + n;
    size_t word = *after == ' ' ? strcspn(after + 1, " ,;)\n") : 0;
    int bytes = 0;
    word -= word > 0 && after[word] == ':';
    for (size_t i = 0; !opt && i < sizeof others / sizeof others[0]; i++)
        if (strlen(others[i].option) == n && memcmp(others[i].option, at + 2, n) == 0) {
            *end = after + (word > 0) + word;
            bytes = snprintf(to, room, "%s", others[i].name);
        }
    if (opt) {
        keyword_of(opt, name);
        snprintf(value, sizeof value, "%.*s", (int)word, word ? after + 1 : "");
        bytes = write_value(to, room, name, opt, value);
        *end = bytes > 0 ? after + 1 + word : after;
        if (bytes == 0)
            bytes = snprintf(to, room, opt->keyword_inverted ? "%s=False" : "%s", name);
    }
    return bytes > 0 && (size_t)bytes < room ? (size_t)bytes : 0;
}

void weir_name_keywords(char *to, size_t room, const char *text)
{
    bool command = false; /* "weir convert ..." stays as a shell needs it, to a bracket or the line's end */
    for (const char *at = text; *at && room > 1;) {
        const char *end = at + 1;
        bool word = at == text || at[-1] == ' ' || at[-1] == '(';
        command = !strchr(")\n", *at) && (command || (word && strncmp(at, "weir ", 5) == 0));
        bool begins = word && !command && strncmp(at, "--", 2) == 0;
        size_t n = begins ? name_keyword(to, room, at, &end) : 0;
        if (n == 0) {
            *to = *at;
            n = 1;
            end = at + 1;
        }
        to += n;
        room -= n;
        at = end;
    }
    *to = '\0';
}
