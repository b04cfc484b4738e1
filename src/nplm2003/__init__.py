"""A reproduction study of Bengio, Ducharme, Vincent and Jauvin (2003), "A Neural Probabilistic Language Model".

One idea carries the package: every language model, whatever its kind, ends in the natural-log probability of every
token of a split, in stream order (`nplm2003.scoring`). Perplexities, mixtures, tables and figures read nothing else.
"""

__version__ = "0.1.0"
