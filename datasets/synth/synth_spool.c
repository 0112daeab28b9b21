#include "datasets/synth/synth_layouts_priv.h"

int weir_synth_spool(struct weir_spool *spool, struct weir_synth_job *job, struct weir_err *err)
{
    int rc = weir_spool_reset(spool, err);
    for (int t = 0; t < job->config->steps && rc == 0; t++) {
        const struct weir_frame *frame;
        rc = weir_synth_next_frame(job, &frame, err);
        if (rc == 0)
            rc = weir_spool_add(spool, frame->image.data, frame->image.size, err);
        if (rc == 0)
            weir_synth_report(job);
    }
    return rc;
}
