#include "base/grow.h"
#include "weir/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* A range of the trace, with the fields of torch's FunctionEvent. Links to other nodes are indexes. */
struct node {
    int64_t start_ns, end_ns;
    uint64_t id, linked; /* id: the node's own number; linked: number of the operator that launched it */
    weir_text_id name;   /* ProfilerStep#7 becomes ProfilerStep* */
    uint32_t event, track;
    bool device, annotation, runtime, wait, gone;
    bool hidden; /* no row in the table */
    int32_t parent, first_child, last_child, next_sibling, n_children;
    int64_t kernel_ns, device_ns, child_cpu_ns, child_device_ns;
    int64_t wait_ns;                  /* waits inside, its own included */
    int64_t covered_ns;               /* end of the time that children cover so far */
    int64_t bytes[2], child_bytes[2]; /* on the CPU, on devices */
};

struct memory {
    int64_t at_ns, bytes[2];
    uint32_t event;
    int32_t covered; /* change in the number of ranges that contain the event, relative to the previous event */
};

struct job {
    struct weir_trace *trace;
    const struct weir_averages_config *config;
    struct node *nodes;
    struct memory *memories; /* sorted by time */
    int32_t n_nodes, n_memories;
    weir_text_id step;
    weir_text_id *names; /* name in the table for each text id; 0 = not looked up, UINT32_MAX = hidden */
    uint32_t n_names;
};

/* Saturates, because a trace can contain any numbers. */
static void add(int64_t *to, int64_t value)
{
    if (__builtin_add_overflow(*to, value, to))
        *to = value > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t minus(int64_t a, int64_t b)
{
    int64_t difference;
    return __builtin_sub_overflow(a, b, &difference) ? (a > b ? INT64_MAX : INT64_MIN) : difference;
}

/* ---- ranges ---- */

static bool is_cpu(enum weir_cat cat)
{
    return cat == WEIR_CAT_CPU_OP || cat == WEIR_CAT_USER_ANNOTATION || cat == WEIR_CAT_CUDA_RUNTIME ||
           cat == WEIR_CAT_CUDA_DRIVER || cat == WEIR_CAT_LOADER_STAGE;
}

static bool is_frame(const struct job *job, enum weir_cat cat)
{
    return cat == WEIR_CAT_PYTHON_FUNCTION && job->trace->python_frames != WEIR_PYTHON_LEFT_OUT;
}

/* Excludes synchronisation and event records, which are not work of the device. */
static bool is_device(enum weir_cat cat)
{
    return cat == WEIR_CAT_KERNEL || cat == WEIR_CAT_GPU_MEMCPY || cat == WEIR_CAT_GPU_MEMSET ||
           cat == WEIR_CAT_GPU_USER_ANNOTATION;
}

static bool is_hidden(const char *name)
{
    static const char *const hidden[] = {"profiler::_record_function_enter",
                                         "profiler::_record_function_enter_new",
                                         "profiler::_record_function_exit",
                                         "aten::is_leaf",
                                         "aten::output_nr",
                                         "aten::_version"};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (strcmp(hidden[i], name) == 0)
            return true;
    return false;
}

static weir_text_id table_name(struct job *job, weir_text_id name)
{
    if (name >= job->n_names)
        return name;
    if (job->names[name] == 0) {
        const char *text = weir_trace_text(job->trace, name);
        bool step = strncmp(text, "ProfilerStep#", 13) == 0;
        job->names[name] = is_hidden(text) ? UINT32_MAX : step ? job->step : name;
    }
    return job->names[name];
}

static void add_node(struct job *job, uint32_t index, const struct weir_event *event)
{
    enum weir_cat cat = (enum weir_cat)event->cat;
    weir_text_id name = table_name(job, event->name);
    if (name == UINT32_MAX)
        return;
    bool runtime = cat == WEIR_CAT_CUDA_RUNTIME || cat == WEIR_CAT_CUDA_DRIVER, device = is_device(cat);
    /* A gpu_user_annotation is 1 ns too long at both ends in the trace, and not launched by a call. */
    bool shadow = cat == WEIR_CAT_GPU_USER_ANNOTATION;
    int64_t wider = shadow && event->duration_ns >= 2 ? 1 : 0;
    job->nodes[job->n_nodes++] = (struct node){
        .start_ns = event->start_ns + wider,
        .end_ns = event->start_ns + event->duration_ns - wider,
        .id = device    ? 0
              : runtime ? event->correlation
                        : event->external_id,
        .linked = (device || runtime) && !shadow ? event->external_id : 0,
        .name = name,
        .event = index,
        .track = event->track,
        .device = device,
        .annotation = cat == WEIR_CAT_USER_ANNOTATION || shadow,
        .hidden = cat == WEIR_CAT_PYTHON_FUNCTION && job->trace->python_frames == WEIR_PYTHON_HIDDEN,
        .runtime = runtime,
        .wait = event->wait && !device,
    };
}

static void add_memory(struct job *job, uint32_t index, const struct weir_event *event)
{
    struct memory *memory = &job->memories[job->n_memories++];
    *memory = (struct memory){.at_ns = event->start_ns, .event = index};
    memory->bytes[event->memory.device >= 0] = event->memory.bytes;
}

static int collect(struct job *job)
{
    const struct weir_trace *trace = job->trace;
    if (trace->n_events >= INT32_MAX / 2)
        return -E2BIG;
    job->step = weir_trace_intern(job->trace, "ProfilerStep*", 13);
    job->n_names = weir_trace_text_count(trace);
    job->nodes = malloc((trace->n_events + 1) * sizeof *job->nodes);
    job->memories = malloc((trace->n_events + 1) * sizeof *job->memories);
    job->names = calloc(job->n_names, sizeof *job->names);
    if (!job->nodes || !job->memories || !job->names)
        return -ENOMEM;
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        if (event->kind == WEIR_EVENT_MEMORY)
            add_memory(job, (uint32_t)i, event);
        else if (event->kind == WEIR_EVENT_RANGE &&
                 (is_cpu(event->cat) || is_device(event->cat) || is_frame(job, event->cat)))
            add_node(job, (uint32_t)i, event);
    }
    return 0;
}

