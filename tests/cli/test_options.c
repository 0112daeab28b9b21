#include "cli/commands.h"
#include "cli/options.h"
#include "cli/run/run_options.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct values {
    int batch, workers, offset, color;
    uint64_t seed;
    double split;
    const char *log;
    struct weir_opt_size size;
    bool json, no_shuffle;
};

#define FIELD(name) offsetof(struct values, name)

static const struct weir_opt opts[] = {
    {.name = "batch-size",
     .kind = WEIR_OPT_INT,
     .offset = FIELD(batch),
     .value = "N",
     .preset = "8",
     .help = "samples",
     .min = 1,
     .max = 4096},
    {.name = "num-workers",
     .kind = WEIR_OPT_INT,
     .offset = FIELD(workers),
     .value = "N|auto",
     .preset = "auto",
     .help = "threads",
     .min = 0,
     .max = 1023,
     .allow_auto = true},
    {.name = "action-offset",
     .kind = WEIR_OPT_INT,
     .offset = FIELD(offset),
     .value = "N",
     .preset = "0",
     .help = "shift",
     .min = -1,
     .max = 1},
    {.name = "color",
     .kind = WEIR_OPT_ENUM,
     .offset = FIELD(color),
     .value = "rgb|bgr|gray",
     .preset = "rgb",
     .help = "order"},
    {.name = "seed",
     .kind = WEIR_OPT_UINT64,
     .offset = FIELD(seed),
     .value = "N",
     .preset = "0",
     .help = "of the order"},
    {.name = "train-split",
     .kind = WEIR_OPT_DOUBLE,
     .offset = FIELD(split),
     .value = "F",
     .preset = "0.9",
     .help = "share",
     .min = 0.01,
     .max = 1,
     .unit = "of all"},
    {.name = "log", .kind = WEIR_OPT_TEXT, .offset = FIELD(log), .value = "FILE", .help = "JSON lines"},
    {.name = "size",
     .kind = WEIR_OPT_SIZE,
     .offset = FIELD(size),
     .value = "WxH",
     .preset = "640x480",
     .help = "pixels",
     .min = 16,
     .max = 8192},
    {.name = "json", .kind = WEIR_OPT_FLAG, .offset = FIELD(json), .help = "prints it"},
    {.name = "no-shuffle", .kind = WEIR_OPT_FLAG, .offset = FIELD(no_shuffle), .help = "in order"},
};

static const struct weir_command command = {.name = "try",
                                            .summary = "A command.",
                                            .args = "DATA",
                                            .min_args = 1,
                                            .max_args = 2,
                                            .opts = opts,
                                            .n_opts = sizeof opts / sizeof *opts,
                                            .takes_config = true,
                                            .notes = "The notes."};

enum { MAX_WORDS = 32 };

/* Parses a command line whose words are separated by single spaces. */
static enum weir_parse parse(const char *line, struct values *values, const char **args, int *n_args)
{
    static char text[512];
    static char *argv[MAX_WORDS + 1];
    static const char *own_args[2];
    int argc = 0, own_n_args;
    snprintf(text, sizeof text, "try %s", line);
    for (char *word = strtok(text, " "); word && argc < MAX_WORDS; word = strtok(NULL, " "))
        argv[argc++] = word;
    return weir_options_parse(&command, values, sizeof *values, argc, argv, args ? args : own_args,
                              n_args ? n_args : &own_n_args);
}

static void expect_usage(const char *line, const char *message)
{
    struct values values;
    cr_assert_eq(parse(line, &values, NULL, NULL), WEIR_PARSE_USAGE, "accepted: %s", line);
    fflush(stderr);
    char text[4096];
    FILE *err = cr_get_redirected_stderr();
    size_t n = fread(text, 1, sizeof text - 1, err);
    text[n] = '\0';
    cr_assert(strstr(text, message), "'%s' printed:\n%sinstead of: %s", line, text, message);
    cr_assert(strstr(text, "weir try --help"), "no hint: %s", text);
}

Test(options, presets_are_parsed_as_if_typed)
{
    struct values v;
    cr_assert_eq(parse("folder", &v, NULL, NULL), WEIR_PARSE_RUN);
    cr_assert_eq(v.batch, 8);
    cr_assert_eq(v.workers, WEIR_OPT_AUTO);
    cr_assert_eq(v.color, 0);
    cr_assert_eq(v.split, 0.9);
    cr_assert_null(v.log);
    cr_assert(v.size.width == 640 && v.size.height == 480);
    cr_assert(!v.json && !v.no_shuffle);
}

