/* thresholds.h: from which figures on a judge names a cause. Each threshold stands here once, whoever asks;
 * docs/internals/verdict.md explains them. Comments that begin with "of" say what the fraction refers to.
 *
 * A source that samples is less certain than one that times every call, and says so by its certainty: what it names is
 * likely, and sure only from WEIR_SAMPLED_SURE times the threshold on. */
#ifndef WEIR_ANALYZE_CAUSES_THRESHOLDS_H
#define WEIR_ANALYZE_CAUSES_THRESHOLDS_H

#define WEIR_SAMPLED_SURE 2.0

/* ---- every job ---- */

#define WEIR_VERDICT_WAIT_LEAST  0.05 /* of training time, spent waiting for data; below it a run is not data-bound */
#define WEIR_VERDICT_WAIT_STRONG 0.20 /* as above; above this value a run is strongly data-bound */
#define WEIR_VERDICT_THROTTLED   0.10 /* of threads' time, or of the quota's periods, throttled */
#define WEIR_VERDICT_STEAL       0.05 /* of the usable cores, stolen */
#define WEIR_VERDICT_RUNNABLE    0.30 /* of threads' time, running or ready to run */
#define WEIR_VERDICT_CORE_WAIT   0.10 /* of threads' time, waiting for a core */
#define WEIR_VERDICT_OTHERS      0.10 /* of the usable cores, used by other processes */
#define WEIR_VERDICT_OTHERS_MANY 0.50 /* as above; from this value on, half of WEIR_VERDICT_CORE_WAIT is enough */
#define WEIR_VERDICT_CORES_BUSY  0.90 /* of the usable cores, used by this job */
#define WEIR_VERDICT_BUSY        0.80 /* of the time; a GPU, the loop's thread, and what serves one request at a time */
#define WEIR_VERDICT_TAKEN_GAIN  1.10 /* gain from which a cause that takes cores away precedes the use of the cores */
#define WEIR_VERDICT_WORTH       1.05 /* gain of advice that is printed, and of a cause of a loop that hardly waits */

/* Stages of a loop: */
#define WEIR_ADVICE_PART_LEAST    0.50 /* of the largest part; smaller parts get no advice */
#define WEIR_ADVICE_BACKWARD_LIKE 0.75 /* backward over forward pass, from which one is about as long as the other */

/* A loop without a loader, whose stages alone are timed: */
#define WEIR_LOOP_COMPUTES 0.50 /* of a stage's time, on a core or ready for one; below it the stage sleeps */

/* A verdict needs this many training batches and seconds of training, or the second pair. */
#define WEIR_VERDICT_BATCHES_LEAST 20
#define WEIR_VERDICT_SECONDS_LEAST 0.5
#define WEIR_VERDICT_BATCHES_LONG  8
#define WEIR_VERDICT_SECONDS_LONG  1.0

/* ---- jobs with a DataLoader, timed by weir.watch or seen from outside by weir top: factors, and fractions of training
 * time, of the loop's time, or of the workers' busy time ---- */

#define WEIR_JOB_BUSY_WORKERS 0.75 /* of the workers' time, at work; from here on they are always at work */
#define WEIR_JOB_IDLE         0.50 /* of the workers' time; workers that are idle for longer have filled their queue */
#define WEIR_JOB_ASLEEP       0.25 /* of the workers' time at work, without waits for a core: storage, or a lock */
#define WEIR_JOB_LOOP_HELD    0.15 /* the loop: in locks, or waiting for batches that are ready */
#define WEIR_JOB_START_UP     0.05 /* creating workers and their first batches */
#define WEIR_JOB_COPIES       0.10 /* the loop, copying to the GPU */
#define WEIR_JOB_PIN_BUSY     0.50 /* the pin thread */
#define WEIR_JOB_PART         0.25 /* one stage of busy workers */
#define WEIR_JOB_MORE_WORKERS 1.10 /* predicted gain of more workers */
#define WEIR_JOB_SLOW_WORKER  1.5  /* time per batch of one worker over the usual one */
#define WEIR_JOB_SLOW_FILE    3.0  /* time per item of one file over the others' ... */
#define WEIR_JOB_FILE_SHARE   0.10 /* ... if it takes this part of the time with files */
#define WEIR_JOB_SHARE        1.3  /* batches of one worker over the mean */
#define WEIR_JOB_ORDER        0.30 /* of the waits, with other batches ready */
#define WEIR_JOB_UNEVEN       0.60 /* standard deviation of batches over their mean */
#define WEIR_JOB_OPENS        0.80 /* files opened per item; opening and closing count once each */
#define WEIR_JOB_OPEN_SHARE   0.10 /* opening files */
#define WEIR_JOB_HELPED       0.10 /* cores that a worker's other threads use; named from here on */
#define WEIR_JOB_FREE         0.50 /* cores that nobody uses, for one more worker */

/* ---- the same from figures that only weir top has: fractions of a thread's time unless stated otherwise ---- */

#define WEIR_OUTSIDE_THREADS   1.50  /* running and ready threads per worker, or per core */
#define WEIR_OUTSIDE_GPU_IDLE  0.50  /* an idle GPU */
#define WEIR_OUTSIDE_GPU_USED  0.01  /* one that the job uses at all */
#define WEIR_OUTSIDE_COPIES    1e9   /* bytes/s to the GPU; a core copies some 4e9 bytes/s of pageable memory */
#define WEIR_OUTSIDE_BOTH      0.80  /* another thread is on a core, and the loop waits for a lock: no step does that */
#define WEIR_OUTSIDE_THREAD    0.50  /* another Python thread of the main process, on a core */
#define WEIR_OUTSIDE_YOUNG     0.25  /* of the time: workers are missing or younger than WEIR_OUTSIDE_YOUNG_S */
#define WEIR_OUTSIDE_SLOW_BUSY 0.85  /* a slow worker is at work for longer ... */
#define WEIR_OUTSIDE_SLOW_REST 0.60  /* ... and the median of the other workers for less */
#define WEIR_OUTSIDE_PARKED    0.002 /* workers that are on a core for less belong to a loader that is not in use */
#define WEIR_OUTSIDE_YOUNG_S   3.0
#define WEIR_OUTSIDE_LEAST_S   2.5 /* seconds that a verdict needs */

