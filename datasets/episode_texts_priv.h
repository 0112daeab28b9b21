/* episode_texts_priv.h: the texts of an episode, packed as "key\0value\0" one after the other. */
#ifndef WEIR_DATASETS_EPISODE_TEXTS_PRIV_H
#define WEIR_DATASETS_EPISODE_TEXTS_PRIV_H

#include "datasets/index.h"

/* Returns the number of texts in these bytes; -1 for malformed bytes: an odd number of strings, an empty key, or more
 * texts than an episode may have. */
int weir_texts_count(const char *texts, size_t bytes);

#endif