Test(options, every_spelling_of_a_value)
{
    const char *const lines[] = {"d --batch-size 24", "d --batch-size=24", "d --batch_size 24", "--batch_size=24 d"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct values v;
        cr_assert_eq(parse(lines[i], &v, NULL, NULL), WEIR_PARSE_RUN, "%s", lines[i]);
        cr_assert_eq(v.batch, 24, "%s", lines[i]);
    }
}

Test(options, every_kind)
{
    struct values v;
    cr_assert_eq(parse("d --num-workers 0 --action-offset -1 --color bgr --seed 18446744073709551615 --train-split 1 "
                       "--log a_b.jsonl --size 64X48 --json --no_shuffle",
                       &v, NULL, NULL),
                 WEIR_PARSE_RUN);
    cr_assert_eq(v.workers, 0);
    cr_assert_eq(v.offset, -1);
    cr_assert_eq(v.color, 1);
    cr_assert_eq(v.seed, UINT64_MAX);
    cr_assert_eq(v.split, 1.0);
    cr_assert_str_eq(v.log, "a_b.jsonl"); /* underscores in values are kept */
    cr_assert(v.size.width == 64 && v.size.height == 48);
    cr_assert(v.json && v.no_shuffle);
}

Test(options, the_last_one_counts)
{
    struct values v;
    cr_assert_eq(parse("d --batch-size 2 --batch_size=3", &v, NULL, NULL), WEIR_PARSE_RUN);
    cr_assert_eq(v.batch, 3);
}

Test(options, arguments)
{
    struct values v;
    const char *args[2] = {0};
    int n;
    cr_assert_eq(parse("one --json two", &v, args, &n), WEIR_PARSE_RUN);
    cr_assert_eq(n, 2);
    cr_assert_str_eq(args[0], "one");
    cr_assert_str_eq(args[1], "two");
    cr_assert_eq(parse("--json -- --batch-size", &v, args, &n), WEIR_PARSE_RUN);
    cr_assert_eq(n, 1);
    cr_assert_str_eq(args[0], "--batch-size");
    cr_assert_eq(v.batch, 8);
    cr_assert_eq(parse("-", &v, args, &n), WEIR_PARSE_RUN);
    cr_assert_str_eq(args[0], "-");
}

struct usage_case {
    char line[64], message[96];
};

ParameterizedTestParameters(options, usage)
{
    static struct usage_case cases[] = {
        {"", "DATA is missing"},
        {"a b c", "unexpected argument 'c'"},
        {"d --batchsize 3", "unknown option --batchsize; did you mean --batch-size?"},
        {"d --workers 3", "unknown option --workers; did you mean --num-workers?"},
        {"d --zzz", "unknown option --zzz; weir try --help-all lists all options\n"},
        {"d -j", "unknown option -j"},
        {"d --json=1", "--json takes no value"},
        {"d --batch-size", "--batch-size needs a value: N"},
        {"d --log --json", "--log needs a value: FILE"},
        {"d --log=", "--log: the value is empty; specify FILE"},
        {"d --batch-size 8x", "--batch-size '8x': must be a whole number\n"},
        {"d --batch-size auto", "--batch-size 'auto': must be a whole number\n"},
        {"d --batch-size 0", "--batch-size 0: must be from 1 to 4096"},
        {"d --batch-size 4097", "must be from 1 to 4096"},
        {"d --batch-size 99999999999999999999", "must be from 1 to 4096"},
        {"d --num-workers many", "--num-workers 'many': must be a whole number or auto"},
        {"d --num-workers -1", "--num-workers -1: must be from 0 to 1023, or auto"},
        {"d --color cmyk", "--color 'cmyk': must be one of rgb|bgr|gray"},
        {"d --color rg", "must be one of rgb|bgr|gray"},
        {"d --color rgb|bgr", "must be one of rgb|bgr|gray"},
        {"d --seed -1", "--seed '-1': must be a whole number of at least 0"},
        {"d --seed 18446744073709551616", "--seed 18446744073709551616: too large"},
        {"d --train-split nan", "--train-split 'nan': must be a number"},
        {"d --train-split 1.5", "--train-split 1.5: must be from 0.01 to 1 of all"},
        {"d --size 640", "--size '640': must be WIDTHxHEIGHT, such as 640x480"},
        {"d --size 640x480x3", "--size '640x480x3': must be WIDTHxHEIGHT"},
        {"d --size -64x48", "--size '-64x48': must be WIDTHxHEIGHT"},
        {"d --size 64x8", "--size 64x8: must be from 16 to 8192"},
        {"d --bat\033ch 1", "unknown option --bat?ch"},
    };
    return cr_make_param_array(struct usage_case, cases, sizeof cases / sizeof *cases);
}