/* ---- Weir's own loader, whose stages are timed, and whose causes are in the order of their gain ---- */

#define WEIR_VERDICT_TRACED_LEAST  0.05  /* of the traced time; a smaller part is no cause of the GPU's idle time */
#define WEIR_VERDICT_OTHER_MOST    0.10  /* of the workers' or the loop's time, in no stage */
#define WEIR_VERDICT_EPOCHS_APART  2.0   /* fastest later epoch over the slowest, in images/s */
#define WEIR_VERDICT_EPOCH_LEAST   0.2   /* seconds; shorter epochs differ by chance */
#define WEIR_VERDICT_CORES_IDLE    0.25  /* cores that neither this run nor other processes use, for one more worker */
#define WEIR_VERDICT_WORKERS_BUSY  0.90  /* of the workers' time, working */
#define WEIR_VERDICT_BLOCKED       0.10  /* of the workers' time, asleep inside tasks */
#define WEIR_VERDICT_IDLE          0.10  /* of the workers' time, without work */
#define WEIR_VERDICT_DECODE_RULE   0.40  /* of a sample's time, spent decoding */
#define WEIR_VERDICT_COLD_BYTES    0.50  /* of an epoch's bytes, read from storage */
#define WEIR_VERDICT_COLD_FASTER   1.5   /* later epochs over a cold first one, in images/s */
#define WEIR_VERDICT_COLD_EXCESS   0.25  /* of the waits for data: the first epoch's excess */
#define WEIR_VERDICT_SLOW_TIMES    4.0   /* median read of a camera, or mean read of a file, over that of the others */
#define WEIR_VERDICT_SLOW_SHARE    0.30  /* of the total reading time, for the slow camera or file */
#define WEIR_VERDICT_TAIL_TIMES    20.0  /* p99 of reads over their p50 */
#define WEIR_VERDICT_TAIL_SHARE    0.50  /* of the total reading time, for the slowest tenth of the reads */
#define WEIR_VERDICT_PROBE_SAME    1.4   /* many reads at once over the run's, in bytes/s; below, bandwidth limits */
#define WEIR_VERDICT_PROBE_MORE    2.0   /* as above; from here on, latency may limit */
#define WEIR_VERDICT_PROBE_SMALL   0.5   /* time of a read of 4 KiB over that of a frame, where latency limits */
#define WEIR_VERDICT_SLEEPER       0.5   /* of one worker's time, asleep inside tasks */
#define WEIR_VERDICT_SLEEPER_TIMES 3.0   /* as above, over that of the others */
#define WEIR_VERDICT_SLEEPER_TAIL  10.0  /* as above, where a few very slow reads may hit one worker by chance */
#define WEIR_VERDICT_ONE_BUSY      0.8   /* of one worker's time, working ... */
#define WEIR_VERDICT_ONE_OTHERS    0.5   /* ... while the others work for at most this part ... */
#define WEIR_VERDICT_ONE_OF_WAITS  0.6   /* ... and of the loop's waits, for a batch that this worker completes */
#define WEIR_VERDICT_HALF_SIZE     0.77  /* CPU time of decoding to half width and height over that of full size */
#define WEIR_VERDICT_BACKWARD      2.0   /* backward over forward pass; above it, the backward pass is a bottleneck */
#define WEIR_VERDICT_CPU_GROWTH    1.30  /* CPU time per image over that with one worker */
#define WEIR_VERDICT_CONVERT       0.10  /* of the workers' CPU time, spent converting, to suggest --dtype u8 */
#define WEIR_VERDICT_ENGINE_PIXELS 1.1e9 /* pixels/s of one JPEG engine (H200, 640x480 at quality 95) */
#define WEIR_VERDICT_INDEX_S       1.0   /* seconds spent opening the dataset, to suggest --index */
#define WEIR_VERDICT_INDEX_PART    0.10  /* of the report's time, spent opening the dataset, to suggest --index */
#define WEIR_VERDICT_REFUSED       0.02  /* of the requests to a server, refused with 429 or 503 */
#define WEIR_VERDICT_QUEUED        2.0   /* mean time to the first byte over the shortest; above it, requests queue */
#define WEIR_VERDICT_IN_FLIGHT     0.75  /* of the requests that read-ahead may keep in flight; below, they are few */

/* ---- ranks: against the other ranks ---- */

#define WEIR_RANK_SKEW        0.10 /* longest step over the others' median: from here on, ranks do not wait for each other */
#define WEIR_RANK_EXCESS      0.05 /* of the step: time that a rank of a synchronous loop needs more than the others */
#define WEIR_RANK_SPINNING    0.85 /* of the step outside data waits, on a core: the loop waits for others by spinning */
#define WEIR_RANK_FEWER_CORES 0.75   /* of the others' cores */
#define WEIR_RANK_LEAST_S     0.0002 /* shorter differences per step are noise */

/* ---- trials and predictions. A trial is disturbed if others use WEIR_VERDICT_OTHERS of the cores. ---- */

#define WEIR_CLOSE        0.03 /* relative difference of rates that count as equal, and of one that is worth advice */
#define WEIR_WHATIF_NOISY 0.05 /* two identical runs that differ by more cannot check a prediction */

#endif
