"""The model with I/O around it: clusters that join and leave, caches into pairs, plans into writes.

It is independent of modes: which objects are synced, where to and in which form is defined by the mode's table.
"""