ParameterizedTest(struct usage_case *c, options, usage, .init = cr_redirect_stderr)
{
    expect_usage(c->line, c->message);
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

Test(options, help_lists_all_and_aligns)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    weir_options_help(&command, false, out);
    fclose(out);
    cr_assert(strstr(text, "Usage: weir try DATA [OPTIONS]\n"));
    cr_assert(strstr(text, "The notes.\n"));
    size_t column = 0;
    for (size_t i = 0; i < command.n_opts; i++) {
        char name[64];
        snprintf(name, sizeof name, "\n  --%s", opts[i].name);
        const char *at = strstr(text, name);
        cr_assert(at, "the help does not list %s", opts[i].name);
        const char *help = strstr(at + 1, opts[i].help);
        size_t here = (size_t)(help - at);
        if (column == 0)
            column = here;
        cr_assert_eq(here, column, "%s is not aligned", opts[i].name);
    }
    cr_assert(strstr(text, "samples (default 8)\n"));
    cr_assert(strstr(text, "--color rgb|bgr|gray"));
    cr_assert_eq(count_lines(text), 3 + 2 + command.n_opts + 3 + 2);
    free(text);
}

Test(options, help_needs_no_arguments, .init = cr_redirect_stdout)
{
    struct values v;
    cr_assert_eq(parse("--batch-size zero --help", &v, NULL, NULL), WEIR_PARSE_HELP);
    fflush(stdout);
    char text[64] = "";
    cr_assert(fgets(text, sizeof text, cr_get_redirected_stdout()));
    cr_assert_str_eq(text, "Usage: weir try DATA [OPTIONS]\n");
}

Test(options, echo_in_json)
{
    struct values v;
    cr_assert_eq(parse("d --color gray --seed 7 --json", &v, NULL, NULL), WEIR_PARSE_RUN);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct weir_json json;
    weir_json_open(&json, out, false);
    weir_json_object(&json, NULL);
    weir_options_json(&command, &v, &json);
    weir_json_end(&json, '}');
    weir_json_close(&json);
    fclose(out);
    char flat[1024] = "";
    size_t n = 0;
    for (const char *c = text; *c && n < sizeof flat - 1; c++)
        if (*c != ' ' && *c != '\n')
            flat[n++] = *c;
    cr_assert_str_eq(flat,
                     "{\"batch_size\":8,\"num_workers\":\"auto\",\"action_offset\":0,\"color\":\"gray\",\"seed\":7,"
                     "\"train_split\":0.9,\"log\":null,\"size\":\"640x480\",\"json\":true,\"no_shuffle\":false}");
    free(text);
}

Test(options, near_names)
{
    int best = INT_MAX;
    cr_assert(weir_names_close("epochs", "num-epochs", &best));
    best = INT_MAX;
    cr_assert(weir_names_close("dcotor", "doctor", &best));
    cr_assert_not(weir_names_close("dcotor", "run", &best));
    best = INT_MAX;
    cr_assert_not(weir_names_close("", "run", &best));
}

/* ---- --config ---- */

static const struct weir_opt other_opts[] = {
    {.name = "num-workers", .kind = WEIR_OPT_TEXT, .help = "x", .value = "a,b"},
    {.name = "image-size", .kind = WEIR_OPT_TEXT, .help = "x", .value = "WxH"}};
static const struct weir_command other = {.name = "other", .opts = other_opts, .n_opts = 2};
static const struct weir_command *const both[] = {&command, &other, NULL};

/* Writes a configuration file that exists only as long as this process, and copies `line` to `typed` with the file's
 * path in place of each '@'. */
static void put_config(const char *line, const char *text, char *typed, size_t size)
{
    char path[64];
    int fd = memfd_create("config", 0);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    typed[0] = '\0';
    for (const char *c = line; *c; c++)
        snprintf(typed + strlen(typed), size - strlen(typed), *c == '@' ? "%s" : "%.1s", *c == '@' ? path : c);
    weir_options_register(both);
}

