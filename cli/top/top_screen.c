/* weir top on a terminal: the whole screen is redrawn once per second, and keys are read. */
#include "analyze/trials/child.h"
#include "base/terminal.h"
#include "base/text.h"
#include "cli/top/top.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER      "\033[?1049h\033[?25l" /* the alternate screen, without a cursor */
#define LEAVE      "\033[?25h\033[?1049l"
#define HOME       "\033[H"
#define ERASE_LINE "\033[K"
#define ERASE_REST "\033[J"

static const char help[] = "Keys\n"
                           "  q        quit\n"
                           "  h        this help, or back to the figures\n"
                           "  1        one row per worker, or one row for all\n"
                           "  N        order of workers: as they were created\n"
                           "  P        by time on a core\n"
                           "  M        by memory (PSS)\n"
                           "  R        by bytes read\n"
                           "  up down  scroll\n"
                           "\nColumns\n"
                           "  on core    time on a core\n"
                           "  core-wait  ready, but without a core\n"
                           "  storage    asleep in a read from a disk or a network file system\n"
                           "  lock       asleep on a mutex, a condition variable or the GIL\n"
                           "  sleep      asleep for a requested time\n"
                           "  idle       asleep until a pipe, a socket or a process is ready, or,\n"
                           "             as a thread of Weir's loader, until there is work\n"
                           "  disk/s     bytes read from storage\n"
                           "  cached/s~  bytes read from the page cache (an estimate: pipes count too)\n"
                           "  PSS        memory, shared pages divided by their processes; every 10 s\n"
                           "  ready      threads that run or wait for a core\n"
                           "  files      open files of datasets; every 10 s\n";

static struct termios before;
static volatile sig_atomic_t suspended, resized;

struct screen {
    struct top *top;
    bool help, quit;
    int scroll;
};

static void write_all(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t written = write(STDOUT_FILENO, text, n);
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            text += written;
            n -= (size_t)written;
        }
    }
}

/* ---- the terminal ---- */

static void enter(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    write_all(ENTER, strlen(ENTER));
}

