"""How each peer is run: one file a peer, ending in its table ``RUNNERS``."""
