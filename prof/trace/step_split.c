/* Splits the time of a trace's steps as TensorBoard's overview does. */
#include "weir/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[WEIR_STEP_PARTS] = {
    "Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CPU Exec", "Other",
};

const char *weir_step_part_name(enum weir_step_part part)
{
    return (unsigned)part < WEIR_STEP_PARTS ? names[part] : "";
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

bool weir_step_is_data_wait(const char *name)
{
    static const char next[] = ".__next__";
    size_t n = strlen(name);
    bool is_next = n >= sizeof next && strcmp(name + n - (sizeof next - 1), next) == 0;
    return (starts_with(name, "enumerate(DataLoader)#") && is_next) || starts_with(name, "enumerate(DataPipe)#");
}

static bool is_step(const struct weir_event *event, const char *name)
{
    return event->kind == WEIR_EVENT_RANGE && starts_with(name, "ProfilerStep#") &&
           (event->cat == WEIR_CAT_CPU_OP || event->cat == WEIR_CAT_USER_ANNOTATION);
}

/* Returns the part that an event's time counts for, or WEIR_STEP_OTHER if it is not counted. */
static enum weir_step_part part_of(const struct weir_event *event, const char *name)
{
    bool communicates = starts_with(name, "nccl") || starts_with(name, "gloo:");
    switch ((enum weir_cat)event->cat) {
    case WEIR_CAT_KERNEL:
        return communicates ? WEIR_STEP_COMMUNICATION : WEIR_STEP_KERNEL;
    case WEIR_CAT_GPU_MEMCPY:
        return WEIR_STEP_MEMCPY;
    case WEIR_CAT_GPU_MEMSET:
        return WEIR_STEP_MEMSET;
    case WEIR_CAT_CUDA_RUNTIME:
        return WEIR_STEP_RUNTIME;
    case WEIR_CAT_CPU_OP:
    case WEIR_CAT_USER_ANNOTATION:
        if (weir_step_is_data_wait(name))
            return WEIR_STEP_DATALOADER;
        if (starts_with(name, "ProfilerStep#"))
            return WEIR_STEP_OTHER;
        return communicates ? WEIR_STEP_COMMUNICATION : WEIR_STEP_CPU_EXEC;
    default:
        return WEIR_STEP_OTHER;
    }
}

/* Start or end of a range that belongs to a part. */
struct edge {
    int64_t at_ns;
    int change; /* change in the number of open ranges: 1 or -1 */
    enum weir_step_part part;
};

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static int by_start(const void *a, const void *b)
{
    const struct weir_step *x = a, *y = b;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

struct split {
    struct edge *edges;
    size_t n_edges;
    struct weir_step *steps;
    int64_t n_steps;
};

static void collect(const struct weir_trace *trace, struct split *split)
{
    for (size_t i = 0; i < trace->n_events; i++) {
        const struct weir_event *event = &trace->events[i];
        const char *name = weir_trace_text(trace, event->name);
        if (event->kind != WEIR_EVENT_RANGE)
            continue;
        int64_t end_ns = event->start_ns + event->duration_ns;
        if (is_step(event, name))
            split->steps[split->n_steps++] =
                (struct weir_step){strtoll(name + 13, NULL, 10), event->start_ns, end_ns, {0}};
        enum weir_step_part part = part_of(event, name);
        if (part == WEIR_STEP_OTHER || event->duration_ns <= 0)
            continue;
        split->edges[split->n_edges++] = (struct edge){event->start_ns, 1, part};
        split->edges[split->n_edges++] = (struct edge){end_ns, -1, part};
    }
    qsort(split->edges, split->n_edges, sizeof *split->edges, by_time);
    qsort(split->steps, (size_t)split->n_steps, sizeof *split->steps, by_start);
}

static enum weir_step_part busiest(const int64_t open[WEIR_STEP_PARTS])
{
    for (int part = 0; part < WEIR_STEP_OTHER; part++)
        if (open[part] > 0)
            return (enum weir_step_part)part;
    return WEIR_STEP_OTHER;
}

/* A query for the time that each part took so far, at the start or end of a step. */
struct question {
    int64_t at_ns;
    struct weir_step *step;
    int sign;
};

static int by_question(const void *a, const void *b)
{
    const struct question *x = a, *y = b;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

static void answer(const struct question *question, const int64_t spent[WEIR_STEP_PARTS], enum weir_step_part part,
                   int64_t since_ns)
{
    for (int p = 0; p < WEIR_STEP_PARTS; p++)
        question->step->part_ns[p] += question->sign * (spent[p] + (p == (int)part ? question->at_ns - since_ns : 0));
}

/* Walks over edges and queries in order of time. A part's time in a step is its total at the step's end minus its total
 * at the step's start. */
static void spend(struct split *split, struct question *questions)
{
    int64_t open[WEIR_STEP_PARTS] = {0}, spent[WEIR_STEP_PARTS] = {0};
    size_t n = 0, edge = 0;
    for (int64_t s = 0; s < split->n_steps; s++) {
        questions[n++] = (struct question){split->steps[s].start_ns, &split->steps[s], -1};
        questions[n++] = (struct question){split->steps[s].end_ns, &split->steps[s], 1};
    }
    qsort(questions, n, sizeof *questions, by_question);
    int64_t since_ns = n ? questions[0].at_ns : 0;
    for (size_t q = 0; q < n; q++) {
        for (; edge < split->n_edges && split->edges[edge].at_ns <= questions[q].at_ns; edge++) {
            int64_t at_ns = split->edges[edge].at_ns > since_ns ? split->edges[edge].at_ns : since_ns;
            spent[busiest(open)] += at_ns - since_ns;
            since_ns = at_ns;
            open[split->edges[edge].part] += split->edges[edge].change;
        }
        answer(&questions[q], spent, busiest(open), since_ns);
    }
}

int64_t weir_steps_split(struct weir_trace *trace, struct weir_step **out)
{
    struct split split = {
        .edges = malloc((2 * trace->n_events + 1) * sizeof *split.edges),
        .steps = malloc((trace->n_events + 1) * sizeof *split.steps),
    };
    struct question *questions = NULL;
    *out = NULL;
    if (split.edges && split.steps) {
        collect(trace, &split);
        questions = malloc((2 * (size_t)split.n_steps + 1) * sizeof *questions);
    }
    if (!questions) {
        free(split.edges);
        free(split.steps);
        return -ENOMEM;
    }
    spend(&split, questions);
    free(questions);
    free(split.edges);
    *out = split.steps;
    return split.n_steps;
}
