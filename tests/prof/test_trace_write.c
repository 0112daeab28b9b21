#include "tests/fixtures/trace_fixture.h"
#include "weir/trace.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char folder[] = "/tmp/weir-trace-XXXXXX";
static char path[PATH_MAX];

static void make_folder(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/host_1.2.pt.trace.json", folder);
}

static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(folder);
    cr_assert(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static void remove_folder(void)
{
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(trace_write, .init = make_folder, .fini = remove_folder);

/* Reads a plain or compressed file; gzopen supports both. */
static char *read_all(const char *from)
{
    gzFile file = gzopen(from, "rb");
    cr_assert(file, "%s: %s", from, strerror(errno));
    size_t used = 0, room = 1 << 16;
    char *text = malloc(room);
    for (;;) {
        int n = gzread(file, text + used, (unsigned)(room - used - 1));
        cr_assert_geq(n, 0);
        if (n == 0)
            break;
        used += (size_t)n;
        if (room - used < 1 << 15)
            text = realloc(text, room *= 2);
    }
    text[used] = '\0';
    gzclose(file);
    return text;
}

static struct weir_trace *empty_trace(void)
{
    struct weir_trace *trace;
    cr_assert_eq(weir_trace_new(&trace), 0);
    trace->base_unix_ns = INT64_C(1766000000000000000);
    trace->end_ns = 1000000;
    trace->main_pid = FIXTURE_PID;
    fixture_thread(trace, FIXTURE_PID, "weir");
    return trace;
}

/* Writes the trace, frees it, and returns the contents of the file. */
static char *written(struct weir_trace *trace)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_trace_write(trace, path, &err), 0, "%s", err.text);
    weir_trace_free(&trace);
    return read_all(path);
}

static json_t *parsed(char *text)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    cr_assert(root, "line %d: %s", error.line, error.text);
    free(text);
    return root;
}

