"""The n-grams: the baselines of section 4.1 (modified Kneser-Ney through KenLM, class-based, and the interpolated
trigram), and those smoothed as before Kneser and Ney."""

# The kinds of `nplm2003.ngram.smoothed`, here so that a command line or a study is read without NumPy.
SMOOTHED_KINDS = ("maximum-likelihood", "add-k", "katz", "absolute-discounting")
