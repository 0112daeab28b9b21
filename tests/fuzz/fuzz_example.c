/* libFuzzer: walks a hostile tf.train.Example as the indexer does, and reads every range that the walk returns. */
#include "datasets/tfrecord/example.h"
#include "tests/fuzz/fuzz_bytes.h"

static void read_values(const struct weir_feature *feature, const struct weir_raw_file *source)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < feature->n_ranges; i++) {
        uint8_t *copy = malloc((size_t)feature->ranges[i].length + 1);
        require(source->read(source->user, feature->ranges[i].offset, copy, (size_t)feature->ranges[i].length) == 0);
        bytes += feature->ranges[i].length;
        free(copy);
    }
    if (feature->kind != WEIR_FEATURE_FLOATS)
        return;
    require(feature->n * sizeof(float) == bytes);
    float *values = malloc((size_t)bytes + 1);
    require(weir_feature_floats(feature, source, values) == 0);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes bytes = {data, size};
    struct weir_raw_file source = {.read = fuzz_read_inside, .user = &bytes};
    struct weir_example example;
    const char *reason = NULL;
    int rc = weir_example_walk(&example, &source, 0, size, &reason);
    require(rc == 0 || (rc == -EBADMSG && reason));
    for (int i = 0; i < example.n; i++)
        read_values(&example.features[i], &source);
    weir_example_free(&example);
    return 0;
}