static enum weir_parse parse_config(const char *line, const char *text, struct values *v)
{
    char typed[256];
    put_config(line, text, typed, sizeof typed);
    return parse(typed, v, NULL, NULL);
}

static const char good_config[] = "# weir tune\n"
                                  "\n"
                                  "num_workers = 4   # of 8\r\n"
                                  "\timage-size=320x240\n" /* an option of another command */
                                  "log = a #b.jsonl\n"
                                  "color = bgr\n"
                                  "json = true\n"
                                  "no-shuffle = false\n"
                                  "seed = 7"; /* no newline */

Test(options, a_file_of_options)
{
    static const char *const lines[] = {"d --config @", "d --config=@", "--config @ d"};
    struct values v;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_assert_eq(parse_config(lines[i], good_config, &v), WEIR_PARSE_RUN, "%s", lines[i]);
        cr_assert(v.workers == 4 && v.batch == 8 && v.seed == 7 && v.color == 1 && v.json && !v.no_shuffle);
        cr_assert_str_eq(v.log, "a");
    }
}

Test(options, what_is_typed_wins)
{
    static const char *const lines[] = {"d --config @ --num-workers 2", "d --num-workers 2 --config @"};
    struct values v;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_assert_eq(parse_config(lines[i], good_config, &v), WEIR_PARSE_RUN);
        cr_assert(v.workers == 2 && v.color == 1);
    }
    cr_assert_eq(parse_config("d -- --config", "", &v), WEIR_PARSE_RUN, "after --, it is an argument");
}

struct config_case {
    char line[32], text[96], message[96];
};

ParameterizedTestParameters(options, config_errors)
{
    static struct config_case cases[] = {
        {"d --config", "", "--config needs a value: FILE"},
        {"d --config --json", "", "--config needs a value: FILE"},
        {"d --config @ --config=@", "", "--config given twice"},
        {"d --config /not/there", "", "--config /not/there: cannot be read: No such file"},
        {"d --config /tmp", "", "--config /tmp: cannot be read: Is a directory"},
        {"d --config /dev/zero", "", "--config /dev/zero: larger than 65536 bytes"},
        {"d --config @", "seed = 1\nsede = 2\n", ":2: no command has an option --sede"},
        {"d --config @", "config = x\n", ":1: no command has an option --config"},
        {"d --config @", "\n\nseed = -1\n", ":3: --seed '-1': must be a whole number of at least 0"},
        {"d --config @", "batch-size = 5000\n", ":1: --batch-size 5000: must be from 1 to 4096"},
        {"d --config @", "color = cmyk\n", ":1: --color 'cmyk': must be one of rgb|bgr|gray"},
        {"d --config @", "json = yes\n", ":1: json 'yes': must be true or false"},
        {"d --config @", "batch_size = 2\nseed=1\nbatch-size = 2\n", ":3: batch-size given twice, first on line 1"},
        {"d --config @", "image-size = a\nimage-size = b\n", ":2: image-size given twice"},
        {"d --config @", "seed 3\n", ":1: 'seed': '=' and a value are missing"},
        {"d --config @", "seed =   # 3\n", ":1: seed has no value"},
        {"d --config @", "--seed = 3\n", ":1: expected 'option = value'"},
        {"d --config @", "= 3\n", ":1: expected 'option = value'"},
        {"d --config @", "log = a\033[2J\n", ":1: contains byte 0x1b, so this is not a text file"},
    };
    return cr_make_param_array(struct config_case, cases, sizeof cases / sizeof *cases);
}

ParameterizedTest(struct config_case *c, options, config_errors, .init = cr_redirect_stderr)
{
    char typed[256];
    put_config(c->line, c->text, typed, sizeof typed);
    expect_usage(typed, c->message);
}

/* A value that can be written is read back unchanged. Files with zero bytes, too many options or too long names are
 * refused. */
