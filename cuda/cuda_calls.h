/* Keeps CUPTI from being attached to or detached from the driver while one of our threads is in a driver call: CUPTI
 * 13.0 crashes in such a call. */
#ifndef WEIR_CUDA_CUDA_CALLS_H
#define WEIR_CUDA_CUDA_CALLS_H

/* Bracket every use of the driver by a thread that can run while another thread starts or stops recording the GPU. Can
 * be nested. */
void weir_cuda_call_begin(void);
void weir_cuda_call_end(void);

/* Wait for such calls to end and keep new ones from beginning, until weir_cuda_calls_resume. The calls in progress must
 * not depend on this thread, and this thread must not be within a call. */
void weir_cuda_calls_pause(void);
void weir_cuda_calls_resume(void);

#endif
