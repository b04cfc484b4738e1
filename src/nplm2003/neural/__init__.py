"""The neural probabilistic language model: the network, its objectives, its training and its scoring."""