Test(options, odd_bytes_in_a_file)
{
    static struct weir_config_file file;
    struct weir_err err = WEIR_ERR_NONE;
    char zero[] = "seed = 1\0\nlog = x\n", path[] = "log = /tmp/\xff\xfe#1 \xc3\xa4\tb\n";
    cr_assert_eq(weir_config_parse(&file, zero, sizeof zero - 1, &err), -EINVAL);
    cr_assert_str_eq(err.text, "1: contains byte 0x00, so this is not a text file");
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_config_parse(&file, path, sizeof path - 1, &err), 0, "%s", err.text);
    cr_assert(file.n == 1 && strcmp(file.lines[0].value, "/tmp/\xff\xfe#1 \xc3\xa4\tb") == 0);

    char *many = calloc(1, WEIR_CONFIG_BYTES), name[256];
    size_t used = 0;
    for (int i = 0; i <= WEIR_CONFIG_LINES; i++)
        used += (size_t)snprintf(many + used, WEIR_CONFIG_BYTES - used, "a%d = 1\n", i);
    cr_assert_eq(weir_config_parse(&file, many, used, &err), -EINVAL);
    cr_assert_str_eq(err.text, "257: more than 256 options");
    memset(name, 'a', sizeof name);
    memcpy(name + 250, "=1\n", 4);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_config_parse(&file, name, 253, &err), -EINVAL, "a name of 250 bytes");

    static const char *const values[] = {"a", "a b", "a#b", "\xff", "a=b", "#a", " a", "a ", "a #b", "a\nb", ""};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        FILE *out = fmemopen(many, WEIR_CONFIG_BYTES, "w");
        cr_assert_eq(weir_config_write(out, "log", values[i]), i < 5, "%s", values[i]);
        fclose(out);
        if (i >= 5)
            continue;
        cr_assert_eq(weir_config_parse(&file, many, strlen(many), NULL), 0);
        cr_assert_str_eq(file.lines[0].value, values[i]);
    }
    free(many);
}

/* The real commands' tables: every preset parses, every name is unique, and no help line is too long. */
Test(options, tables_of_the_commands)
{
    weir_commands_complete();
    for (const struct weir_command *const *row = weir_commands; *row; row++) {
        const struct weir_command *c = *row;
        void *values = calloc(1, 8192);
        const char *args[8];
        int n_args;
        char *argv[] = {"x", "d1", "d2", "d3", "d4"};
        cr_assert_leq(c->min_args, 4);
        cr_assert_eq(weir_options_parse(c, values, 8192, 1 + c->min_args, argv, args, &n_args), WEIR_PARSE_RUN, "%s",
                     c->name);
        for (struct weir_opt_walk a = {.command = c}; weir_opt_next(&a);)
            for (struct weir_opt_walk b = {.command = c}; weir_opt_next(&b) && b.opt != a.opt;) {
                cr_assert_str_neq(a.opt->name, b.opt->name, "%s", c->name);
                cr_assert(!a.opt->old_name || strcmp(a.opt->old_name, b.opt->name) != 0, "%s", b.opt->name);
            }
        free(values);
    }
}

static void expect_short(const char *name, const struct weir_opt *opt)
{
    char line[512];
    snprintf(line, sizeof line, opt->preset ? "%s (default %s)" : "%s", opt->help, opt->preset);
    cr_expect_leq(strlen(line), WEIR_HELP_MAX, "weir %s --%s: %s", name, opt->name, line);
    cr_expect(line[strlen(line) - 1] != '.' && opt->help[0], "weir %s --%s: %s", name, opt->name, line);
    size_t n = opt->details ? strlen(opt->details) : 0;
    cr_expect(n == 0 || opt->details[n - 1] == '.', "weir %s --%s: details must end with a period", name, opt->name);
}

Test(options, help_is_short)
{
    for (const struct weir_command *const *row = weir_commands; *row; row++)
        for (struct weir_opt_walk walk = {.command = *row}; weir_opt_next(&walk);)
            expect_short((*row)->name, walk.opt);
    for (const struct weir_opt *opt = weir_loader_opts; opt->name; opt++)
        expect_short("run", opt);
}

