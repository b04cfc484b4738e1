"""Written by helper B."""


def register(subparsers):  # type: ignore
    pass
