"""The n-gram baselines (section 4.1): modified Kneser-Ney through KenLM, and the interpolated trigram."""
