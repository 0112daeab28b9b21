/* After a kernel faults, the whole process has lost the GPU. With any decoder, the loader must return one error that
 * reports the loss, and close without hanging. The process cannot open the GPU again. */
#include "pipeline/gpu/gpu.h"
#include "tests/fixtures/loader_fixture.h"
#include "tests/gpu/gpu_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, LIMIT_S = 60, BATCHES_BEFORE = 3 };

/* Runs a kernel that reads pixels from an invalid address. */
static void fault(struct gpufx *fx)
{
    enum { SIDE = 64 };
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_gpu_source source = {.plane = {(const uint8_t *)4096}, .pitch = {3 * SIDE}, .kind = WEIR_GPU_RGB};
    struct weir_gpu_prepare prepare = {
        .sources = gpufx_upload(fx, &source, sizeof source),
        .n = 1,
        .width = SIDE,
        .height = SIDE,
        .out_width = SIDE,
        .out_height = SIDE,
        .dtype = WEIR_GPU_U8,
        .tensor = gpufx_alloc(fx, (size_t)3 * SIDE * SIDE),
    };
    gpufx_fine(fx->ops->prepare(fx->gpu, &prepare, fx->stream, &err), &err);
}

static void check_text(const struct weir_err *err, const char *decoder)
{
    printf("%s: %s\n", decoder, err->text);
    gpufx_check(err->code == -EIO && strstr(err->text, " is lost: ") && !strchr(err->text, '\n'), "%s: %d: %s", decoder,
                err->code, err->text);
}

/* Runs in its own process. Exits with status 0, 77, or another status after printing one line. */
static void lose(const char *data, const char *decoder)
{
    struct gpufx fx;
    struct weir_err err = WEIR_ERR_NONE;
    struct weir_loader_config config;
    struct weir_loader *loader;
    struct weir_batch *batch;
    int batches = 0, rc;
    gpufx_open(&fx);
    weir_loader_config_default(&config);
    config.data = data;
    config.device = "cuda";
    config.decoder = decoder;
    config.batch_size = 4;
    config.num_workers = 3;
    config.num_epochs = 1000;
    gpufx_fine(weir_loader_open(&loader, &config, &err), &err);
    for (; (rc = weir_loader_next(loader, &batch, &err)) > 0; batches++) {
        weir_loader_release(loader, batch);
        if (batches == BATCHES_BEFORE)
            fault(&fx);
    }
    gpufx_check(rc < 0 && batches > BATCHES_BEFORE, "%s: %d batches, %d: %s", decoder, batches, rc, err.text);
    check_text(&err, decoder);
    weir_loader_close(&loader);
    err = (struct weir_err)WEIR_ERR_NONE;
    gpufx_check(weir_loader_open(&loader, &config, &err) < 0, "%s: the lost GPU was opened again", decoder);
    gpufx_check(err.text[0] && !strchr(err.text, '\n'), "%s, opened again: %s", decoder, err.text);
    printf("  again: %s\n", err.text);
}

int main(void)
{
    static const char *const decoders[] = {"turbo", "nvjpeg", "hybrid"};
    setvbuf(stdout, NULL, _IOLBF, 0);
    fixture_open();
    char data[512];
    int worst = 0;
    snprintf(data, sizeof data, "%s", fixture_synth("jpeg", "act-jpeg", 4, 20, 160, 120, "top,wrist"));
    for (int i = 0; i < 3 && worst == 0; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(LIMIT_S);
            lose(data, decoders[i]);
            fflush(stdout);
            _exit(0);
        }
        int status = 0;
        bool ended = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
        if (!ended)
            printf("FAILED: %s: the process ended with status %x\n", decoders[i], (unsigned)status);
        worst = ended ? WEXITSTATUS(status) : 1;
    }
    fixture_close();
    return worst;
}