static void leave(void)
{
    write_all(LEAVE, strlen(LEAVE));
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void on_suspend(int number)
{
    (void)number;
    suspended = 1;
}

static void on_resize(int number)
{
    (void)number;
    resized = 1;
}

static void catch_screen_signals(void)
{
    struct sigaction suspend = {.sa_handler = on_suspend}, resize = {.sa_handler = on_resize};
    sigemptyset(&suspend.sa_mask);
    sigemptyset(&resize.sa_mask);
    sigaction(SIGTSTP, &suspend, NULL);
    sigaction(SIGWINCH, &resize, NULL);
}

/* Ctrl-Z: gives the terminal back, stops, and takes it again after fg. */
static void suspend(void)
{
    suspended = 0;
    leave();
    raise(SIGSTOP);
    enter();
}

/* ---- drawing ---- */

static int screen_height(void)
{
    struct winsize size = {0};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* Prints the part of a line that fits. Lines in bold have been wrapped at that width. */
static void show_line(FILE *out, const char *line, size_t n)
{
    size_t fitting = *line == '\033' ? n : weir_text_fitting(line, weir_terminal_columns(stdout));
    fprintf(out, "%.*s" ERASE_LINE, (int)(n < fitting ? n : fitting), line);
}

/* Copies the lines that fit, from screen->scroll on. The last row has the keys. */
static void show(FILE *out, struct screen *screen, const char *text)
{
    int rows = screen_height() - 1, lines = count_lines(text), most = lines > rows ? lines - rows : 0;
    screen->scroll = screen->scroll > most ? most : screen->scroll;
    for (int skip = screen->scroll; skip > 0; skip--)
        text = strchr(text, '\n') + 1;
    fputs(HOME, out);
    for (int row = 0; row < rows && *text; row++) {
        size_t n = strcspn(text, "\n");
        show_line(out, text, n);
        fputs("\r\n", out);
        text += n + (text[n] == '\n');
    }
    const char *keys = screen->help ? "h: back  q: quit" : "q: quit  h: help  1: all workers  N P M R: order";
    show_line(out, keys, strlen(keys));
    fputs(ERASE_REST, out);
}

/* text: of the figures or the help. Memory streams have no width of their own. */
static void draw(struct screen *screen)
{
    char *text = NULL, *picture = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return;
    weir_terminal_set_aside(out);
    if (screen->help)
        fputs(help, out);
    else if (screen->top->n_jobs == 0)
        fputs("waiting for a training job\n", out);
    else
        top_print(out, screen->top);
    weir_terminal_set_aside(NULL);
    fclose(out);
    out = open_memstream(&picture, &n);
    if (out && text) {
        show(out, screen, text);
        fclose(out);
        write_all(picture, n);
    }
    free(picture);
    free(text);
}

/* ---- keys ---- */

static void set_order(struct screen *screen, enum top_order order)
{
    screen->top->order = order;
    screen->top->collapsed = false;
}

static void press(struct screen *screen, char key)
{
    switch (key) {
    case 'q':
    case 'Q':
        screen->quit = true;
        break;
    case 'h':
    case '?':
        screen->help = !screen->help;
        screen->scroll = 0;
        break;
    case '1':
        screen->top->collapsed = !screen->top->collapsed;
        break;
    case 'N':
        set_order(screen, TOP_BY_PROCESS);
        break;
    case 'P':
        set_order(screen, TOP_BY_CPU);
        break;
    case 'M':
        set_order(screen, TOP_BY_MEMORY);
        break;
    case 'R':
        set_order(screen, TOP_BY_READS);
        break;
    default:
        break;
    }
}

/* Arrows are "\033[A" and "\033[B", or "\033OA" and "\033OB". Returns the number of characters. */
static size_t press_arrow(struct screen *screen, const char *keys, size_t n)
{
    if (n < 3 || keys[0] != '\033' || (keys[1] != '[' && keys[1] != 'O'))
        return 0;
    screen->scroll += keys[2] == 'B' ? 1 : keys[2] == 'A' && screen->scroll > 0 ? -1 : 0;
    return 3;
}

/* Returns whether there were keys. At the end of the input the screen quits. */
static bool read_keys(struct screen *screen)
{
    char keys[64];
    ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        screen->quit = true;
    for (ssize_t i = 0; i < n;) {
        size_t arrow = press_arrow(screen, keys + i, (size_t)(n - i));
        if (arrow == 0)
            press(screen, keys[i]);
        i += arrow ? (ssize_t)arrow : 1;
    }
    return n > 0;
}

/* ---- the loop ---- */

/* Waits until the time, or until a key or a signal. Returns whether the picture has to change. */
static bool wait_until(struct screen *screen, uint64_t ns)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    uint64_t now_ns = weir_clock_monotonic_ns();
    int ms = ns > now_ns ? (int)((ns - now_ns) / 1000000) + 1 : 0;
    int n = poll(&input, 1, ms);
    if (n > 0 && input.revents & (POLLHUP | POLLERR))
        screen->quit = true;
    bool changed = n > 0 && read_keys(screen);
    if (suspended) {
        suspend();
        changed = true;
    }
    changed = changed || resized;
    resized = 0;
    return changed;
}

static int run(struct screen *screen, uint64_t end_ns, struct weir_err *err)
{
    uint64_t next_ns = weir_clock_monotonic_ns();
    draw(screen);
    while (!screen->quit && !weir_interrupted && weir_clock_monotonic_ns() < end_ns) {
        bool changed = wait_until(screen, next_ns);
        if (weir_clock_monotonic_ns() >= next_ns) {
            int rc = top_sample(screen->top, err);
            if (rc < 0)
                return rc;
            changed = changed || rc > 0;
            next_ns = weir_clock_monotonic_ns() + TOP_SAMPLE_MS * UINT64_C(1000000);
        }
        if (changed)
            draw(screen);
        if (screen->top->wanted && screen->top->n_jobs > 0 && !top_is_running(screen->top))
            return 0;
    }
    return 0;
}

int top_screen(struct top *top, uint64_t end_ns, struct weir_err *err)
{
    struct screen screen = {.top = top};
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return weir_err_set(err, -errno, "cannot read keys from standard input: %s", strerror(errno));
    catch_screen_signals();
    enter();
    int rc = run(&screen, end_ns, err);
    leave();
    return rc;
}