static json_t *events_of(json_t *root)
{
    return json_object_get(root, "traceEvents");
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static json_t *arg(const json_t *event, const char *key)
{
    return json_object_get(json_object_get(event, "args"), key);
}

static json_t *find(json_t *root, const char *phase, const char *name)
{
    size_t i;
    json_t *event;
    json_array_foreach(events_of(root), i, event) if (strcmp(text_of(event, "ph"), phase) == 0 &&
                                                      strcmp(text_of(event, "name"), name) == 0) return event;
    return NULL;
}

static void expect_line(const char *text, const char *line)
{
    cr_assert(strstr(text, line), "missing: %s\nin: %s", line, text);
}

Test(trace_write, nothing_recorded_is_a_whole_file)
{
    char *text = written(empty_trace());
    expect_line(text, "{\n\"schemaVersion\": 1,\n\"deviceProperties\": [],\n"
                      "\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"world_size\": 1, ");
    expect_line(text,
                "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": 1766000000000000000,\n\"traceEvents\": [\n");
    expect_line(text, "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\",\"tid\":"
                      "\"PyTorch Profiler\",\"ts\":0.000,\"dur\":1000.000,\"args\":{\"Op count\":0}},\n");
    expect_line(text,
                "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\",\"pid\":\"\",\"tid\":\"\",\"ts\":1000.000}\n"
                "],\n\"traceName\": \"");
    cr_assert_null(strstr(text, "record_shapes"));
    json_t *root = parsed(text);
    cr_assert_str_eq(text_of(root, "traceName"), path);
    json_decref(root);
    cr_assert_eq(entries(), 1, "the temporary file still exists");
}

Test(trace_write, members_stand_in_order)
{
    static const char *const keys[] = {"schemaVersion",   "deviceProperties",    "record_shapes", "with_stack",
                                       "profile_memory",  "distributedInfo",     "host_name",     "weir_version",
                                       "displayTimeUnit", "baseTimeNanoseconds", "traceEvents",   "traceName"};
    json_t *root = parsed(written(fixture_gpu_trace())), *value;
    const char *key;
    size_t i = 0;
    json_object_foreach(root, key, value) cr_assert_str_eq(key, keys[i++]);
    cr_assert_eq(i, sizeof keys / sizeof *keys);
    json_t *device = json_array_get(json_object_get(root, "deviceProperties"), 0);
    cr_assert_str_eq(text_of(device, "name"), "NVIDIA H200");
    cr_assert_eq(json_integer_value(json_object_get(device, "id")), 0);
    cr_assert_eq(json_integer_value(json_object_get(device, "numSms")), 132);
    json_decref(root);
}

Test(trace_write, a_rank_that_was_read_stays)
{
    struct weir_trace *trace = empty_trace();
    trace->metadata = fixture_text(trace, "\"distributedInfo\": {\"rank\": 3}, \"cupti_version\": 26");
    json_t *root = parsed(written(trace));
    cr_assert_eq(json_integer_value(json_object_get(json_object_get(root, "distributedInfo"), "rank")), 3);
    cr_assert_eq(json_integer_value(json_object_get(root, "cupti_version")), 26);
    json_decref(root);
}

Test(trace_write, an_operator_byte_by_byte)
{
    struct weir_trace *trace = empty_trace();
    struct weir_event *event = fixture_range(trace, 0, WEIR_CAT_CPU_OP, "decode_jpeg", 20, 0);
    event->start_ns += 7;
    event->duration_ns = 1500125;
    event->external_id = 103;
    event->item = 9;
    event->types = fixture_text(trace, "[\"unsigned char\"]");
    event->shapes = fixture_text(trace, "[[224, 224, 3]]");
    event->stack = fixture_text(trace, "loader.c(120): decode;main.c(10): main");
    event->args = fixture_text(trace, "\"file\": 3");
    event->unfinished = true;
    event->wait = true;
    char *text = written(trace);
    expect_line(text,
                "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"decode_jpeg\",\"pid\":4242,\"tid\":4242,\"ts\":20.007,"
                "\"dur\":1500.125,\"args\":{\"External id\":103,\"item\":9,\"Input type\":[\"unsigned char\"],"
                "\"Input Dims\":[[224, 224, 3]],\"Call stack\":\"loader.c(120): decode;main.c(10): main\","
                "\"file\": 3,\"wait\":1,\"finished\": \"false\"}},\n");
    expect_line(text, "\"args\":{\"Op count\":1}");
    json_decref(parsed(text));
}

static void expect_name(const char *name, const char *shown)
{
    struct weir_trace *trace = empty_trace();
    fixture_range(trace, 0, WEIR_CAT_LOADER_STAGE, name, 5, 5);
    json_t *root = parsed(written(trace));
    cr_assert(find(root, "X", shown), "%s is not shown as %s", name, shown);
    json_decref(root);
}

Test(trace_write, names_are_cleaned)
{
    expect_name("plain: a/b (c)", "plain: a/b (c)");
    expect_name("say \"hi\"", "say \"hi\"");
    expect_name("C:\\data\\x", "C:/data/x");
    expect_name("two\nlines\r\n", "twolines");
    expect_name("解码 größe", "解码 größe");
    expect_name("bell\a", "unknown");
    expect_name("tab\there", "unknown");
    expect_name("not utf-8 \xff", "unknown");
    expect_name("cut off \xe8\xa7", "unknown");
    expect_name("turned \xe2\x80\xae around", "unknown");
    expect_name("", "unknown");
}

Test(trace_write, other_texts_are_cleaned)
{
    struct weir_trace *trace = empty_trace();
    char longest[200000];
    memset(longest, 'x', sizeof longest);
    longest[70000] = '"';
    longest[sizeof longest - 1] = '\0';
    fixture_range(trace, 0, WEIR_CAT_CPU_OP, "long", 1, 1)->stack = fixture_text(trace, longest);
    fixture_range(trace, 0, WEIR_CAT_CPU_OP, "stack", 1, 1)->stack = fixture_text(trace, "a\\b\t\"c\"\n;\xff");
    fixture_range(trace, 0, WEIR_CAT_CPU_OP, "args", 1, 1)->args =
        fixture_text(trace, "\"path\": \"a\\\"b\\\\c\",\n\"n\":\t1");
    fixture_range(trace, 0, WEIR_CAT_OTHER, "own", 1, 1)->cat_text = fixture_text(trace, "my \"cat\"");
    fixture_range(trace, 0, WEIR_CAT_OTHER, "no category", 1, 1);
    fixture_thread(trace, 17, "odd\x01 \"name\"");
    json_t *root = parsed(written(trace));
    cr_assert_str_eq(json_string_value(arg(find(root, "X", "long"), "Call stack")), longest);
    cr_assert_str_eq(json_string_value(arg(find(root, "X", "stack"), "Call stack")), "a/b?\"c\";?");
    cr_assert_str_eq(json_string_value(arg(find(root, "X", "args"), "path")), "a\"b\\c");
    cr_assert_str_eq(text_of(find(root, "X", "own"), "cat"), "my \"cat\"");
    cr_assert_str_eq(text_of(find(root, "X", "no category"), "cat"), "other");
    json_decref(root);
    char *text = read_all(path);
    expect_line(text, "\"thread 17 (odd? \\\"name\\\")\"");
    free(text);
}

static void expect_times(int64_t start_ns, int64_t duration_ns, const char *line)
{
    struct weir_trace *trace = empty_trace();
    struct weir_event *event = fixture_range(trace, 0, WEIR_CAT_LOADER_STAGE, "read", 0, 0);
    event->start_ns = start_ns;
    event->duration_ns = duration_ns;
    char *text = written(trace);
    expect_line(text, line);
    free(text);
}

Test(trace_write, times_have_three_decimals)
{
    expect_times(0, 0, "\"ts\":0.000,\"dur\":0.000}");
    expect_times(1, 999, "\"ts\":0.001,\"dur\":0.999}");
    expect_times(1000, 1000010, "\"ts\":1.000,\"dur\":1000.010}");
    expect_times(INT64_C(7889238123456789), 42, "\"ts\":7889238123456.789,\"dur\":0.042}");
    expect_times(INT64_MAX, INT64_MAX, "\"ts\":9223372036854775.807,\"dur\":9223372036854775.807}");
    expect_times(500, -3, "\"ts\":0.500,\"dur\":0.000}");
    /* A range that began before the trace keeps its end time. */
    expect_times(-2000, 5000, "\"ts\":0.000,\"dur\":3.000}");
    expect_times(-2000, 1000, "\"ts\":0.000,\"dur\":0.000}");
    expect_times(INT64_MIN, -1, "\"ts\":0.000,\"dur\":0.000}");
}

Test(trace_write, every_operator_has_an_id_of_its_own)
{
    struct weir_trace *trace = empty_trace();
    fixture_range(trace, 0, WEIR_CAT_CPU_OP, "a", 1, 1);
    fixture_range(trace, 0, WEIR_CAT_CPU_OP, "b", 2, 1)->external_id = 2;
    fixture_range(trace, 0, WEIR_CAT_USER_ANNOTATION, "c", 3, 1);
    fixture_range(trace, 0, WEIR_CAT_LOADER_STAGE, "d", 4, 1);
    fixture_range(trace, 0, WEIR_CAT_CUDA_RUNTIME, "e", 5, 1);
    json_t *root = parsed(written(trace));
    cr_assert_eq(json_integer_value(arg(find(root, "X", "a"), "External id")), 3);
    cr_assert_eq(json_integer_value(arg(find(root, "X", "b"), "External id")), 2);
    cr_assert_eq(json_integer_value(arg(find(root, "X", "c"), "External id")), 4);
    cr_assert_null(json_object_get(find(root, "X", "d"), "args"));
    cr_assert_null(json_object_get(find(root, "X", "e"), "args"));
    json_decref(root);
}

static struct weir_event plain_event(enum weir_event_kind kind, enum weir_cat cat, weir_text_id name)
{
    return (struct weir_event){.kind = (uint8_t)kind, .cat = (uint8_t)cat, .name = name, .start_ns = 5250};
}

Test(trace_write, memory_counters_instants_and_async)
{
    struct weir_trace *trace = empty_trace();
    struct weir_event event = plain_event(WEIR_EVENT_MEMORY, WEIR_CAT_CPU_INSTANT_EVENT, 0);
    event.memory.address = UINT64_MAX;
    event.memory.bytes = -4096;
    event.memory.allocated = 10;
    event.memory.reserved = 20;
    event.memory.device = -1;
    weir_trace_add(trace, &event);
    event.name = fixture_text(trace, "[OutOfMemory]");
    event.memory.device = 1;
    weir_trace_add(trace, &event);
    event = plain_event(WEIR_EVENT_COUNTER, WEIR_CAT_OTHER, fixture_text(trace, "queue"));
    for (int i = 0; i < 4; i++) {
        event.value = (double[]){3, 0.1, NAN, -INFINITY}[i];
        weir_trace_add(trace, &event);
    }
    event = plain_event(WEIR_EVENT_INSTANT, WEIR_CAT_LOADER_STAGE, fixture_text(trace, "stall"));
    event.args = fixture_text(trace, "\"slot\": 2");
    weir_trace_add(trace, &event);
    event = plain_event(WEIR_EVENT_ASYNC, WEIR_CAT_LOADER_ITEM, fixture_text(trace, "frame"));
    event.item = 77;
    event.duration_ns = 1000;
    weir_trace_add(trace, &event);
    char *text = written(trace);
    expect_line(
        text, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"s\":\"t\",\"pid\":4242,\"tid\":4242,"
              "\"ts\":5.250,\"args\":{\"Total Reserved\":20,\"Total Allocated\":10,\"Bytes\":-4096,"
              "\"Addr\":18446744073709551615,\"Device Id\":-1,\"Device Type\":0}},\n");
    expect_line(text, "\"Bytes\":-4096,\"Device Id\":1,\"Device Type\":1}},\n");
    expect_line(text,
                "{\"ph\":\"C\",\"cat\":\"other\",\"name\":\"queue\",\"pid\":4242,\"tid\":4242,\"ts\":5.250,\"args\":{"
                "\"value\":3}},\n");
    expect_line(text, "{\"value\":0.1}},\n");
    cr_assert_null(strstr(text, "nan"));
    cr_assert_null(strstr(text, "inf\""));
    expect_line(text,
                "\"name\":\"stall\",\"s\":\"t\",\"pid\":4242,\"tid\":4242,\"ts\":5.250,\"args\":{\"slot\": 2}},\n");
    expect_line(text,
                "{\"ph\":\"b\",\"cat\":\"loader_item\",\"name\":\"frame\",\"id\":\"77\",\"pid\":4242,\"tid\":4242,"
                "\"ts\":5.250,\"args\":{\"item\":77}},\n");
    expect_line(text,
                "{\"ph\":\"e\",\"cat\":\"loader_item\",\"name\":\"frame\",\"id\":\"77\",\"pid\":4242,\"tid\":4242,"
                "\"ts\":6.250},\n");
    free(text);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

Test(trace_write, launches_flow_to_what_they_launched)
{
    struct weir_trace *trace = empty_trace();
    fixture_range(trace, 0, WEIR_CAT_CUDA_RUNTIME, "cudaLaunchKernel", 10, 5)->correlation = 8;
    fixture_range(trace, 0, WEIR_CAT_CUDA_RUNTIME, "cudaMalloc", 20, 5)->correlation = 9; /* launches nothing */
    uint32_t stream = (uint32_t)weir_trace_track(trace, 1, 7, true, 0);
    fixture_range(trace, stream, WEIR_CAT_KERNEL, "k", 30, 5)->correlation = 8;
    fixture_range(trace, stream, WEIR_CAT_KERNEL, "of a graph", 35, 5)->correlation = 8;
    fixture_range(trace, stream, WEIR_CAT_KERNEL, "launched before", 40, 5)->correlation = 3;
    char *text = written(trace);
    expect_line(text, "\"args\":{\"correlation\":8}},\n{\"ph\":\"s\",\"id\":8,\"pid\":4242,\"tid\":4242,\"ts\":10.000,"
                      "\"cat\":\"ac2g\",\"name\":\"ac2g\"},\n");
    expect_line(text, "{\"ph\":\"f\",\"id\":8,\"pid\":1,\"tid\":7,\"ts\":30.000,\"cat\":\"ac2g\",\"name\":\"ac2g\","
                      "\"bp\":\"e\"},\n");
    cr_assert_eq(count(text, "\"ph\":\"s\""), 1);
    cr_assert_eq(count(text, "\"ph\":\"f\""), 2);
    free(text);
}

Test(trace_write, rows_have_names)
{
    struct weir_trace *trace = fixture_gpu_trace();
    weir_trace_track(trace, 0, 1000007, true, 0);
    weir_trace_track(trace, -1, 0, false, 0);
    char *text = written(trace);
    expect_line(text, "\"name\":\"process_name\",\"ts\":500.000,\"pid\":4242,\"tid\":0,\"args\":{\"name\":\"weir\"}}");
    expect_line(text, "\"pid\":4242,\"tid\":0,\"args\":{\"labels\":\"CPU\"}}");
    expect_line(text, "\"pid\":4242,\"tid\":0,\"args\":{\"sort_index\":4242}}");
    expect_line(text, "\"pid\":4242,\"tid\":4244,\"args\":{\"name\":\"thread 4244 (weir-worker-1)\"}}");
    expect_line(text, "\"pid\":0,\"tid\":0,\"args\":{\"labels\":\"GPU 0\"}}");
    expect_line(text, "\"pid\":0,\"tid\":0,\"args\":{\"sort_index\":5000000}}");
    expect_line(text, "\"pid\":0,\"tid\":7,\"args\":{\"name\":\"stream 7 \"}}");
    expect_line(text, "\"pid\":0,\"tid\":1000007,\"args\":{\"name\":\"stream 7 (sync)\"}}");
    expect_line(text, "\"pid\":-1,\"tid\":0,\"args\":{\"name\":\"CUPTI Overhead\"}}");
    expect_line(text, "\"pid\":-1,\"tid\":0,\"args\":{\"sort_index\":16777226}}");
    cr_assert_eq(count(text, "\"process_name\""), 3);
    cr_assert_eq(count(text, "\"thread_name\""), 9);
    free(text);
}

Test(trace_write, what_was_dropped_is_told)
{
    struct weir_trace *trace = empty_trace();
    trace->dropped = 12;
    char *text = written(trace);
    expect_line(text, "\"weir_dropped_events\": 12,\n");
    expect_line(text, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"12 events did not fit and are missing from this trace\"");
    json_decref(parsed(text));
}

Test(trace_write, spans_that_were_read_are_not_written_twice)
{
    struct weir_trace *trace = empty_trace();
    uint32_t track = (uint32_t)weir_trace_track(trace, 0, 0, false, fixture_text(trace, "Spans"));
    uint32_t other = (uint32_t)weir_trace_track(trace, 0, 3, false, fixture_text(trace, "Mine"));
    fixture_range(trace, track, WEIR_CAT_OTHER, "PyTorch Profiler (0)", 1, 1);
    fixture_range(trace, other, WEIR_CAT_OTHER, "kept", 1, 1);
    char *text = written(trace);
    cr_assert_eq(count(text, "\"PyTorch Profiler (0)\""), 1);
    expect_line(text, "\"name\":\"kept\",\"pid\":\"Mine\",\"tid\":3,");
    free(text);
}

Test(trace_write, events_are_sorted)
{
    json_t *root = parsed(written(fixture_gpu_trace())), *event;
    double last = -1;
    size_t i, ranges = 0;
    json_array_foreach(events_of(root), i, event)
    {
        const char *phase = text_of(event, "ph");
        if (strcmp(phase, "X") != 0 || strcmp(text_of(event, "cat"), "Trace") == 0)
            continue;
        double at = json_real_value(json_object_get(event, "ts"));
        cr_assert_geq(at, last);
        last = at;
        ranges++;
    }
    cr_assert_gt(ranges, 300);
    cr_assert_str_eq(text_of(json_array_get(events_of(root), i - 1), "name"), "Record Window End");
    json_decref(root);
}

Test(trace_write, gzip_holds_the_same)
{
    char *plain = written(fixture_gpu_trace());
    struct stat st;
    snprintf(path, sizeof path, "%s/host_1.2.pt.trace.json.gz", folder);
    char *unpacked = written(fixture_gpu_trace());
    size_t same = (size_t)(strstr(plain, "\"traceName\"") - plain);
    cr_assert_eq(strncmp(plain, unpacked, same), 0);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_lt((size_t)st.st_size, same / 5);
    cr_assert_eq(st.st_mode & 0777, 0644);
    json_decref(parsed(unpacked));
    free(plain);
    /* The file must start with gzip's magic bytes. */
    unsigned char magic[2];
    FILE *file = fopen(path, "rb");
    cr_assert_eq(fread(magic, 1, 2, file), 2);
    fclose(file);
    cr_assert(magic[0] == 0x1f && magic[1] == 0x8b);
}

/* ---- failures ---- */

static void expect_failure(struct weir_trace *trace, const char *to, int code, const char *advice)
{
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_trace_write(trace, to, &err), code, "%s", err.text);
    cr_assert_eq(err.code, code);
    cr_assert(strstr(err.text, to) == err.text, "%s", err.text);
    cr_assert(strstr(err.text, advice), "%s", err.text);
    cr_assert_null(strchr(err.text, '\n'));
    weir_trace_free(&trace);
}

Test(trace_write, a_full_device)
{
    struct stat st;
    expect_failure(fixture_cpu_trace(), "/dev/full", -ENOSPC, "free some space");
    expect_failure(fixture_long_trace(200000), "/dev/full", -ENOSPC, "free some space");
    cr_assert(stat("/dev/full", &st) == 0 && S_ISCHR(st.st_mode));
}

Test(trace_write, a_disk_that_fills_up_keeps_nothing)
{
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20}; /* simulates a full disk */
    setrlimit(RLIMIT_FSIZE, &limit);
    expect_failure(fixture_long_trace(20000), path, -EFBIG, "another disk");
    cr_assert_eq(entries(), 0);
    strcat(path, ".gz");
    expect_failure(fixture_long_trace(200000), path, -EFBIG, "another disk");
    cr_assert_eq(entries(), 0);
}

