"""One file for each area. A suite of comparisons is a table: CASES, and the RUNNERS that may meet
them. Any other suite is a function ``main(arguments)`` with its own command line.
"""
