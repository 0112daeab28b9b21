#include "cli/run/run_place.h"
#include "prof/report/machine.h"

#include <stdio.h>

/* How --device cuda became this GPU. Nothing without local ranks, and with a number. */
static void print_why(const struct weir_loader_facts *facts, const struct weir_ranks *ranks)
{
    if (facts->gpus == 1)
        fprintf(stderr, " (the only one that local rank %d sees)", ranks->local_rank);
    else if (facts->gpus > 0 && facts->gpus < ranks->local_size)
        fprintf(stderr, " (local rank %d of %d, which share %d GPUs)", ranks->local_rank, ranks->local_size,
                facts->gpus);
    else if (facts->gpus > 0)
        fprintf(stderr, " (local rank %d of %d)", ranks->local_rank, ranks->local_size);
}

static void print_device(const struct weir_loader_facts *facts, const struct weir_ranks *ranks, bool sync_steps)
{
    fprintf(stderr, "device: GPU %d", facts->device);
    print_why(facts, ranks);
    fprintf(stderr, ", %s; %.1f MB of its memory, %.1f MB of the host's pinned%s\n", facts->gpu,
            (double)facts->gpu_bytes / 1e6, (double)facts->slots * (double)facts->slot_bytes / 1e6,
            sync_steps ? "; each step is waited for before the next" : "");
}

void weir_run_place_print(const struct weir_loader_facts *facts, const struct weir_ranks *ranks, bool sync_steps)
{
    if (facts->device >= 0)
        print_device(facts, ranks, sync_steps);
    if (ranks->world_size > 1 || ranks->source)
        fprintf(stderr, "rank %d of %d%s%s\n", ranks->rank, ranks->world_size, ranks->source ? ", by " : "",
                ranks->source ? ranks->source : "");
    if (ranks->local_size > 1)
        fprintf(stderr, "local rank %d of %d, with %d of the cores\n", ranks->local_rank, ranks->local_size,
                facts->cores);
}

void weir_run_place_machine(struct weir_report_machine *machine, const struct weir_loader *loader)
{
    struct weir_loader_facts facts;
    weir_loader_facts(loader, &facts);
    machine->part = facts.cores;
    weir_report_machine_print(stderr, machine);
}

void weir_run_place_json(struct weir_json *json, const struct weir_loader_facts *facts, const struct weir_ranks *ranks)
{
    weir_json_int(json, "rank", ranks->rank);
    weir_json_int(json, "world_size", ranks->world_size);
    weir_json_int(json, "local_rank", ranks->local_rank);
    weir_json_int(json, "local_world_size", ranks->local_size);
    weir_json_int(json, "cores", facts->cores);
    if (ranks->local_cores > 0)
        weir_json_int(json, "local_cores", ranks->local_cores);
    if (facts->device < 0)
        return;
    weir_json_object(json, "gpu");
    weir_json_int(json, "number", facts->device);
    weir_json_text(json, "name", facts->gpu);
    weir_json_uint(json, "memory_bytes", facts->gpu_bytes);
    weir_json_end(json, '}');
}