Test(trace_write, a_failed_one_leaves_the_one_before)
{
    free(written(fixture_cpu_trace()));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    expect_failure(fixture_long_trace(20000), path, -EFBIG, "another disk");
    cr_assert_eq(entries(), 1);
    json_decref(parsed(read_all(path)));
}

Test(trace_write, places_that_cannot_be_written)
{
    char to[PATH_MAX + 32];
    snprintf(to, sizeof to, "%s/none/x.json", folder);
    expect_failure(fixture_cpu_trace(), to, -ENOENT, "create its folder");
    expect_failure(fixture_cpu_trace(), folder, -EISDIR, "not a folder");
    fclose(fopen(path, "w"));
    snprintf(to, sizeof to, "%s/x.json", path);
    expect_failure(fixture_cpu_trace(), to, -ENOTDIR, "create its folder");
    unlink(path);
    if (geteuid() != 0) { /* root can write everywhere */
        chmod(folder, 0555);
        expect_failure(fixture_cpu_trace(), path, -EACCES, "in a writable folder");
        chmod(folder, 0755);
    }
    cr_assert_eq(entries(), 0);
}

static atomic_bool done;
static atomic_int seen;

/* Reads the file repeatedly. Whenever it exists, it must be complete. */
static void *watch(void *unused)
{
    (void)unused;
    while (!done) {
        FILE *file = fopen(path, "rb");
        if (!file)
            continue;
        char end[4] = "";
        cr_assert_eq(fseek(file, -3, SEEK_END), 0);
        cr_assert_eq(fread(end, 1, 3, file), 3);
        cr_assert_str_eq(end, "\n}\n");
        fclose(file);
        seen++;
    }
    return NULL;
}

