"""`python -m omnigraph_core.server`."""

from omnigraph_core.server.main import main

if __name__ == "__main__":
    main()
