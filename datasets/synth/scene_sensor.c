#include "datasets/synth/scene_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Calibrated so that 640x480 frames weigh about 100 KB at JPEG quality 95 (4:2:0) and 20 KB at 50, as camera frames do.
 */
static const int noise_luma = 16, noise_chroma = 5; /* deviations in eighths of a level */

/* Sum of eight uniform values, roughly normal; the standard deviation is 16. */
static int bell(uint64_t hash)
{
    int sum = 0;
    for (int i = 0; i < 8; i++)
        sum += (int)(hash >> (8 * i) & 255);
    return (sum - 1020) / 13;
}

static int8_t to_noise(int v)
{
    v = (v + (v < 0 ? -64 : 64)) / 128;
    return (int8_t)(v < -127 ? -127 : v > 127 ? 127 : v);
}

/* Light lost towards the corners, in 1/4096 of full: the square of the distance from the middle, so x and y add up. */
static int loss_at(int at, int size, int longest)
{
    int64_t d = 2 * (int64_t)at + 1 - size;
    return (int)(d * d * 640 / ((int64_t)longest * longest));
}

int weir_sensor_make(struct weir_sensor *sensor, int width, int height, uint64_t seed)
{
    size_t n = WEIR_SENSOR_PERIOD + (size_t)width;
    sensor->noise = malloc(n * 4);
    sensor->loss = malloc((size_t)width * 4 * sizeof *sensor->loss);
    if (!sensor->noise || !sensor->loss)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        /* The fourth byte is no channel; it stays 0. */
        uint64_t hash = weir_scene_mix(seed, i % WEIR_SENSOR_PERIOD);
        int luma = bell(hash) * noise_luma;
        for (int c = 0; c < 3; c++)
            sensor->noise[i * 4 + (size_t)c] = to_noise(luma + bell(weir_scene_mix(hash, (uint64_t)c)) * noise_chroma);
        sensor->noise[i * 4 + 3] = 0;
    }
    for (int i = 0; i < width * 4; i++)
        sensor->loss[i] = (uint16_t)loss_at(i / 4, width, width > height ? width : height);
    return 0;
}

void weir_sensor_free(struct weir_sensor *sensor)
{
    free(sensor->noise);
    free(sensor->loss);
    sensor->noise = NULL;
    sensor->loss = NULL;
}

/* The four bytes of a pixel are treated alike, so their order in memory does not matter. */
static void blur_row(const uint8_t *restrict above, const uint8_t *restrict here, const uint8_t *restrict below,
                     uint8_t *restrict vertical, uint8_t *restrict out, int width)
{
    int n = width * 4;
    for (int i = 0; i < n; i++)
        vertical[i + 4] = (uint8_t)((above[i] + below[i] + 2 * here[i] + 2) >> 2);
    memcpy(vertical, vertical + 4, 4);
    memcpy(vertical + n + 4, vertical + n, 4);
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)((vertical[i] + vertical[i + 8] + 2 * vertical[i + 4] + 2) >> 2);
}

/* All channels of a row alike, so that the compiler can use vectors. */
static void gain_and_noise(const int8_t *restrict noise, const uint8_t *restrict blurred, const uint16_t *restrict loss,
                           int y_loss, uint8_t *restrict out, int width)
{
    int n = width * 4, full = 4096 - y_loss;
    for (int i = 0; i < n; i++) {
        uint16_t gain = (uint16_t)((full - loss[i]) >> 4);
        int16_t v = (int16_t)((uint16_t)(blurred[i] * gain) >> 8);
        v = (int16_t)(v + noise[i]);
        out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

static void pack_row(const uint8_t *restrict row, uint8_t *restrict rgb, int width)
{
    for (int x = 0; x < width; x++) {
        uint32_t pixel;
        memcpy(&pixel, row + 4 * x, 4);
        rgb[3 * x] = (uint8_t)(pixel >> 16);
        rgb[3 * x + 1] = (uint8_t)(pixel >> 8);
        rgb[3 * x + 2] = (uint8_t)pixel;
    }
}

void weir_sensor_expose(const struct weir_sensor *sensor, struct weir_canvas *canvas, uint64_t frame_seed, uint8_t *rgb)
{
    int width = canvas->width, height = canvas->height, longest = width > height ? width : height;
    uint8_t *vertical = canvas->rows, *blurred = vertical + 4 * ((size_t)width + 2);
    const uint8_t *pixels = (const uint8_t *)canvas->pixels;
    size_t stride = (size_t)width * 4;
    for (int y = 0; y < height; y++) {
        const uint8_t *here = pixels + (size_t)y * stride;
        blur_row(y > 0 ? here - stride : here, here, y < height - 1 ? here + stride : here, vertical, blurred, width);
        size_t start = weir_scene_mix(frame_seed, (uint64_t)y) % WEIR_SENSOR_PERIOD;
        gain_and_noise(sensor->noise + 4 * start, blurred, sensor->loss, loss_at(y, height, longest), vertical, width);
        pack_row(vertical, rgb + (size_t)y * (size_t)width * 3, width);
    }
}

void weir_sensor_depth(const struct weir_canvas *canvas, uint16_t *depth_mm)
{
    size_t n = (size_t)canvas->width * (size_t)canvas->height;
    for (size_t i = 0; i < n; i++) {
        float inverse = canvas->inverse_depth[i];
        depth_mm[i] = inverse > 0.01527f ? (uint16_t)(1000.0f / inverse + 0.5f) : 0;
    }
}