Test(trace_write, no_part_of_a_file_is_ever_seen)
{
    pthread_t watcher;
    cr_assert_eq(pthread_create(&watcher, NULL, watch, NULL), 0);
    struct weir_trace *trace = fixture_long_trace(20000);
    for (int i = 0; i < 10; i++)
        cr_assert_eq(weir_trace_write(trace, path, NULL), 0);
    while (seen < 10)
        usleep(1000);
    done = true;
    pthread_join(watcher, NULL);
    weir_trace_free(&trace);
    cr_assert_eq(entries(), 1);
}

/* ---- file names ---- */

static bool matches(const char *text, const char *pattern)
{
    regex_t regex;
    cr_assert_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    int rc = regexec(&regex, text, 0, NULL, 0);
    regfree(&regex);
    return rc == 0;
}

Test(trace_write, paths_fit_the_plugin)
{
    char to[PATH_MAX], into[PATH_MAX];
    struct weir_err err = WEIR_ERR_NONE;
    snprintf(into, sizeof into, "%s/a/b/c/", folder);
    cr_assert_eq(weir_trace_path(to, sizeof to, into, NULL, true, &err), 0, "%s", err.text);
    cr_assert(matches(to, "/a/b/c/+[A-Za-z0-9_-]+_[0-9]+\\.[0-9]{19}\\.pt\\.trace\\.json\\.gz$"), "%s", to);
    cr_assert_eq(weir_trace_path(to, sizeof to, into, "node.7/gpu 0_3", false, &err), 0);
    cr_assert(matches(to, "/node-7-gpu-0_3\\.[0-9]{19}\\.pt\\.trace\\.json$"), "%s", to);
    struct weir_trace *trace = fixture_cpu_trace();
    cr_assert_eq(weir_trace_write(trace, to, NULL), 0);
    weir_trace_free(&trace);
}

Test(trace_write, folders_that_cannot_be_made)
{
    char to[PATH_MAX], into[PATH_MAX + 8];
    struct weir_err err = WEIR_ERR_NONE;
    cr_assert_eq(weir_trace_path(to, sizeof to, "/proc/none/at/all", NULL, true, &err), -ENOENT);
    cr_assert(strstr(err.text, "/proc/none/at/all"), "%s", err.text);
    fclose(fopen(path, "w"));
    snprintf(into, sizeof into, "%s/sub", path);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_trace_path(to, sizeof to, into, NULL, true, &err), -ENOTDIR, "%s", err.text);
    err = WEIR_ERR_NONE;
    cr_assert_eq(weir_trace_path(to, 20, folder, NULL, true, &err), -ENAMETOOLONG);
    cr_assert(strstr(err.text, "too long"), "%s", err.text);
}
