"""Counts the checks of a test, and prints those that fail."""

failures, made = 0, 0


def check(what, fine, shown=""):
    global failures, made
    made += 1
    if not fine:
        failures += 1
        print(f"FAIL: {what}\n{str(shown)[-1500:]}")


def failed():
    """Prints the counts. Returns whether a check has failed."""
    print(f"{made} checks, {failures} failures")
    return failures > 0
