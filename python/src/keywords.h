/* keywords.h: the keywords of weir.Loader, out of the table of the loader's options (pipeline/loader_options.h). */
#ifndef WEIR_PYTHON_SRC_KEYWORDS_H
#define WEIR_PYTHON_SRC_KEYWORDS_H

#include "python/src/py.h"

/* Adds _loader_keywords to the module: 0 or -1. */
int weir_keywords_begin(PyObject *module);

/* Copies text with keywords for the program's options: "--device cuda:0" becomes device="cuda:0", "--num-workers 8"
 * num_workers=8, and "--batch-size" batch_size. Options without a keyword remain. Cut to room bytes; twice the length
 * of text suffices. */
void weir_name_keywords(char *to, size_t room, const char *text);

#endif
