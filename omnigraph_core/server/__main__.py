"""`python -m omnigraph_core.server`."""

from omnigraph_core.server.start import main

if __name__ == "__main__":
    main()
