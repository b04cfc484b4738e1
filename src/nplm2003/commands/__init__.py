"""One module per group of sub-commands; each has `register(subparsers)`.

Heavy imports (torch, matplotlib, nltk) stand inside the functions that need them, so that `--help` answers at once.
"""