/* ---- launches ---- */

struct launch {
    uint64_t linked;
    int32_t node;
    int64_t kernel_ns; /* total device time; set only in the first entry with a given `linked` */
    int64_t track;     /* track to move the calls to, or NONE; set only in the first entry with a given `linked` */
};

static int by_linked(const void *a, const void *b)
{
    const struct launch *x = a, *y = b;
    if (x->linked != y->linked)
        return x->linked < y->linked ? -1 : 1;
    return x->node < y->node ? -1 : 1;
}

static struct launch *first_launch(struct launch *launches, int32_t n, uint64_t id)
{
    int32_t low = WEIR_FIRST(i, n, launches[i].linked >= id);
    return low < n && launches[low].linked == id ? launches + low : NULL;
}

static void sum_launches(const struct job *job, struct launch *launches, int32_t n)
{
    struct launch *first = launches;
    for (int32_t i = 0; i < n; i++) {
        const struct node *node = &job->nodes[launches[i].node];
        first = launches[i].linked == first->linked ? first : &launches[i];
        if (node->device)
            add(&first->kernel_ns, node->end_ns - node->start_ns);
    }
}

static void take_launches(struct job *job, struct launch *launches, int32_t n, bool runtime)
{
    for (int32_t i = 0; i < job->n_nodes; i++) {
        struct node *node = &job->nodes[i];
        if (node->device || node->linked || node->id == 0 || node->runtime != runtime)
            continue;
        struct launch *launch = first_launch(launches, n, node->id);
        if (!launch)
            continue;
        add(&node->kernel_ns, launch->kernel_ns);
        launch->track = node->track;
    }
}

static void move_calls(struct job *job, const struct launch *launches, int32_t n)
{
    const struct launch *first = launches;
    for (int32_t i = 0; i < n; i++) {
        struct node *node = &job->nodes[launches[i].node];
        first = launches[i].linked == first->linked ? first : &launches[i];
        if (!node->device && first->track != NONE)
            node->track = (uint32_t)first->track;
    }
}

/* Assigns calls from threads without operators to the main thread, because torch numbers these threads differently. */
static int adopt_calls(struct job *job)
{
    struct weir_trace *trace = job->trace;
    bool *has_operators = calloc(trace->n_tracks + 1, sizeof *has_operators);
    if (!has_operators)
        return -ENOMEM;
    for (int32_t i = 0; i < job->n_nodes; i++)
        if (!job->nodes[i].device && !job->nodes[i].runtime)
            has_operators[job->nodes[i].track] = true;
    uint32_t known = trace->n_tracks;
    for (int32_t i = 0; i < job->n_nodes; i++) {
        struct node *node = &job->nodes[i];
        if (!node->runtime || node->linked || node->track >= known || has_operators[node->track])
            continue;
        int64_t main =
            weir_trace_track(trace, trace->tracks[node->track].pid, trace->tracks[node->track].pid, false, 0);
        if (main >= 0)
            node->track = (uint32_t)main;
    }
    free(has_operators);
    return 0;
}

