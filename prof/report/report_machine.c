/* Prints the machine line of a report. */
#include "base/terminal.h"
#include "base/text.h"
#include "prof/report/machine.h"

#include <inttypes.h>

void weir_report_machine_print(FILE *out, const struct weir_report_machine *m)
{
    struct weir_wrap wrap;
    if (!m->used)
        return;
    FILE *text = weir_wrap_open(&wrap, out, WEIR_WRAP_COLUMN, NULL);
    fprintf(text, "machine: %d of %d cores", m->cores, m->online);
    if (m->part > 0 && m->part < m->cores)
        fprintf(text, ", %d of them for this local rank", m->part);
    if (m->quota_cores > 0)
        fprintf(text, "; CPU quota %.2f cores", m->quota_cores);
    if (m->throttling)
        fprintf(text, ", throttled in %" PRIu64 " of %" PRIu64 " periods, %.2f s", m->throttled, m->periods,
                m->throttled_s);
    if (m->memory_limit_bytes > 0)
        fprintf(text, "; memory limit %s", weir_size((double)m->memory_limit_bytes).text);
    if (m->others_cores >= 0)
        fprintf(text, "; others used %.2f cores, %.2f stolen", m->others_cores, m->steal_cores);
    if (m->load_average >= 0)
        fprintf(text, "; load average %.2f at the start", m->load_average);
    fputc('\n', text);
    weir_wrap_close(&wrap);
}
