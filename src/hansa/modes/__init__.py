"""The systems that Hansa is: each a table of policies over the one engine, and what its users say to it."""
