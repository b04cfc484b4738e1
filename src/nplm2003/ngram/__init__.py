"""The n-gram baselines (section 4.1): modified Kneser-Ney through KenLM, class-based, and the interpolated trigram."""
