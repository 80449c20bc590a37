"""The model with I/O around it: clusters that come and go, caches into pairs, plans into writes.

It knows no mode: what travels, where to and in which form is told by the mode's table.
"""