/* Old names are accepted with a note that contains the new name. The echoed command line contains only the new name. */
Test(options, old_names, .init = cr_redirect_stderr)
{
    static struct run_options options, now;
    const char *args[1];
    int n_args;
    char typed[512], text[1024];
    put_config("@", "layout = nchw\n", typed, sizeof typed);
    char *old[] = {"run", "d", "--output", "f16", "--config", typed},
         *new[] = {"run", "d", "--dtype=f16", "--image_layout", "nchw"};
    cr_assert_eq(weir_options_parse(&weir_cmd_run, &options, sizeof options, 6, old, args, &n_args), WEIR_PARSE_RUN);
    cr_assert_eq(options.loader.format.dtype, WEIR_DTYPE_F16);
    cr_assert_eq(options.loader.format.layout, WEIR_LAYOUT_NCHW);
    fflush(stderr);
    size_t n = fread(text, 1, sizeof text - 1, cr_get_redirected_stderr());
    text[n] = '\0';
    cr_assert(strstr(text, "weir run: --output is deprecated and will be removed in the next release; use --dtype\n"),
              "%s", text);
    cr_assert(strstr(text, ":1: --layout is deprecated and will be removed in the next release; use --image-layout\n"),
              "%s", text);
    cr_assert_eq(count_lines(text), 2, "%s", text);
    cr_assert_eq(weir_options_parse(&weir_cmd_run, &now, sizeof now, 5, new, args, &n_args), WEIR_PARSE_RUN);
    cr_assert_eq(now.loader.format.dtype, options.loader.format.dtype);
    cr_assert_eq(now.loader.format.layout, options.loader.format.layout);
}

/* The loader's own defaults and bounds match the table's. */
Test(options, defaults_and_bounds_of_the_loader)
{
    static struct run_options run;
    struct weir_loader_config config;
    struct weir_err err = WEIR_ERR_NONE;
    const char *args[1];
    int n_args;
    char *argv[] = {"run", "d"};
    cr_assert_eq(weir_options_parse(&weir_cmd_run, &run, sizeof run, 2, argv, args, &n_args), WEIR_PARSE_RUN);
    weir_loader_config_default(&config);
    cr_assert_eq(config.rank, 0);
    cr_assert_eq(config.world_size, 0);
    run.loader.rank = run.loader.world_size = 0;
    run.loader.size = sizeof run.loader;
    cr_assert_eq(memcmp(&config, &run.loader, sizeof config), 0);
    cr_assert(config.batch_size == 8 && config.num_workers == WEIR_WORKERS_AUTO && config.prefetch == 0 &&
              config.obs_history == 1 && config.chunk_size == 20 && config.train_split == 0.9 &&
              config.num_epochs == 1);
    config.data = "d";
    cr_assert_eq(weir_loader_config_check(&config, &err), 0, "%s", err.text);
    for (const struct weir_opt *opt = weir_loader_opts; opt->name; opt++) {
        char expected[64];
        if (opt->kind != WEIR_OPT_INT || opt->max <= opt->min || opt->max >= INT_MAX ||
            strcmp(opt->name, "world-size") == 0)
            continue;
        int *field = (int *)(void *)((char *)&config + opt->offset), kept = *field;
        *field = (int)opt->max + 1;
        err = WEIR_ERR_NONE;
        snprintf(expected, sizeof expected, "--%s %d: must be", opt->name, *field);
        cr_assert_eq(weir_loader_config_check(&config, &err), -EINVAL, "%s", opt->name);
        cr_assert(strncmp(err.text, expected, strlen(expected)) == 0, "%s: %s", opt->name, err.text);
        *field = kept;
    }
}

/* ---- command lines built from options ---- */

/* Options at their defaults are omitted, and long values are not truncated. */
Test(options, weir_run_as_whatif_starts_it)
{
    static char mean[5000] = "0.485,0.456,0.4", step[] = "0.123456789012";
    char *argv[] = {"run",    "d",       "--mean",    mean, "--dtype",      "f32", "--image-size", "64x48", "--direct",
                    "--seed", "9999999", "--step-ms", step, "--batch-size", "8"};
    const char *const wanted[] = {"weir",      "run",     "d",       "--image-size", "64x48",
                                  "--seed",    "9999999", "--dtype", "f32",          "--direct",
                                  "--step-ms", step,      "--mean",  mean,           NULL};
    struct run_options options;
    const char *args[1];
    int n_args;
    memset(mean + strlen(mean), '0', sizeof mean - 1 - strlen(mean));
    cr_assert_eq(
        weir_options_parse(&weir_cmd_run, &options, sizeof options, sizeof argv / sizeof *argv, argv, args, &n_args),
        WEIR_PARSE_RUN);
    struct weir_run_options run;
    struct weir_words words = {0};
    weir_run_options_copy(&run, &options);
    weir_run_words(&words, &run, args[0]);
    char **made = words.argv;
    cr_assert(!words.failed);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_assert(wanted[i] ? made[i] && strcmp(made[i], wanted[i]) == 0 : !made[i], "%zu: %.64s", i, made[i]);
    weir_words_free(&words);
}