/* Links by number alone, as torch does: a call outside all operators whose number equals an operator's also gets that
 * operator's kernels. If both claim the same call, it moves to the operator's thread, because operators are processed
 * last. */
static int link_launches(struct job *job)
{
    struct launch *launches = malloc(((size_t)job->n_nodes + 1) * sizeof *launches);
    int32_t n = 0;
    if (!launches)
        return -ENOMEM;
    for (int32_t i = 0; i < job->n_nodes; i++)
        if (job->nodes[i].linked)
            launches[n++] = (struct launch){job->nodes[i].linked, i, 0, NONE};
    qsort(launches, (size_t)n, sizeof *launches, by_linked);
    sum_launches(job, launches, n);
    take_launches(job, launches, n, true);
    take_launches(job, launches, n, false);
    move_calls(job, launches, n);
    free(launches);
    return adopt_calls(job);
}

/* ---- memory ---- */

/* Returns the index of the first memory event at or after a time, or strictly after it if `after` is set. */
static int32_t memory_at(const struct job *job, int64_t at_ns, bool after)
{
    const struct memory *memories = job->memories;
    return WEIR_FIRST(i, job->n_memories, after ? memories[i].at_ns > at_ns : memories[i].at_ns >= at_ns);
}

/* Charges each CPU range with all memory events during it, on any thread. Each event outside all CPU ranges becomes a
 * node of its own. */
static int charge_memory(struct job *job)
{
    int64_t(*sums)[2] = calloc((size_t)job->n_memories + 1, sizeof *sums);
    if (!sums)
        return -ENOMEM;
    for (int32_t i = 0; i < job->n_memories; i++)
        for (int d = 0; d < 2; d++) {
            sums[i + 1][d] = sums[i][d];
            add(&sums[i + 1][d], job->memories[i].bytes[d]);
        }
    job->memories[job->n_memories].covered = 0;
    for (int32_t i = 0; i < job->n_nodes; i++) {
        struct node *node = &job->nodes[i];
        int32_t from = memory_at(job, node->start_ns, false), to = memory_at(job, node->end_ns, true);
        if (node->device || from == to)
            continue;
        for (int d = 0; d < 2; d++)
            node->bytes[d] = minus(sums[to][d], sums[from][d]);
        job->memories[from].covered++;
        job->memories[to].covered--;
    }
    free(sums);
    int32_t covered = 0;
    for (int32_t i = 0; i < job->n_memories; i++) {
        const struct memory *memory = &job->memories[i];
        const struct weir_event *event = &job->trace->events[memory->event];
        covered += memory->covered;
        if (covered > 0)
            continue;
        job->nodes[job->n_nodes++] = (struct node){.start_ns = memory->at_ns,
                                                   .end_ns = memory->at_ns,
                                                   .name = event->name,
                                                   .event = memory->event,
                                                   .track = event->track,
                                                   .bytes = {memory->bytes[0], memory->bytes[1]}};
    }
    return 0;
}

/* ---- the tree ---- */

