/* Writes the verdict over ranks, and a step of each rank. */
#include "analyze/page/page_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double longest_step(const struct weir_page *of)
{
    double longest = 0;
    for (int i = 0; i < of->n_ranks; i++)
        if (of->ranks[i].record)
            longest = fmax(longest, of->ranks[i].record->step_s);
    return longest;
}

/* A step: waiting for data is hatched, the rest is filled. */
static void put_rank(struct weir_page_out *page, const struct weir_rank *rank, bool slow, double longest)
{
    FILE *out = page->out;
    const struct weir_rank_record *record = rank->record;
    weir_page_put(out, "<tr%s><th scope=\"row\">%d</th><td class=\"text minor\">%H</td><td class=\"wide\">",
                  slow ? " class=\"lowest\"" : "", rank->rank, rank->host);
    if (record && longest > 0) {
        double part = 100 * weir_page_part(record->step_s, longest);
        double waits = fmin(100 * weir_page_part(record->data_s, longest), part);
        fprintf(out,
                "<svg class=\"bar\" width=\"100%%\" height=\"12\" aria-hidden=\"true\"><rect class=\"%s\" "
                "width=\"%.2f%%\" height=\"12\"/><rect class=\"waits\" x=\"%.2f%%\" width=\"%.2f%%\" "
                "height=\"12\"/></svg>",
                slow ? "hot" : "cool", part - waits, part - waits, waits);
    }
    weir_page_put(out, "</td><td>%T</td><td>%T</td></tr>\n", record ? record->step_s : NAN,
                  record ? record->data_s : NAN);
}

static void put_verdict(struct weir_page_out *page, const struct weir_page *of)
{
    char *text = NULL;
    size_t size = 0;
    FILE *lines = open_memstream(&text, &size);
    if (!lines)
        return;
    weir_rank_verdict_lines(lines, of->rank_verdict, of->ranks, of->n_ranks);
    if (fclose(lines) == 0) {
        fputs("<div lang=\"en\">\n", page->out);
        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
            size_t indent = strspn(line, " ");
            fprintf(page->out, "<p class=\"%s\">", line == text ? "verdict" : "remark");
            weir_page_text_n(page->out, line + indent, strcspn(line, "\n") - indent);
            fputs("</p>\n", page->out);
        }
        fputs("</div>\n", page->out);
    }
    free(text);
}

void weir_page_ranks(struct weir_page_out *page, const struct weir_page *of)
{
    FILE *out = page->out;
    const struct weir_rank_verdict *verdict = of->rank_verdict;
    if (of->n_ranks == 0)
        return;
    fprintf(out, "<section>\n<h2>%s</h2>\n", weir_word(WEIR_WORD_RANKS, page->lang));
    put_verdict(page, of);
    fprintf(out, "<p class=\"note\">%s</p>\n", weir_word(WEIR_WORD_RANKS_NOTE, page->lang));
    fprintf(out,
            "<table class=\"threads\"><thead><tr><th scope=\"col\">%s</th><th scope=\"col\" class=\"text minor\">"
            "%s</th><td></td><th scope=\"col\">%s</th><th scope=\"col\">%s</th></tr></thead>\n<tbody>\n",
            weir_word(WEIR_WORD_RANK, page->lang), weir_word(WEIR_WORD_HOST, page->lang),
            weir_word(WEIR_WORD_STEP, page->lang), weir_word(WEIR_WORD_DATA_WAIT, page->lang));
    double longest = longest_step(of);
    for (int i = 0; i < of->n_ranks; i++)
        put_rank(page, &of->ranks[i], verdict->finding == WEIR_RANKS_SLOW && verdict->slow == &of->ranks[i], longest);
    fputs("</tbody></table>\n</section>\n", out);
}
