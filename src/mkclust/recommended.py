"""The name of the recommended method, which nothing need be imported for."""

# The default of the command line, and the method to begin with, whatever the number of
# samples.
RECOMMENDED = "agreement-kkm"
