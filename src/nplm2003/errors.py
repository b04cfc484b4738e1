"""The one exception a user is meant to see."""


class UserError(Exception):
    """Bad input: one sentence that says what is wrong, where, and what to do about it.

    The command line prints it as a single line and exits with status 1; nothing is written in that case.
    """
