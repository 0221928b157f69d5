"""How a session's requests fare in the providers' caches, and what a compressed prompt still knows."""
