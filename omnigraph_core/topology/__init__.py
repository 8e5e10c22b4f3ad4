"""What is derived from tables and kept: dense numbers, columns, adjacency, words.

Everything here can be thrown away and made again from the tables; none of it changes an answer.
"""
