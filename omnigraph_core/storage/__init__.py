"""Where bytes live: the only package that imports lance and obstore."""

from omnigraph_core.settings import configure_lance

configure_lance()
