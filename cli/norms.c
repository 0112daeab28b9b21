#include "cli/norms.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Mean and standard deviation of ImageNet's training images, as torchvision's models expect them. */
static const float imagenet_mean[3] = {0.485f, 0.456f, 0.406f}, imagenet_std[3] = {0.229f, 0.224f, 0.225f};

static int parse(float to[3], const char *option, const char *text, const float known[3], double least,
                 struct weir_err *err)
{
    if (strcmp(text, "imagenet") == 0) {
        memcpy(to, known, 3 * sizeof *to);
        return 0;
    }
    const char *at = text;
    for (int c = 0; c < 3; c++) {
        char *end;
        double value = strtod(at, &end);
        bool ends = *end == (c < 2 ? ',' : '\0');
        if (end != at && ends && fabs(value) > 10)
            return weir_err_set(err, -EINVAL, "%s: %.100s are numbers for values of 0..255; divide them by 255", option,
                                text);
        if (end == at || !ends || !(value >= least))
            return weir_err_set(err, -EINVAL,
                                "%s: \"%.100s\" is not three numbers of at least %g; write R,G,B in units of 0..1, as "
                                "in 0.5,0.5,0.5, or imagenet",
                                option, text, least);
        to[c] = (float)value;
        at = end + 1;
    }
    return 0;
}

int weir_norms_parse(struct weir_pixel_format *format, const char *mean, const char *std, struct weir_err *err)
{
    if (!mean && !std)
        return 0;
    if (format->dtype == WEIR_DTYPE_U8)
        return weir_err_set(err, -EINVAL,
                            "--mean, --std: images must be floats; add --dtype f32, or f16 or bf16 with --device "
                            "cuda");
    for (int c = 0; c < 3; c++) {
        format->mean[c] = 0;
        format->std[c] = 1;
    }
    int rc = mean ? parse(format->mean, "--mean", mean, imagenet_mean, -10, err) : 0;
    return rc == 0 && std ? parse(format->std, "--std", std, imagenet_std, 1e-4, err) : rc;
}