static int by_start(const void *a, const void *b)
{
    const struct node *x = a, *y = b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

static void add_child(struct job *job, int32_t parent, int32_t child)
{
    struct node *p = &job->nodes[parent];
    job->nodes[child].parent = parent;
    job->nodes[child].next_sibling = NONE;
    if (p->last_child == NONE)
        p->first_child = child;
    else
        job->nodes[p->last_child].next_sibling = child;
    p->last_child = child;
    p->n_children++;
}

/* Finds each range's parent. innermost[] holds the innermost open range of each track. */
static int nest(struct job *job)
{
    int32_t *innermost = malloc((job->trace->n_tracks + 1) * sizeof *innermost);
    int32_t *around = malloc(((size_t)job->n_nodes + 1) * sizeof *around); /* the next outer range of each range */
    if (!innermost || !around) {
        free(innermost);
        free(around);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < job->trace->n_tracks; i++)
        innermost[i] = NONE;
    for (int32_t i = 0; i < job->n_nodes; i++) {
        struct node *node = &job->nodes[i];
        node->parent = node->first_child = node->last_child = node->next_sibling = NONE;
        if (node->device)
            continue;
        int32_t top = innermost[node->track];
        while (top != NONE && (node->start_ns >= job->nodes[top].end_ns || node->end_ns > job->nodes[top].end_ns))
            top = around[top];
        if (top != NONE)
            add_child(job, top, i);
        around[i] = top;
        innermost[node->track] = i;
    }
    free(innermost);
    free(around);
    return 0;
}

/* Merges an only child into its parent if both have the same name, because they are the same call. Parents come before
 * their children. */
static void merge_same_names(struct job *job)
{
    for (int32_t i = 0; i < job->n_nodes; i++) {
        struct node *node = &job->nodes[i];
        struct node *parent = node->parent == NONE ? NULL : &job->nodes[node->parent];
        if (!parent || parent->name != node->name || parent->n_children != 1)
            continue;
        parent->first_child = node->first_child;
        parent->last_child = node->last_child;
        parent->n_children = node->n_children;
        parent->kernel_ns = node->kernel_ns;
        for (int32_t child = node->first_child; child != NONE; child = job->nodes[child].next_sibling)
            job->nodes[child].parent = node->parent;
        node->gone = true;
    }
}

/* Sums the children's time. Time covered by several children counts once, because calls moved to the main thread can
 * overlap its ranges. If the trace's Python frames count, all children's times are added, as torch does, although
 * frames overlap if the profiler starts or stops inside them. */
static void cover_children(struct job *job)
{
    bool once = job->trace->python_frames == WEIR_PYTHON_LEFT_OUT;
    for (int32_t i = 0; i < job->n_nodes; i++) { /* sorted by start */
        struct node *node = &job->nodes[i];
        node->covered_ns = node->start_ns;
        if (node->gone || node->parent == NONE)
            continue;
        struct node *parent = &job->nodes[node->parent];
        int64_t from_ns = once && parent->covered_ns > node->start_ns ? parent->covered_ns : node->start_ns;
        if (node->end_ns <= from_ns)
            continue;
        add(&parent->child_cpu_ns, node->end_ns - from_ns);
        parent->covered_ns = node->end_ns;
    }
}

static void sum_children(struct job *job)
{
    for (int32_t i = job->n_nodes; i-- > 0;) {
        struct node *node = &job->nodes[i];
        if (node->gone)
            continue;
        node->device_ns = node->device ? node->end_ns - node->start_ns : node->kernel_ns;
        if (!node->device)
            add(&node->device_ns, node->child_device_ns);
        if (node->wait)
            add(&node->wait_ns, minus(node->end_ns - node->start_ns, node->child_cpu_ns));
        if (node->parent == NONE)
            continue;
        struct node *parent = &job->nodes[node->parent];
        add(&parent->child_device_ns, node->device_ns);
        add(&parent->wait_ns, node->wait_ns);
        for (int d = 0; d < 2; d++)
            add(&parent->child_bytes[d], node->bytes[d]);
    }
}

/* ---- rows ---- */

static weir_text_id stack_prefix(struct job *job, weir_text_id stack, int frames)
{
    const char *text = weir_trace_text(job->trace, stack), *end = text;
    while (*end && (*end != ';' || --frames > 0))
        end++;
    char *copy = strndup(text, (size_t)(end - text)); /* a copy, because interning can move the string */
    weir_text_id prefix = copy && frames >= 0 ? weir_trace_intern(job->trace, copy, strlen(copy)) : 0;
    free(copy);
    return prefix;
}

static bool same_row(const struct weir_averages_row *a, const struct weir_averages_row *b)
{
    return a->name == b->name && a->shapes == b->shapes && a->stack == b->stack && a->device == b->device &&
           a->annotation == b->annotation && a->wait == b->wait;
}

static uint32_t row_hash(const struct weir_averages_row *row)
{
    uint64_t hash = row->name * UINT64_C(0x9e3779b97f4a7c15) ^ row->shapes * UINT64_C(0xc2b2ae3d27d4eb4f) ^
                    row->stack * UINT64_C(0x165667b19e3779f9) ^ (uint64_t)(row->device * 2 + row->annotation) << 17;
    return (uint32_t)(hash >> 32 ^ hash);
}

/* Finds or adds the row by open addressing. The table has at least twice as many slots as ranges, so it never grows. */
static struct weir_averages_row *row_of(struct weir_averages *out, uint32_t *slots, uint32_t mask,
                                        const struct weir_averages_row *key)
{
    for (uint32_t at = row_hash(key) & mask;; at = (at + 1) & mask) {
        if (slots[at] == 0) {
            out->rows[out->n_rows] = *key;
            slots[at] = (uint32_t)++out->n_rows;
            return &out->rows[out->n_rows - 1];
        }
        if (same_row(&out->rows[slots[at] - 1], key))
            return &out->rows[slots[at] - 1];
    }
}

static void add_to_row(struct weir_averages_row *row, const struct node *node)
{
    row->count++;
    int64_t ns = node->end_ns - node->start_ns;
    add(&row->device_ns, node->device_ns);
    add(&row->self_device_ns, node->device ? node->device_ns : minus(node->device_ns, node->child_device_ns));
    if (node->device)
        return;
    add(&row->cpu_ns, ns);
    add(&row->self_cpu_ns, minus(ns, node->child_cpu_ns));
    add(&row->work_ns, minus(ns, node->wait_ns));
    add(&row->cpu_bytes, node->bytes[0]);
    add(&row->self_cpu_bytes, minus(node->bytes[0], node->child_bytes[0]));
    add(&row->device_bytes, node->bytes[1]);
    add(&row->self_device_bytes, minus(node->bytes[1], node->child_bytes[1]));
}

static int make_rows(struct job *job, struct weir_averages *out)
{
    uint32_t n_slots = 16;
    while (n_slots < 2 * (uint32_t)job->n_nodes)
        n_slots *= 2;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    out->rows = malloc(((size_t)job->n_nodes + 1) * sizeof *out->rows);
    if (!slots || !out->rows) {
        free(slots);
        return -ENOMEM;
    }
    for (int32_t i = 0; i < job->n_nodes; i++) {
        const struct node *node = &job->nodes[i];
        const struct weir_event *event = &job->trace->events[node->event];
        if (node->gone || node->hidden)
            continue;
        struct weir_averages_row key = {.name = node->name,
                                        .shapes = job->config->by_shape ? event->shapes : 0,
                                        .device = node->device,
                                        .annotation = node->annotation,
                                        .wait = node->wait,
                                        .nested = node->parent != NONE};
        if (job->config->by_stack > 0 && event->stack)
            key.stack = stack_prefix(job, event->stack, job->config->by_stack);
        struct weir_averages_row *row = row_of(out, slots, n_slots - 1, &key);
        add_to_row(row, node);
        row->flops += event->kind == WEIR_EVENT_RANGE ? event->value : 0;
    }
    free(slots);
    return 0;
}

static void sum_rows(const struct job *job, struct weir_averages *out)
{
    out->has_memory = job->trace->memory || job->n_memories > 0;
    for (size_t i = 0; i < out->n_rows; i++) {
        const struct weir_averages_row *row = &out->rows[i];
        add(&out->self_cpu_ns, row->self_cpu_ns);
        if (!row->wait)
            add(&out->work_ns, row->self_cpu_ns);
        if (row->device && !row->annotation)
            add(&out->self_device_ns, row->self_device_ns);
        out->has_device_time |= row->self_device_ns > 0;
        out->has_device_memory |= row->self_device_bytes > 0;
    }
}

static int compute(struct job *job, struct weir_averages *out)
{
    int rc = weir_trace_sort(job->trace);
    if (rc == 0)
        rc = collect(job);
    if (rc == 0)
        rc = link_launches(job);
    if (rc == 0)
        rc = charge_memory(job);
    if (rc < 0)
        return rc;
    qsort(job->nodes, (size_t)job->n_nodes, sizeof *job->nodes, by_start);
    rc = nest(job);
    if (rc < 0)
        return rc;
    merge_same_names(job);
    cover_children(job);
    sum_children(job);
    rc = make_rows(job, out);
    if (rc == 0)
        sum_rows(job, out);
    return rc == 0 && weir_trace_failed(job->trace) ? -ENOMEM : rc;
}

int weir_averages_open(struct weir_averages **out, struct weir_trace *trace, const struct weir_averages_config *config)
{
    struct weir_averages *averages = calloc(1, sizeof *averages);
    struct job job = {.trace = trace, .config = config};
    *out = NULL;
    if (!averages)
        return -ENOMEM;
    averages->trace = trace;
    averages->config = *config;
    int rc = compute(&job, averages);
    free(job.nodes);
    free(job.memories);
    free(job.names);
    if (rc < 0)
        weir_averages_close(&averages);
    *out = averages;
    return rc;
}

void weir_averages_close(struct weir_averages **averages)
{
    if (!*averages)
        return;
    free((*averages)->rows);
    free(*averages);
    *averages = NULL;
}
